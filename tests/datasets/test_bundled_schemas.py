"""The bundled schemas fit the tables that they describe, and the schemas printed in the docs load.

The tables are public, so these tests may look at their rows; the schemas may not have been made from them.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import json
import re
import tomllib
from datetime import datetime
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from understudy import datasets
from understudy.boundary.schema import schema as schemas
from understudy.boundary.schema.column import (
    DEFAULT_BINS,
    LARGEST_INTEGER,
    SINGLE_VALUE_BINS,
    Boolean,
    Categorical,
    Column,
    Identifier,
    Integer,
    Ordinal,
)
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import DECLARED, Schema
from understudy.boundary.tables.sources import open as open_table
from understudy.errors import InputError
from understudy.inference.discovery import LARGEST_SHARE, SHARE_PER_COLUMN
from understudy.inference.values import Values, check_decodable, decode, violations
from understudy.releases.certificate import UNCONFIRMED

NAMES = ("adult", "adult_coded", "covertype", "healthcare", "insurance", "mushroom", "nursery", "votes")
TABLES = (
    ("adult", "adult.train.csv"),
    ("adult", "adult.test.csv"),
    ("adult_coded", "adult_coded.train.csv"),
    ("adult_coded", "adult_coded.test.csv"),
    *((name, f"{name}.csv") for name in NAMES[2:]),
)
LEAST_INSIDE = 0.995
PAGE = Path(__file__).resolve().parents[2] / "docs" / "concepts" / "schema.md"


# --- The package ----------------------------------------------------------------------------------------------------


def test_names_are_the_files():
    assert datasets.names() == NAMES
    assert all(datasets.schema_path(name).is_file() for name in NAMES)


@pytest.mark.parametrize(
    ("wrong", "hint"), [("Adlt", "did you mean 'adult'?"), ("x", "choose one of adult, adult_coded")]
)
def test_unknown_name_is_refused(wrong, hint):
    with pytest.raises(InputError, match=re.escape(hint)) as caught:
        datasets.schema(wrong)
    assert repr(wrong) in str(caught.value) and caught.value.subject == wrong


def test_path_can_not_leave_the_folder():
    with pytest.raises(InputError, match="not bundled"):
        datasets.schema_path("../schemas/adult")


def test_incomplete_demo_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(datasets, "files", lambda package: tmp_path)
    (tmp_path / "demo").mkdir()
    for name in datasets.DEMO_FILES[1:]:
        (tmp_path / "demo" / name).touch()
    with pytest.raises(InputError, match=r"it lacks synthetic\.csv;"):
        datasets.demo()
    (tmp_path / "demo" / datasets.DEMO_FILES[0]).touch()
    assert datasets.demo() == tmp_path / "demo"


# --- Each schema by itself ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_schema_is_declared_and_survives_writing(name):
    schema = datasets.schema(name)
    assert schema.status == DECLARED and not schema.private
    assert Schema.loads(schema.dumps()) == schema
    assert datasets.schema_path(name).read_text(encoding="utf-8").startswith("# ")


@pytest.mark.parametrize("name", NAMES)
def test_every_code_can_be_decoded(name):
    domain = Domain.of(datasets.schema(name))
    check_decodable(domain)
    most = max(coding.size for coding in domain)
    codes = {coding.name: np.arange(most) % coding.size for coding in domain}
    values = decode(codes, domain, np.random.Generator(np.random.PCG64(0)))
    assert {len(v.data) for v in values.values()} == {most}


def test_zero_and_the_top_code_of_capital_gain_stand_alone():
    edges = Domain.of(datasets.schema("adult"))["capital-gain"].edges
    assert edges[:2] == (0, 1) and edges[-2:] == (99_999, 100_000)


def test_names_of_people_are_never_modelled():
    schema = datasets.schema("healthcare")
    identifiers = {c.name for c in schema if isinstance(c, Identifier)}
    assert identifiers == {"Name", "Doctor", "Hospital"}
    assert {c.name for c in schema.released} & identifiers == {"Name"}


# --- Each schema against its table ----------------------------------------------------------------------------------


def inside(connection: duckdb.DuckDBPyConnection, column: Column, missing_values: tuple[str, ...]) -> float:
    """The share of a column's values that its declaration allows, judged by SQL of our own."""
    name = '"' + column.name.replace('"', '""') + '"'
    known = connection.execute(
        f"SELECT avg(CASE WHEN t IS NULL OR list_contains(?, t) THEN ? ELSE {_allowed(column)} END::DOUBLE) "
        f"FROM (SELECT {name} AS t FROM rows)",
        [["", *missing_values], column.missing, *_facts(column)],
    )
    return known.fetchone()[0]


