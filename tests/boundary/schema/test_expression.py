"""The small SQL grammar: three-valued logic, every operator, every refusal, and DuckDB as the oracle."""

from __future__ import annotations

import sys
from datetime import date, datetime, timedelta

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from understudy.boundary.schema.expression import MAX_CHARACTERS, MAX_NESTING, Constraint, Kind, parse
from understudy.errors import InternalError, SchemaError
from understudy.inference import values as inference_values
from understudy.inference.values import Truth, Values, evaluate, violated

KINDS = {
    "age": Kind.NUMBER,
    "hours": Kind.NUMBER,
    "capital-gain": Kind.NUMBER,
    "sex": Kind.TEXT,
    "native country": Kind.TEXT,
    "married": Kind.BOOLEAN,
    "Date of Admission": Kind.DATETIME,
    "Discharge Date": Kind.DATETIME,
}
DUCKDB_TYPES = {Kind.TEXT: "VARCHAR", Kind.BOOLEAN: "BOOLEAN", Kind.DATETIME: "DATE"}

ROWS = [
    (40, 1.5, 0, "Female", "it's", True, date(2020, 1, 30), date(2020, 1, 31)),
    (41, 40.0, 100, "Male", "", False, date(2020, 1, 31), date(2020, 1, 31)),
    (-3, -0.5, 2, "Female", "Côte", None, date(2020, 2, 1), None),
    (None, 2.0, 7, None, "a\\b", True, None, date(2019, 12, 31)),
    (0, None, -1, "Male", None, False, date(2020, 2, 3), date(2020, 1, 31)),
    (2, 2.0, None, "Other", "Male", True, date(2020, 2, 28), date(2020, 3, 2)),
    (None, None, None, None, None, None, None, None),
]


def as_values(cells: list, kind: Kind) -> Values:
    missing = np.array([cell is None for cell in cells])
    filler, dtype = {
        Kind.NUMBER: (999, np.int64 if all(cell is None or isinstance(cell, int) for cell in cells) else np.float64),
        Kind.TEXT: ("filler", object),
        Kind.BOOLEAN: (True, bool),
        Kind.DATETIME: (date(1900, 1, 1), "datetime64[s]"),
    }[kind]
    return Values(np.array([filler if cell is None else cell for cell in cells], dtype=dtype), missing)


TABLE = {
    name: as_values(list(cells), kind)
    for (name, kind), cells in zip(KINDS.items(), zip(*ROWS, strict=True), strict=True)
}


def answers(truth: Truth) -> list[bool | None]:
    """True, False or None for each row, as a database would print them."""
    assert not (truth.true & truth.false).any()
    return [True if true else False if false else None for true, false in zip(truth.true, truth.false, strict=True)]


def ours(text: str) -> list[bool | None]:
    return answers(evaluate(parse(text, KINDS), TABLE, len(ROWS)))


@pytest.fixture(scope="module")
def database():
    connection = duckdb.connect()
    types = [
        DUCKDB_TYPES.get(kind, "BIGINT" if TABLE[name].data.dtype == np.int64 else "DOUBLE")
        for name, kind in KINDS.items()
    ]
    columns = ", ".join(f'"{name}" {type_}' for name, type_ in zip(KINDS, types, strict=True))
    connection.execute(f"CREATE TABLE t (row BIGINT, {columns})")
    for number, row in enumerate(ROWS):
        connection.execute(f"INSERT INTO t VALUES ({', '.join('?' * (len(row) + 1))})", [number, *row])
    yield connection
    connection.close()


def theirs(connection, condition: str) -> list[bool | None]:
    return [row[0] for row in connection.execute(f"SELECT ({condition}) FROM t ORDER BY row").fetchall()]


# --- Three-valued logic ---------------------------------------------------------------------------------------------

