"""Special values and derived columns: one reading on every kind of table, in SQL and in Python; one cell per row."""

from __future__ import annotations

import math
import re
from datetime import date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.encoding import codes_of_column, codes_of_derived
from understudy.boundary.schema.expression import parse
from understudy.boundary.schema.grouped_sums import GroupedSums, RowCount, ValueSum
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.frame import to_arrow
from understudy.boundary.tables.rows import Rows
from understudy.boundary.tables.sources import open as open_table
from understudy.errors import TableError

TOKENS = ("?", "-7")
TEXT = """
missing_values = ["?", "-7"]
[columns.row]
type = "integer"
min = 0
max = 63
bins = 64
[columns.pay]
type = "integer"
min = 0
max = 100
bins = 10
missing = true
special = ["N", -99, "it's; --", 50]
[columns.rate]
type = "number"
min = -1
max = 1
cuts = [0, 0.5]
special = [-0.25, "n.a."]
[columns.admitted]
type = "datetime"
min = 2024-01-01
max = 2024-12-31
missing = true
special = ["open", "9999-12-31"]
[columns.discharged]
type = "datetime"
min = 2024-01-01
max = 2024-12-31
missing = true
format = "%d/%m/%Y"
[columns.stay]
type = "derived"
of = "discharged - admitted"
min = 0
max = 30
missing = true
[columns.weekday]
type = "derived"
of = "weekday(admitted)"
[columns.year]
type = "derived"
of = 'year("admitted")'
[columns.seen]
type = "datetime"
min = 1969-12-30
max = 2024-12-31
resolution = "hour"
bins = 20
missing = true
format = "%d.%m.%Y %H:%M"
[columns.month]
type = "derived"
of = " month( seen ) "
[columns.hour]
type = "derived"
of = "hour(seen)"
[columns.left]
type = "derived"
of = "rate + other - more"
rebuilds = "more"
min = -2
max = 2
bins = 8
decimals = 1
[columns.other]
type = "number"
min = -1
max = 1
decimals = 1
[columns.more]
type = "number"
min = -1
max = 1
missing = true
"""
SCHEMA = Schema.loads(TEXT)
LINE = 'missing_values = ["?", "-7"]'
BY_COLUMN = Schema.loads(re.sub(r"^(\[columns\..*\])$", rf"\1\n{LINE}", TEXT.replace(LINE, "", 1), flags=re.MULTILINE))
"""The same, with what means a missing value stated for each column."""
DOMAIN = Domain.of(SCHEMA)
COLUMNS = ("row", "pay", "rate", "admitted", "discharged", "seen", "other", "more")
PARTS = {"weekday": "admitted", "year": "admitted", "month": "seen", "hour": "seen"}

PAY = ["N", " N ", "n", "-99", "-99.0", "-98.6", "50", "50.0", "49.6", "it's; --", "-7", "?", "", None, "x", "nan"]
PAY += ["inf", "-inf", "0", "101", "9.5", "1e400", "true", "+5e1"]
RATE = ["-0.25", "-.25", "n.a.", "N.A.", "0", "1e308", "inf", "-inf", "nan", "", None, "?", "0.5", "-2", "\u00a0n.a. "]
ADMITTED = ["2024-01-01", "2024-02-28", "open", "9999-12-31", "2024-02-30", "", None, "?", "1900-01-01", "2024-12-31"]
ADMITTED += ["2024-03-01 23:59:59", " open "]
DISCHARGED = ["02/01/2024", "29/02/2024", "2024-03-02 00:00:01", "soon", "", None, "?", "01/01/2030", "31/12/2023"]
SEEN = ["31.12.1969 23:59", "29.02.2000 00:00", "2024-03-31 02:30:00+02:00", "01.13.2000 10:00", "", None, "?"]
SEEN += ["28.02.1900 12:00", "2030-07-01", "infinity", "1582-10-10", "0001-01-01", "9999-12-31 23:59:59.999"]
MORE = ["0.1", "0.2", "1e308", "-1e308", "inf", "-inf", "nan", "", None, "abc", "?", "0", "1e400"]


