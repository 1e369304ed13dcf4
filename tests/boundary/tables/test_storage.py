"""One row moves one row, whatever it does to the type in which a table stores a column.

Every way in × storage type × declared type × odd value × place of the row: adding the row adds one to one cell of every
count and leaves all others as they are; putting it in place of another moves at most two. What a way in refuses to
store (a column of Arrow that mixes times and texts, say) is no table, so there is nothing to compare.
"""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import understudy as us
from helpers.builders import in_sites
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import Schema
from understudy.boundary.schema.spelling import spell
from understudy.predictors.input_data import _named_columns

UTC, BERLIN, TOKYO = dt.UTC, dt.timezone(dt.timedelta(hours=1)), dt.timezone(dt.timedelta(hours=9))
DAY = dt.datetime(2020, 3, 10, 0, 30)

DECLARED = {
    "flag": 'type = "boolean"',
    "whole": 'type = "integer"\nmin = -5\nmax = 5',
    "real": 'type = "number"\nmin = -2\nmax = 5\nbins = 7',
    "codes": 'type = "categorical"\nvalues = [0, 1, 2]',
    "words": 'type = "categorical"\nvalues = ["True", "False"]\nother = "neither"',
    "digits": 'type = "categorical"\nvalues = ["0", "1", "2", "1.5"]\nother = "else"',
    "steps": 'type = "ordinal"\nvalues = ["false", "true"]',
    "day": 'type = "datetime"\nmin = 2020-01-01\nmax = 2020-12-31\nbins = 366',
    "noted": 'type = "datetime"\nmin = 2020-01-01\nmax = 2020-12-31\nbins = 366\nformat = "%d/%m/%Y"',
    "keys": 'type = "categorical"\nvalues = "private"',
}
PRIVATE = "keys"
SCHEMA = Schema.loads(
    'missing_values = ["?", "-9"]\n' + "".join(f"[columns.{n}]\n{t}\nmissing = true\n" for n, t in DECLARED.items())
)
PUBLIC = Schema(tuple(c for c in SCHEMA if c.name != PRIVATE), missing_values=SCHEMA.missing_values)
DOMAIN = Domain.of(PUBLIC)

MANY = 6
"""Rows of a table before the odd one comes."""


def cycled(*values: Any) -> list[Any]:
    return list(itertools.islice(itertools.cycle(values), MANY))