T, F, U = True, False, None
PAIRS = [(left, right) for left in (T, F, U) for right in (T, F, U)]
KLEENE = {
    "p and q": [T, F, U, F, F, F, U, F, U],
    "p or q": [T, T, T, T, F, U, T, U, U],
    "not p": [F, F, F, T, T, T, U, U, U],
    "p = q": [T, F, U, F, T, U, U, U, U],
    "p is null": [F, F, F, F, F, F, T, T, T],
    "p is not null": [T, T, T, T, T, T, F, F, F],
    "not (p and q)": [F, T, U, T, T, T, U, T, U],
    "p or not p": [T, T, T, T, T, T, U, U, U],
}


@pytest.mark.parametrize("text", KLEENE)
def test_truth_tables_are_kleenes(text: str):
    table = {name: as_values([pair[i] for pair in PAIRS], Kind.BOOLEAN) for i, name in enumerate("pq")}
    truth = evaluate(parse(text, {"p": Kind.BOOLEAN, "q": Kind.BOOLEAN}), table, len(PAIRS))
    assert answers(truth) == KLEENE[text]
    assert truth.unknown.tolist() == [answer is None for answer in KLEENE[text]]


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (Kind.NUMBER, np.array([1.0, np.nan])),
        (Kind.TEXT, np.array(["1", None], dtype=object)),
        (Kind.TEXT, np.array(["1", np.nan], dtype=object)),
        (Kind.DATETIME, np.array(["2020-01-01", "NaT"], dtype="datetime64[s]")),
    ],
)
def test_a_forgotten_mask_does_not_turn_unknown_into_false(kind: Kind, data):
    assert answers(evaluate(parse("x = x", {"x": kind}), {"x": Values(data)}, 2)) == [True, None]
    assert answers(evaluate(parse("x IS NULL", {"x": kind}), {"x": Values(data)}, 2)) == [False, True]


def test_a_masked_filler_without_truth_value_is_never_compared():
    pandas = pytest.importorskip("pandas")
    sex = Values(np.array(["Male", pandas.NA], dtype=object), np.array([False, True]))
    assert answers(evaluate(parse("sex = 'Male'", KINDS), {"sex": sex}, 2)) == [True, None]


# --- Every operator, by hand ----------------------------------------------------------------------------------------

OPERATORS = {
    "age = 40": [T, F, F, U, F, F, U],
    "age <> 40": [F, T, T, U, T, T, U],
    "age != 40": [F, T, T, U, T, T, U],
    "age < 2": [F, F, T, U, T, F, U],
    "age <= 2": [F, F, T, U, T, T, U],
    "age > 2": [T, T, F, U, F, F, U],
    "age >= 2": [T, T, F, U, F, T, U],
    "40 < age": [F, T, F, U, F, F, U],
    "age in (40, -3)": [T, F, T, U, F, F, U],
    "age not in (40, -3)": [F, T, F, U, T, T, U],
    "age in (hours)": [F, F, F, U, U, T, U],
    "age between 0 and 40": [T, F, F, U, T, T, U],
    "age not between 0 and 40": [F, T, T, U, F, F, U],
    "age = hours": [F, F, F, U, U, T, U],
    "age + hours = 41.5": [T, F, F, U, U, F, U],
    "age - 1 > 1 * hours": [T, F, F, U, U, F, U],
    "hours = -.5": [F, F, T, F, U, F, U],
    "hours = -5e-1": [F, F, T, F, U, F, U],
    '"capital-gain" > 0': [F, T, T, T, F, U, U],
    "sex = 'Female'": [T, F, T, U, F, F, U],
    'sex <> "native country"': [T, T, T, U, U, T, U],
    "\"native country\" = 'it''s'": [T, F, F, F, U, F, U],
    "\"native country\" = ''": [F, T, F, F, U, F, U],
    "\"native country\" = 'a\\b'": [F, F, F, T, U, F, U],
    "married": [T, F, U, T, F, T, U],
    "not married": [F, T, U, F, T, F, U],
    "married = true": [T, F, U, T, F, T, U],
    "married <> TRUE": [F, T, U, F, T, F, U],
    "TRUE": [T] * 7,
    "false": [F] * 7,
    "1 = 1": [T] * 7,
    "'a' = 'b'": [F] * 7,
    '"Discharge Date" >= "Date of Admission"': [T, T, U, U, F, T, U],
    '"Discharge Date" >= "Date of Admission" + 1': [T, F, U, U, F, T, U],
    '"Discharge Date" - 3 <= "Date of Admission"': [T, T, U, U, T, T, U],
    '"Discharge Date" = "Date of Admission" + 3': [F, F, U, U, F, T, U],
    "\"Discharge Date\" = '2020-01-31'": [T, T, U, F, T, F, U],
    "\"Discharge Date\" > DATE '2020-01-30' + 1": [F, F, U, F, F, T, U],
    "\"Discharge Date\" >= TIMESTAMP '2020-01-31 00:00:01'": [F, F, U, F, F, T, U],
    "\"Discharge Date\" between '2019-12-31' and '2020-01-31T12:00'": [T, T, U, T, T, F, U],
    "\"Discharge Date\" in ('2019-12-31', DATE '2020-03-02')": [F, F, U, T, F, T, U],
}