def text_rows() -> pa.Table:
    lists = {"pay": PAY, "rate": RATE, "admitted": ADMITTED, "discharged": DISCHARGED, "seen": SEEN}
    # Lengths without a common divisor, so that odd values meet; the last one is turned round.
    lists |= {"other": ["0.1", *MORE], "more": MORE[::-1]}
    columns = {n: pa.array([v[i % len(v)] for i in range(64)], pa.string()) for n, v in lists.items()}
    return pa.table({"row": pa.array(range(64), pa.int64()), **columns})


def typed_rows() -> pa.Table:
    def cycled(values, kind):
        return pa.array([values[i % len(values)] for i in range(64)], kind)

    nan, inf = math.nan, math.inf
    return pa.table(
        {
            "row": pa.array(range(64), pa.int64()),
            "pay": cycled([-99, 50, -7, None, 0, 100, 2**62, 49], pa.int64()),
            "rate": cycled([-0.25, 0.0, nan, None, inf, -inf, 1e308, 0.5, 0.1], pa.float64()),
            "admitted": cycled([date(2024, 1, 1), None, date(2024, 2, 28), date(1900, 1, 1)], pa.date32()),
            "discharged": cycled([datetime(2024, 3, 1, 23, 59, 59), None, datetime(2023, 12, 31)], pa.timestamp("us")),
            "seen": cycled([datetime(1969, 12, 31, 23, 59, 59), None, datetime(2000, 2, 29)], pa.timestamp("us")),
            "other": cycled([0.1, -0.3, nan, None, inf], pa.float64()),
            "more": cycled([0.2, -1e308, -inf, inf, None, nan, 0.7], pa.float32()),
        }
    )


# ---------------------------------------------------------------- the oracle: one value, and one row, at a time


def text_of(value):
    return "" if value is None else str(value).strip(" \u00a0")


def is_missing(value):
    text = text_of(value)
    return text in ("", *TOKENS) or (isinstance(value, float) and math.isnan(value))


def number_of(value):
    if is_missing(value):
        return None
    if text_of(value).lower() in ("true", "false"):
        return float(text_of(value).lower() == "true")
    try:
        return None if math.isnan(float(text_of(value))) else float(text_of(value))
    except ValueError:
        return None


def special_of(column, value):
    """The place of a value among the special ones of its column."""
    if is_missing(value):
        return None
    for place, special in enumerate(column.special):
        found = text_of(value) if isinstance(special, str) else number_of(value)
        if found == special:
            return place
    return None


def day_of(value, form=None):
    if is_missing(value):
        return None
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    for read in (lambda t: datetime.strptime(t, form or ""), datetime.fromisoformat):
        try:
            return read(text_of(value)).date()
        except ValueError:
            continue
    return None


def hour_of(value):
    """The hour in which a value of the column `seen` lies."""
    if is_missing(value) or isinstance(value, datetime):
        return None if is_missing(value) else value.replace(minute=0, second=0, microsecond=0)
    for read in (lambda t: datetime.strptime(t, "%d.%m.%Y %H:%M"), datetime.fromisoformat):
        try:
            found = read(text_of(value))
        except ValueError:
            continue
        return (found - (found.utcoffset() or timedelta())).replace(minute=0, second=0, microsecond=0, tzinfo=None)
    return None


def part_of(name, row):
    if PARTS[name] == "seen":
        moment = hour_of(row["seen"])
        return moment and float(getattr(moment, name))
    day = day_of(row["admitted"])
    if day is None or special_of(SCHEMA["admitted"], row["admitted"]) is not None:
        return None
    return float(day.isoweekday() if name == "weekday" else day.year)


def derived_of(name, row):
    if name == "stay":
        first, last = day_of(row["admitted"]), day_of(row["discharged"], "%d/%m/%Y")
        if first is None or last is None or special_of(SCHEMA["admitted"], row["admitted"]) is not None:
            return None
        return float((last - first).days)
    terms = [number_of(row[c]) for c in ("rate", "other", "more")]
    if None in terms or special_of(SCHEMA["rate"], row["rate"]) is not None:
        return None
    one, two, three = (min(max(t, -1e300), 1e300) for t in terms)
    return math.floor(min(max(one + two - three, -2.0), 2.0) * 10 + 0.5) / 10