PLAIN: dict[str, list[Any]] = {
    "truth": cycled(True, False),
    "whole": cycled(0, 1, 2, -9),
    "large": cycled(2**60, 2**60 + 1),
    "real": cycled(0.5, 1.0, 2.0, 0.1, -9.0),
    "text": cycled("True", "1", " 2 ", "2020-03-01", "?", "0.5"),
    "day": cycled(dt.date(2020, 3, 1), dt.date(2020, 3, 2)),
    "time": cycled(DAY, dt.datetime(2020, 3, 2, 12, 0, 0, 250_000)),
    "zoned": cycled(DAY.replace(tzinfo=BERLIN), DAY.replace(tzinfo=BERLIN, hour=23)),
    "span": cycled(dt.timedelta(hours=26), dt.timedelta(seconds=1.5)),
    "decimal": cycled(decimal.Decimal("1.50"), decimal.Decimal("2.00"), decimal.Decimal("-9")),
    "nothing": cycled(None),
}
ODD: dict[str, Any] = {
    "none": None,
    "nan": float("nan"),
    "text": "n/a",
    "empty": "",
    "whole": 2,
    "huge": 2**70,
    "real": 1.5,
    "truth": True,
    "time": dt.datetime(2020, 7, 1, 12),
    "elsewhere": dt.datetime(2020, 7, 1, 1, tzinfo=TOKYO),
    "day": dt.date(2020, 7, 1),
    "decimal": decimal.Decimal("1.5"),
    "list": [1],
    "bytes": b"\xff",
}
ADDED, REPLACED = "added", "replaced"
PLACES = ((ADDED, 0), (ADDED, MANY), (REPLACED, MANY // 2))

Counts = dict[str, Counter[Any]]
Way = Callable[[Sequence[Any], Sequence[Any] | None, Path], Any]
"""From the plain values and those with the odd one (None: plain only) to a column as that way stores it."""


def counted(table: Any) -> Counts:
    """Every count that a strategy can ask for, as counters."""
    arrays = table.count_by(DOMAIN, [(c,) for c in DOMAIN.names])
    found = {c: Counter(dict(enumerate(a.tolist()))) for c, a in zip(DOMAIN.names, arrays, strict=True)}
    texts, rows = table.count_values(PRIVATE)
    return found | {PRIVATE: Counter(dict(zip(texts, rows.tolist(), strict=True)))}


def moved(before: Counter[Any], after: Counter[Any]) -> list[int]:
    return sorted(n for key in before | after if (n := after[key] - before[key]))


def complaint(name: str, change: list[int], how: str) -> bool:
    allowed: tuple[list[int], ...] = ([1],) if how == ADDED else ([], [-1, 1])
    if name == PRIVATE:  # a missing value has no key
        allowed = ([], [1]) if how == ADDED else ([], [-1], [1], [-1, 1])
    return change not in allowed


def neighbours(plain: list[Any], odd: Any, how: str, place: int) -> list[Any]:
    rest = plain[place + 1 :] if how == REPLACED else plain[place:]
    return [*plain[:place], odd, *rest]


def unchanged(column: Any, plain: list[Any], how: str, place: int) -> bool:
    """Whether the other rows still hold their values; polars makes texts of numbers beside a text, days of dates."""
    if not isinstance(column, pl.Series):
        return True
    held = column.to_list()
    others = [*held[:place], *held[place + 1 :]]
    return others == (plain if how == ADDED else [*plain[:place], *plain[place + 1 :]])


def failures(
    opened: Callable[[Any], Any],
    build: Callable[[list[Any]], Any],
    plain: list[Any],
    odds: Sequence[str] = tuple(ODD),
) -> tuple[int, list[str]]:
    """How many combinations were compared, and those in which another row was read otherwise."""
    before = counted(opened(build(plain)))
    compared, wrong = 0, []
    for said, (how, place) in itertools.product(odds, PLACES):
        try:
            column = build(neighbours(plain, ODD[said], how, place))
        except (TypeError, ValueError, OverflowError, pa.ArrowException, pl.exceptions.PolarsError):
            continue  # the way in can't store it, so there is no such table
        if not unchanged(column, plain, how, place):
            continue  # a library has put other values in place of all the others: they are not the same people any more
        after = counted(opened(column))
        for name in before:
            compared += 1
            if complaint(name, moved(before[name], after[name]), how):
                wrong.append(f"{said} {how} at {place}, declared {name}: {moved(before[name], after[name])}")
    return compared, wrong


@pytest.mark.parametrize("held", ["truth", "whole", "zoned"])
@pytest.mark.parametrize("way", ["frame", "sites"])
def test_an_odd_value_leaves_other_rows_alone(held: str, way: str) -> None:
    """The part of the matrix that once failed, for every run of the tests."""
    opened = from_frame if way == "frame" else from_sites
    compared, wrong = failures(opened, pandas_listed(None), PLAIN[held], ("none", "text", "elsewhere"))
    assert compared == 3 * len(PLACES) * len(DECLARED) and not wrong, wrong


STORED: dict[str, tuple[str | None, ...]] = {
    "truth": (None, "boolean", "object", "category"),
    "whole": (None, "Int64", "float64", "object", "category"),
    "large": (None, "Int64", "uint64"),
    "real": (None, "float32", "Float64", "category"),
    "text": (None, "object", "category", "string"),
    "day": (None,),
    "time": (None, "datetime64[ns]", "object"),
    "zoned": (None, "datetime64[us, UTC]"),
    "span": (None, "object"),
    "decimal": (None,),
    "nothing": (None, "float64", "datetime64[us]"),
}
"""The types in which pandas can store each kind of values; None is the one that it infers."""


@pytest.mark.slow
@pytest.mark.parametrize("held", PLAIN)
def test_every_combination_of_pandas(held: str, record_property: Any) -> None:
    """By lists, of which pandas infers a type, and by concatenation, for which it finds a common one."""
    plain, total, wrong = PLAIN[held], 0, []
    builds = [(kind, pandas_listed(kind)) for kind in STORED[held]] + [("joined", pandas_joined(plain))]
    for kind, build in builds:
        compared, found = failures(from_frame, build, plain)
        total, wrong = total + compared, wrong + [f"{kind}: {f}" for f in found]
    record_property("combinations", total)
    assert total >= 300 * len(builds) and not wrong, wrong[:20]


def pandas_listed(kind: str | None) -> Callable[[list[Any]], pd.Series]:
    """The type is given as long as it holds all values; beside an odd one pandas has to infer it from what it held."""

    def build(values: list[Any]) -> pd.Series:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return pd.Series(values, dtype=kind)
            except (TypeError, ValueError, OverflowError, IndexError):
                return pd.Series([_held(v, kind) for v in values])

    return build


def _held(value: Any, kind: str | None) -> Any:
    """The value as a column of that type would hand it out."""
    try:
        return pd.Series([value], dtype=kind)[0]
    except (TypeError, ValueError, OverflowError, IndexError):
        return value


def pandas_joined(plain: list[Any]) -> Callable[[list[Any]], pd.Series]:
    """The odd value comes as a column of its own, and pandas finds a type for both."""

    def build(values: list[Any]) -> pd.Series:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runs = itertools.groupby(values, key=lambda v: any(v is p for p in plain))
            return pd.concat([pd.Series(list(run)) for _, run in runs], ignore_index=True)

    return build


def from_frame(column: pd.Series) -> Any:
    return us.open(pd.DataFrame(dict.fromkeys(SCHEMA.names, column)), SCHEMA)


def from_sites(column: pd.Series) -> Any:
    """Each site stores the rows that it has in a type of its own."""
    halves = [column.iloc[: MANY // 2], column.iloc[MANY // 2 :].infer_objects()]
    return in_sites([pd.DataFrame(dict.fromkeys(SCHEMA.names, half)) for half in halves], SCHEMA)


@pytest.mark.slow
@pytest.mark.parametrize("held", PLAIN)
def test_every_combination_of_polars(held: str, record_property: Any) -> None:
    compared, wrong = failures(from_polars, polars_joined(PLAIN[held]), PLAIN[held])
    record_property("combinations", compared)
    assert compared >= 30 and not wrong, wrong[:20]


def polars_joined(plain: list[Any]) -> Callable[[list[Any]], pl.Series]:
    """Like with like, and for both a common type where polars has one."""

    def build(values: list[Any]) -> pl.Series:
        kind = pl.Series(plain).dtype
        parts = [
            pl.DataFrame({"x": pl.Series([v], dtype=kind if any(v is p for p in plain) else None)}) for v in values
        ]
        return pl.concat(parts, how="vertical_relaxed").get_column("x")

    return build


def from_polars(column: pl.Series) -> Any:
    return us.open(pl.DataFrame(dict.fromkeys(SCHEMA.names, column)), SCHEMA)


@pytest.mark.slow
@pytest.mark.parametrize("held", PLAIN)
@pytest.mark.parametrize("way", ["pyarrow", "parquet"])
def test_every_combination_of_arrow(way: str, held: str, tmp_path: Path, record_property: Any) -> None:
    import pyarrow.parquet as pq

    def from_arrow(column: pa.Array) -> Any:
        table = pa.table(dict.fromkeys(SCHEMA.names, column))
        if way == "pyarrow":
            return us.open(table, SCHEMA)
        pq.write_table(table, tmp_path / "rows.parquet")
        return us.open(tmp_path / "rows.parquet", SCHEMA)

    if (way, held) == ("parquet", "span"):
        pytest.skip("Parquet has no spans of time")
    compared, wrong = failures(from_arrow, arrow_joined, PLAIN[held])
    record_property("combinations", compared)
    assert compared >= 30 and not wrong, wrong[:20]


def arrow_joined(values: list[Any]) -> pa.Array:
    """Each value as Arrow takes it alone, then one type for all, which Arrow promotes."""
    tables = [pa.table({"x": pa.array([v])}) for v in values]
    return pa.concat_tables(tables, promote_options="permissive").column("x").combine_chunks()


@pytest.mark.slow
@pytest.mark.parametrize("held", PLAIN)
def test_every_combination_of_a_matrix(held: str, record_property: Any) -> None:
    """What predictors are given: numpy finds one type for all rows, be it text."""

    def from_matrix(column: np.ndarray) -> Any:
        return us.open(_named_columns(np.column_stack([column] * len(SCHEMA.names)), SCHEMA.names), SCHEMA)

    def build(values: list[Any]) -> np.ndarray:
        return np.array(values)  # a list among them is refused by numpy

    compared, wrong = failures(from_matrix, build, PLAIN[held])
    record_property("combinations", compared)
    assert compared >= 300 and not wrong, wrong[:20]


@pytest.mark.slow
@pytest.mark.parametrize("held", PLAIN)
def test_every_combination_of_a_csv_file(held: str, tmp_path: Path, record_property: Any) -> None:
    """Every value is written by itself, so nothing can move; the reader must not guess a type either."""
    path = tmp_path / "rows.csv"

    def from_texts(texts: list[str]) -> Any:
        lines = [",".join(SCHEMA.names), *(",".join([t] * len(SCHEMA.names)) for t in texts)]
        path.write_text("\n".join(lines) + "\n")
        return us.open(path, SCHEMA)

    def build(values: list[Any]) -> list[str]:
        return ["" if v is None else f'"{v}"' for v in values]

    compared, wrong = failures(from_texts, build, PLAIN[held])
    record_property("combinations", compared)
    assert compared == len(ODD) * len(PLACES) * len(DECLARED) and not wrong, wrong[:20]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["duckdb", "postgresql", "postgresql-pushdown"])
def test_every_combination_of_a_database(way: str, opened: Any, record_property: Any) -> None:
    """Its types are declared, so an odd row is one that fits them."""
    kinds = {
        "truth": pa.bool_(),
        "whole": pa.int64(),
        "large": pa.int64(),
        "real": pa.float64(),
        "text": pa.string(),
        "decimal": pa.decimal128(20, 2),
    }
    total, wrong = 0, []
    for held, kind in kinds.items():
        schema = Schema(tuple(c for c in SCHEMA if c.type != "datetime"), missing_values=SCHEMA.missing_values)
        names = tuple(c for c in Domain.of(PUBLIC).names if c in schema)

        def counts(column: pa.Array, schema: Schema = schema, names: tuple[str, ...] = names) -> Counts:
            table = opened(way, pa.table(dict.fromkeys(schema.names, column)), schema)
            arrays = table.count_by(DOMAIN, [(c,) for c in names])
            texts, rows = table.count_values(PRIVATE)
            found = {c: Counter(dict(enumerate(a.tolist()))) for c, a in zip(names, arrays, strict=True)}
            return found | {PRIVATE: Counter(dict(zip(texts, rows.tolist(), strict=True)))}

        plain = PLAIN[held]
        before = counts(pa.array(plain).cast(kind))
        for (said, odd), (how, place) in itertools.product(ODD.items(), PLACES):
            try:
                column = pa.array(neighbours(plain, odd, how, place), type=kind)
            except (TypeError, ValueError, OverflowError, pa.ArrowException):
                continue
            after = counts(column)
            for name in before:
                total += 1
                if complaint(name, moved(before[name], after[name]), how):
                    wrong.append(f"{held}: {said} {how} at {place}, {name}: {moved(before[name], after[name])}")
    record_property("combinations", total)
    assert total > 400 and not wrong, wrong[:20]


def test_the_matrix_would_find_the_old_reading() -> None:
    """Typed columns by Arrow and mixed ones by `str` is what a frame was once read by: the matrix must not pass it."""
    from understudy.boundary.tables import frame

    def by_str(values: Any, exactly: bool) -> pa.Array:
        return pa.array([None if v is None or v != v else str(v) for v in values], type=pa.string())

    honest = frame._spelled
    frame._spelled = by_str
    try:
        _, wrong = failures(from_frame, pandas_listed(None), PLAIN["truth"], ("none", "text"))
        _, zoned = failures(from_frame, pandas_listed(None), PLAIN["zoned"], ("elsewhere",))
    finally:
        frame._spelled = honest
    assert wrong and zoned


def test_every_engine_spells_a_value_alike(kind: str, opened: Any) -> None:
    """The texts of private values are the same whatever stores them: those of `spell`."""
    schema = Schema.loads('[columns.x]\ntype = "categorical"\nvalues = "private"\n[columns.y]\ntype = "boolean"\n')
    columns = {
        "truth": pa.array([True, False]),
        "whole": pa.array([1, -7, 2**53, 2**60 + 1]),
        "real": pa.array([1.0, 0.1, -0.0, 1e16, 1.5e-7, 2**53 + 0.0, 123456.75]),
        "day": pa.array([dt.date(2020, 3, 1), dt.date(1969, 12, 31)]),
        "time": pa.array([DAY, dt.datetime(2020, 3, 1), dt.datetime(2020, 3, 1, 1, 2, 3, 450_000)]),
        "decimal": pa.array([decimal.Decimal("1.50"), decimal.Decimal("2.00")]),
    }
    for held, column in columns.items():
        if kind.startswith("csv"):
            continue  # its texts are what somebody wrote
        if kind == "sqlite" and held in ("time", "decimal"):
            continue  # SQLite has no type for them: what is stored is a text or a number
        rows = pa.table({"x": column, "y": [True] * len(column)})
        found, _ = opened(kind, rows, schema).count_values("x")
        assert set(found) == {spell(v) for v in column.to_pylist()}, held


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.True_, "1"),
        (np.float32(0.5), "0.5"),
        (np.int8(-3), "-3"),
        (2**80, "1.2089258196146292e+24"),
        (10**400, "inf"),
        (np.datetime64("NaT"), None),
        (np.datetime64("1969-12-31T23:59:59.9999999", "ns"), "1969-12-31 23:59:59.999999"),
        (pd.Timestamp("2020-03-01", tz="Europe/Berlin"), "2020-02-29 23:00:00"),
        (pd.NaT, None),
        (pd.NA, None),
        (pd.Period("2020-03", "M"), "2020-03-01"),
        (pd.Interval(0, 1), "(0, 1]"),
        (dt.datetime.max.replace(tzinfo=dt.timezone(-dt.timedelta(hours=5))), "9999-12-31 23:59:59.999999"),
        (dt.time(1, 2, 3, 500_000), "01:02:03.5"),
        (decimal.Decimal("NaN"), None),
        (object(), None),
        ({"a": 1}, None),
    ],
)
def test_a_value_is_spelled_by_itself(value: Any, text: str | None) -> None:
    assert spell(value) == text


