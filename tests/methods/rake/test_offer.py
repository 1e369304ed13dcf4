"""Which sets a round offers where there are too many: some, near ones first, and always those asked for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from understudy.methods.rake.offer import offered

NAMES = tuple(f"c{i}" for i in range(40))
PAIRS = list(itertools.combinations(NAMES, 2))
TRIPLES = [t for t in itertools.combinations(NAMES, 3) if "c0" in t]
NEVER = np.zeros(len(PAIRS), dtype=bool)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_few_sets_are_all_offered_and_nothing_is_drawn() -> None:
    untouched = rng()
    assert offered(PAIRS, [], NEVER, len(PAIRS), untouched) == PAIRS
    assert untouched.random() == rng().random()  # so that tables of usual width come out as before


@pytest.mark.parametrize("sets", [PAIRS, TRIPLES], ids=["pairs", "triples"])
def test_of_many_a_part_is_offered_in_their_order(sets: list[tuple[str, ...]]) -> None:
    found = offered(sets, [("c0", "c1")], [False] * len(sets), 100, rng())
    assert len(found) == 100
    assert found == sorted(found, key=sets.index)
    assert len(set(found)) == 100


def test_every_pair_is_offered_sooner_or_later() -> None:
    seen = {p for seed in range(200) for p in offered(PAIRS, [("c0", "c1")], NEVER, 100, rng(seed))}
    # Each of 780 pairs has a chance of at least 50/780 each time: none is missed but with one of 780·(1 − 50/780)²⁰⁰,
    # 1.4e-3; the seeds are fixed.
    assert seen == set(PAIRS)


def test_near_columns_come_first() -> None:
    """A star: all its points are two steps from each other, and half of what is offered is of them."""
    star = [("c0", f"c{i}") for i in range(1, 12)]
    found = offered(PAIRS, star, NEVER, 100, rng())
    inside = [p for p in found if set(p) <= set(NAMES[:12])]
    assert len(inside) == 50
    assert len(found) == 100


def test_what_was_asked_for_is_always_offered() -> None:
    wanted = [("c3", "c39"), ("c20", "c21")]
    found = offered(PAIRS, [], [p in wanted for p in PAIRS], 10, rng())
    assert set(wanted) <= set(found)