def _allowed(column: Column) -> str:
    if isinstance(column, Boolean):
        return "t IN ('true', 'false')"
    if isinstance(column, Categorical):
        return "list_contains(?, t)"
    kind = "TIMESTAMP" if column.type == "datetime" else "DOUBLE"
    return f"coalesce(TRY_CAST(t AS {kind}) BETWEEN ? AND ?, false)"


def _facts(column: Column) -> list[object]:
    if isinstance(column, Boolean):
        return []
    if isinstance(column, Categorical):
        return [[str(v) for v in column.labels]]
    return [column.minimum, column.maximum]


@functools.cache
def read(path: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE rows AS SELECT * FROM read_csv(?, all_varchar = true, header = true, nullstr = '')", [str(path)]
    )
    return connection


def strays(schema: Schema, connection: duckdb.DuckDBPyConnection) -> dict[str, float]:
    """The columns of which too little is inside, with the share that is."""
    shares = {c.name: inside(connection, c, schema.missing_values) for c in schema.modelled}
    exact = (Categorical, Boolean)
    return {n: s for n, s in shares.items() if s < (1.0 if isinstance(schema[n], exact) else LEAST_INSIDE)}


@pytest.mark.parametrize(("name", "file"), TABLES)
def test_schema_has_the_header_of_its_table(name, file, shared_data):
    with (shared_data / file).open(encoding="utf-8", newline="") as lines:
        assert datasets.schema(name).names == tuple(next(csv.reader(lines)))


@pytest.mark.parametrize(("name", "file"), TABLES)
def test_schema_covers_its_table(name, file, shared_data):
    assert strays(datasets.schema(name), read(shared_data / file)) == {}


@pytest.mark.parametrize(
    ("name", "column", "change"),
    [
        ("adult", "race", {"values": ("White", "Black", "Other", "Asian-Pac-Islander")}),
        ("adult", "workclass", {"missing": False}),
        ("adult", "age", {"maximum": 70}),
        ("covertype", "soil_type", {"values": tuple(range(39))}),
        ("insurance", "charges", {"minimum": 1_500.0}),
        ("healthcare", "Date of Admission", {"maximum": datetime(2022, 12, 31)}),
    ],
)
def test_a_schema_that_is_too_narrow_is_noticed(name, column, change, shared_data):
    schema = datasets.schema(name)
    narrow = schema.with_columns([dataclasses.replace(schema[column], **change)])
    file = dict(reversed(TABLES))[name]
    assert list(strays(narrow, read(shared_data / file))) == [column]


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(("name", "file"), dict(reversed(TABLES)).items())
def test_every_row_is_counted_once_in_every_column(name, file, shared_data):
    schema = datasets.schema(name)
    domain = Domain.of(schema)
    counts = open_table(shared_data / file, schema).count_by(domain, [(c,) for c in domain.names])
    (rows,) = read(shared_data / file).execute("SELECT count(*) FROM rows").fetchone()
    assert {int(c.sum()) for c in counts} == {rows}


def test_codes_of_adult_coded_have_the_declared_sizes(shared_data):
    sizes = json.loads((shared_data / "adult_coded.domain.json").read_text(encoding="utf-8"))
    schema = datasets.schema("adult_coded")
    assert {c.name: c.size for c in Domain.of(schema)} == sizes
    ordered = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}
    assert {c.name for c in schema if isinstance(c, Integer)} == ordered


def test_education_is_ordered_as_education_num(shared_data):
    levels = read(shared_data / "adult.train.csv").execute(
        'SELECT DISTINCT "education-num"::INT AS n, education FROM rows ORDER BY n'
    )
    education = datasets.schema("adult")["education"]
    assert isinstance(education, Ordinal)
    assert tuple(enumerate(education.values, start=1)) == tuple(levels.fetchall())


def test_nobody_leaves_the_hospital_before_they_come(shared_data):
    stays = read(shared_data / "healthcare.csv").execute(
        'SELECT "Date of Admission"::TIMESTAMP AS a, "Discharge Date"::TIMESTAMP AS d FROM rows'
    )
    admitted, discharged = stays.fetchnumpy().values()
    schema = datasets.schema("healthcare")
    rows = len(admitted)

    def broken(a, d) -> int:
        return int(violations(schema, {"Date of Admission": Values(a), "Discharge Date": Values(d)}, rows).sum())

    assert broken(admitted, discharged) == 0
    assert broken(discharged, admitted) == np.count_nonzero(discharged > admitted) > 0


