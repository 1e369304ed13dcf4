"""How a file is written is found out by a draft, stated in the schema, and followed: encodings, marks, workbooks."""

from __future__ import annotations

import gzip
import tomllib
import traceback

import numpy as np
import pandas as pd
import pytest

import understudy as us
from helpers.workbooks import cell, write_workbook
from understudy.boundary.schema.column import Categorical, Integer, Number
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.file_format import FileFormat, Marks
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.draft import draft_schema
from understudy.boundary.tables.rows import Rows
from understudy.boundary.tables.sources import open as open_table
from understudy.errors import SchemaError, TableError

TOWNS = ("Köln", "Zürich", "Málaga")


def german(n=60):
    rows = [f"{TOWNS[i % 3]};{i * 37 % 900},{i % 100:02d};{1 + i % 3}.{i * 7 % 1000:03d}" for i in range(n)]
    return "\r\n".join(["Ort;Betrag in €;Einwohner", *rows, ""])


def read(path, schema):
    return Rows.of(path, schema=schema).read(schema.modelled, schema.missing_texts).to_pydict()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_file_in_another_encoding_is_read_as_the_same_in_utf8(tmp_path, encoding, packed):
    content = german().encode(encoding)
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    path.write_bytes(gzip.compress(content) if packed else content)
    schema = draft_schema(path)
    assert schema.file.encoding == encoding.removesuffix("-sig") and schema.file.delimiter == ";"
    assert schema.file.marks == Marks(",", ".")
    assert schema.names == ("Ort", "Betrag in €", "Einwohner") and schema["Ort"].values == tuple(sorted(TOWNS))
    found = read(path, Schema.loads(schema.commented))
    assert found["Ort"][:3] == list(TOWNS)
    assert found["Betrag in €"][1] == 37.01 and found["Einwohner"][1] == 2007


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_file_without_the_mark_that_its_encoding_begins_with_is_refused_in_a_sentence(tmp_path, encoding):
    path = tmp_path / "t.csv"
    path.write_bytes("a\n1\n".encode(f"{encoding}-le"))
    schema = Schema.loads(f'[file]\nencoding = "{encoding}"\n[columns.a]\ntype = "integer"\nmin = 0\nmax = 9')
    with pytest.raises(TableError, match=f"does not begin with the mark of {encoding}; declare"):
        open_table(path, schema)