@pytest.mark.parametrize("text", OPERATORS)
def test_every_operator(text: str, database):
    assert ours(text) == OPERATORS[text]
    assert theirs(database, parse(text, KINDS).sql().sql("duckdb")) == OPERATORS[text]


def test_and_binds_tighter_than_or_and_not_than_and():
    assert ours("married or age > 40 and sex = 'x'") == ours("married or (age > 40 and sex = 'x')")
    assert ours("not married and age = 41") == ours("(not married) and age = 41")
    assert ours("age + 2 * hours = 43") == ours("age + (2 * hours) = 43")
    assert ours("age - 1 - 1 = 0") == ours("(age - 1) - 1 = 0") != ours("age - (1 - 1) = 0")


def test_large_integers_compare_exactly_and_no_product_wraps():
    big = 2**62 + 1
    table = {"id": Values(np.array([big, big - 1], dtype=np.int64))}
    kinds = {"id": Kind.NUMBER}
    assert answers(evaluate(parse(f"id = {big}", kinds), table, 2)) == [True, False]
    assert answers(evaluate(parse("id * 4 > 0 and id < 99999999999999999999", kinds), table, 2)) == [True, True]
    assert answers(evaluate(parse("id * 1e300 * 1e300 > 0", kinds), table, 2)) == [True, True]


def test_times_of_day_count():
    table = {"at": Values(np.array(["2020-01-31T18:30:00", "2020-01-31"], dtype="datetime64[s]"))}
    truth = evaluate(parse("at >= '2020-01-31 18:30'", {"at": Kind.DATETIME}), table, 2)
    assert answers(truth) == [True, False]


def test_bare_sql_words_can_name_columns():
    kinds = {"class": Kind.TEXT, "date": Kind.DATETIME, "größe": Kind.NUMBER, 'a"b': Kind.NUMBER}
    text = "class = 'x' and date > DATE '2020-01-01' and größe > 1 and \"a\"\"b\" > 2"
    assert parse(text, kinds).columns == set(kinds)


def test_a_predicate_knows_its_text_and_columns_and_is_a_value():
    text = "age > 40 AND (sex = 'Female' or age is null)"
    predicate = parse(text, KINDS)
    assert (predicate.text, predicate.columns) == (text, {"age", "sex"})
    assert predicate == parse(text, KINDS)
    assert len({predicate, parse(text, KINDS), parse("age > 41", KINDS)}) == 2


def test_empty_tables_have_empty_answers():
    nothing = {"age": Values(np.array([], dtype=np.int64))}
    assert answers(evaluate(parse("age > 40 or TRUE", KINDS), nothing, 0)) == []


@pytest.mark.parametrize(
    "values", [{}, {"age": Values(np.array([1, 2]))}, {"age": Values(np.array(["1"], dtype=object))}]
)
def test_wrong_values_are_a_bug_of_ours(values):
    with pytest.raises(InternalError, match="'age'"):
        evaluate(parse("age > 40", KINDS), values, 1)


# --- SQL ------------------------------------------------------------------------------------------------------------