# --- The page in the docs -------------------------------------------------------------------------------------------


def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def blocks() -> list[str]:
    return re.findall(r"^```toml\n(.*?)^```", page(), flags=re.MULTILINE | re.DOTALL)


def test_the_page_has_its_examples():
    assert len(blocks()) >= 8
    assert {c.type for c in Schema.loads(blocks()[0])} == set(schemas.COLUMN_TYPES)


@pytest.mark.parametrize("block", blocks(), ids=lambda block: next(iter(tomllib.loads(block)["columns"])))
def test_schemas_on_the_page_load(block):
    schema = Schema.loads(block)
    assert Schema.loads(schema.dumps()) == schema
    if not schema.private:
        check_decodable(Domain.of(schema))


def test_the_page_lists_every_key_of_every_type():
    listed = dict(re.findall(r"^\| `(\w+)` \|[^|]*\|([^|]*)\|$", page(), flags=re.MULTILINE))
    keys: dict[str, set[str]] = {}
    for cls, names in schemas._KEYS.items():  # a derived column is one of several classes
        keys.setdefault(cls.type, set()).update(names)
    keys["datetime"] -= {"cuts"}  # refused, with a sentence that points to bins
    assert {name: set(re.findall(r"`(\w+)`", text)) for name, text in listed.items()} == keys
    assert {name: set(re.findall(r"\*\*`(\w+)`\*\*", text)) for name, text in listed.items()} == {
        name: own & schemas._MUST_STATE for name, own in keys.items()
    }


def test_the_page_states_the_limits_of_the_code():
    words = " ".join(page().split())
    power = str(LARGEST_INTEGER.bit_length() - 1).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    for fact in (
        f"with up to {SINGLE_VALUE_BINS} values keeps each of them apart",
        f"at most {DEFAULT_BINS} bins",
        f"between −2{power} and 2{power}",
        f"{SHARE_PER_COLUMN:.0%} for each such column, {LARGEST_SHARE:.0%} at most".replace("%", " %"),
        f'"{UNCONFIRMED}"',
    ):
        assert fact in words


@pytest.mark.parametrize(
    ("facts", "values", "places"),
    [
        ("type = 'integer'\nmin = 0\nmax = 9", ["-5", "99", "inf", "2.5", "x", ""], [0, 9, 9, 3, 0, 0]),
        ("type = 'integer'\nmin = 0\nmax = 9\nmissing = true", ["x", "", "nan", "?"], [10, 10, 10, 10]),
        ("type = 'number'\nmin = 0\nmax = 4\nbins = 2\nmissing = true", ["-inf", "2", "9", "?"], [0, 1, 1, 2]),
        ("type = 'datetime'\nmin = 2024-01-01\nmax = 2024-01-09", ["2024-01-02 23:59", "2030-01-01", "x"], [1, 8, 0]),
        ("type = 'categorical'\nvalues = ['a', 'b']", [" b ", "B", "?"], [1, 0, 0]),
        ("type = 'categorical'\nvalues = ['a', 'b']\nmissing = true", ["b", "B", "?"], [1, 2, 2]),
        ("type = 'categorical'\nvalues = ['a', 'b']\nother = 'o'", ["b", "B", "?", "o"], [1, 2, 2, 2]),
        ("type = 'categorical'\nvalues = ['a']\nother = 'o'\nmissing = true", ["B", "?"], [1, 2]),
        ("type = 'categorical'\nvalues = [3, 1]\nmissing = true", ["1.0", "01", "7", "x"], [1, 1, 2, 2]),
        ("type = 'boolean'", ["YES", "off", "perhaps", "?"], [1, 0, 0, 0]),
        ("type = 'boolean'\nmissing = true", ["T", "0", "perhaps", "?"], [1, 0, 2, 2]),
    ],
)
def test_values_go_where_the_page_says(facts, values, places):
    schema = Schema.loads(f"missing_values = ['?']\n[columns.x]\n{facts}")
    domain = Domain.of(schema)
    found = [int(open_table(pa.table({"x": [v]}), schema).count_by(domain, [("x",)])[0].argmax()) for v in values]
    assert found == places
