"""How far a row moves the scores of a private quantile: by hand, over all small tables, and by the law of the draw."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import understudy as us
from understudy.boundary.privacy.asks import Quantile
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.mechanisms.score import Rank, rank_exponent, rank_scores, rank_sensitivity
from understudy.boundary.schema.domain import Domain

SHARES = (0.0, 0.1, 0.25, 0.5, 0.8, 1.0)
Counts = tuple[int, ...]
HEADS = {"add-remove": "", "replace-one": 'neighbours = "replace-one"\n'}
SCHEMA = '[columns.age]\ntype = "integer"\nmin = 0\nmax = 3\n'


def tables(bins: int, rows: int) -> Iterator[Counts]:
    return (c for c in itertools.product(range(rows + 1), repeat=bins) if sum(c) <= rows)


def neighbours(counts: Counts, replaced: bool) -> Iterator[Counts]:
    more = [tuple(n + (i == place) for i, n in enumerate(counts)) for place in range(len(counts))]
    if not replaced:
        yield from more
        return
    for other, place in itertools.product(more, range(len(counts))):
        if counts[place]:
            yield tuple(n - (i == place) for i, n in enumerate(other))


def furthest(share: float, replaced: bool, moved: int = 0) -> float:
    """The largest change of any score of either kind, over all tables of three bins and up to four rows."""
    worst, rank = 0.0, Rank(share, moved)
    for counts in tables(3, 4):
        for other in neighbours(counts, replaced):
            one, two = np.array(counts), np.array(other)
            kinds = [(rank.scores(one), rank.scores(two))]
            kinds += [(rank_scores(one, share), rank_scores(two, share))] if not moved else []
            worst = max(worst, *(float(np.abs(a - b).max()) for a, b in kinds))
    return worst


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("replaced", [False, True])
def test_attained_over_all_small_tables(share: float, replaced: bool) -> None:
    """Neither too small, which would be a leak, nor too large, which would be a waste."""
    assert furthest(share, replaced) == rank_sensitivity(share, 1, replaced=replaced)


@pytest.mark.parametrize("moved", [-3, 2])
def test_a_rank_that_is_moved_moves_no_further(moved: int) -> None:
    assert furthest(0.5, False, moved) <= 0.5 and furthest(0.5, True, moved) <= 1.0


def test_by_hand() -> None:
    assert rank_sensitivity(0.5, 1, replaced=False) == 0.5
    assert rank_sensitivity(0.5, 3, replaced=False, grouped=True) == 1.5
    assert rank_sensitivity(0.25, 2, replaced=False) == 1.5
    assert rank_sensitivity(1.0, 1, replaced=False) == rank_sensitivity(0.0, 1, replaced=False) == 1.0
    assert rank_sensitivity(0.5, 1, replaced=True) == 1.0
    assert rank_sensitivity(0.75, 1, replaced=True, grouped=True) == 1.5


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=6),
    st.floats(0, 1),
    st.integers(-9, 9),
    st.lists(st.integers(0, 5), min_size=1, max_size=4),
)
def test_the_rows_of_a_person_one_after_the_other(counts: list[int], share: float, moved: int, own: list[int]) -> None:
    before = np.array(counts)
    after = before + np.bincount(np.array(own) % len(counts), minlength=len(counts))
    for score in (Rank(share, moved).scores, lambda n: rank_scores(n, share)):
        change = float(np.abs(score(after) - score(before)).max())
        assert change <= rank_sensitivity(share, len(own), replaced=False)


def loss(counts: Counts, other: Counts, share: float, exponent: float) -> float:
    """The largest log-ratio of the exact laws of a choice."""
    laws = []
    for n in (counts, other):
        weights = np.exp(exponent * rank_scores(np.array(n), share))
        laws.append(weights / weights.sum())
    return float(np.abs(np.log(laws[0] / laws[1])).max())


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("replaced", [False, True])
def test_the_law_of_the_draw_keeps_its_epsilon(share: float, replaced: bool) -> None:
    exponent = rank_exponent(1.0, rank_sensitivity(share, 1, replaced=replaced))
    pairs = [(a, b) for a in tables(3, 6) for b in neighbours(a, replaced)]
    assert max(loss(*pair, share, exponent) for pair in pairs) <= 1.0


def test_a_mutant_with_half_of_the_sensitivity_is_caught() -> None:
    exponent = rank_exponent(1.0, 0.5 * rank_sensitivity(0.5, 1, replaced=False))
    pairs = [(a, b) for a in tables(3, 6) for b in neighbours(a, replaced=False)]
    assert max(loss(*pair, 0.5, exponent) for pair in pairs) > 1.0
    assert furthest(0.5, replaced=True) > rank_sensitivity(0.5, 1, replaced=False)  # nor do relations mix


@pytest.mark.parametrize(("relation", "share", "declared"), [("add-remove", 0.5, 0.5), ("add-remove", 0.1, 0.9),
                                                            ("replace-one", 0.5, 1.0)])  # fmt: skip
def test_what_the_curator_declares(relation: str, share: float, declared: float) -> None:
    schema = us.Schema.loads(HEADS[relation] + SCHEMA)
    curator = Curator.on(us.open(pa.table({"age": [0, 1, 2, 3]}), schema), Budget(1.0, 0.0))
    curator.ask(Quantile(Domain.of(schema), "age", share, curator.remaining()))
    grid = declared if share == 0.5 else max(round(share * 2**20), 2**20 - round(share * 2**20)) / 2**20
    assert [s.sensitivity for s in curator.spends] == [grid]
    assert math.isclose(grid, declared, abs_tol=1e-6)


def test_without_a_probability_the_exponent_is_the_least() -> None:
    schema = us.Schema.loads(SCHEMA)
    curator = Curator.on(us.open(pa.table({"age": [0, 1, 2, 3]}), schema), Budget(1.0, 0.0))
    amount = curator.remaining()
    exponents: Sequence[float] = [curator.facts.rank_exponent(amount, share) for share in SHARES]
    assert min(exponents) == curator.facts.rank_exponent(amount) and max(exponents) == 2 * min(exponents)