def test_latin1_that_is_no_cp1252(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("a,b\né\x81,1\n".encode("latin-1") * 3)
    assert draft_schema(path).file.encoding == "latin-1"


def test_a_byte_that_is_none_of_the_encoding_never_stops_the_reading(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\nx,1\n\x81,2\n")
    columns = (Categorical("a", values=("x",), other="other"), Integer("b", minimum=1, maximum=2))
    schema = Schema(columns, file=FileFormat(encoding="cp1252"))
    (counts,) = open_table(path, schema).count_by(Domain.of(schema), [("a",)])
    assert counts.tolist() == [1, 1]


def test_an_encoding_that_is_not_declared_is_refused_with_a_remedy(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("größe\n1\n".encode("latin-1"))
    with pytest.raises(
        TableError, match=r'declare its encoding in the schema, as in \[file\] with encoding = "cp1252"'
    ):
        open_table(path, Schema((Integer("größe", minimum=0, maximum=9),)))


@pytest.mark.parametrize(
    ("marks", "texts", "values"),
    [
        (Marks(",", ""), ["1,5", "-2,25", "7", "x", "1,5e2", " 3,5 "], [1.5, -2.25, 7, None, 150, 3.5]),
        (Marks(",", "."), ["1.234,5", "1.234", "12.5", "1.23,4"], [1234.5, 1234, 12.5, None]),
        (Marks(".", ","), ["1,234.5", "1,2", "12", "1,234,567"], [1234.5, None, 12, 1234567]),
        (Marks(".", "'"), ["1'234.5", "1'2", ".5"], [1234.5, None, 0.5]),
        (Marks(",", "\u00a0"), ["1\u00a0234,5", "5"], [1234.5, 5]),
    ],
)
def test_numbers_follow_the_declared_marks_and_any_other_text_stands_as_it_is(tmp_path, marks, texts, values):
    path = tmp_path / "t.csv"
    path.write_text("x;y\n" + "".join(f"{t};1\n" for t in texts), encoding="utf-8")
    columns = (Number("x", minimum=0, maximum=9), Categorical("y", values=("1",)))
    schema = Schema(columns, file=FileFormat(marks=marks))
    assert read(path, schema)["x"] == values
    # Each value by itself: alone in its file it is read in the same way.
    for text, value in zip(texts, values, strict=True):
        path.write_text(f"x;y\n{text};1\n", encoding="utf-8")
        assert read(path, schema)["x"] == [value]


def test_columns_may_have_marks_of_their_own(tmp_path):
    path = tmp_path / "t.csv"
    rows = "".join(f"{i * 3},{i % 10}{i % 7};{i}.{i % 10}5;{i},{i % 9}\n" for i in range(1, 40))
    path.write_text("a;b;c\n" + rows, encoding="utf-8")
    schema = draft_schema(path)
    assert schema.file.marks == Marks(",") and schema.file.columns == {"b": Marks()}
    found = read(path, Schema.loads(schema.dumps()))
    assert found["a"][0] == 3.11 and found["b"][0] == 1.15 and found["c"][0] == 1.1


def test_a_synthetic_file_is_written_as_the_real_one_is_and_read_back(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(german(300).encode("cp1252"))
    text = draft_schema(path).commented.replace('status = "draft"', 'status = "confirmed"')
    made = us.synthesize(us.open(path, Schema.loads(text)), epsilon=5, method="independent")
    made.save(tmp_path / "out")
    lines = (tmp_path / "out" / "synthetic.csv").read_bytes().decode("cp1252").splitlines()
    assert lines[0] == "Ort;Betrag in €;Einwohner" and lines[1].count(";") == 2
    kept = Schema.load(tmp_path / "out" / "schema.toml")
    back = read(tmp_path / "out" / "synthetic.csv", kept)
    assert back["Betrag in €"] == pytest.approx(made.table["Betrag in €"].to_pylist())
    us.verify(tmp_path / "out")
    us.replay(tmp_path / "out")


def test_labels_that_the_encoding_has_not_are_refused_before_anything_is_spent():
    with pytest.raises(SchemaError, match="column 'x': '東' has characters that encoding 'latin-1' has not"):
        Schema((Categorical("x", values=("東",)),), file=FileFormat(encoding="latin-1"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('encoding = "klingon"', r"encoding \('klingon'\) is not known"),
        ('encoding = "base64"', r"encoding \('base64'\) is not known"),
        ('decimal = ";"', "decimal"),
        ('decimal = ","\nthousands = ","', "decimal and thousands are both ','"),
        ('delimiter = ";;"', "must be one character"),
        ('delimeter = ";"', "did you mean 'delimiter'"),
        ("encoding = 3", "must be a string"),
        ("columns = 3", "must be tables"),
        ('columns = {x = {decmal = "."}}', "did you mean 'decimal'"),
    ],
)
def test_mistakes_in_the_notation_are_refused(text, message):
    with pytest.raises(SchemaError, match=message):
        Schema.loads(f'[file]\n{text}\n[columns.x]\ntype = "boolean"')


def test_a_column_has_missing_values_of_its_own(tmp_path):
    text = """
    missing_values = ["?"]
    [columns.a]
    type = "integer"
    min = 0
    max = 9
    missing = true
    missing_values = ["-9", "N"]
    [columns.b]
    type = "categorical"
    values = ["N", "Y"]
    missing = true
    """
    schema = Schema.loads(text)
    assert Schema.loads(schema.dumps()) == schema and schema["a"].missing_values == ("-9", "N")
    path = tmp_path / "t.csv"
    path.write_text("a,b\n-9,N\nN,Y\n3,?\n?,N\n-9.0,Y\n", encoding="utf-8")
    domain = Domain.of(schema)
    frame = pd.DataFrame({"a": [-9, "N", 3, "?", -9.0], "b": ["N", "Y", "?", "N", "Y"]})
    whole = pd.DataFrame({"a": [-9, -9, 3, -9, -9], "b": ["N", "Y", "?", "N", "Y"]})
    for source in (path, frame, whole):
        a, b = open_table(source, schema).count_by(domain, [("a",), ("b",)])
        assert a[3] == 1 and a[-1] == 4 and a.sum() == 5
        np.testing.assert_array_equal(b, [2, 2, 1])
    with pytest.raises(SchemaError, match="value 'N' is also among missing_values"):
        Schema.loads('[columns.b]\ntype = "categorical"\nvalues = ["N"]\nmissing_values = ["N"]')


def test_a_header_without_a_name_gets_a_hint(tmp_path):
    path = tmp_path / "t.csv"
    pd.DataFrame({"a": [1, 2]}).to_csv(path)
    with pytest.raises(
        TableError, match=r"column 1 of the header has no name; give it one \(pandas writes its index so"
    ):
        draft_schema(path)


@pytest.mark.parametrize("encoding", ["utf-7", "hz", "iso2022_jp", "idna", "punycode", "undefined", "unicode_escape"])
def test_encodings_in_which_a_row_would_change_the_next_are_refused(encoding):
    """`31+` ends a row in ASCII; in UTF-7 the line break behind it is no line break."""
    with pytest.raises(SchemaError, match="must be one in which each row can be read by itself"):
        FileFormat(encoding=encoding)


# --- Workbooks --------------------------------------------------------------------------------------------------------


@pytest.fixture
def book(tmp_path):
    """Two sheets; the second has texts, numbers, truth values and dates."""
    pytest.importorskip("python_calamine")
    days = (np.datetime64("2024-01-01").item().replace(day=1 + i % 28) for i in range(40))
    rows = [[f"0{1067 + i % 2}", i, i / 8, i % 2 == 0, day] for i, day in enumerate(days)]
    sheets = {"Sheet": [["x"], [1]], "Zweites": [["plz", "n", "share", "ok", "day"], *rows]}
    return write_workbook(tmp_path / "book.xlsx", sheets)


def test_a_sheet_is_drafted_and_read(book):
    schema = draft_schema(f"{book}::Zweites")
    kinds = {c.name: c.type for c in schema}
    assert kinds == {"plz": "categorical", "n": "identifier", "share": "number", "ok": "categorical", "day": "datetime"}
    assert schema["plz"].values == ("01067", "01068") and schema.file is None
    table = open_table(f"{book}::Zweites", schema)
    (counts,) = table.count_by(Domain.of(schema), [("plz",)])
    assert counts.tolist() == [20, 20] and table.kind == "excel" and table.identity.endswith("::zweites")
    assert open_table(book, Schema((Integer("x", minimum=0, maximum=1),))).count_rows() == 1


def test_a_sheet_that_is_not_there_and_a_file_that_is_no_workbook_are_refused(book, tmp_path):
    with pytest.raises(TableError, match="has no sheet 'Drittes'; it has Sheet, Zweites"):
        draft_schema(f"{book}::Drittes")
    (tmp_path / "bad.xlsx").write_bytes(b"secret of Ada")
    with pytest.raises(TableError, match="the file is damaged or not a workbook") as caught:
        draft_schema(tmp_path / "bad.xlsx")
    assert "Ada" not in "".join(traceback.format_exception(caught.value))


AGE = Schema((Integer("age", minimum=0, maximum=99),))


def test_a_note_beside_the_table_does_not_decide_how_the_others_are_read(tmp_path):
    pytest.importorskip("python_calamine")
    note = f'<row r="9">{cell("D9", "note of Ada")}</row>'
    path = write_workbook(tmp_path / "t.xlsx", {"t": [["age"], [31, None], [None, None, "x"], [5]]}, note)
    assert open_table(path, AGE).count_rows() == 2


def test_a_sheet_too_large_for_memory_is_refused_and_ends_no_process(tmp_path):
    pytest.importorskip("python_calamine")
    far = f'<row r="1048576">{cell("XFD1048576", 1)}</row>'
    path = write_workbook(tmp_path / "t.xlsx", {"t": [["age"], [31]]}, far)
    with pytest.raises(TableError, match="a cell far outside of the table makes it too large"):
        open_table(path, AGE)


# --- Cells that would be more than values in a draft -----------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r", "\x0b", "\x1c", "\x85", "\u2028"])
def test_what_a_cell_or_a_name_says_declares_nothing_in_a_draft(end, tmp_path):
    """Not behind what ends a line, in a value, a note or a proposed rule."""
    evil = f'x"{end}[columns.evil]{end}type = "boolean"{end}#'
    kinds = [["a", evil, "c"][i % 3] for i in range(300)]
    rows = {"kind": kinds, f"kin{evil}": [k + "!" for k in kinds], "n": [evil if i % 9 == 0 else i for i in range(300)]}
    rows |= {f"patient {evil}": [f"{i % 60}{evil}" for i in range(300)], "later": list(range(300))}
    draft = draft_schema(pd.DataFrame({name: list(map(str, cells)) for name, cells in rows.items()}))
    draft.save(tmp_path / "t.toml")
    assert Schema.load(tmp_path / "t.toml") == draft and draft.names == tuple(rows)
    # Whoever uncomments a rule declares what was counted, and no more.
    rules = draft.commented.partition("# Rules that every row obeys")[2]
    live = "\n".join(line[1:] for line in rules.splitlines() if line.startswith(("#[", "#if", "#then")))
    assert live and set(tomllib.loads(live)) == {"constraints"}
