"""The score of a split: by hand, and its sensitivity by enumeration of all small leaves."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from understudy.predictors.cells import BranchClasses
from understudy.predictors.purity import Purity
from understudy.predictors.split import Split
from understudy.predictors.tree import Tree
from understudy.privacy.score import GRID, STEP

CELLS = BranchClasses(Tree.single_leaf(), "sex", 3, "ill", 2)


def purity(counts: list[list[int]], groups: tuple[int, ...] | None = None, offset: float = 0.0) -> float:
    cells = BranchClasses(Tree.single_leaf(), "sex", len(counts), "ill", len(counts[0]))
    split = Split("sex", groups) if groups else None
    return Purity(cells.columns, cells, split, offset).score(np.array(counts))


def test_by_hand() -> None:
    assert purity([[3, 1], [0, 2]], (0, 1)) == 2.5 + 2.0
    assert purity([[3, 1], [0, 2]]) == 3.0
    assert purity([[3, 1], [0, 2], [0, 0]], (0, 1, 1)) == 4.5
    assert purity([[3, 1], [0, 2]], (0, 1), offset=-0.75) == 3.75


def test_against_fractions() -> None:
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 10**6, (5, 3))
    exact = sum(Fraction(int((row**2).sum()), int(row.sum())) for row in counts)
    found = Fraction(purity(counts.tolist(), (0, 1, 2, 3, 4)))
    assert 0 <= exact - found <= Fraction(5, GRID)


def leaf_purity(leaf: tuple[int, ...]) -> Fraction:
    rows = sum(leaf)
    return Fraction(sum(n * n for n in leaf), rows) if rows else Fraction(0)


def largest_change(classes: int, most: int) -> Fraction:
    """Over all leaves of up to so many rows of each class, and a row more of any class."""
    worst = Fraction(0)
    for leaf in itertools.product(range(most + 1), repeat=classes):
        for place in range(classes):
            more = tuple(n + (i == place) for i, n in enumerate(leaf))
            worst = max(worst, abs(leaf_purity(more) - leaf_purity(leaf)))
    return worst


@pytest.mark.parametrize(("classes", "most"), [(2, 40), (3, 9), (4, 5)])
def test_a_row_moves_the_purity_of_its_leaf_by_one_at_most(classes: int, most: int) -> None:
    assert largest_change(classes, most) == 1  # attained by a pure leaf, so half of it is refused


def test_declared_sensitivity() -> None:
    score = Purity(CELLS.columns, CELLS)
    assert score.sensitivity(1, replaced=False) == 1.0 + STEP
    assert score.sensitivity(1, replaced=True) == 2.0 * (1.0 + STEP)
    assert score.sensitivity(3, replaced=False) == 3.0 * (1.0 + STEP)


def test_large_tables_do_not_overflow() -> None:
    rows = 2**30
    assert purity([[rows, rows]]) == float(rows)