def test_sql_quotes_identifiers_and_can_be_rendered_anywhere():
    expression = parse("\"capital-gain\" > 0 and \"native country\" = 'it''s'", KINDS).sql()
    assert expression.sql("duckdb") == "(\"capital-gain\" > 0) AND (\"native country\" = 'it''s')"
    assert expression.sql("postgres") == expression.sql("duckdb")
    assert expression.sql("spark") == "(`capital-gain` > 0) AND (`native country` = 'it\\'s')"


def test_sql_is_fresh_each_time():
    predicate = parse("age > 40", KINDS)
    predicate.sql().args["expression"].set("this", "0")
    assert predicate.sql().sql() == '"age" > 40'


def test_a_long_list_and_a_long_chain_need_no_deep_stack(database):
    numbers = range(900)
    for text in (
        f"age in ({', '.join(map(str, numbers))})",
        " or ".join(f"age={n}" for n in numbers),
        " and ".join(f"age<>{n}" for n in range(600)),
    ):
        assert ours(text) == theirs(database, parse(text, KINDS).sql().sql("duckdb"))


# --- DuckDB as the oracle -------------------------------------------------------------------------------------------


def choose(*options: str):
    return st.sampled_from(options)


NUMBERS = choose("0", "2", "40", "-3", "1.5", "-0.5", "41")
TEXTS = choose("'Female'", "'Male'", "''", "'it''s'", "'a\\b'", "'Côte'")
DATES = st.integers(-3, 3).map(lambda days: f"DATE '{date(2020, 1, 31) + timedelta(days)}'")
COMPARE = choose("=", "<>", "!=", "<", "<=", ">", ">=")


def joined(*parts):
    return st.tuples(*parts).map(" ".join)


numeric = st.recursive(
    choose("age", "hours", '"capital-gain"') | NUMBERS,
    lambda inner: joined(inner, choose("+", "-", "*"), inner) | inner.map("({})".format),
    max_leaves=3,
)
textual = choose("sex", '"native country"') | TEXTS
dated = joined(choose('"Date of Admission"', '"Discharge Date"'), choose("", "+ 1", "- 3", "+ -2")) | DATES


def lists(items):
    return st.lists(items, min_size=1, max_size=3).map(lambda chosen: f"({', '.join(chosen)})")


atoms = st.one_of(
    joined(numeric, COMPARE, numeric),
    joined(textual, choose("=", "<>"), textual),
    joined(dated, COMPARE, dated),
    joined(numeric, choose("between", "not between"), numeric, st.just("and"), numeric),
    joined(numeric, choose("in", "not in"), lists(NUMBERS)),
    joined(textual, choose("in", "not in"), lists(TEXTS)),
    joined(dated, choose("in", "not in"), lists(DATES)),
    joined(choose("age", "sex", "married", '"Discharge Date"'), choose("is null", "is not null")),
    choose("married", "TRUE", "FALSE", "married = TRUE"),
)
conditions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        joined(inner, choose("and", "or"), inner),
        inner.map("not {}".format),
        inner.map("({})".format),
        inner.map("not ({})".format),
    ),
    max_leaves=6,
)


@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(text=conditions)
def test_duckdb_agrees_with_the_sql_and_with_the_text_as_typed(database, text: str):
    """The table's numbers are halves, so DuckDB's decimals and our doubles are both exact."""
    answer = ours(text)
    assert theirs(database, parse(text, KINDS).sql().sql("duckdb")) == answer
    assert theirs(database, text) == answer


MUTANTS = {
    "_negated": lambda truth: Truth(~truth.true, truth.true),
    "_both": lambda left, right: Truth(left.true & right.true, ~(left.true & right.true)),
}


@pytest.mark.parametrize(("name", "text"), [("_negated", "not married"), ("_both", "married and age > 0")])
def test_the_oracle_rejects_two_valued_logic(name: str, text: str, database, monkeypatch):
    assert ours(text) == theirs(database, text)
    monkeypatch.setattr(inference_values, name, MUTANTS[name])
    assert ours(text) != theirs(database, text)


