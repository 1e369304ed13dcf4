"""One suite over every kind of table: the same rows give the same exact counts, and each row counts once.

The oracle is a naive re-statement of the encoding rules, one Python value at a time. A column `row` that tells the rows
apart makes every comparison row by row: the table of (row, column) must have a single 1 per row, at the oracle's code.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import re
import unicodedata
from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from understudy.boundary.schema.column import Boolean, Categorical, Datetime, Identifier, Integer, Number, Ordinal
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.encoding import codes_of_column
from understudy.boundary.schema.partition import Grid
from understudy.boundary.schema.schema import Schema, Unit
from understudy.boundary.tables import sql
from understudy.boundary.tables.frame import to_arrow
from understudy.boundary.tables.sites.federated import FederatedTable
from understudy.boundary.tables.sources import open as open_table
from understudy.boundary.tables.table import Table
from understudy.errors import SchemaError, TableError
from understudy.inference.values import check_decodable, decode
from understudy.releases.synthetic_table import csv_bytes, from_values, to_native

INJECTION = "'); DROP TABLE frame; --"
SAID_KINDS = {"polars-lazy": "polars", "csv-gz": "csv", "postgresql-pushdown": "postgresql", "sail": "spark"}
NASTY = ("O'Brien", 'say "hi"', "a,b", "naïve ☃", INJECTION, "line\nbreak", "back\\slash", "100%", "{0}", "1", "x;y|z")
TOKENS = ("?", "n/a", "-999")
SPARK = ("sail", "spark")
"""Engines whose tables have no order of their own."""

# ---------------------------------------------------------------- the oracle


ZS = "".join(c for c in map(chr, range(0x110000)) if unicodedata.category(c) == "Zs")


def read_number(value):
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int | float):
        return float(value)
    if not isinstance(value, str) or not value.isascii():
        return None
    if value.lower() in ("true", "false"):
        return float(value.lower() == "true")
    try:
        return float(value)
    except ValueError:
        return None


def read_moment(value, form):
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    try:
        with contextlib.suppress(ValueError):
            return datetime.strptime(value, form or "")
        moment = datetime.fromisoformat(re.sub(" (?=[+-])", "", value))
        return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
    except ValueError:
        return None


def naive_bin(edges, position):
    return sum(position >= e for e in edges[1:-1])


def naive_code(coding, value, tokens=()):
    """The code of one value, by the printed rules: missing first, then read, clamp and look up."""
    column = coding.column
    text = "" if value is None else str(value).strip(ZS)
    if value is None or text == "" or text in tokens:
        return coding.null_code
    if isinstance(column, Boolean):
        known = dict.fromkeys(Boolean.FALSE, 0) | dict.fromkeys(Boolean.TRUE, 1)
        return known.get(text.lower(), coding.stray_code)
    if isinstance(column, Categorical):
        wanted = read_number(value if not isinstance(value, str) else text) if column.numeric else text
        return next((i for i, label in enumerate(coding.labels) if label == wanted), coding.stray_code)
    if isinstance(column, Datetime):
        moment = read_moment(text if isinstance(value, str) else value, column.format)
        if moment is None:
            return coding.null_code
        units = math.floor((moment - column.start).total_seconds() / column.unit_seconds)
        return naive_bin(coding.edges, units)
    number = read_number(text if isinstance(value, str) else value)
    if number is None or math.isnan(number):
        return coding.null_code
    if isinstance(column, Integer) and math.isfinite(number):
        number = math.floor(number + 0.5)
    return naive_bin(coding.edges, number)


def naive_codes(domain, rows, tokens=()):
    return {
        c.name: np.array([naive_code(c, v, tokens) for v in rows.column(c.name).to_pylist()], dtype=np.intp)
        for c in domain
    }


def naive_counts(domain, codes, columns):
    counts = np.zeros(domain.shape(columns), dtype=np.int64)
    for row in zip(*(codes[c] for c in columns or domain.names), strict=True):
        counts[row if columns else ()] += 1
    return counts


# ---------------------------------------------------------------- fixed rows, every column type


def numbered(columns):
    """The columns cycled to one length, with a `row` column in front that tells the rows apart."""
    length = max(len(v) for v in columns.values())
    cycled = {name: [v[i % len(v)] for i in range(length)] for name, v in columns.items()}
    return {"row": list(range(length)), **cycled}


NUMBERS = ["0", "9", "-1", "10", "4.5", "4.4999", "1e0", " 3 ", "", None, "?", " n/a ", "abc", "nan", "inf", "-inf"]
NUMBERS += [
    "True",
    "false",
    "TRUE",
    "1_0",
    "0x1",
    "+2",
    "1e400",
    "-999",
    "1,5",
    "\u00a07\u00a0",
    "--1",
    "2.",
    ".5",
    "Infinity",
    "\t6",
]
DATES = ["2024-01-01", "2024-12-31", "2023-12-31", "2025-01-01", "2024-02-30", "soon", "", None, "?", " 2024-03-04 "]
DATES += ["2024-06-30 23:59:59", "2024-06-30T12:00:00", "2024-01-01 00:00:00.5", "1900-01-01", "2024-13-01"]
DATES += ["2024-03-10 00:30:00+01:00", "2024-03-10T23:30:00-02:30", "2024-03-10 00:30:00 +0100", "2024-03-10T00:30:00Z"]
FLAGS = ["true", "F", "YES", "n", "On", "off", "1", "0", "1.0", "0.0", "maybe", "", None, "?", " True ", "2"]
LABELS = [*NASTY, " a,b ", "A,B", "unknown", "", None, "?", "n/a", "\ta,b", "  ", "o'brien", "''", "NULL", "null"]

TEXT_ROWS = numbered(
    {
        "select": NUMBERS,
        'a "quoted" name': NUMBERS[::-1],
        "with.dot": NUMBERS[3:] + NUMBERS[:3],
        "two words": NUMBERS,
        "it's; --": LABELS,
        "few": LABELS,
        "many": [f"L{i:02d}" for i in range(40)] + LABELS,
        "group": ["1", "1.0", "2", " 3 ", "4", "x", "", None, "1e0", "nan", "?", "2.5"],
        "codes": [*map(str, range(45)), "7.0", "", None, "x", "?"],
        "flag": FLAGS,
        "sure": FLAGS,
        "day": DATES,
        "hour": DATES,
        "européen": ["31/12/2024", "2024-12-31", "01/02/2024", "", None, "32/01/2024", "?", "1/2/2024"],
        "name": ["Ann", None, "", INJECTION],
    }
)

SCHEMA = Schema(
    (
        Integer("row", minimum=0, maximum=len(TEXT_ROWS["row"]) - 1, bins=len(TEXT_ROWS["row"])),
        Integer("select", minimum=0, maximum=9, missing=True),
        Integer('a "quoted" name', minimum=0, maximum=9, bins=4),
        Number("with.dot", minimum=-0.5, maximum=9.5, bins=7, missing=True),
        Number("two words", minimum=0, maximum=10, cuts=(0.25, 4.4999, 4.5, 9)),
        Categorical("it's; --", values=NASTY, missing=True, other="rest"),
        Categorical("few", values=NASTY),
        Categorical("many", values=(*(f"L{i:02d}" for i in range(40)), *NASTY), missing=True),
        Categorical("group", values=(3, 1, 2), missing=True),
        Ordinal("codes", values=tuple(range(40))),
        Boolean("flag", missing=True),
        Boolean("sure"),
        Datetime("day", minimum=datetime(2024, 1, 1), maximum=datetime(2024, 12, 31), missing=True),
        Datetime("hour", minimum=datetime(2024, 1, 1, 6, 30), maximum=datetime(2024, 7, 1), resolution="hour", bins=50),
        Datetime("européen", minimum=datetime(2024, 1, 1), maximum=datetime(2024, 12, 31), format="%d/%m/%Y"),
        Identifier("name"),
    ),
    missing_values=TOKENS,
)
PRIVATE_FEW = SCHEMA.edit(few={"values": "private"})
"""The values of a column are counted where they are private; a site refuses any other column."""
DOMAIN = Domain.of(SCHEMA)
SHORTEST, LONGEST = len(NASTY), len(SCHEMA["many"].values)


def text_table():
    return pa.table({n: pa.array(v, pa.int64() if n == "row" else pa.string()) for n, v in TEXT_ROWS.items()})


INF, NAN = math.inf, math.nan
TYPED = {
    "select": (pa.int64(), [0, 9, -1, 10, None, 2**62, -(2**62), 5]),
    'a "quoted" name': (pa.float64(), [0.0, 9.4, 9.5, -INF, INF, NAN, None, 2.5, 3.5]),
    "with.dot": (pa.float32(), [0.0, 9.5, 0.25, -INF, INF, NAN, None]),
    "two words": (pa.decimal128(9, 4), None),
    "it's; --": (pa.dictionary(pa.int8(), pa.string()), [*NASTY, None, "unknown"]),
    "few": (pa.large_string(), [*NASTY, None, "unknown"]),
    "many": (pa.string(), ["L00", "L39", *NASTY, None, "nobody"]),
    "group": (pa.float64(), [1.0, 2.0, 3.0, 2.5, None, NAN, INF]),
    "codes": (pa.int16(), [0, 39, 40, -1, None]),
    "flag": (pa.bool_(), [True, False, None]),
    "sure": (pa.int8(), [0, 1, 2, None]),
    "day": (pa.date32(), [date(2024, 1, 1), date(2024, 12, 31), date(1900, 1, 1), date(2200, 1, 1), None]),
    "hour": (pa.timestamp("us"), [datetime(2024, 1, 1, 6), datetime(2024, 1, 1, 7, 59, 59, 999999), None]),
    "européen": (pa.string(), ["05/05/2024", None]),
    "name": (pa.string(), ["Ann", None]),
}


def typed_table():
    from decimal import Decimal

    lists = {n: v for n, (_, v) in TYPED.items()}
    lists["two words"] = [Decimal(x) for x in ("0", "0.25", "4.4999", "4.5", "9", "11", "-3")] + [None]
    rows = numbered(lists)
    types = {"row": pa.int64(), **{n: t for n, (t, _) in TYPED.items()}}
    return pa.table({n: pa.array(v, types[n]) for n, v in rows.items()})


def oracle_view(rows):
    """Decimals as floats, which is how every engine reads them; the rest as it is."""
    place = rows.column_names.index("two words")
    return rows.set_column(place, "two words", rows.column(place).cast(pa.float64()))


def check_row_by_row(table, rows, domain=DOMAIN, tokens=TOKENS):
    codes = naive_codes(domain, rows, tokens)
    sets = [("row", c) for c in domain.names if c != "row"]
    for columns, counts in zip(sets, table.count_by(domain, sets), strict=True):
        expected = naive_counts(domain, codes, columns)
        wrong = np.flatnonzero((counts != expected).any(axis=1))
        values = rows.column(columns[1]).to_pylist()
        assert not len(wrong), (columns[1], [(values[i % len(values)], counts[i].nonzero()[0]) for i in wrong])
        assert counts.sum() == len(rows)


def test_text_is_encoded_row_by_row_as_the_rules_say(kind, opened):
    assert SHORTEST <= sql.CASE_AT_MOST < LONGEST  # both ways to match labels are walked
    rows = text_table()
    check_row_by_row(opened(kind, rows, SCHEMA), rows)


def test_typed_values_are_encoded_row_by_row_as_the_rules_say(kind, opened):
    rows = typed_table()
    check_row_by_row(opened(kind, rows, SCHEMA), oracle_view(rows))


@pytest.mark.parametrize("make", [text_table, typed_table])
def test_the_encoder_in_python_encodes_as_the_rules_say(make):
    """What ties it to the encoder in SQL, which every engine runs in the two tests above."""
    rows = make()
    expected, read = (
        naive_codes(DOMAIN, oracle_view(rows) if make is typed_table else rows, TOKENS),
        to_arrow(rows, "rows"),
    )
    for coding in DOMAIN:
        found = codes_of_column(coding, read.column(coding.name), SCHEMA.missing_texts)
        np.testing.assert_array_equal(found, expected[coding.name], err_msg=coding.name)


def test_the_oracle_rejects_a_table_that_encodes_one_value_differently(opened):
    rows = text_table()
    broken = rows.set_column(1, "select", pa.array(["1", *TEXT_ROWS["select"][1:]]))
    with pytest.raises(AssertionError):
        check_row_by_row(opened("pyarrow", broken, SCHEMA), rows)


def test_every_shape_of_question_has_its_exact_answer(kind, opened):
    rows = text_table()
    table, codes = opened(kind, rows, SCHEMA), naive_codes(DOMAIN, rows, TOKENS)
    sets = [("flag",), ("many", "day"), ("day", "many"), ("few", "group", "sure"), ("flag",), (), ("codes", "select")]
    answers = table.count_by(DOMAIN, sets)
    assert [a.shape for a in answers] == [DOMAIN.shape(s) for s in sets]
    for columns, counts in zip(sets, answers, strict=True):
        assert counts.dtype == np.int64 and counts.sum() == len(rows)
        np.testing.assert_array_equal(counts, naive_counts(DOMAIN, codes, columns))
    assert table.count_by(DOMAIN, []) == [] and table.count_cells(DOMAIN, []) == []


def test_partitions_merge_cells_of_the_marginal(kind, opened):
    rows = text_table()
    table, codes = opened(kind, rows, SCHEMA), naive_codes(DOMAIN, rows, TOKENS)
    halves = Grid(("many", "flag"), (tuple(i % 2 for i in range(DOMAIN.size("many"))), (0, 0, 1)))
    thirds = Grid(("codes",), (tuple(i // 14 for i in range(40)),))
    for grid, counts in zip((halves, thirds), table.count_cells(DOMAIN, [halves, thirds]), strict=True):
        cells = grid.assign(codes)
        np.testing.assert_array_equal(counts, np.bincount(cells, minlength=grid.cells))
        assert counts.sum() == len(rows)


def test_values_are_counted_as_trimmed_texts_without_the_missing(kind, opened):
    rows = text_table()
    values, counts = opened(kind, rows, PRIVATE_FEW).count_values("few")
    texts = [v.strip(ZS) for v in TEXT_ROWS["few"] if v is not None]
    kept = [t for t in texts if t and t not in TOKENS]
    assert dict(zip(values, counts.tolist(), strict=True)) == {t: kept.count(t) for t in kept}
    assert values == sorted(values) and counts.dtype == np.int64


def test_rows_are_counted(kind, opened):
    rows = text_table()
    table = opened(kind, rows, SCHEMA)
    assert isinstance(table, Table) and table.schema is SCHEMA
    assert table.kind == SAID_KINDS.get(kind, kind)
    assert table.count_rows() == len(rows)
    assert table.has_rows(0) and table.has_rows(len(rows)) and not table.has_rows(len(rows) + 1)


def test_a_table_without_rows_counts_nothing(kind, opened):
    rows = text_table().slice(0, 0)
    assert opened(kind, rows, PRIVATE_FEW).count_values("few")[0] == []
    table = opened(kind, rows, SCHEMA)
    assert table.count_rows() == 0 and not table.has_rows(1)
    (counts, total) = table.count_by(DOMAIN, [("flag", "sure"), ()])
    assert counts.shape == (3, 2) and not counts.any() and total == 0


def test_columns_must_be_those_of_the_schema(kind, opened):
    rows = pa.table({"a": [1], "b": [2]})
    one = Schema((Integer("a", minimum=0, maximum=3),))
    with pytest.raises(TableError, match="column 'b' is not in the schema; declare it"):
        opened(kind, rows, one)
    three = Schema((*one.columns, Integer("b", minimum=0, maximum=3), Boolean("c")))
    with pytest.raises(TableError, match="column 'c' of the schema is not in the table"):
        opened(kind, rows, three)


def test_names_that_differ_in_case_only_are_refused(kind, opened):
    schema = Schema((Boolean("Sex"), Boolean("sex")))
    with pytest.raises(TableError, match="columns 'Sex' and 'sex' differ in case only"):
        opened(kind, pa.table({"Sex": [True], "other": [True]}), schema)


UNFIT = [
    (pa.array([[1], [2]]), Integer("x", minimum=0, maximum=3), "BIGINT"),
    (pa.array([{"a": 1}]), Categorical("x", values=("a",)), "STRUCT"),
    (pa.array([b"1"]), Number("x", minimum=0, maximum=3), "BLOB"),
    (pa.array([1, 2]), Datetime("x", minimum=datetime(2024, 1, 1), maximum=datetime(2025, 1, 1)), "BIGINT"),
]


@pytest.mark.parametrize(("values", "column", "named"), UNFIT)
def test_types_that_a_database_declares_and_no_rule_can_read_are_refused(values, column, named, opened):
    with pytest.raises(TableError, match=rf"column 'x' holds {named}.* values, which can't be read as {column.type}"):
        opened("duckdb", pa.table({"x": values}), Schema((column,)))


@pytest.mark.parametrize("way", ["pyarrow", "polars", "parquet"])
@pytest.mark.parametrize(("values", "column", "named"), UNFIT)
def test_types_that_follow_from_the_rows_are_never_refused(values, column, named, way, opened):
    """One odd value more or less decides the type of such a column, so a refusal would tell of it."""
    schema = Schema((column,))
    (counts,) = opened(way, pa.table({"x": values}), schema).count_by(Domain.of(schema), [("x",)])
    assert counts.sum() == len(values)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_a_time_with_a_zone_is_taken_in_utc_on_every_machine(zone, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    schema = Schema((Datetime("t", minimum=datetime(2024, 1, 1), maximum=datetime(2024, 1, 3)),))
    moments = pa.array([datetime(2024, 1, 1, 23, 30), datetime(2024, 1, 2, 0, 30)], pa.timestamp("us", tz=zone))
    (counts,) = open_table(pa.table({"t": moments}), schema).count_by(Domain.of(schema), [("t",)])
    assert counts.tolist() == [1, 1, 0]


# ---------------------------------------------------------------- one person, several rows


def naive_cap(people, most, tokens=()):
    """The places of the rows that count: an id is a text without the spaces around it, and a row without one is out."""
    seen: dict[object, int] = {}
    kept = []
    for i, person in enumerate(None if p is None else p.strip(ZS) for p in people):
        if person is None or person in ("", *tokens):
            continue
        seen[person] = seen.get(person, 0) + 1
        if seen[person] <= most:
            kept.append(i)
    return kept


def orders(kind):
    """By what a person's rows are put in order: the table's own order, where it has one, or a column."""
    return ["row"] if kind in SPARK else [None, "row"]


def capped_schema(people, most, order=None):
    return Schema(
        (
            Identifier("person of record"),
            Integer("row", minimum=0, maximum=len(people) - 1, bins=len(people)),
            Categorical("mark", values=("a", "b")),
        ),
        unit=Unit("person of record", most, order),
    )


def capped_rows(people):
    return pa.table(
        {
            "person of record": pa.array(people, pa.string()),
            "row": list(range(len(people))),
            "mark": ["ab"[i % 2] for i in range(len(people))],
        }
    )


@pytest.mark.slow_after(9)
@pytest.mark.parametrize("most", [1, 2, 3])
def test_the_first_rows_of_each_person_count_in_order(kind, opened, most):
    people = ["p", "q", "p", None, "p", "r", None, "q", "p", None, None, "P", "it's", "it's"]
    for order in orders(kind):
        check_first_rows(opened(kind, capped_rows(people), capped_schema(people, most, order)), people, most)


def check_first_rows(table, people, most):
    schema = table.schema
    kept = naive_cap(people, most)
    counts, marks = table.count_by(Domain.of(schema), [("row",), ("mark",)])
    assert np.flatnonzero(counts).tolist() == kept and counts.max() == 1
    assert marks.tolist() == [sum(i % 2 == 0 for i in kept), sum(i % 2 for i in kept)]
    assert table.count_rows() == len(kept) and table.has_rows(len(kept)) and not table.has_rows(len(kept) + 1)
    if table.kind != FederatedTable.kind:  # sites give the values of private columns alone
        assert table.count_values("mark")[1].sum() == len(kept)
    (cells,) = table.count_cells(Domain.of(schema), [Grid(("mark",), ((0, 0),))])
    assert cells.tolist() == [len(kept)]


KEPT_BY_DIGEST = [0, 1, 2, 8, 9, 11]
"""By hashlib.md5 of `a`, the number and the person, joined by \\x1f."""
IDS = ["a", "b", " a", "a ", "A", "\u00a0b", "", " ", "?", " ? ", None]


@given(st.lists(st.sampled_from(IDS), min_size=1, max_size=40), st.integers(1, 4))
@settings(max_examples=5, deadline=None)
def test_capping_agrees_with_the_naive_rule(kind, opened, people, most):
    schema = dataclasses.replace(capped_schema(people, most, orders(kind)[0]), missing_values=("?",))
    (counts,) = opened(kind, capped_rows(people), schema).count_by(Domain.of(schema), [("row",)])
    assert np.flatnonzero(counts).tolist() == naive_cap(people, most, ("?",))


def test_a_declared_order_holds_whichever_way_the_rows_come(kind, opened):
    """By size, then as texts, the unreadable and the missing last; equal ones by the rest of the row."""
    times = ["10", "9", "9.0", "b", None, "9", "a", "10", "", "1e1", "9", "-1"]
    schema = Schema(
        (
            Identifier("who"),
            Identifier("when"),
            Integer("row", minimum=0, maximum=len(times) - 1, bins=len(times)),
        ),
        unit=Unit("who", 4, "when"),
    )
    columns = {"who": pa.array(["x"] * len(times)), "when": pa.array(times), "row": pa.array(range(len(times)))}
    found = []
    for turned in (list(range(len(times))), list(range(len(times)))[::-1]):
        rows = pa.table({name: values.take(pa.array(turned)) for name, values in columns.items()})
        (counts,) = opened(kind, rows, schema).count_by(Domain.of(schema), [("row",)])
        found.append(np.flatnonzero(counts).tolist())
    assert found[0] == found[1] == [1, 5, 10, 11]  # -1, and then 9 three times: as a text before 9.0


def test_rows_that_are_equal_in_the_declared_order_count_alike_on_every_engine(kind, opened):
    """Which of them count is a matter of their digests, which are the same wherever the rows are."""
    rows = pa.table({"who": ["x"] * 8 + ["y"] * 8, "row": list(range(16)), "mark": ["a"] * 16})
    schema = Schema(
        (Identifier("who"), Integer("row", minimum=0, maximum=15, bins=16), Categorical("mark", values=("a",))),
        unit=Unit("who", 3, "mark"),
    )
    (counts,) = opened(kind, rows, schema).count_by(Domain.of(schema), [("row",)])
    assert np.flatnonzero(counts).tolist() == KEPT_BY_DIGEST


@pytest.mark.parametrize("odd", [[("u\x1fk", "m"), ("u", "k\x1fm")], [(None, "m"), ("\x1e", "m")]])
def test_rows_that_read_differently_have_different_digests_whatever_they_hold(kind, opened, odd):
    """Else it would be the place of a row, and so other people's rows, that says which of a person's rows counts."""
    mark = Categorical("mark", missing=True, values=("u", "v"), other="v")
    schema = Schema((mark, Identifier("note"), Identifier("time"), Identifier("who")), unit=Unit("who", 1, "time"))
    found = []
    for turned in (odd, odd[::-1]):
        marks, notes = zip(*turned, strict=True)
        columns = {"mark": marks, "note": notes, "time": ["1", "1"], "who": ["x", "x"]}
        rows = pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
        found.append(opened(kind, rows, schema).count_by(Domain.of(schema), [("mark",)])[0].tolist())
    assert found[0] == found[1] and sum(found[0]) == 1


def test_ids_that_are_numbers_are_the_same_people_in_every_type(kind, opened):
    """Doubles, whole numbers and texts of them; beyond 2^53 whole numbers keep all their digits."""
    ids = [7, 7, 8, None, 10, 10]
    kinds = [pa.int64(), pa.float64(), pa.string(), pa.decimal128(22, 3)]
    for stored in kinds:
        rows = capped_rows(["x"] * 6).set_column(0, "person of record", pa.array(ids).cast(stored))
        schema = capped_schema(ids, 1, orders(kind)[0])
        (counts,) = opened(kind, rows, schema).count_by(Domain.of(schema), [("row",)])
        assert np.flatnonzero(counts).tolist() == ([0, 2, 4] if not kind.startswith("csv") else naive_csv(rows)), stored
    large = capped_rows(["x"] * 6).set_column(0, "person of record", pa.array([10**18 + i // 2 for i in range(6)]))
    (counts,) = opened(kind, large, schema).count_by(Domain.of(schema), [("row",)])
    assert np.flatnonzero(counts).tolist() == [0, 2, 4]


def naive_csv(rows):
    """A CSV file holds texts, so two spellings of a number are two ids."""
    return naive_cap([None if v is None else str(v) for v in rows.column(0).to_pylist()], 1)


def test_ids_that_a_double_has_rounded_are_refused(kind, opened):
    ids = pa.array([float(10**18 + i) for i in range(4)])
    rows, schema = (
        capped_rows(["x"] * 4).set_column(0, "person of record", ids),
        capped_schema(["x"] * 4, 1, orders(kind)[0]),
    )
    if kind.startswith("csv"):
        return  # texts
    with pytest.raises(TableError, match=r"ids in 'person of record' .* reach 2\^53.*store them as texts"):
        opened(kind, rows, schema)


# ---------------------------------------------------------------- generated tables

ANY_TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=6)
NUMBER_TEXT = st.one_of(
    st.integers(-30, 30).map(str), st.floats(-30, 30).map(repr), st.text("0123456789.e+-_ ", max_size=5)
)


@pytest.mark.slow_after(4)
@given(st.lists(st.tuples(NUMBER_TEXT, ANY_TEXT, ANY_TEXT), min_size=1, max_size=20), st.data())
@settings(max_examples=5, deadline=None)
def test_generated_texts_are_encoded_as_the_rules_say(kind, opened, triples, data):
    numbers, few, many = (list(c) for c in zip(*triples, strict=True))
    labels = sorted({t.strip(ZS) for t in few} - {""}) or ["z"]
    picked = data.draw(st.lists(st.sampled_from(labels), unique=True, min_size=1))
    schema = Schema(
        (
            Integer("row", minimum=0, maximum=19),
            Integer("whole", minimum=-10, maximum=10, bins=4, missing=True),
            Number("real", minimum=-3, maximum=11, bins=9),
            Categorical("few", values=tuple(picked), other="(other)"),
            Categorical("many", values=tuple(f"l{i}" for i in range(40)) + tuple(picked), missing=True),
        )
    )
    columns = {"whole": numbers, "real": numbers, "few": few, "many": many}
    texts = {n: pa.array(v, pa.string()) for n, v in columns.items()}
    rows = pa.table({"row": list(range(len(numbers))), **texts})
    check_row_by_row(opened(kind, rows, schema), rows, Domain.of(schema), ())


BIG = 2**52


@st.composite
def whole_columns(draw, name):
    low = draw(st.one_of(st.integers(-50, 50), st.integers(-BIG, BIG)))
    high = draw(st.one_of(st.integers(low, min(BIG, low + 300)), st.integers(low, BIG)))
    return Integer(
        name, minimum=low, maximum=high, bins=draw(st.none() | st.integers(1, 40)), missing=draw(st.booleans())
    )


@st.composite
def real_columns(draw, name):
    low = draw(st.floats(-1e6, 1e6) | st.floats(-1e18, 1e18))
    high = low + draw(st.floats(0.5, 1e6) | st.floats(0.5, 1e15))
    if not low < high:
        high = low + abs(low)
    decimals, bins = draw(st.none() | st.integers(0, 12)), draw(st.none() | st.integers(1, 30))
    return Number(name, minimum=low, maximum=high, decimals=decimals, bins=bins, missing=draw(st.booleans()))


@st.composite
def moment_columns(draw, name):
    low = draw(st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)))
    high = draw(st.datetimes(low, datetime(2250, 1, 1)))
    resolution = draw(st.sampled_from(["second", "minute", "hour", "day"]))
    bins = draw(st.none() | st.integers(1, 40))
    return Datetime(name, minimum=low, maximum=high, resolution=resolution, bins=bins, missing=draw(st.booleans()))


@st.composite
def label_columns(draw, name):
    texts = ANY_TEXT.map(lambda t: t.strip(ZS)).filter(bool)
    several = st.lists(texts, min_size=1, max_size=50, unique=True)
    values = draw(several | st.lists(st.integers(-BIG, BIG), min_size=1, max_size=50, unique=True))
    other = draw(st.none() | texts) if isinstance(values[0], str) else None
    return Categorical(name, values=tuple(values), other=other, missing=draw(st.booleans()))


@st.composite
def schemas(draw):
    kinds = draw(
        st.lists(
            st.sampled_from([whole_columns, real_columns, moment_columns, label_columns, None]), min_size=1, max_size=4
        )
    )
    columns = [draw(k(f"c{i}")) if k else Boolean(f"c{i}", missing=draw(st.booleans())) for i, k in enumerate(kinds)]
    return Schema(tuple(columns))


def usable_domain(schema):
    """The schema's domain, where its bins are not too narrow for doubles or for the declared decimals."""
    try:
        domain = Domain.of(schema)
        check_decodable(domain)
    except SchemaError:
        reject()
    return domain


