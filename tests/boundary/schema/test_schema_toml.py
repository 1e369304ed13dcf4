"""Schemas as a whole and on disk: every type round-trips, every refusal says where and what."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.boundary.schema.column import Boolean, Categorical, Datetime, Identifier, Integer, Number, Ordinal
from understudy.boundary.schema.schema import DRAFT_LINE, Rule, Schema, Unit
from understudy.errors import SchemaError

WHOLE = Schema(
    (
        Identifier("patient_id", made_up="P{:06d}"),
        Identifier("name"),
        Integer("age", minimum=17, maximum=90),
        Integer("visits", minimum=0, maximum=100, cuts=(1, 5, 20), missing=True),
        Number("charges", decimals=2),
        Number("bmi", minimum=10.5, maximum=60.0, bins=20),
        Categorical("job", values=("cook", 'say "hi"', "naïve ☃"), missing=True, other="else"),
        Categorical("diagnosis"),
        Categorical("ward", values=(3, 1, 2)),
        Ordinal("grade", values=("low", "high")),
        Boolean("smoker", missing=True),
        Datetime("admitted", minimum=datetime(2019, 1, 1), maximum=datetime(2024, 12, 31), format="%d/%m/%Y"),
        Datetime(
            "seen", minimum=datetime(2019, 1, 1, 5, 6, 7), maximum=datetime(2020, 1, 1), resolution="minute", bins=9
        ),
        Datetime("left"),
        Boolean('odd "name". with spaces'),
    ),
    unit=Unit("patient_id", 3),
    rules=(Rule("smoker = false", "age < 18"), Rule("age >= 17")),
    missing_values=("?", "n/a"),
    status="confirmed",
)


def test_every_type_round_trips():
    assert Schema.loads(WHOLE.dumps()) == WHOLE
    assert DRAFT_LINE not in WHOLE.dumps()


def test_files_round_trip(tmp_path):
    WHOLE.save(tmp_path / "s.toml")
    assert Schema.load(tmp_path / "s.toml") == Schema.load(str(tmp_path / "s.toml")) == WHOLE


def test_the_designs_example_is_read():
    text = """
    neighbours = "add-remove"
    [unit]
    column = "patient_id"
    max_rows = 3
    [columns.patient_id]
    type = "identifier"
    [columns.age]
    type = "integer"
    min = 17
    max = 90
    [columns.admitted]
    type = "datetime"
    min = 2019-01-01
    max = 2024-12-31
    resolution = "day"
    [columns.diagnosis]
    type = "categorical"
    values = "private"
    [columns.charges]
    type = "number"
    min = "private"
    max = "private"
    decimals = 2
    [columns.married]
    type = "boolean"
    [[constraints]]
    if = "age < 18"
    then = "married = false"
    """
    schema = Schema.loads(text)
    assert schema.names == ("patient_id", "age", "admitted", "diagnosis", "charges", "married")
    assert [c.name for c in schema.private] == ["diagnosis", "charges"] and schema.rows_per_unit == 3
    assert schema["admitted"].maximum == datetime(2024, 12, 31) and schema.status == "declared"
    assert schema.rules == (Rule("married = false", "age < 18"),)


AGE = "[columns.age]\ntype = 'integer'\nmin = 0\nmax = 9\n"

REFUSED = [
    ("", ["at least one column", "[columns]"]),
    ("columns = 3", ["at least one column"]),
    ("[columns]", ["at least one column"]),
    ("x = = 1", ["not valid TOML", "line 1"]),
    ("colums = 1\n" + AGE, ["'colums'", "did you mean 'columns'?"]),
    ("zebra = 1\n" + AGE, ["'zebra'", "it takes status"]),
    ("neighbours = 'swap'\n" + AGE, ["neighbours ('swap')", "add-remove, replace-one"]),
    ("status = 'final'\n" + AGE, ["status ('final')", "declared, draft, confirmed"]),
    ("missing_values = '?'\n" + AGE, ["missing_values ('?')", "list of strings"]),
    ("missing_values = [1]\n" + AGE, ["missing_values ([1])", "list of strings"]),
    ("[columns]\nage = 3", ["column 'age'", "[columns.age]"]),
    ("[columns.age]\nmin = 3", ["column 'age'", "type (None)", "integer, number"]),
    ("[columns.age]\ntype = ['integer']", ["column 'age'", "type (['integer'])", "integer, number"]),
    ("[columns.age]\ntype = 'int'", ["column 'age'", "type ('int')", "integer, number"]),
    ("[columns.age]\ntype = 'integer'\nmax = 3", ["column 'age'", "min must be stated", 'min = "private"']),
    ("[columns.job]\ntype = 'categorical'", ["column 'job'", "values must be stated", 'values = "private"']),
    (AGE + "missing = 1", ["column 'age'", "missing (1)", "true or false"]),
    (AGE + "decimals = 1", ["column 'age'", "'decimals'", "is unknown"]),
    (AGE + "bin = 1", ["column 'age'", "'bin'", "did you mean 'bins'?"]),
    (AGE + "cuts = 3", ["column 'age'", "cuts (3)", "a list"]),
    ("[columns.job]\ntype = 'categorical'\nvalues = 'x'", ["column 'job'", "values ('x')", "a list"]),
    ("[columns.job]\ntype = 'categorical'\nvalues = ['x']\nother = 3", ["column 'job'", "other (3)", "a string"]),
    ("[columns.id]\ntype = 'identifier'\nmade_up = 3", ["column 'id'", "made_up (3)", "a string"]),
    ("[columns.d]\ntype = 'datetime'\nmin = 3\nmax = 2024-01-01", ["column 'd'", "min (3)", "2024-12-31"]),
    ("[columns.d]\ntype = 'datetime'\nmin = 2024-01-01\nmax = 2024-01-02\nformat = 1", ["format (1)", "a string"]),
    ("[columns.id]\ntype = 'identifier'", ["every column is an identifier", "declare another type"]),
    (
        "missing_values = ['?']\n[columns.j]\ntype = 'categorical'\nvalues = ['a', '?']",
        ["column 'j'", "'?'", "missing_values"],
    ),
    (
        "missing_values = ['-9']\n[columns.j]\ntype = 'categorical'\nvalues = [1, -9]",
        ["column 'j'", "-9", "missing_values"],
    ),
    (AGE + "[unit]\nmax_rows = 3", ["unit needs a column"]),
    ("unit = 3\n" + AGE, ["unit needs a column"]),
    (AGE + "[unit]\ncolumn = 'pid'", ["column 'pid'", "not among the columns"]),
    (AGE + "[unit]\ncolumn = 'age'\nmax_rows = 0", ["max_rows (0)", "at least 1"]),
    (AGE + "[unit]\ncolumn = 'age'\nmax_rows = true", ["max_rows (True)", "at least 1"]),
    (AGE + "[unit]\ncolumn = 'age'\nrows = 2", ["unit", "'rows'", "unknown"]),
    ("neighbours = 'replace-one'\n" + AGE + "[unit]\ncolumn = 'age'\nmax_rows = 2", ["max_rows (2)", "must be 1"]),
    (AGE + "[[constraints]]\nif = 'age < 3'", ["a constraint needs a text under then"]),
    (AGE + "[[constraints]]\nthen = 'age < 3'\nif = 3", ["if (3)", "must be a text"]),
    (AGE + "[[constraints]]\nthen = 'age < 3'\nelse = 'x'", ["'else'", "unknown"]),
    (AGE + "[[constraints]]\nthen = 'height < 3'", ["height"]),
    ("constraints = 3\n" + AGE, ["constraints (3)", "list"]),
    ("constraints = [3]\n" + AGE, ["a constraint needs a text under then"]),
]


@pytest.mark.parametrize(("text", "parts"), REFUSED, ids=lambda v: str(v)[:50])
def test_refusals_say_where_and_what(text, parts, tmp_path):
    with pytest.raises(SchemaError) as caught:
        Schema.loads(text)
    message = str(caught.value)
    assert all(part in message for part in parts), message
    assert "\n" not in message
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(SchemaError, match=r"^bad\.toml: "):
        Schema.load(tmp_path / "bad.toml")


def test_files_that_are_no_schema_are_refused(tmp_path):
    with pytest.raises(SchemaError, match=r"none\.toml' does not exist"):
        Schema.load(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"\xe9")
    with pytest.raises(SchemaError, match=r"latin\.toml' is not UTF-8 text"):
        Schema.load(tmp_path / "latin.toml")
    with pytest.raises(SchemaError, match="can't be read: Is a directory"):
        Schema.load(tmp_path)


def test_schemas_refuse_names_they_do_not_have():
    with pytest.raises(
        SchemaError, match=r"column 'salary' is not in the schema; it has patient_id, name, .* and 7 more"
    ):
        WHOLE["salary"]
    with pytest.raises(SchemaError, match=r"column 'AGE' is not in the schema; did you mean 'age'\?"):
        WHOLE["AGE"]
    with pytest.raises(SchemaError, match="column 'a' is declared twice"):
        Schema((Boolean("a"), Boolean("b"), Boolean("a")))
    assert "age" in WHOLE and "salary" not in WHOLE and len(list(WHOLE)) == 15


def test_columns_are_sorted_by_what_becomes_of_them():
    assert "patient_id" in [c.name for c in WHOLE.released] and "name" not in [c.name for c in WHOLE.released]
    assert [c.name for c in WHOLE.private] == ["charges", "diagnosis", "left"]
    assert set(WHOLE.kinds) == {c.name for c in WHOLE.modelled} == set(WHOLE.names) - {"patient_id", "name"}
    bought = WHOLE.with_columns([Categorical("diagnosis", values=("a",))])
    assert bought.names == WHOLE.names and [c.name for c in bought.private] == ["charges", "left"]


def test_a_draft_says_so_in_its_first_line():
    draft = Schema((Boolean("a"),), status="draft")
    assert draft.dumps().startswith(DRAFT_LINE + "\n") and Schema.loads(draft.dumps()) == draft


NAMES = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
LABELS = st.text(st.characters(exclude_categories=("Cs", "Zs")), min_size=1, max_size=8)
MOMENTS = st.datetimes(datetime(1800, 1, 1), datetime(2200, 1, 1))
MISSING = st.booleans()
BOUNDS = st.tuples(st.integers(-(2**52), 2**52), st.integers(-(2**52), 2**52)).map(sorted)
REALS = st.tuples(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300)).map(sorted).filter(lambda p: p[0] < p[1])
BINS = st.none() | st.integers(1, 1000)


def columns(name):
    return st.one_of(
        st.builds(lambda b, n, m: Integer(name, m, n, minimum=b[0], maximum=b[1]), BOUNDS, BINS, MISSING),
        st.builds(
            lambda b, d, m: Number(name, m, minimum=b[0], maximum=b[1], decimals=d),
            REALS,
            st.none() | st.integers(0, 12),
            MISSING,
        ),
        st.builds(
            lambda a, b, r, m: Datetime(name, m, minimum=min(a, b), maximum=max(a, b), resolution=r),
            MOMENTS,
            MOMENTS,
            st.sampled_from(["second", "minute", "hour", "day"]),
            MISSING,
        ),
        st.builds(
            lambda v, o, m: Categorical(name, m, tuple(v), o),
            st.lists(LABELS, min_size=1, unique=True),
            st.none() | LABELS,
            MISSING,
        ),
        st.builds(
            lambda v, m: Categorical(name, m, tuple(v)),
            st.lists(st.integers(-99, 99), min_size=1, unique=True),
            MISSING,
        ),
        st.builds(lambda v, m: Ordinal(name, m, tuple(v)), st.lists(LABELS, min_size=1, unique=True), MISSING),
        st.sampled_from([Boolean(name, True), Number(name), Integer(name, True), Categorical(name), Datetime(name)]),
    )


SCHEMAS = st.builds(
    lambda cols, neighbours, status: Schema(tuple(cols), neighbours, status=status),
    st.lists(NAMES, min_size=1, max_size=5, unique=True).flatmap(lambda names: st.tuples(*map(columns, names))),
    st.sampled_from(["add-remove", "replace-one"]),
    st.sampled_from(["declared", "draft", "confirmed"]),
)


@given(SCHEMAS)
@settings(max_examples=100, deadline=None)
def test_generated_schemas_round_trip(schema):
    assert Schema.loads(schema.dumps()) == schema


ORDERED = '[unit]\ncolumn = "id"\nmax_rows = 3\norder = {}\n[columns.id]\ntype = "identifier"\n[columns.seen]\n{}'
SEEN = 'type = "datetime"\nmin = 2020-01-01\nmax = 2020-12-31\n'


def test_the_order_of_a_persons_rows_is_kept_and_written_only_where_it_is_declared():
    schema = Schema.loads(ORDERED.format('"seen"', SEEN))
    assert schema.unit is not None and schema.unit.order == "seen"
    assert Schema.loads(schema.dumps()) == schema
    assert "order" not in Schema.loads(ORDERED.format('"seen"', SEEN).replace('order = "seen"\n', "")).dumps()


@pytest.mark.parametrize(
    ("order", "column", "said"),
    [
        ("5", SEEN, r"unit: order .*5.* must be the name of a column"),
        ('"when"', SEEN, r"unit: order .*when.* must be one of the columns of the table"),
        ('"seen"', SEEN + 'format = "%d/%m/%Y"\n', r"has a format .* ISO dates alone; name another column"),
    ],
)
def test_an_order_that_can_order_nothing_is_refused(order: str, column: str, said: str):
    with pytest.raises(SchemaError, match=said):
        Schema.loads(ORDERED.format(order, column))