def test_a_format_that_reads_iso_dates_as_other_days_is_refused() -> None:
    schema = Schema.loads('[columns.d]\ntype = "datetime"\nmin = 2020-01-01\nmax = 2020-12-31\nformat = "%Y-%d-%m"\n')
    with pytest.raises(us.UnderstudyError, match="reads ISO dates as other days"):
        us.open(pd.DataFrame({"d": ["2020-31-12"]}), schema)


# ---------------------------------------------------------------- what an attack on the matrix found beside it

NINES = 'type = "number"\nmin = 0\nmax = 1\nbins = 10'
TEXTS = 'type = "categorical"\nvalues = "private"'
HOURS = 'type = "datetime"\nmin = 2020-01-01\nmax = 2020-12-31\nresolution = "hour"\nbins = 8784'
CODES = 'type = "categorical"\nvalues = ["007", "008"]\nother = "else"'
GROUPS = 'type = "categorical"\nvalues = ["1", "2"]\nother = "else"'
BERLIN_CLOCKS = "Europe/Berlin"


def matrix(values: Any) -> pa.Table:
    return _named_columns(np.asarray(values)[:, None], ("x",))


def summers(*more: str) -> pd.DataFrame:
    moments = pd.to_datetime(["2020-07-01 12:00"] * 3 + list(more), utc=True).tz_convert(BERLIN_CLOCKS)
    return pd.DataFrame({"x": moments.as_unit("ns")})