@settings(max_examples=200, deadline=None)
@given(text=st.text("age sx'\"()=<>-+*/;.,:!%#$@[]{}|&~?\\\n01NULnotird", max_size=30))
def test_any_text_is_read_or_refused_in_one_sentence(text: str):
    try:
        parse(text, KINDS)
    except SchemaError as error:
        assert "\n" not in str(error)
        assert str(error).endswith(".")


# --- Refusals -------------------------------------------------------------------------------------------------------

BANNED = {
    "lower(sex) = 'male'": "lower(",
    "count(*) > 1": "count(",
    'current_date > "Discharge Date"': "CURRENT_DATE",
    "\"lower\"(sex) = 'male'": "LOWER(sex)",
    "cast(age as int) = 1": "cast(",
    "CAST('2020-01-01' AS DATE) < \"Discharge Date\"": "CAST(",
    "try_cast(age as int) = 1": "try_cast(",
    "'2020-01-01'::date < \"Discharge Date\"": "::",
    "INT '3' = age": "CAST('3' AS INT)",
    "age = (select 1)": "SELECT 1",
    "age in (select 1)": "SELECT 1",
    "age in hours": "age IN",
    "exists (select 1)": "exists(",
    "age = any (1)": "any(",
    "sex like 'F%'": "LIKE",
    "sex ilike 'F%'": "ILIKE",
    "sex similar to 'F'": "SIMILAR",
    "sex || 'x' = 'y'": "||",
    "sex = 'x' 'y'": "CONCAT",
    "sex = N'x'": "N'x'",
    "case when married then true end": "CASE",
    "age / 2 = 1": "/",
    "age % 2 = 1": "%",
    "age & 1 = 1": "&",
    "age == 40": "==",
    "!married": "!",
    "age isnull": "isnull",
    "age notnull": "notnull",
    "age is distinct from hours": "DISTINCT",
    "age <=> 1": "<=>",
    "age is true": "IS",
    "married is not false": "IS",
    "(age > 1) is null": "age > 1",
    "age + 1 is null": "IS",
    "age = null": "NULL",
    "age in (1, null)": "NULL",
    "null": "NULL",
    "age between symmetric 1 and 2": "BETWEEN",
    "t.age = 1": "t.age",
    "(age, hours) = (1, 2)": "(age, hours)",
    "age < hours < 3": "age < hours",
    "(age > 1) = married": "age > 1",
    "-age > 3": "-age",
    "-'x' = sex": "-'x'",
    "age in ()": "IN ()",
    "\"Discharge Date\" + interval '3' day > '2020-01-01'": "INTERVAL",
    "age = [1]": "[",
    "age = {{x}}": "{",
    "age = ?": "?",
    "age = :x": ":",
    "age = $1": "$1",
    "age = @x": "@",
    "age = `hours`": "`",
    "age = 1 union select 1": "union",
    "age = 1 limit 3": "limit",
    "age = 1 order by age": "ORDER BY",
    "age = 1 as x": "as",
    "age xor hours": "xor",
    "select * from t": "select",
    "drop table t": "drop",
    "*": "*",
    "age = 1 or": "or",
    "age = 1)": ")",
    "capital gain > 1": "gain",
    "age = 0x1F": "x1F",
    "age = 1e999": "1e999",
    "age = .2.5": "0.2.5",
    "IF married": "IF",
    "1=1; DROP TABLE x": ";",
    "age = 1;": ";",
    "age = 1 -- and married": "-- and married",
    "age = 1 --": "--",
    "/* hello */ age = 1": "/* hello",
    "age /* hello */ = 1": "/* hello",
    "sex = 'x' or 1=1 --'": "--'",
    "sex = 'x'; --": "--",
}


@pytest.mark.parametrize("text", BANNED)
def test_everything_else_is_refused_with_the_piece_quoted(text: str):
    with pytest.raises(SchemaError) as refusal:
        parse(text, KINDS)
    message = str(refusal.value)
    assert BANNED[text] in message.replace(" in the expression", "\0").split("\0")[0]
    assert refusal.value.subject == text
    assert message.endswith(".")
    assert "\n" not in message