@given(schemas(), st.integers(0, 2**32))
@settings(max_examples=6, deadline=None)
def test_decoded_values_come_back_as_their_codes(kind, opened, schema, seed):
    """Values look like the original and lie inside their bin: reading them again gives the same codes."""
    domain, rng = usable_domain(schema), np.random.default_rng(seed)
    codes = {c.name: rng.integers(0, c.size, 60) for c in domain}
    rows = from_values(decode(codes, domain, rng), schema)
    for coding, counts in zip(
        domain, opened(kind, rows, schema).count_by(domain, [(n,) for n in domain.names]), strict=True
    ):
        expected = np.bincount(codes[coding.name], minlength=coding.size)
        np.testing.assert_array_equal(counts, expected, err_msg=repr(coding.column))


@given(schemas(), st.integers(0, 2**32))
@settings(max_examples=15, deadline=None)
def test_a_release_written_as_csv_is_read_back_as_its_codes(tmp_path_factory, schema, seed):
    domain, rng = usable_domain(schema), np.random.default_rng(seed)
    codes = {c.name: rng.integers(0, c.size, 60) for c in domain}
    path = tmp_path_factory.mktemp("release") / "synthetic.csv"
    path.write_bytes(csv_bytes(from_values(decode(codes, domain, rng), schema), schema))
    for coding, counts in zip(
        domain, open_table(path, schema).count_by(domain, [(n,) for n in domain.names]), strict=True
    ):
        expected = np.bincount(codes[coding.name], minlength=coding.size)
        np.testing.assert_array_equal(counts, expected, err_msg=repr(coding.column))


