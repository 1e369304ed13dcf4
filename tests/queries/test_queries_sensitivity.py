"""No person moves a tally, or the score of a rank, by more than is declared and paid for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import understudy as us
from understudy.boundary.privacy.mechanisms.score import Rank, rank_exponent, rank_reach
from understudy.boundary.schema.expression import parse
from understudy.boundary.schema.grouped_sums import GroupedSums, PersonCount, RowCount, Summand, SumNeighbours, ValueSum
from understudy.queries.discretization import centred_sum, fine_coding, plain_sum

HEAD = {
    "add-remove": '[unit]\ncolumn = "who"\nmax_rows = 3\n',
    "replace-one": 'neighbours = "replace-one"\n',
}
BODY = """
[columns.who]
type = "identifier"
[columns.group]
type = "categorical"
values = ["a", "b", "c"]
[columns.x]
type = "number"
min = -7
max = 20
decimals = 1
missing = true
"""
ROW = st.tuples(
    st.sampled_from("pqr"), st.sampled_from("abc?"), st.none() | st.floats(-30, 30) | st.sampled_from([-7.0, 20.0])
)
ALL: list[Summand] = [RowCount(), RowCount("x"), PersonCount()]


def schema_of(relation: str) -> us.Schema:
    return us.Schema.loads(HEAD[relation] + BODY)


def totals(rows: list[tuple], schema: us.Schema, tally: GroupedSums) -> list[np.ndarray]:
    who, group, x = (list(c) for c in zip(*rows, strict=True)) if rows else ([], [], [])
    frame = pa.table(
        {"who": pa.array(who, pa.string()), "group": pa.array(group, pa.string()), "x": pa.array(x, pa.float64())}
    )
    return us.open(frame, schema).count_tally(us.Domain.of(schema), tally)


def neighbour(rows: list[tuple], relation: str, data: st.DataObject) -> list[tuple]:
    """All rows of one person removed, or one row replaced."""
    if relation == "add-remove":
        gone = data.draw(st.sampled_from("pqr"))
        return [r for r in rows if r[0] != gone]
    place = data.draw(st.integers(0, len(rows) - 1))
    return [*rows[:place], data.draw(ROW), *rows[place + 1 :]]


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("relation", HEAD)
@pytest.mark.parametrize("by", [(), ("group",)])
@pytest.mark.parametrize("where", [None, "x > 3 OR x IS NULL", "\"group\" = 'b'"])
@given(st.lists(ROW, min_size=1, max_size=12), st.data())
@settings(max_examples=4, deadline=None)
def test_no_person_moves_a_total_further(relation, by, where, rows, data):
    schema = schema_of(relation)
    summands = [
        s for s in (*ALL, plain_sum(schema["x"]), centred_sum(schema["x"])) if schema.unit or s != PersonCount()
    ]
    tally = GroupedSums(by, parse(where, schema.kinds) if where else None, tuple(summands))
    pairs = zip(totals(rows, schema, tally), totals(neighbour(rows, relation, data), schema, tally), strict=True)
    neighbours = SumNeighbours(schema.rows_per_unit, relation == "replace-one", 3 if by else 1, where is not None)
    for summand, (one, other) in zip(summands, pairs, strict=True):
        l1, l2 = summand.sensitivity(neighbours)
        change = (one - other).ravel().astype(float)
        assert np.abs(change).sum() <= l1 and np.sqrt((change**2).sum()) <= l2


@pytest.mark.parametrize(
    ("summand", "neighbours", "expected"),
    [
        (RowCount(), SumNeighbours(1, False, 1, False), (1, 1)),
        (RowCount(), SumNeighbours(3, False, 9, True), (3, 3)),
        (RowCount(), SumNeighbours(1, True, 1, False), (0, 0)),
        (RowCount(), SumNeighbours(1, True, 1, True), (1, 1)),
        (RowCount(), SumNeighbours(1, True, 4, False), (2, 2**0.5)),
        (PersonCount(), SumNeighbours(4, False, 1, True), (1, 1)),
        (PersonCount(), SumNeighbours(4, False, 9, True), (4, 2)),
        (PersonCount(), SumNeighbours(4, False, 2, True), (2, 2**0.5)),
        (ValueSum("x", 0.0, 1.0, -3, 10), SumNeighbours(2, False, 5, False), (20, 20)),
        (ValueSum("x", 0.0, 1.0, -3, 10), SumNeighbours(1, True, 1, False), (13, 13)),
        (ValueSum("x", 0.0, 1.0, 5, 10), SumNeighbours(1, True, 1, True), (10, 10)),
        (ValueSum("x", 0.0, 1.0, -10, 10), SumNeighbours(1, True, 5, False), (20, 20)),
    ],
)
def test_sensitivities_by_hand(summand: Summand, neighbours: SumNeighbours, expected: tuple[float, float]):
    found = summand.sensitivity(neighbours)
    assert found == pytest.approx(expected) and all(f >= e for f, e in zip(found, expected, strict=True))


def test_the_check_finds_out_half_of_a_sensitivity():
    """The worst case is reached: three rows of one person at the bound, in one group."""
    schema = schema_of("add-remove")
    tally = GroupedSums(("group",), None, (plain_sum(schema["x"]),))
    (one,), (other,) = (
        totals([("p", "a", 25.0)] * 4 + [("q", "b", 0.0)], schema, tally),
        totals([("q", "b", 0.0)], schema, tally),
    )
    assert np.abs(one - other).sum() == tally.summands[0].sensitivity(SumNeighbours(3, False, 3, False))[0] == 3 * 200


COUNTS = st.lists(st.integers(0, 6), min_size=1, max_size=6)


@given(COUNTS, st.floats(0, 1), st.integers(-9, 9), st.data())
@settings(max_examples=200, deadline=None)
def test_one_row_moves_the_score_of_a_rank_by_one_at_most(counts, share, moved, data):
    rank, place = Rank(share, moved), data.draw(st.integers(0, len(counts) - 1))
    before = np.array(counts, dtype=np.int64)
    after = before.copy()
    after[place] += 1
    assert np.abs(rank.scores(after) - rank.scores(before)).max() <= 1
    if before.sum():
        moved_row = after.copy()
        moved_row[data.draw(st.sampled_from(np.flatnonzero(before).tolist()))] -= 1
        assert np.abs(rank.scores(moved_row) - rank.scores(before)).max() <= 1


@given(COUNTS, st.floats(0, 1), st.integers(-9, 9))
@settings(max_examples=200, deadline=None)
def test_some_bin_holds_every_rank(counts, share, moved):
    scores = Rank(share, moved).scores(np.array(counts, dtype=np.int64))
    assert scores.max() == 0 and len(scores) == len(counts) + 2


def test_scores_by_hand():
    """Three rows in the first bin, none in the second, one in the third; the median has two rows below it."""
    assert Rank(0.5).scores(np.array([3, 0, 1])).tolist() == [-2, 0, -1, -1, -2]
    assert Rank(0.5, -4).scores(np.array([3, 0, 1])).tolist() == [0, -2, -5, -5, -6]


def test_the_reach_of_a_rank():
    exponent = rank_exponent(2.0, 1.0)
    reach = rank_reach(exponent, 100, 0.025)
    assert 100 * np.exp(-exponent * reach) <= 0.025 < 100 * np.exp(-exponent * (reach - 1))


def test_bins_of_a_quantile_tell_decimals_apart():
    x = schema_of("add-remove")["x"]
    assert fine_coding(x).levels == 270 and fine_coding(x).edges[:2] == (-7.0, -6.9)