def test_a_refusal_names_what_is_allowed():
    with pytest.raises(SchemaError, match=r"«lower\(» .* use only columns, literals, .* IN, BETWEEN, IS NULL, AND, OR"):
        parse("lower(sex) = 'male'", KINDS)


@pytest.mark.parametrize("text", ["", "   ", "\n\t", "-- only a comment", "/* only a comment */"])
def test_empty_text_is_refused(text: str):
    with pytest.raises(SchemaError, match="is empty"):
        parse(text, KINDS)


@pytest.mark.parametrize("text", ["sex = 'x", '"age > 1', "age > 1 and sex = '"])
def test_an_open_quote_is_named(text: str):
    with pytest.raises(SchemaError, match="isn't closed"):
        parse(text, KINDS)


def test_an_injection_inside_a_string_stays_a_string(database):
    text = "sex = '''; DROP TABLE t; --'"
    assert ours(text) == theirs(database, parse(text, KINDS).sql().sql("duckdb"))
    assert len(theirs(database, "TRUE")) == len(ROWS)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("agge > 1", "perhaps you mean age"),
        ("Age > 1", "perhaps you mean age"),
        ("capital-gain > 0", 'perhaps you mean "capital-gain"'),
        ("native > 0", 'perhaps you mean "native country"'),
        ('sex = "Female"', 'it has age, hours, "capital-gain", .*text goes in single quotes'),
    ],
)
def test_an_unknown_column_gets_advice(text: str, advice: str):
    with pytest.raises(SchemaError, match=f"is not a column of the schema: {advice}"):
        parse(text, KINDS)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("age = 'x'", "compares numbers with text: write a number such as 40"),
        ("'x' = age", "compares text with numbers: write a number such as 40"),
        ("sex = 1", "compares text with numbers: write text such as 'Female'"),
        ("married = 1", "compares booleans with numbers: write TRUE or FALSE"),
        ("age = TRUE", "compares numbers with booleans"),
        ("age = sex", "compares numbers with text"),
        ("age in (1, 'x')", "compares numbers with text"),
        ("age between 1 and 'x'", "compares numbers with text"),
        ('"Discharge Date" > 3', "compares dates with numbers: write a date such as '2020-01-31'"),
        ('"Discharge Date" > sex', "compares dates with text"),
        ("sex = DATE '2020-01-31'", "compares text with dates"),
        ("\"Discharge Date\" > 'yesterday'", "«yesterday» .* isn't a date"),
        ("\"Discharge Date\" > '2020-02-30'", "«2020-02-30» .* isn't a date"),
        ("\"Discharge Date\" > '20200131'", "isn't a date"),
        ("\"Discharge Date\" > '2020-01-31 10:00:00+02:00'", "isn't a date"),
        ("\"Discharge Date\" > DATE 'x'", "isn't a date"),
        ("sex < 'b'", "puts text in order"),
        ("sex between 'a' and 'b'", "puts text in order"),
        ("married > FALSE", "puts booleans in order"),
        ("age", "holds numbers and is no condition"),
        ("age and married", "«age» .* holds numbers and is no condition"),
        ("'x'", "holds text and is no condition"),
        ("not age", "holds numbers and is no condition"),
        ("sex + 1 = 2", "computes text with numbers"),
        ("age + married = 2", "computes numbers with booleans"),
        ("3 + \"Discharge Date\" > '2020-01-01'", "computes numbers with dates"),
        ("\"Discharge Date\" * 2 > '2020-01-01'", "computes dates with numbers"),
        ('"Discharge Date" - "Date of Admission" > 3', "must move a date by a whole number of days"),
        ("\"Discharge Date\" + 1.5 > '2020-01-01'", "must move a date by a whole number of days"),
        ("\"Discharge Date\" + age > '2020-01-01'", "must move a date by a whole number of days"),
        ("\"Discharge Date\" + TRUE > '2020-01-01'", "must move a date by a whole number of days"),
        ("\"Discharge Date\" + 1000001 > '2020-01-01'", "up to 1,000,000"),
        ("'2020-01-01' in (\"Discharge Date\", sex)", "both as text and as a date"),
    ],
)
def test_kinds_must_agree(text: str, reason: str):
    with pytest.raises(SchemaError, match=reason):
        parse(text, KINDS)


