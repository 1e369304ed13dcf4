"""Tables of very many columns: planned without a join for each, counted as narrow ones are, and refused truly."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import understudy as us
from understudy.boundary.schema.domain import Domain
from understudy.boundary.tables.connection import connect
from understudy.boundary.tables.duck import out_of_memory, unreadable
from understudy.errors import TableError

COLUMNS = 200
WORDS = ("red", "green", "?", "unknown")


def wide() -> tuple[us.Schema, pa.Table]:
    draws = np.random.default_rng(3).integers(0, len(WORDS), (20, COLUMNS))
    names = [f"c{i}" for i in range(COLUMNS)]
    table = pa.table(
        {n: pa.array([WORDS[k] if i % 2 else str(k < 2).lower() for k in draws[:, i]]) for i, n in enumerate(names)}
    )
    facts = ('type = "boolean"', 'type = "categorical"\nvalues = ["red", "green"]\nmissing = true')
    text = "".join(f"[columns.{n}]\n{facts[i % 2]}\n" for i, n in enumerate(names))
    return us.Schema.loads('missing_values = ["?", "n/a", "NA", "-", "none", "unknown"]\n' + text), table


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_many_columns_are_counted_as_few_are(tmp_path, ending: str):
    schema, table = wide()
    path = tmp_path / f"wide.{ending}"
    (pacsv.write_csv if ending == "csv" else pq.write_table)(table, path)
    domain = Domain.of(schema)
    counts = us.open(path, schema).count_by(domain, [(c,) for c in domain.names])
    for name, found in zip(domain.names, counts, strict=True):
        values = table[name].to_pylist()
        if domain.size(name) == 2:
            assert found.tolist() == [values.count("false"), values.count("true")]
        else:
            red, green = values.count("red"), values.count("green")
            assert found.tolist() == [red, green, len(values) - red - green]


def test_no_list_of_texts_becomes_a_join():
    texts = ", ".join(f"'text {i}'" for i in range(20))
    with connect() as connection:
        connection.register("rows", pa.table({"x": ["text 1", "b"]}))
        ((_, plan),) = connection.sql(f"EXPLAIN SELECT CASE WHEN x IN ({texts}) THEN 1 END FROM rows").fetchall()
    assert "Join" not in plan


def test_a_table_too_wide_for_the_memory_is_not_called_damaged():
    assert "memory ran out while counting 3,000 columns of w.csv" in str(out_of_memory("w.csv", 3000))
    error = duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate data of size 1 GiB")
    assert str(unreadable("w.csv", error)) == "w.csv can't be read: memory ran out"


def test_a_name_too_long_for_a_header_is_refused(tmp_path):
    (tmp_path / "h.csv").write_text("a," + "b" * 131_073 + "\n1,2\n")
    with pytest.raises(TableError, match="a name in its header has more than 131,072 characters"):
        us.open(tmp_path / "h.csv", us.Schema.loads('[columns.a]\ntype = "boolean"'))


def test_a_parquet_file_with_a_damaged_name_is_refused(tmp_path):
    pq.write_table(pa.table({"name_x": ["a"]}), tmp_path / "t.parquet", store_schema=False)
    content = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(content.replace(b"name_x", b"name_\xff"))
    with pytest.raises(TableError, match=r"t\.parquet can't be read") as refused:
        us.open(tmp_path / "t.parquet", us.Schema.loads('[columns.name_x]\ntype = "boolean"'))
    assert str(refused.value).isprintable()