def spans(*more: Any) -> pd.DataFrame:
    return pd.DataFrame({"x": pd.Series([*pd.to_timedelta([-1, 86_400_000_000_001_000], unit="ns"), *more])})


def objects(*values: Any) -> pd.DataFrame:
    return pd.DataFrame({"x": pd.Series(values, dtype=object)})


def arrow(values: Sequence[Any], kind: Any = None) -> pa.Table:
    return pa.table({"x": pa.array(values, kind)})


HALF = decimal.Decimal("0.5")
SINGLE = np.full(5, 0.7, np.float32)
NEIGHBOURS = {
    "single precision and a text": (NINES, matrix(SINGLE), matrix([*SINGLE, "n/a"])),
    "single precision and a double": (NINES, matrix(SINGLE), matrix([*SINGLE, 0.1])),
    "single precision and nothing": (NINES, matrix(SINGLE), matrix(np.array([*SINGLE, None], dtype=object))),
    "no number and a text": (GROUPS, matrix([1.0, np.nan]), matrix(np.array([1.0, np.nan, "n/a"]))),
    "years and a day": (HOURS, matrix(np.array(["2020"], "M8[Y]")), matrix(np.array(["2020", "2020-03-01"], "M8[D]"))),
    "digits by the thousand": (GROUPS, matrix(["1"]), matrix(["1", "9" * 5000])),
    "an hour that comes twice": (HOURS, summers(), summers("2020-10-25 00:30")),
    "a day far away": (HOURS, arrow([18322], pa.date32()), arrow([18322, 200_000_000], pa.date32())),
    "a long decimal": (
        NINES,
        arrow([decimal.Decimal("0.5")]),
        arrow([decimal.Decimal("0.5"), decimal.Decimal(10**45)]),
    ),
    "a span of ages": (TEXTS, arrow([1], pa.duration("s")), arrow([1, 2**62], pa.duration("s"))),
    "half a character": (TEXTS, objects("a"), objects("a", "\ud800")),
    "years beyond Python's": (
        HOURS,
        pd.DataFrame({"x": np.array(["20000-01-01"] * 2, "M8[s]")}),
        pd.DataFrame({"x": pd.Series([*pd.Series(np.array(["20000-01-01"] * 2, "M8[s]")), "n/a"], dtype=object)}),
    ),
    "spans of nanoseconds": (TEXTS, spans(), spans("n/a")),
    "intervals": (
        TEXTS,
        pd.DataFrame({"x": pd.arrays.IntervalArray([pd.Interval(0, 1)])}),
        pd.DataFrame({"x": pd.arrays.IntervalArray([pd.Interval(0, 1), pd.Interval(2, 2.5)])}),
    ),
    "codes that a reader took for numbers": (
        CODES,
        pd.DataFrame({"x": [7, 8, 7]}),
        pd.DataFrame({"x": ["007", "008", "007", "x9"]}),
    ),
}


@pytest.mark.parametrize(("declared", "first", "second"), NEIGHBOURS.values(), ids=NEIGHBOURS)
def test_one_row_more_moves_one_count(declared: str, first: Any, second: Any) -> None:
    schema = Schema.loads(f"[columns.x]\n{declared}\nmissing = true\n")
    before, after = (read(us.open(frame, schema)) for frame in (first, second))
    change = moved(before, after)
    assert change in ([1], []) if schema["x"].private else change == [1]


def read(table: Any) -> Counter[Any]:
    if table.schema["x"].private:
        texts, rows = table.count_values("x")
        return Counter(dict(zip(texts, rows.tolist(), strict=True)))
    (counts,) = table.count_by(Domain.of(table.schema), [("x",)])
    return Counter(dict(enumerate(counts.tolist())))