# --- Limits ---------------------------------------------------------------------------------------------------------


def nested(levels: int) -> dict[str, str]:
    return {
        "parentheses": "(" * levels + "age = 1" + ")" * levels,
        "NOT": "not " * levels + "age = 1",
        "both": "not (" * (levels // 2) + "age = 1" + ")" * (levels // 2),
        "sums": "age" + " + age" * levels + " = 1",
        "minus": "age = " + "- " * levels + "1",
        "chained sums": "(age)" + " + (age)" * (levels - 1) + " = 1",
    }


@pytest.mark.parametrize("shape", nested(1))
def test_nesting_is_limited_without_a_recursion_error(shape: str):
    parse(nested(MAX_NESTING)[shape], KINDS).sql().sql()
    for levels in (MAX_NESTING + 2, 1000):
        with pytest.raises(SchemaError, match=f"nests deeper than {MAX_NESTING} levels"):
            parse(nested(levels)[shape], KINDS)


def test_a_caller_deep_in_its_own_stack_gets_the_same_sentence():
    def deep(levels: int):
        return deep(levels - 1) if levels else parse(nested(MAX_NESTING)["parentheses"], KINDS)

    frame, used = sys._getframe(), 0
    while frame is not None:
        frame, used = frame.f_back, used + 1
    with pytest.raises(SchemaError, match="nests deeper"):
        deep(sys.getrecursionlimit() - used - 200)


def test_many_shallow_pieces_are_not_nesting():
    text = " and ".join(["(age + 1 > -2) and not (married)"] * 100)
    assert parse(text, KINDS).columns == {"age", "married"}
    assert parse(f"age in ({', '.join(['-1'] * 500)})", KINDS).columns == {"age"}
    assert parse("sex = '" + "(" * 500 + "'", KINDS).columns == {"sex"}


def test_length_is_limited():
    padding = " " * (MAX_CHARACTERS - len("age = 1"))
    assert parse("age = 1" + padding, KINDS).columns == {"age"}
    with pytest.raises(SchemaError, match="10001 characters, the most is 10000"):
        parse("age = 1" + padding + " ", KINDS)


# --- Constraints ----------------------------------------------------------------------------------------------------


def test_a_constraint_is_violated_only_for_certain():
    """All nine pairs of truth values: only true → false breaks the rule, as in an SQL CHECK."""
    kinds = {"p": Kind.BOOLEAN, "q": Kind.BOOLEAN}
    table = {name: as_values([pair[i] for pair in PAIRS], Kind.BOOLEAN) for i, name in enumerate("pq")}
    rule = Constraint.parse("p", "q", kinds)
    assert violated(rule, table, 9).tolist() == [pair == (T, F) for pair in PAIRS]
    assert violated(Constraint.parse(None, "q", kinds), table, 9).tolist() == [pair[1] is F for pair in PAIRS]


def test_a_constraint_names_the_columns_of_both_halves():
    assert Constraint.parse("age < 15", "not married", KINDS).columns == {"age", "married"}
    unconditional = Constraint.parse(None, '"Discharge Date" >= "Date of Admission"', KINDS)
    assert unconditional.condition is None
    assert unconditional.columns == {"Discharge Date", "Date of Admission"}
    assert violated(unconditional, TABLE, len(ROWS)).tolist() == [F, F, F, F, T, F, F]


@pytest.mark.parametrize(("condition", "consequence"), [("", "married"), ("age < 15", ""), ("agee < 15", "married")])
def test_both_halves_are_checked(condition: str, consequence: str):
    with pytest.raises(SchemaError):
        Constraint.parse(condition, consequence, KINDS)


def test_datetime_literals_are_midnight_by_default():
    at = Values(np.array([datetime(2020, 1, 31), datetime(2020, 1, 31, 0, 0, 1)], dtype="datetime64[s]"))
    assert answers(evaluate(parse("at = '2020-01-31'", {"at": Kind.DATETIME}), {"at": at}, 2)) == [True, False]