def test_dates_are_written_in_their_declared_format(tmp_path):
    when = {"minimum": datetime(2024, 1, 1), "maximum": datetime(2024, 3, 31)}
    schema = Schema((Datetime("d", format="%d/%m/%Y", missing=True, **when),), missing_values=("?",))
    domain = Domain.of(schema)
    codes = {"d": np.array([0, 31, 90, 91])}
    content = csv_bytes(from_values(decode(codes, domain, np.random.default_rng(1)), schema), schema)
    assert content.decode().split() == ["d", "01/01/2024", "01/02/2024", "31/03/2024", "?"]
    (tmp_path / "d.csv").write_bytes(content)
    (counts,) = open_table(tmp_path / "d.csv", schema).count_by(domain, [("d",)])
    assert np.flatnonzero(counts).tolist() == [0, 31, 90, 91]


@pytest.mark.parametrize("kind_of_frame", ["pandas", "polars", "pyarrow"])
def test_a_synthetic_frame_has_types_that_do_not_depend_on_its_rows(kind_of_frame):
    """A missing value, or none, changes no dtype: it would say something about the rows."""
    schema = Schema((Integer("i", minimum=0, maximum=3, missing=True), Boolean("b", missing=True)))
    domain, rng = Domain.of(schema), np.random.default_rng(3)
    full, gaps = ({"i": np.array([0, i]), "b": np.array([0, b])} for i, b in ((3, 1), (4, 2)))
    frames = [to_native(from_values(decode(c, domain, rng), schema), kind_of_frame) for c in (full, gaps)]
    types = [f.schema if kind_of_frame != "pandas" else list(map(str, f.dtypes)) for f in frames]
    assert types[0] == types[1]
    (counts,) = open_table(frames[1], schema).count_by(domain, [("i", "b")])
    assert counts[4, 2] == 1 and counts[0, 0] == 1 and counts.sum() == 2