def naive_code(coding, row):
    column = coding.column
    if column.name in ("stay", "left"):
        value = derived_of(column.name, row)
    elif column.name in PARTS:
        value = part_of(column.name, row)
    elif column.name == "seen":
        hour = hour_of(row["seen"])
        value = None if hour is None else (hour - column.minimum) // timedelta(hours=1)
    else:
        special = special_of(column, row[column.name])
        if special is not None:
            return coding.levels + special
        if column.type == "datetime":
            day = day_of(row[column.name], column.format)
            value = None if day is None else (day - column.minimum.date()).days
        else:
            value = number_of(row[column.name])
    if value is None:
        return coding.size - 1 if column.missing else 0
    if column.type == "integer" and math.isfinite(value):
        value = math.floor(value + 0.5)
    return sum(value >= edge for edge in coding.edges[1:-1])


def naive_codes(rows):
    return {c.name: np.array([naive_code(c, row) for row in rows.to_pylist()]) for c in DOMAIN}


# ---------------------------------------------------------------- every kind of table


@pytest.mark.parametrize("schema", [SCHEMA, BY_COLUMN], ids=["for all", "by column"])
@pytest.mark.parametrize("make", [text_rows, typed_rows])
def test_every_kind_of_table_reads_special_and_derived_values_as_the_rules_say(kind, opened, make, schema):
    rows = make()
    table, expected = opened(kind, rows, schema), naive_codes(rows)
    domain = Domain.of(schema)
    names = [n for n in domain.names if n != "row"]
    assert set(names) == {"pay", "rate", "admitted", "stay", "left", "other", "seen", *PARTS}
    table.check_readable()
    for name, counts in zip(names, table.count_by(domain, [("row", n) for n in names]), strict=True):
        found = counts.argmax(axis=1)
        wrong = np.flatnonzero((found != expected[name]) | (counts.sum(axis=1) != 1))
        assert not len(wrong), (name, [(rows.slice(int(i), 1).to_pylist(), found[i], expected[name][i]) for i in wrong])


@pytest.mark.parametrize("schema", [SCHEMA, BY_COLUMN], ids=["for all", "by column"])
@pytest.mark.parametrize("make", [text_rows, typed_rows])
def test_the_encoder_in_python_reads_them_alike(make, schema):
    rows, missing = make(), schema.missing_texts
    expected, read = naive_codes(rows), to_arrow(rows, "rows")
    for coding in Domain.of(schema):
        if coding.name in ("stay", "left", *PARTS):
            found = codes_of_derived(coding, read, missing)
        else:
            found = codes_of_column(coding, read.column(coding.name), missing)
        np.testing.assert_array_equal(found, expected[coding.name], err_msg=coding.name)


CONDITIONS = {
    "pay = 'N'": lambda r: r["pay"] == 0,
    "pay = -99": lambda r: r["pay"] == 1,
    "pay <> -99": lambda r: r["pay"] not in (1, None),
    "pay = 50": lambda r: r["pay"] == 3,
    "pay IN ('N', 50, -99)": lambda r: r["pay"] in (0, 1, 3),
    "pay NOT IN ('N', 'it''s; --')": lambda r: r["pay"] not in (0, 2, None),
    "pay < 0": lambda r: False,
    "NOT pay < 60": lambda r: r["pay"] == "number" and r["number"] >= 60,
    "pay < 60": lambda r: r["pay"] == "number" and r["number"] < 60,
    "pay + 1 < 61": lambda r: r["pay"] == "number" and r["number"] < 60,
    "pay IS NULL": lambda r: r["pay"] is None,
    "pay IS NOT NULL": lambda r: r["pay"] is not None,
    "admitted = 'open' OR admitted = '9999-12-31'": lambda r: r["admitted"] in (0, 1),
    "admitted <= '2024-02-28'": lambda r: r["day"] is not None and r["day"] <= date(2024, 2, 28),
    "weekday > 5 AND year = 2024": lambda r: (
        r["day"] is not None and r["day"].isoweekday() > 5 and r["day"].year == 2024
    ),
    "stay > 2": lambda r: r["stay"] is not None and r["stay"] > 2,
}


