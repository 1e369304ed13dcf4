"""Frames encoded without an engine: the same codes as the engine's, for whatever a row holds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import understudy as us
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables import cache, kept
from understudy.boundary.tables.cache import CachedTable
from understudy.boundary.tables.duck import DuckTable
from understudy.boundary.tables.frame import FrameTable, is_plain
from understudy.errors import TableError

SCHEMA = Schema.loads("""
missing_values = ["?", "none"]
[columns.whole]
type = "integer"
min = -5
max = 40
bins = 7
[columns.single]
type = "integer"
min = 0
max = 20
missing = true
[columns.cut]
type = "integer"
min = 0
max = 100
cuts = [3, 10, 50]
missing = true
[columns.real]
type = "number"
min = -1
max = 1
bins = 6
missing = true
[columns.label]
type = "categorical"
values = ["a", "b", "1"]
missing = true
[columns.other]
type = "categorical"
values = ["a", "b"]
other = "else"
[columns.code]
type = "categorical"
values = [5, 1, 2]
[columns.truth]
type = "boolean"
missing = true
[columns.said]
type = "boolean"
""")
DOMAIN = Domain.of(SCHEMA)
NUMBERS = st.one_of(
    st.none(),
    st.integers(-10, 110).map(float),
    st.integers(-22, 222).map(lambda n: n / 2),
    st.floats(-2, 2),
    st.sampled_from([math.nan, math.inf, -math.inf, 1e300, -1e300, 0.49999999999999994, 2.5 - 2**-51, 49.5, -0.0]),
)
WHOLES = st.one_of(st.none(), st.integers(-10, 110), st.sampled_from([2**53 + 1, -(2**62), 2**62]))
TEXTS = st.one_of(
    st.none(),
    st.sampled_from(["a", "b", " a ", "\u00a0b", "\tb", "1", "1.0", "else", "?", " ? ", "none", "", " ", "A"]),
    st.text(max_size=3),
)
SAID = st.one_of(TEXTS, st.sampled_from(["true", "YES", "Off", "0", "1.0", " t", "FALSE", "maybe"]))
ROW = st.fixed_dictionaries(
    {
        "whole": WHOLES,
        "single": NUMBERS,
        "cut": NUMBERS,
        "real": NUMBERS,
        "label": TEXTS,
        "other": TEXTS,
        "code": NUMBERS,
        "truth": st.sampled_from([True, False, None]),
        "said": SAID,
    }
)
TYPES = {"whole": pa.int64(), "truth": pa.bool_()}
TYPES |= dict.fromkeys(("single", "cut", "real", "code"), pa.float64())
TYPES |= dict.fromkeys(("label", "other", "said"), pa.string())


def frame_of(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.table({c: pa.array([r[c] for r in rows], type=kind) for c, kind in TYPES.items()}).select(SCHEMA.names)


def engine_codes(frame: pa.Table, schema: Schema = SCHEMA) -> dict[str, list[int]]:
    """As DuckDB has them: no list of labels is long enough for a join, so that rows keep their order."""
    table = us.open(frame, schema)
    assert isinstance(table, DuckTable)
    domain = Domain.of(schema)
    batches = list(DuckTable._codes(table, domain, domain.names))
    return {c: [int(v) for b in batches for v in b[c]] for c in domain.names}


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=60))
def test_the_same_codes_as_the_engine(rows: list[dict[str, Any]]) -> None:
    frame = frame_of(rows)
    (quick,) = FrameTable(frame, SCHEMA, kind="pyarrow", name="f")._codes(DOMAIN, DOMAIN.names)
    assert {c: v.tolist() for c, v in quick.items()} == engine_codes(frame)


def test_a_mutant_that_rounds_half_down_is_caught() -> None:
    frame = frame_of([dict.fromkeys(TYPES) | {"cut": 49.5}])
    (quick,) = FrameTable(frame, SCHEMA, kind="pyarrow", name="f")._codes(DOMAIN, ("cut",))
    below = int(np.searchsorted([3, 10, 50], 49.5, side="right"))
    assert quick["cut"].tolist() == engine_codes(frame)["cut"] != [below]


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint16(), pa.int32(), pa.uint64(), pa.float32()])
def test_numbers_of_every_width(kind: Any) -> None:
    rows = [dict.fromkeys(TYPES) for _ in range(60)]
    frame = frame_of(rows).set_column(0, "whole", pa.array([*range(58), None, 3], type=kind))
    (quick,) = FrameTable(frame, SCHEMA, kind="pyarrow", name="f")._codes(DOMAIN, ("whole",))
    assert quick["whole"].tolist() == engine_codes(frame)["whole"]


@pytest.mark.parametrize(
    ("column", "values", "missing"),
    [
        ("whole", pa.array(["1", "2"]), ()),
        ("whole", pa.array([1, 2]).cast(pa.decimal128(21, 2)), ()),
        ("whole", pa.array([1, 2]), ("-9",)),
        ("truth", pa.array([True, False]), ("1",)),
        ("truth", pa.array([1, 0]), ()),
        ("label", pa.array([1, 2]), ()),
        ("label", pa.array(["a", "b"]).dictionary_encode(), ()),
    ],
)
def test_what_is_not_plain_is_left_to_the_engine(column: str, values: Any, missing: tuple[str, ...]) -> None:
    assert not is_plain(DOMAIN[column], values.type, missing)


def test_a_column_that_is_not_plain_takes_the_others_along() -> None:
    schema = Schema.loads(
        '[columns.age]\ntype = "integer"\nmin = 0\nmax = 9\n'
        '[columns.day]\ntype = "datetime"\nmin = 2020-01-01\nmax = 2020-01-09'
    )
    frame = pa.table({"age": [1, 2, 3], "day": pa.array(["2020-01-02"] * 3)})
    table = FrameTable(frame, schema, kind="pyarrow", name="f")
    domain = Domain.of(schema)
    (counts,) = table.count_by(domain, [("age", "day")])
    assert counts.sum() == 3 and counts[1:4, 1].tolist() == [1, 1, 1]
    table.check_readable()


def test_a_cap_on_rows_per_person_is_the_engine_s() -> None:
    schema = Schema.loads(
        '[unit]\ncolumn = "who"\nmax_rows = 2\n[columns.who]\ntype = "identifier"\n[columns.ill]\ntype = "boolean"'
    )
    frame = pa.table({"who": ["a", "a", "a", "b"], "ill": [True, True, False, False]})
    table = FrameTable(frame, schema, kind="pyarrow", name="f")
    (counts,) = table.count_by(Domain.of(schema), [("ill",)])
    assert (table.count_rows(), counts.tolist(), table.has_rows(4)) == (3, [1, 2], False)


def test_an_empty_frame_and_wrong_columns() -> None:
    frame = frame_of([])
    table = FrameTable(frame, SCHEMA, kind="pyarrow", name="f")
    (counts,) = table.count_by(DOMAIN, [("label",)])
    assert counts.sum() == table.count_rows() == 0 and not table.has_rows(1)
    with pytest.raises(TableError, match="'whole' of the schema is not in the table"):
        FrameTable(frame.drop(["whole"]), SCHEMA, kind="pyarrow", name="f")


def test_pandas_frames_fit_like_arrow_tables() -> None:
    rng = np.random.default_rng(2)
    people = {"ill": rng.random(200) < 0.5, "age": rng.integers(0, 99, 200)}
    schema = Schema.loads('[columns.ill]\ntype = "boolean"\n[columns.age]\ntype = "integer"\nmin = 0\nmax = 99')
    made = [
        us.PrivateForest(1.0, schema=schema, seed=1, noise_seed=1).fit(frame, target="ill")
        for frame in (pa.table(people), pd.DataFrame(people))
    ]
    opened = us.PrivateForest(1.0, seed=1, noise_seed=1).fit(us.open(pa.table(people), schema), target="ill")
    assert made[0].export_text() == made[1].export_text() == opened.export_text()


def test_codes_are_read_once_however_many_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    scans: list[tuple[str, ...]] = []
    honest = DuckTable._codes
    monkeypatch.setattr(DuckTable, "_codes", lambda self, d, c: scans.append(tuple(c)) or honest(self, d, c))
    schema = Schema.loads('[columns.ill]\ntype = "boolean"\n[columns.age]\ntype = "integer"\nmin = 0\nmax = 99')
    table = us.open(pa.table({"ill": [True, False] * 50, "age": [80, 20] * 50}), schema)
    if type(table) is FrameTable:
        monkeypatch.setattr(FrameTable, "_codes", DuckTable._codes)
    fit = lambda: us.PrivateForest(50.0, depth=3, seed=1, noise_seed=1).fit(table, target="ill").export_text()  # noqa: E731
    quick, asked = fit(), len(scans)
    monkeypatch.setattr(cache, "MOST_CODE_BYTES", 10)
    monkeypatch.setattr(kept, "MEMORY_SHARE", 1 << 60)  # all of them on disk
    assert fit() == quick and len(scans) == 2 * asked == 2
    monkeypatch.setattr(kept.Overflow, "write", full)
    assert fit() == quick and len(scans) > 3  # without room on disk each question is a scan


def full(*given: object) -> None:
    raise OSError("the disk is full")


def test_a_partition_of_no_column_is_counted_too() -> None:
    """It has no codes to be remembered, but it has rows."""
    frame = frame_of([dict.fromkeys(TYPES)] * 5)
    assert CachedTable(FrameTable(frame, SCHEMA, kind="pyarrow", name="f"))._codes.of(DOMAIN, ()) is None
