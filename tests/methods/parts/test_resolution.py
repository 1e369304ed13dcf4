"""Resolutions: every level has its number of groups, and each finer group lies inside one coarser group."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import understudy as us
from understudy.methods.parts.resolution import LEVELS, Resolutions

SIZES = (1, 2, 3, 5, 9, 13, 101, 1000, 1001, 1500)
WEIGHTS = {
    "random": lambda n: np.random.default_rng(n).gamma(0.5, size=n),
    "zero": np.zeros,
    "equal": np.ones,
    "one value": lambda n: np.eye(n)[n // 2] * 1e6,
    "huge": lambda n: np.geomspace(1e-9, 1e12, n),
}


def schema_of(columns: dict[str, tuple[int, bool, bool]]) -> us.Schema:
    """Columns of so many values, ordered or not, with missing values or not."""
    text = ""
    for name, (size, ordered, missing) in columns.items():
        line = f'"integer"\nmin = 0\nmax = {size - 1}\nbins = {size}'
        kind = line if ordered else f'"categorical"\nvalues = {[f"v{i}" for i in range(size)]}'
        text += f"[columns.{name}]\ntype = {kind}\nmissing = {str(missing).lower()}\n"
    return us.Schema.loads(text)


def resolved(columns: dict[str, tuple[int, bool, bool]], weights: str = "random") -> Resolutions:
    domain = us.Domain.of(schema_of(columns))
    return Resolutions.of(domain, {c: WEIGHTS[weights](domain.size(c)) for c in domain.names})


@pytest.mark.slow_after(6)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("ordered", [False, True])
def test_groupings_are_nested_contiguous_and_as_fine_as_they_say(ordered: bool, missing: bool, weights: str):
    for size in SIZES:
        resolutions = resolved({"x": (size, ordered, missing)}, weights)
        found, codes = resolutions.groupings["x"], size + missing
        assert resolutions.domain.size("x") == codes
        assert list(found) == [x for x in LEVELS if x < codes] + [codes] * (codes <= 1000)
        for level, grouping in found.items():
            groups = grouping.of_code
            assert groups.shape == (codes,) and sorted(set(groups.tolist())) == list(range(level))
            if ordered:
                assert (np.diff(groups) >= 0).all()
                assert not missing or (groups == groups[-1]).sum() == 1
        for coarse, fine in itertools.pairwise(g.of_code for g in found.values()):
            assert len(set(zip(fine.tolist(), coarse.tolist(), strict=True))) == fine.max() + 1


def test_the_finest_level_is_the_values_themselves():
    for size, ordered, missing in itertools.product((1, 5, 999), (False, True), (False, True)):
        found = resolved({"x": (size, ordered, missing)}).groupings["x"]
        assert np.array_equal(found[size + missing].of_code, np.arange(size + missing))


def test_the_commonest_values_keep_a_group_of_their_own():
    domain = us.Domain.of(schema_of({"x": (7, False, False)}))
    weights = np.array([5.0, 90.0, 1.0, 40.0, 2.0, 3.0, 40.0])
    found = Resolutions.of(domain, {"x": weights}).groupings["x"]
    assert found[2].labels == (1, 0, 1, 1, 1, 1, 1)
    assert found[4].labels == (3, 0, 3, 1, 3, 3, 2)


def test_neighbours_are_halved_by_weight():
    domain = us.Domain.of(schema_of({"x": (8, True, True)}))
    weights = np.array([1.0, 1, 1, 1, 1, 1, 7, 0, 50])  # the last is missing, and does not matter
    found = Resolutions.of(domain, {"x": weights}).groupings["x"]
    assert found[2].labels == (0, 0, 0, 0, 0, 0, 0, 0, 1)
    assert found[3].labels == (0, 0, 0, 0, 0, 0, 1, 1, 2)
    assert found[4].labels == (0, 0, 0, 0, 0, 0, 1, 2, 3)
    assert found[6].labels == (0, 1, 1, 2, 2, 2, 3, 4, 5)


COLUMNS = {
    "one": (1, True, False),
    "also_one": (1, False, False),
    "two": (2, False, False),
    "ten": (10, True, True),
    "many": (1500, False, False),
}


@pytest.fixture(scope="module")
def several() -> Resolutions:
    return resolved(COLUMNS)


SETS = [s for n in (1, 2, 3) for s in itertools.combinations(COLUMNS, n)]


@pytest.mark.parametrize("columns", SETS)
def test_levels_go_from_coarse_to_fine_and_keep_below_their_caps(columns: tuple[str, ...], several: Resolutions):
    every = several.levels(columns, math.inf)
    shapes = [several.shape(columns, level) for level in every]
    assert every == sorted(every) and len(set(shapes)) == len(shapes) >= 1
    finest = {"one": 1, "also_one": 1, "two": 2, "ten": 11, "many": 1000}
    assert shapes[-1] == tuple(finest[c] for c in columns)
    for cells, groups in itertools.product((1, 4, 30, 5000), (1, 2, 12, math.inf)):
        expected = [x for x, s in zip(every, shapes, strict=True) if math.prod(s) <= cells and x <= groups]
        assert several.levels(columns, cells, groups) == expected


@pytest.mark.parametrize("columns", [("ten", "many"), ("one", "two"), ("two", "ten", "one")])
def test_grids_are_the_groups_and_are_made_once(columns: tuple[str, ...], several: Resolutions):
    for level in several.levels(columns, math.inf):
        grid = several.grid(columns, level)
        assert grid.columns == columns and grid.shape == several.shape(columns, level)
        assert all(np.array_equal(a, b) for a, b in zip(grid.groups, several.groups(columns, level), strict=True))
        assert several.grid(columns, level) is grid


def test_a_column_is_at_its_finest_level_that_is_no_finer_than_asked(several: Resolutions):
    assert several.shape(("two", "ten", "many"), 7) == (2, 6, 6)
    assert several.shape(("one", "ten", "many"), 50) == (1, 11, 48)
    assert several.shape(("many",), 10**6) == (1000,)
