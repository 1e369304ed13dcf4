"""Files as people have them: every dialect of CSV, broken files, and files larger than memory should hold.

No message may repeat a value of a row: a canary stands in the rows of every broken file.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import textwrap
import traceback
from datetime import date

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from understudy.boundary.schema.column import Categorical, Identifier, Integer
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import Schema, Unit
from understudy.boundary.tables.draft import draft_schema
from understudy.boundary.tables.duck import BATCH
from understudy.boundary.tables.sources import open as open_table
from understudy.boundary.tables.table import is_table
from understudy.errors import TableError

CANARY = "Mrs-Secret-4711"
SCHEMA = Schema((Integer("age", minimum=0, maximum=9), Categorical("sex", values=("f", "m"), missing=True)))
DOMAIN = Domain.of(SCHEMA)
ROWS = [("1", "f"), ("2", "m"), ("2", "")]
EXPECTED = [[0, 1, 2, 0, 0, 0, 0, 0, 0, 0], [1, 1, 1]]


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def lines(delimiter=",", newline="\n", head=("age", "sex")):
    return newline.join(delimiter.join(row) for row in (head, *ROWS)) + newline


def answers(source, schema=SCHEMA):
    domain = Domain.of(schema)
    return [c.tolist() for c in open_table(source, schema).count_by(domain, [(n,) for n in domain.names])]


# ---------------------------------------------------------------- dialects


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("comma.csv", lines()),
        ("semicolon.csv", lines(";")),
        ("tab.tsv", lines("\t")),
        ("pipe.txt", lines("|")),
        ("UPPER.CSV", lines()),
        ("bom.csv", "\ufeff" + lines()),
        ("bom-quoted.csv", "\ufeff" + lines(head=('"age"', '"sex"'))),
        ("crlf.csv", lines(newline="\r\n")),
        ("no-last-newline.csv", lines().rstrip("\n")),
        ("spaces-in-header.csv", lines(head=(" age ", " sex"))),
        ("quoted.csv", 'age,sex\n"1","f"\n2,"m"\n"2",""\n'),
        ("blank-line.csv", "age,sex\n1,f\n\n2,m\n2,\n"),
        ("packed.csv.gz", gzip.compress(lines().encode(), mtime=0)),
        ("PACKED.TSV.GZ", gzip.compress(lines("\t").encode(), mtime=0)),
        ("a*b?[c]{d}.csv", lines()),
        ("it's a 'quoted' name.csv", lines()),
    ],
)
def test_dialects_of_csv_are_told_from_the_header(tmp_path, name, content):
    assert answers(write(tmp_path / name, content)) == EXPECTED


def test_a_wildcard_in_a_path_reads_that_file_alone(tmp_path):
    write(tmp_path / "part1.csv", lines())
    only = write(tmp_path / "part*.csv", "age,sex\n5,f\n")
    assert open_table(only, SCHEMA).count_rows() == 1


def test_newlines_delimiters_and_quotes_live_inside_quotes(tmp_path):
    labels = ("two\nlines", "a,b", 'say "hi"', "win\r\ndows")
    schema = Schema((Categorical("x", values=labels), Integer("n", minimum=0, maximum=3)))
    quoted = ('"' + label.replace('"', '""') + '"' for label in labels)
    content = "x,n\n" + "".join(f"{label},{i}\n" for i, label in enumerate(quoted))
    (counts,) = open_table(write(tmp_path / "q.csv", content), schema).count_by(Domain.of(schema), [("x", "n")])
    np.testing.assert_array_equal(counts, np.eye(4))


def test_a_single_column_keeps_its_empty_rows(tmp_path):
    schema = Schema((Integer("x", minimum=0, maximum=2, missing=True),))
    assert answers(write(tmp_path / "one.csv", "x\n1\n\n2\n"), schema) == [[0, 1, 1, 1]]


def test_a_header_without_rows_has_no_rows(tmp_path):
    for content in ("age,sex\n", "age,sex", "age,sex\r\n"):
        table = open_table(write(tmp_path / "head.csv", content), SCHEMA)
        assert not table.has_rows(1) and table.count_rows() == 0 and table.has_rows(0)


def test_types_of_a_csv_are_never_guessed(tmp_path):
    """Leading zeros are part of a label, however number-like the whole column is."""
    schema = Schema((Categorical("zip", values=("007", "7")),))
    assert answers(write(tmp_path / "zip.csv", "zip\n007\n7\n007\n"), schema) == [[2, 1]]


# ---------------------------------------------------------------- refusals

BROKEN = {
    "ragged.csv": (f"age,sex\n1,f\n{CANARY},m,x\n", "line 3: the line has another number of fields"),
    "short.csv": (f"age,sex\n1,f\n2,m\n{CANARY}\n1,f\n", "line 4: the line has another number of fields"),
    "unclosed.csv": (f'age,sex\n1,f\n"{CANARY},m\n1,f\n', "line 3: a quoted value is not closed"),
    "latin.csv": (f"age,sex\n1,f\n{CANARY}é,m\n".encode("latin-1"), "line 3: it is not UTF-8 text"),
    "latin-head.csv": (f"âge,sex\n{CANARY},f\n".encode("latin-1"), "it is not UTF-8 text"),
    "empty.csv": ("", "it has no header line"),
    "spaces.csv": ("  \n", "it has no header line"),
    "twice.csv": (f"age,age\n{CANARY},1\n", "column 'age' stands twice in the header; rename one of them"),
    "nameless.csv": (f"age,\n{CANARY},1\n", "column 2 of the header has no name"),
    "old-mac.csv": (f"age,sex\r1,f\r{CANARY},m\r", "its header must be one line"),
    "two-line-header.csv": (f'"age\nyears",sex\n{CANARY},m\n', "its header must be one line"),
    "near.csv": (f"age,Sex\n{CANARY},m\n", "column 'sex' of the schema is not in the table; the table has 'Sex'"),
    "other.csv": (f"age,gender\n{CANARY},m\n", "column 'sex' of the schema is not in the table"),
    "garbage.csv": (bytes(range(128, 256)) + CANARY.encode(), "it is not UTF-8 text"),
    "not.csv.gz": (CANARY, "it is not a gzip file"),
    "cut.csv.gz": (gzip.compress((lines() * 999 + CANARY).encode(), mtime=0)[:-9], "damaged"),
    "not.parquet": (CANARY * 9, "it is not a Parquet file"),
    "tiny.parquet": ("x", "it is not a Parquet file"),
    "table.xlsx": (CANARY, "the file is damaged or not a workbook"),
    "table.pages": (CANARY, "has an ending that is not known; give one of .csv"),
    "bare.duckdb": (CANARY, "is a database; name one of its tables, as in"),
}


NOT_BROKEN_TO_A_DRAFT = ("near.csv", "other.csv", "bare.duckdb", "latin.csv", "latin-head.csv")
"""A draft knows no schema, names no table inside, and finds out the encoding."""


def ask_everything(source):
    table = open_table(source, SCHEMA)
    table.count_by(DOMAIN, [("age", "sex")])


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_without_its_content(tmp_path, name):
    content, reason = BROKEN[name]
    path = write(tmp_path / name, content)
    with pytest.raises(TableError) as caught:
        ask_everything(path)
    message = str(caught.value)
    assert reason in message and name in message and "\n" not in message
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value.subject)
    assert CANARY not in shown


@pytest.mark.parametrize("ask", ["count_rows", "count_values", "has_rows", "count_cells"])
def test_no_question_lets_a_row_into_its_message(tmp_path, ask):
    from understudy.boundary.schema.partition import Grid

    arguments = {"count_values": ("sex",), "has_rows": (9,), "count_cells": (DOMAIN, [Grid(("sex",), ((0, 0, 0),))])}
    table = open_table(write(tmp_path / "ragged.csv", f"age,sex\n1,f\n{CANARY},m,x\n"), SCHEMA)
    with pytest.raises(TableError, match="line 3") as caught:
        getattr(table, ask)(*arguments.get(ask, ()))
    assert CANARY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("name", [n for n in BROKEN if n not in NOT_BROKEN_TO_A_DRAFT])
def test_a_draft_of_a_broken_file_is_refused_without_its_content(tmp_path, name):
    with pytest.raises(TableError) as caught:
        draft_schema(write(tmp_path / name, BROKEN[name][0]))
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_places_that_hold_no_table_are_refused(tmp_path):
    with pytest.raises(TableError, match=r"nowhere.csv' does not exist"):
        open_table(tmp_path / "nowhere.csv", SCHEMA)
    with pytest.raises(TableError, match="is a folder; give a file"):
        open_table(tmp_path, SCHEMA)
    path = write(tmp_path / "a.csv", lines())
    with pytest.raises(TableError, match="is not a DuckDB file, so it has no table 'x'"):
        open_table(f"{path}::x", SCHEMA)
    with pytest.raises(TableError, match="a list can't be opened; give a pandas, polars, pyarrow or Spark frame"):
        open_table([1, 2], SCHEMA)
    with pytest.raises(TableError, match="the table is open already"):
        open_table(open_table(path, SCHEMA), SCHEMA)


def test_a_database_is_read_by_the_name_of_a_table_and_never_written(tmp_path):
    path = tmp_path / "db.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE people AS SELECT 1 AS age, 'f' AS sex, '{CANARY}' AS name")
    before = path.read_bytes()
    schema = Schema((*SCHEMA.columns, Identifier("name")))
    assert answers(f"{path}::people", schema) == [[0, 1, *[0] * 8], [1, 0, 0]]
    assert path.read_bytes() == before
    with pytest.raises(TableError, match="nobody can't be read: there is no table of that name in it"):
        open_table(f"{path}::nobody", schema)
    with pytest.raises(TableError, match="no table of that name"):
        open_table(f"{path}::people; DROP TABLE people", schema)
    with pytest.raises(TableError, match="it is not a DuckDB database"):
        open_table(f"{write(tmp_path / 'no.duckdb', CANARY * 99)}::people", schema)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read_is_refused(tmp_path):
    path = write(tmp_path / "locked.csv", lines())
    path.chmod(0)
    with pytest.raises(TableError, match="Permission denied"):
        open_table(path, SCHEMA)


def test_frames_with_odd_columns_are_refused():
    twice = pd.DataFrame([[1, 2]], columns=["age", "age"])
    with pytest.raises(TableError, match="two columns of one name; rename one"):
        open_table(twice, SCHEMA)
    with pytest.raises(TableError, match="two columns of one name"):
        open_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["age", "age"]), SCHEMA)
    with pytest.raises(TableError, match="rename 0"):
        open_table(pd.DataFrame({0: [1]}), SCHEMA)
    # What one row holds decides this type, so it is no reason to refuse: such a value can't be read, and is missing.
    assert open_table(pd.DataFrame({"age": [1j], "sex": ["f"]}), SCHEMA).count_rows() == 1


def test_mixed_objects_of_pandas_are_read_as_their_texts():
    mixed = pd.DataFrame({"age": [1, "2", 2.0, None], "sex": ["f", date(2024, 1, 1), None, "m"]}, dtype=object)
    assert answers(mixed) == [[1, 1, 2, *[0] * 7], [1, 1, 2]]


# ---------------------------------------------------------------- more rows than a batch


def test_a_file_larger_than_a_batch_is_counted_whole(tmp_path):
    size = 2 * BATCH + 12_345
    rng = np.random.default_rng(5)
    age, sex = rng.integers(0, 10, size), rng.integers(0, 3, size)
    rows = pa.table({"age": age, "sex": pa.array(np.array(["f", "m", None], dtype=object)[sex])})
    pq.write_table(rows, tmp_path / "big.parquet", row_group_size=50_000)
    (counts,) = open_table(tmp_path / "big.parquet", SCHEMA).count_by(DOMAIN, [("age", "sex")])
    np.testing.assert_array_equal(counts, np.bincount(age * 3 + sex, minlength=30).reshape(10, 3))


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_capping_follows_the_order_of_a_large_file(tmp_path, ending):
    """Several threads scan the file; the first row of each person is still the first in the file."""
    size, people = 300_000, 40_000
    person = np.random.default_rng(6).integers(0, people, size)
    first = np.sort(np.unique(person, return_index=True)[1])
    path = tmp_path / f"people.{ending}"
    rows = pa.table({"person": person, "row": np.arange(size)})
    if ending == "csv":
        rows.to_pandas().to_csv(path, index=False)
    else:
        pq.write_table(rows, path, row_group_size=20_000)
    columns = (Identifier("person"), Integer("row", minimum=0, maximum=size - 1, bins=1000))
    schema = Schema(columns, unit=Unit("person", 1))
    (counts,) = open_table(path, schema).count_by(Domain.of(schema), [("row",)])
    np.testing.assert_array_equal(counts, np.bincount(first // 300, minlength=1000))


STREAM = """
    import itertools, sys
    import numpy as np, pyarrow as pa, pyarrow.parquet as pq
    import understudy as us
    from understudy.boundary.schema.column import Categorical, Integer

    path, rows, part = sys.argv[1], 3_000_000, 250_000
    names = [f"c{i}" for i in range(8)]
    rng = np.random.default_rng(7)
    labels = np.array([f"{'a long label ' * 6}{j}" for j in range(50)])
    codes = [rng.integers(0, 50, part) for _ in names]
    texts = [pa.array(labels).take(pa.array(c)) if i % 2 else c for i, c in enumerate(codes)]
    chunk = pa.table(dict(zip(names, texts)))
    with pq.ParquetWriter(path, chunk.schema) as writer:
        for _ in range(rows // part):
            writer.write_table(chunk)
    def column(i, name):
        return Categorical(name, values=tuple(map(str, labels))) if i % 2 else Integer(name, minimum=0, maximum=49)
    schema = us.Schema(tuple(column(i, n) for i, n in enumerate(names)))
    domain = us.Domain.of(schema)
    rows_kept = pq.read_table(path) if sys.argv[2] == "whole" else None
    counts = us.open(path, schema).count_by(domain, list(itertools.combinations(names, 2)))
    assert all(c.sum() == rows for c in counts)
    # Not ru_maxrss, which a process inherits from the one that started it.
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(int(peak.split()[1]) // 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from /proc")
@pytest.mark.parametrize(("way", "bounded"), [("streamed", True), ("whole", False)])
def test_memory_stays_bounded_while_a_file_streams(tmp_path, way, bounded):
    """3 million rows × 8 columns (4 of them texts of 80 letters) are 1.1 GB in memory; the mutant loads them."""
    command = [sys.executable, "-c", textwrap.dedent(STREAM), str(tmp_path / "stream.parquet"), way]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (int(done.stdout) < 700) == bounded, done.stdout


def test_what_is_no_table_is_not_looked_at_closely():
    """A lazy frame warns when it is asked for its schema."""

    class Lazy:
        @property
        def schema(self) -> object:
            raise AssertionError

    assert not is_table(Lazy())
    schema = Schema.loads('[columns.a]\ntype = "integer"\nmin = 0\nmax = 9\n')
    assert is_table(open_table(pa.table({"a": [1]}), schema))
