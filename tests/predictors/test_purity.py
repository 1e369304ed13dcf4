"""The score of a split: by hand, against fractions, and its sensitivity by enumeration of all small leaves."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.boundary.privacy.mechanisms.score import GRID, STEP
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.partition import Bundle
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.cache import CachedTable, EncodedTable
from understudy.errors import InternalError
from understudy.predictors import greedy
from understudy.predictors.decision_tree import DecisionTree
from understudy.predictors.greedy import Purity
from understudy.predictors.splits import ColumnSplit, SplitCatalogue, every_value, options

SCHEMA = Schema.loads("""
[columns.ill]
type = "boolean"
[columns.age]
type = "integer"
min = 0
max = 29
missing = true
[columns.sex]
type = "categorical"
values = ["f", "m", "x"]
[columns.town]
type = "categorical"
values = ["a", "b", "c", "d", "e", "f", "g"]
missing = true
""")
DOMAIN = Domain.of(SCHEMA)
FEATURES = ("age", "sex", "town")


def scored(counts: Sequence[Any], splits: Sequence[Sequence[ColumnSplit]], offsets: float = 0.0) -> list[float]:
    """To stay as it is, and each split of each column, from counts by value, class and leaf."""
    arrays = [np.array(n) for n in counts]
    catalogue = SplitCatalogue.among([len(n) for n in arrays], splits)
    grid = Bundle(DecisionTree.single_leaf(), FEATURES, DOMAIN, "ill")
    return Purity(grid, catalogue, np.full(len(catalogue.splits), offsets)).scores(arrays).tolist()


def column(counts: list[list[int]]) -> Any:
    """Counts by value and class, in a single leaf."""
    return np.array(counts)[:, :, None]


def test_by_hand() -> None:
    two, three = ColumnSplit("sex", (0, 1)), ColumnSplit("sex", (0, 1, 1))
    assert scored([column([[3, 1], [0, 2]])], [[two]]) == [3.0, 2.5 + 2.0]
    assert scored([column([[3, 1], [0, 2], [0, 0]])], [[three]]) == [3.0, 4.5]
    assert scored([column([[3, 1], [0, 2]])], [[two]], offsets=-0.75) == [2.25, 3.75]


def exact_purity(counts: Any, groups: Sequence[int]) -> int:
    """A second way, split by split and leaf by leaf, in fractions; in steps of the grid."""
    total = 0
    for branch, leaf in itertools.product(range(max(groups) + 1), range(counts.shape[2])):
        held = counts[np.array(groups) == branch, :, leaf].sum(axis=0)
        rows = int(held.sum())
        total += int(Fraction(sum(int(n) ** 2 for n in held) * GRID, rows)) if rows else 0
    return total


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 4),
    st.integers(1, 40),
    st.sampled_from([3, 10**4, 10**7, 3 * 10**8]),
    st.booleans(),
    st.sampled_from([(1 << 16, 256), (1, 1)]),
)
def test_all_splits_at_once_against_fractions(
    seed: int, classes: int, leaves: int, most: int, few: bool, blocks: tuple[int, int]
) -> None:
    """Whatever the sizes, and whether columns are scored together or by themselves, in doubles or in integers."""
    rng = np.random.default_rng(seed)
    leaves = min(leaves, 4) if most > 10**4 else leaves
    rows = rng.integers(0, most, (classes, leaves)) * (rng.random((classes, leaves)) < 0.7)
    counts = [_dealt(rows, DOMAIN.size(c), rng) for c in FEATURES]
    splits = [list(options(DOMAIN[c], few)) for c in FEATURES]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(greedy, "MOST_AT_ONCE", blocks[0])
        patch.setattr(greedy, "FEW_TO_A_CODE", blocks[1])
        found = np.array(scored(counts, splits)) * GRID
    expected = [exact_purity(counts[0], [0] * len(counts[0]))]
    expected += [exact_purity(n, split.groups) for n, of in zip(counts, splits, strict=True) for split in of]
    assert found.tolist() == [float(e) for e in expected]


def _dealt(rows: Any, size: int, rng: np.random.Generator) -> Any:
    """The rows of each class and leaf, dealt to the values of a column."""
    shares = rng.dirichlet(np.full(size, 0.3))
    return np.moveaxis(rng.multinomial(rows, shares), -1, 0)


@pytest.mark.parametrize("leaves", [1, 3])
def test_counts_from_codes_are_those_of_the_parts(leaves: int) -> None:
    """The quick way leaves out leaves without rows; no score can tell."""
    rng = np.random.default_rng(leaves)
    codes = {c.name: rng.integers(0, c.size, 300).astype(np.uint8) for c in DOMAIN}
    codes["sex"] = codes["sex"] % 2  # nobody has the third value
    tree = DecisionTree.single_leaf() if leaves == 1 else DecisionTree.of_levels([every_value(DOMAIN["sex"])])
    grid = Bundle(tree, FEATURES, DOMAIN, "ill")
    catalogue = SplitCatalogue.of(DOMAIN, FEATURES, few=False)
    score = Purity(grid, catalogue, np.zeros(len(catalogue.splits)))
    table = EncodedTable(SCHEMA, codes)
    quick = score.scores(CachedTable(table).count_bundle(DOMAIN, grid))
    counts = zip(table.count_cells(DOMAIN, grid.parts), grid.parts, strict=True)
    slow = score.scores(n.reshape(part.shape) for n, part in counts)
    assert (quick == slow).all() and len(quick) == len(catalogue.splits)


def test_branches_that_are_no_ranges_are_refused() -> None:
    with pytest.raises(InternalError, match="range of codes"):
        SplitCatalogue.among([4], [[ColumnSplit("sex", (0, 1, 0, 1))]])


def test_a_catalogue_keeps_what_it_is_told_to() -> None:
    catalogue = SplitCatalogue.of(DOMAIN, FEATURES, few=False)
    counts = [_dealt(np.full((2, 3), 50), DOMAIN.size(c), np.random.default_rng(1)) for c in FEATURES]
    grid = Bundle(DecisionTree.single_leaf(), FEATURES, DOMAIN, "ill")
    kept = np.arange(len(catalogue.splits)) % 3 == 0
    some = catalogue.kept(kept)
    every = Purity(grid, catalogue, np.zeros(len(catalogue.splits))).scores(counts)
    assert (Purity(grid, some, np.zeros(len(some.splits))).scores(counts) == every[kept]).all()
    assert some.place(some.splits[2]) == 2 and some.splits[2] is catalogue.splits[6]


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
    catalogue = SplitCatalogue.of(DOMAIN, FEATURES, few=True)
    score = Purity(
        Bundle(DecisionTree.single_leaf(), FEATURES, DOMAIN, "ill"), catalogue, np.zeros(len(catalogue.splits))
    )
    assert score.sensitivity(1, replaced=False) == 1.0 + STEP
    assert score.sensitivity(1, replaced=True) == 2.0 * (1.0 + STEP)
    assert score.sensitivity(3, replaced=False) == 3.0 * (1.0 + STEP)


def test_large_tables_do_not_overflow() -> None:
    rows = 2**30
    assert scored([column([[rows, rows]])], [[]]) == [float(rows)]