def judged(row):
    """What the conditions see of a row."""
    special, day = special_of(SCHEMA["pay"], row["pay"]), special_of(SCHEMA["admitted"], row["admitted"])
    number, stay = number_of(row["pay"]), derived_of("stay", row)
    admitted = day_of(row["admitted"]) if day is None else None
    return {
        "pay": special if special is not None else ("number" if number is not None else None),
        "number": None if number is None else math.floor(min(max(number, 0), 100) + 0.5),
        "admitted": day,
        "day": None if admitted is None else min(max(admitted, date(2024, 1, 1)), date(2024, 12, 31)),
        "stay": None if stay is None else min(max(stay, 0), 30),
    }


def test_conditions_and_sums_leave_special_values_out_of_the_numbers(kind, opened):
    rows = text_rows()
    table, seen = opened(kind, rows, SCHEMA), [judged(r) for r in rows.to_pylist()]
    for text, holds in CONDITIONS.items():
        tally = GroupedSums((), parse(text, SCHEMA.kinds), (RowCount(),))
        assert table.count_tally(DOMAIN, tally)[0] == sum(map(bool, map(holds, seen))), text
    numbers = [r["number"] for r in seen if r["pay"] == "number"]
    tally = GroupedSums((), None, (ValueSum("pay", 0.0, 1.0, 0, 100), RowCount("pay")))
    assert [int(x) for x in table.count_tally(DOMAIN, tally)] == [sum(numbers), len(numbers)]


def test_a_derived_column_that_the_table_has_is_refused_by_name(kind, opened):
    schema = Schema.loads("""
    [columns.a]
    type = "integer"
    min = 0
    max = 9
    [columns.b]
    type = "integer"
    min = 0
    max = 9
    [columns.c]
    type = "derived"
    of = "a - b"
    min = 0
    max = 9
    """)
    with pytest.raises(TableError, match="column 'c' is derived in the schema, but stands in the table"):
        opened(kind, pa.table({"a": [1], "b": [1], "c": [0]}), schema)


def test_rows_for_evaluation_hold_special_values_beside_the_numbers():
    rows = text_rows()
    read = Rows.of(rows).read([SCHEMA["pay"], SCHEMA["stay"]], SCHEMA.missing_texts).to_pylist()
    for found, row in zip(read, rows.to_pylist(), strict=True):
        special = special_of(SCHEMA["pay"], row["pay"])
        assert found["special:pay"] == (None if special is None else SCHEMA["pay"].special_texts[special])
        number = number_of(row["pay"]) if special is None else None
        assert found["pay"] == number or (number is None and (found["pay"] is None or math.isnan(found["pay"])))
        assert found["stay"] == derived_of("stay", row)


# ---------------------------------------------------------------- sensitivity

ROW = st.fixed_dictionaries(
    {
        "row": st.just(0),
        "pay": st.sampled_from(PAY),
        "rate": st.sampled_from(RATE),
        "admitted": st.sampled_from(ADMITTED),
        "discharged": st.sampled_from(DISCHARGED),
        "seen": st.sampled_from(SEEN),
        "other": st.sampled_from(MORE),
        "more": st.sampled_from(MORE),
    }
)


def histograms(rows: list[dict]) -> list[np.ndarray]:
    kinds = pa.schema([(n, pa.int64() if n == "row" else pa.string()) for n in COLUMNS])
    table = open_table(pa.Table.from_pylist(rows, kinds), SCHEMA)
    return table.count_by(
        DOMAIN, [("pay", "rate"), ("admitted", "stay"), ("left", "other", "pay"), ("seen", "hour", "month")]
    )


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(st.lists(ROW, max_size=6), ROW)
def test_one_row_moves_one_cell_by_one(rows, more):
    for before, after in zip(histograms(rows), histograms([*rows, more]), strict=True):
        moved = after - before
        assert moved.sum() == 1 and np.count_nonzero(moved) == 1


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(st.lists(ROW, max_size=6), ROW, ROW)
def test_a_row_in_place_of_another_moves_two_cells_at_most(rows, one, other):
    for before, after in zip(histograms([one, *rows]), histograms([other, *rows]), strict=True):
        assert np.abs(after - before).sum() in (0, 2)
