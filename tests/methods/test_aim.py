"""`aim`: round by round closer than `mst`; with a target, every relation to it; and never a model above its cap."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from helpers.related_columns import COPIES, SIZES, TREE, along, distance, mean_distance, measured, schema_of, tangled
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.boundary.schema.domain import Domain
from understudy.errors import MethodError
from understudy.methods.aim import MEGABYTE, Aim


def test_pairs_come_closer_than_those_of_a_tree_or_of_independent_columns(silent):
    original = tangled()
    far, near, nearest = (
        mean_distance(original, silent(original, schema_of(COPIES), m).table, COPIES)
        for m in ("independent", "mst", "aim")
    )
    assert nearest < 0.01 < 0.03 < near < far


@pytest.mark.parametrize("noise", [1, 2, 3])
def test_it_comes_closer_with_noise_as_well(noise: int):
    """Seeded noise, so the figures are the same every time."""
    original = tangled()
    made = {
        m: us.synthesize(
            us.open(original, schema_of(COPIES)), method=m, epsilon=1.0, seed=5, test_only_noise_seed=noise
        ).table
        for m in ("independent", "mst", "aim")
    }
    far, near, nearest = (mean_distance(original, made[m], COPIES) for m in ("independent", "mst", "aim"))
    assert nearest < 0.5 * near and near < far


def test_where_a_tree_says_it_all_the_tree_is_measured(silent):
    original = along(TREE, SIZES)
    release = silent(original, schema_of(SIZES), "aim")
    assert {frozenset(e) for e in TREE.items()} <= set(measured(release))
    assert all(distance(original, release.table, edge) < 0.01 for edge in TREE.items())


def test_with_a_target_every_pair_with_it_is_measured_first(silent):
    original = tangled()
    release = silent(original, schema_of(COPIES), "aim", target="t")
    first, later = measured(release)[:4], measured(release)[4:]
    assert first == [frozenset((c, "t")) for c in "abcd"]
    assert all(distance(original, release.table, (c, "t"), COPIES) < 0.01 for c in "abcd")
    assert any(len(s) == 3 for s in later)
    assert all("t" in s for s in later if len(s) == 3)


def test_triples_with_the_target_come_closer_than_without_it(silent):
    """t is the parity of two columns: no pair says anything of it."""
    rng = np.random.default_rng(6)
    a, b, c = rng.integers(0, 2, (3, 20_000))
    sizes = dict.fromkeys("abct", 2)
    original = pa.table({"a": a, "b": b, "c": c, "t": (a + b) % 2})
    plain, aimed = (silent(original, schema_of(sizes), "aim", target=target).table for target in (None, "t"))
    assert distance(original, plain, ("a", "b", "t"), sizes) > 0.3
    assert distance(original, aimed, ("a", "b", "t"), sizes) < 0.01


def test_each_round_selects_one_set_and_measures_it(silent):
    release = silent(tangled(), schema_of(COPIES), "aim")
    asks = [a.question["ask"] for a in release.record]
    assert asks[:5] == ["marginal"] * 5
    assert asks[5:] == ["select", "partition"] * ((len(asks) - 5) // 2)
    assert len(asks) > 15
    for select, measure in _rounds(release):
        (chosen,) = select.value
        assert select.question["candidates"][chosen] == measure.question["columns"]


def _rounds(release: us.Release):
    return zip(release.record[5::2], release.record[6::2], strict=True)


def test_rounds_are_equal_and_at_least_one_per_column(silent):
    rng = np.random.default_rng(8)
    frame = pa.table({c: rng.integers(0, 3, 2000) for c in COPIES})
    release = silent(frame, schema_of(COPIES), "aim")
    scales = [measure.question["scale"] for _, measure in _rounds(release)]
    assert len(scales) >= len(COPIES)
    assert scales == pytest.approx([scales[0]] * len(scales), rel=1e-9)


def fitted_cells(megabytes: float) -> int:
    """Ten columns of twelve values that all depend on each other, nearly without noise."""
    sizes = {f"c{i}": 12 for i in range(10)}
    rng = np.random.default_rng(4)
    hidden = rng.integers(0, 12, 20_000)
    frame = pa.table({c: np.where(rng.random(20_000) < 0.6, hidden, rng.integers(0, 12, 20_000)) for c in sizes})
    schema = schema_of(sizes)
    curator = Curator.on(us.open(frame, schema), Budget(100.0, 1e-6), randomness=ExactRandomness.seeded(1))
    model = Aim(model_megabytes=megabytes).calibrate(Domain.of(schema), curator.remaining())
    opened = model.fit(curator, rng)
    return opened.model.tree.cells(opened.model.sizes)


@pytest.mark.slow
def test_the_model_stays_below_its_cap_and_uses_it():
    small = fitted_cells(0.1)
    assert 9 * 144 < small <= 0.1 * MEGABYTE < fitted_cells(0.4) <= 0.4 * MEGABYTE


@pytest.mark.parametrize("megabytes", [0.0, 0.05, -1.0, 20_000.0, float("nan")])
def test_an_impossible_cap_is_refused(megabytes: float):
    with pytest.raises(MethodError, match=r"model_megabytes \(.*\) must be from 0.1 to 10000"):
        Aim(model_megabytes=megabytes).calibrate(Domain.of(schema_of(SIZES)), Budget(1.0, 0.0).capacity)
