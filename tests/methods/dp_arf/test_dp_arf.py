"""`dp-arf`: trees that cost nothing, leaves that are counted, and releases that hold.

Where size does not matter, particles are few, and so are the rows to grow on and the rounds of choosing rows.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import understudy as us
from helpers.related_columns import COPIES, along, distance, mean_distance, schema_of, tangled
from helpers.tuning import tune
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.partition import Crossed, Split, Tree, code_bits, code_mask
from understudy.inference.noisy_table import NoisyTable
from understudy.inference.particles.gibbs import sweep
from understudy.inference.particles.leaf_particles import LeafyModel, LeafyParticles
from understudy.inference.particles.particles import LogFactor, Particles
from understudy.methods.dp_arf.dp_arf import DpArfParams, DpArfState
from understudy.methods.dp_arf.first_tree import ColumnEstimates, LeafMixture, allowed, oblivious, possible, shrunk
from understudy.methods.dp_arf.proxy_trees import CandidateTree, TrainingSample, best_cut, best_cut_in_order, by_share
from understudy.methods.dp_arf.tuning import TUNING
from understudy.methods.parts.resolution import Resolutions

PAIRS, DIRECT = "pairs", "direct"
SIZES = dict.fromkeys("abcdef", 4)
CHAIN = dict(zip("bcdef", "abcde", strict=True))
FALSE_ALARM = 1e-9


FEW_TREES = DpArfParams(trees=5)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    tune(
        monkeypatch,
        "dp-arf",
        FEW_TREES,
        rake={"particles": 1500, "final_particles": 3000, "most_picks": 9, "whole_domain": 0, "exchange_rounds": 60},
        first_tree={"most_candidates": 100, "most_levels": 4},
        rows_to_grow=700,
    )


@pytest.fixture(params=[PAIRS, DIRECT])
def proxy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With few columns the first model is of pairs; without a bound on them, every table counts as wide."""
    if request.param == DIRECT:
        tune(monkeypatch, "dp-arf", most_paired_columns=1)
    return str(request.param)


def linked(rows: int = 3000) -> pa.Table:
    return along(CHAIN, SIZES, rows)


def made(frame: pa.Table, schema: us.Schema, **options: Any) -> us.Release:
    options = {"epsilon": 2.0, "seed": 5, "test_only_noise_seed": 1} | options
    return us.synthesize(us.open(frame, schema), method="dp-arf", **options)


def kinds(release: us.Release) -> set[str]:
    """The kinds of partitions that were counted."""
    return {a.question["kind"] for a in release.record if a.question["ask"] == "partition"}


# --- Partitions -------------------------------------------------------------------------------------------------------


def walked(tree: Tree, row: dict[str, int]) -> int:
    """The leaf of one row, step by step."""
    at = 0
    while at >= 0:
        split = tree.splits[at]
        at = split.high if split.right >> row[tree.columns[split.column]] & 1 else split.low
    return -1 - at


@st.composite
def trees(draw: Any) -> Tree:
    """Random trees: each split takes the place of a leaf."""
    sizes = tuple(draw(st.lists(st.integers(1, 11), min_size=1, max_size=3)))
    splits: list[list[int]] = []
    for i in range(draw(st.integers(1, 6))):
        column = draw(st.integers(0, len(sizes) - 1))
        split = [column, draw(st.integers(0, 2 ** sizes[column] - 1)), -1 if not i else 0, -2 - i]
        if i:
            leaf = -1 - draw(st.integers(0, i))
            parent = next(s for s in splits if leaf in s[2:])
            parent[parent.index(leaf, 2)] = i
            split[2] = leaf
        splits.append(split)
    return Tree(tuple("xyz"[: len(sizes)]), sizes, tuple(Split(*s) for s in splits))


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(trees(), st.integers(0, 10**6))
def test_every_row_is_in_the_leaf_that_it_walks_to(tree: Tree, seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = {c: rng.integers(0, n, 40).astype(np.uint8) for c, n in zip(tree.columns, tree.sizes, strict=True)}
    rows = [{c: int(v[i]) for c, v in codes.items()} for i in range(40)]
    assert tree.assign(codes).tolist() == [walked(tree, row) for row in rows]
    groups = tuple(code % 2 for code in range(tree.sizes[0]))
    crossed = Crossed(tree, "x", groups)
    expected = [walked(tree, row) * (max(groups) + 1) + groups[row["x"]] for row in rows]
    assert crossed.assign(codes).tolist() == expected and max(expected) < crossed.cells


@given(st.lists(st.booleans(), min_size=1, max_size=40))
def test_masks_are_the_bits_that_made_them(bits: list[bool]) -> None:
    mask = code_mask(np.array(bits))
    assert code_bits(mask, len(bits)).tolist() == bits and mask == sum(1 << i for i, b in enumerate(bits) if b)


def test_what_a_tree_says_of_itself_tells_it_from_others() -> None:
    tree = Tree(("x", "y"), (3, 2), (Split(0, 0b110, -1, 1), Split(1, 0b10, -2, -3)))
    other = Tree(("x", "y"), (3, 2), (Split(0, 0b100, -1, 1), Split(1, 0b10, -2, -3)))
    assert tree.describe()["splits"] == [[0, "6", -1, 1], [1, "2", -2, -3]]
    assert tree.describe() != other.describe() and tree != other and len({tree, other, tree}) == 2


# --- Trees ------------------------------------------------------------------------------------------------------------


def gini_gain(table: np.ndarray, right: tuple[int, ...]) -> float:
    """Of one node: the squared class counts of both sides over their rows, less that of the node."""
    sides = [table[[i for i in range(len(table)) if (i in right) == s]].sum(axis=0) for s in (False, True)]
    return sum(float((s**2).sum() / s.sum()) for s in sides) - float((table.sum(axis=0) ** 2).sum() / table.sum())


@pytest.mark.parametrize("seed", range(8))
def test_the_best_cut_is_the_best_of_all_cuts(seed: int) -> None:
    table = np.random.default_rng(seed).integers(1, 30, (3, 6, 3))
    gain, above = best_cut(np.moveaxis(table, 2, 0), 1)
    for node in range(3):
        every = [gini_gain(table[node], tuple(range(cut, 6))) for cut in range(1, 6)]
        assert gain[node] == pytest.approx(max(every))
        assert above[node].tolist() == [i > int(np.argmax(every)) for i in range(6)]


@pytest.mark.parametrize("seed", range(8))
def test_values_without_order_are_parted_as_well_as_any_subset_does(seed: int) -> None:
    table = np.random.default_rng(seed).integers(1, 30, (1, 6, 2))
    by_class = np.moveaxis(table, 2, 0)
    gain, right = best_cut_in_order(by_class, by_share(by_class, 1), 1)
    subsets = [s for k in range(1, 6) for s in itertools.combinations(range(6), k)]
    assert gain[0] == pytest.approx(max(gini_gain(table[0], s) for s in subsets), rel=0.02)
    assert gini_gain(table[0], tuple(np.flatnonzero(right[0]))) == pytest.approx(gain[0])


def test_no_leaf_is_smaller_than_it_may_be() -> None:
    table = np.array([[[1, 0, 50, 0]], [[0, 50, 0, 1]]])
    assert best_cut(table, 2)[1].tolist() == [[False, False, True, True]]
    assert best_cut(table, 60)[0][0] == 0


def sample_of(frame: pa.Table, sizes: dict[str, int], least: float = 5.0) -> TrainingSample:
    domain = Domain.of(schema_of(sizes))
    return TrainingSample(domain, {c: frame[c].to_numpy().astype(np.int32) for c in sizes}, least)


def test_an_adversary_parts_rows_from_shuffled_ones() -> None:
    """Two equal columns: where a leaf knows both, it holds rows, or none."""
    a = np.random.default_rng(1).integers(0, 4, 2000)
    sample = sample_of(pa.table({"a": a, "b": a}), {"a": 4, "b": 4})
    tree = sample.adversary(("a", "b"), np.random.default_rng(2)).whole
    cells = np.stack(np.meshgrid(np.arange(4), np.arange(4))).reshape(2, -1)
    leaf = tree.assign({"a": cells[0], "b": cells[1]})
    full = set(leaf[cells[0] == cells[1]].tolist())
    assert not full & set(leaf[cells[0] != cells[1]].tolist())


def test_a_predictor_finds_what_the_target_follows() -> None:
    frame = parity(4000)
    sample = sample_of(frame, BINARY)
    tree = sample.predictor(("a", "b"), frame["t"].to_numpy() ^ frame["c"].to_numpy(), np.random.default_rng(3))
    assert tree.leaves == 4


@pytest.mark.parametrize("leaves", [2, 3, 5, 9, 10**6])
def test_a_tree_with_fewer_leaves_merges_those_of_the_whole(leaves: int) -> None:
    sample = sample_of(tangled(2000), COPIES)
    grown_tree = sample.adversary(("a", "b", "c"), np.random.default_rng(4))
    tree, within = grown_tree.cut(leaves)
    assert tree.cells == min(leaves, grown_tree.leaves)
    assert (within[grown_tree.whole.assign(sample.codes)] == tree.assign(sample.codes)).all()


def test_cells_of_a_cut_sum_up_and_nest() -> None:
    sample = sample_of(tangled(2000), COPIES)
    candidate = CandidateTree(
        sample.predictor(("a", "b", "c"), sample.codes["t"], np.random.default_rng(5)), "t", (0, 1, 2)
    )
    particles = LeafyParticles(COPIES, 2000.0, sample.codes, np.ones(2000))
    table = candidate.table(particles)
    for cut in candidate.cuts(DpArfParams.leaves):
        cells = cut.partition.assign(sample.codes)
        assert cut.expected(table).ravel().tolist() == np.bincount(cells, minlength=cut.partition.cells).tolist()
        for groups in cut.coarser():
            # Cells that are merged have the same class.
            assert (groups % 3 == np.arange(cut.partition.cells) % 3).all()


# --- Particles with leaves --------------------------------------------------------------------------------------------

TREE = Tree(("a", "b"), (3, 3), (Split(0, 0b100, -1, 1), Split(1, 0b011, -2, -3)))


def stands(count: int, rng: np.random.Generator) -> LeafyParticles:
    """Particles of the law p(a, b) ∝ one-ways × leaves, drawn exactly."""
    shape = (3, 3)
    logs = [np.log([0.5, 0.3, 0.2]), np.log([0.2, 0.2, 0.6])]
    cells = np.stack(np.unravel_index(np.arange(9), shape))
    theta = np.array([0.3, -1.5, 1.0])
    law = np.exp(logs[0][cells[0]] + logs[1][cells[1]] + theta[TREE.assign({"a": cells[0], "b": cells[1]})])
    drawn = rng.choice(9, count, p=law / law.sum())
    codes = {c: cells[i][drawn].astype(np.int32) for i, c in enumerate("ab")}
    particles = LeafyParticles({"a": 3, "b": 3}, float(count), codes, np.ones(count))
    for name, log in zip("ab", logs, strict=True):
        particles.add(LogFactor((name,), (np.arange(3),), log))
    particles.fix(TREE, theta)
    particles.law = law / law.sum()  # type: ignore[attr-defined]
    return particles


def strays(particles: LeafyParticles) -> bool:
    """Whether the particles are not of their law: Pearson's statistic of 9 cells beyond its 1 − 1e-9 quantile."""
    expected = particles.law * particles.count  # type: ignore[attr-defined]
    seen = np.bincount(particles.codes["a"] * 3 + particles.codes["b"], minlength=9)
    return bool(((seen - expected) ** 2 / expected).sum() > chi2.ppf(1 - FALSE_ALARM, 8))


def test_a_sweep_keeps_the_law_of_grids_and_leaves() -> None:
    """False alarms: 1e-9, for particles are independent of each other."""
    rng = np.random.default_rng(6)
    particles = stands(40_000, rng)
    for _ in range(3):
        particles.sweep(rng)
        assert not strays(particles)
        assert (particles.leaves[0].cells(particles.codes) == TREE.assign(particles.codes)).all()


def test_mutant_a_sweep_without_leaves_is_told_apart() -> None:
    particles = stands(40_000, np.random.default_rng(6))
    sweep(particles, np.random.default_rng(7))
    assert strays(particles)


def test_raking_brings_leaves_to_their_counts() -> None:
    rng = np.random.default_rng(8)
    codes = {c: rng.integers(0, 3, 5000).astype(np.int32) for c in "ab"}
    particles = LeafyParticles({"a": 3, "b": 3}, 900.0, codes, np.full(5000, 900 / 5000))
    for name in "ab":
        particles.add(LogFactor((name,), (np.arange(3),), np.zeros(3)))
    leaves, wanted = particles.grow(TREE), np.array([200.0, 400.0, 300.0])
    for groups in (np.array([0, 1, 1]), np.arange(3)):
        leaves.learn(groups, wanted, 1.0, particles)
    particles.rake(20, sampling=False)
    assert leaves.histogram(codes, particles.weights) == pytest.approx(wanted, rel=0.01)
    assert particles.loss() < 1


def test_counts_that_are_noise_hardly_move_the_particles() -> None:
    """Leaves as the model expects them, but for noise: their spread is the least, and so is what they change."""
    rng = np.random.default_rng(9)
    codes = {c: rng.integers(0, 3, 5000).astype(np.int32) for c in "ab"}
    particles = LeafyParticles({"a": 3, "b": 3}, 900.0, codes, np.full(5000, 900 / 5000))
    leaves = particles.grow(TREE)
    expected = leaves.histogram(codes, particles.weights)
    leaves.learn(np.arange(3), expected + np.array([60.0, -60.0, 0.0]), 100.0**2, particles)
    particles.rake(10, sampling=False)
    # Of the 60 rows that the counts are off by, less than a fifth.
    assert np.abs(leaves.histogram(codes, particles.weights) - expected).max() < 60 / 5


def test_what_is_restored_is_what_was() -> None:
    particles = stands(500, np.random.default_rng(10))
    leaves = particles.leaves[0]
    leaves.learn(np.arange(3), np.array([100.0, 300.0, 100.0]), 4.0, particles)
    before, theta = particles.snapshot_all(), leaves.theta()
    weights, codes = particles.weights.copy(), dict(particles.codes)
    particles.rake(3)
    particles.sweep(np.random.default_rng(1))
    assert (leaves.theta() != theta).any()
    particles.restore_all(before)
    assert (leaves.theta() == theta).all() and (particles.weights == weights).all()
    assert all((particles.codes[c] == v).all() for c, v in codes.items())


def test_given_columns_stay_and_the_others_follow_the_leaves() -> None:
    """a = 2 leaves a choice by b alone: leaf 1 where b is 2, else leaf 2."""
    particles = stands(20_000, np.random.default_rng(11))
    table = LeafyModel(particles).complete({"a": np.full(20_000, 2)}, np.random.default_rng(12))
    law = particles.law.reshape(3, 3)[2]  # type: ignore[attr-defined]
    assert (table["a"] == 2).all()
    assert np.bincount(table["b"], minlength=3) / 20_000 == pytest.approx(law / law.sum(), abs=0.03)


# --- The direct start -------------------------------------------------------------------------------------------------

CHOICES = [("x", 0b110), ("y", 0b10), ("x", 0b100)]
DOMAIN = Domain.of(schema_of({"x": 3, "y": 2, "z": 4}))


def test_an_oblivious_tree_makes_the_same_choice_on_a_level() -> None:
    tree = oblivious(CHOICES, DOMAIN)
    cells = np.stack(np.meshgrid(np.arange(3), np.arange(2), indexing="ij")).reshape(2, -1)
    expected = [4 * (x > 0) + 2 * (y > 0) + (x > 1) for x, y in cells.T]
    assert tree.assign({"x": cells[0], "y": cells[1]}).tolist() == expected


def test_codes_are_allowed_where_rows_can_be() -> None:
    tree = oblivious(CHOICES, DOMAIN)
    cells = np.stack(np.meshgrid(np.arange(3), np.arange(2), indexing="ij")).reshape(2, -1)
    leaf = tree.assign({"x": cells[0], "y": cells[1]})
    for name, values, size in (("x", cells[0], 3), ("y", cells[1], 2)):
        inside = allowed(CHOICES, name, tree) & possible(CHOICES, tree)[:, None]
        expected = np.zeros((8, size), dtype=bool)
        expected[leaf, values] = True
        assert (inside == expected).all()


def known_of(weights: dict[str, np.ndarray]) -> ColumnEstimates:
    return ColumnEstimates(DOMAIN, weights, Resolutions.of(DOMAIN, weights), 100.0)


def test_the_factors_of_a_mixture_are_those_of_its_law() -> None:
    """Row by row: independent columns times the factors, against w(L)·Π p(x|L)."""
    rng = np.random.default_rng(13)
    weights = {c: rng.random(DOMAIN.size(c)) * 50 + 10 for c in DOMAIN.names}
    known, tree = known_of(weights), oblivious(CHOICES, DOMAIN)
    rows = np.where(possible(CHOICES, tree), rng.random(8) + 0.5, 0.0)
    shares = {}
    for c in DOMAIN.names:
        table = rng.random((8, DOMAIN.size(c))) + 0.2
        inside = allowed(CHOICES, c, tree)
        shares[c] = np.where(inside, table, 0.0) if inside.size else table
        shares[c] /= np.maximum(shares[c].sum(axis=1, keepdims=True), 1e-12)
    measured = [crossed_measurement(tree, c) for c in DOMAIN.names]
    mixture = LeafMixture(tree, rows, shares, measured)
    codes = dict(zip(DOMAIN.names, np.unravel_index(np.arange(24), (3, 2, 4)), strict=True))
    leaf = tree.assign(codes)
    law = rows[leaf] * np.prod([shares[c][leaf, v] for c, v in codes.items()], axis=0)
    ours = np.prod([weights[c][v] for c, v in codes.items()], axis=0)
    for partition, theta in mixture.factors(known):
        ours = ours * np.exp(theta[partition.assign(codes)])
    assert ours / ours.sum() == pytest.approx(law / law.sum())


def test_the_margins_of_a_mixture_are_sums_over_leaves() -> None:
    tree = oblivious(CHOICES[:1], DOMAIN)
    part = Crossed(tree, "z", (0, 0, 1, 1))
    counts = np.array([5, 7, 1, 2])
    measured = replace(crossed_measurement(tree, "z"), counts=counts, partition=part, scale=3.0)
    (margin,) = LeafMixture(tree, np.ones(2), {}, [measured]).margins()
    assert margin.columns == ("z",) and margin.counts.tolist() == [6, 9] and margin.variance == 18.0
    assert margin.margin("z").counts.tolist() == [6, 9] and margin.margin("z").variance == 18.0


def crossed_measurement(tree: Tree, column: str) -> Any:
    from understudy.boundary.privacy.measurement import Measurement

    part = Crossed(tree, column, tuple(range(DOMAIN.size(column))))
    return Measurement(part.columns, np.zeros(part.cells, dtype=np.int64), "discrete-gaussian", 1.0, part)


def test_leaves_that_differ_by_noise_are_as_the_whole_and_others_stay() -> None:
    share, rows = np.array([0.5, 0.3, 0.2]), np.full(4, 1000.0)
    rng = np.random.default_rng(14)
    noise = rows[:, None] * share + rng.normal(0, 30, (4, 3))
    assert shrunk(noise, 30.0**2 * 4, share, rows) == pytest.approx(np.tile(share, (4, 1)), abs=1e-9)
    clear = rows[:, None] * np.array([[0.9, 0.05, 0.05], [0.1, 0.5, 0.4]])[[0, 0, 1, 1]]
    assert shrunk(clear, 1.0, share, rows) == pytest.approx(clear / 1000, abs=0.01)


# --- Releases ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_release_verifies_and_replays(delta: float, relation: str, proxy: str, tmp_path: Path) -> None:
    schema = us.Schema.loads(schema_of(SIZES).dumps().replace("add-remove", relation))
    release = us.synthesize(us.open(linked(), schema), method="dp-arf", epsilon=1.0, delta=delta, target="f")
    release.save(tmp_path / "out")
    assert 0.98 <= us.verify(tmp_path / "out").epsilon <= 1.0
    assert us.replay(tmp_path / "out").rows == release.table.num_rows
    assert relation == "add-remove" or release.table.num_rows == 3000
    assert {s.mechanism for s in release.certificate.spends} <= {
        "public",
        "exponential",
        "discrete-laplace" if delta == 0 else "rounded-gaussian",
    }


@pytest.mark.slow_after(1)
def test_rows_depend_on_the_seed_and_on_the_noise_and_on_nothing_else(proxy: str) -> None:
    first, again, drawn, noise = (
        made(tangled(1000), schema_of(COPIES), seed=seed, test_only_noise_seed=noise).table
        for seed, noise in ((1, 1), (1, 1), (2, 1), (1, 2))
    )
    assert first.equals(again) and not first.equals(drawn) and not first.equals(noise)


def test_leaves_are_counted_with_and_without_a_target(silent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tune(monkeypatch, "dp-arf", grids_too=False)
    plain, aimed = (silent(linked(), schema_of(SIZES), "dp-arf", target=t, epsilon=5.0) for t in (None, "f"))
    assert kinds(plain) == {"grid", "tree"}
    assert "crossed tree" in kinds(aimed)
    assert {a.question["by"] for a in aimed.record if a.question.get("kind") == "crossed tree"} == {"f"}


def test_the_direct_start_splits_then_counts_every_column(silent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tune(monkeypatch, "dp-arf", most_paired_columns=1)
    release = silent(linked(), schema_of(SIZES), "dp-arf")
    asks = [a.question for a in release.record]
    selects = [i for i, a in enumerate(asks) if a["ask"] == "select"]
    first = next(i for i, a in enumerate(asks) if a["ask"] == "partition")
    assert first == selects[0] + len([i for i in selects if i < first])
    assert [a["by"] for a in asks[first : first + 6]] == list(SIZES)
    assert kinds(release) <= {"crossed tree", "tree"}


@pytest.mark.parametrize("target", ["id", "nothing"])
def test_a_target_that_is_not_modelled_is_refused_before_anything_is_spent(target: str, tmp_path: Path) -> None:
    schema = us.Schema.loads('[columns.id]\ntype = "identifier"\n' + schema_of(COPIES).dumps().partition("\n")[2])
    frame = tangled(100).append_column("id", pa.array([str(i) for i in range(100)]))
    with pytest.raises(us.SchemaError, match=target):
        made(frame, schema, target=target, ledger=tmp_path / "ledger.sqlite")
    assert not (tmp_path / "ledger.sqlite").exists()


# --- What comes back --------------------------------------------------------------------------------------------------


def test_without_noise_pairs_come_back(silent: Any) -> None:
    original = tangled()
    table = silent(original, schema_of(COPIES), "dp-arf", epsilon=1000.0).table
    assert mean_distance(original, table, COPIES) < 0.015


def test_it_comes_closer_than_independent_columns_with_noise(proxy: str) -> None:
    """Seeded noise, so the figures are the same every time. A tree alone can't know all that pairs can."""
    original, schema = linked(), schema_of(SIZES)
    ours, baseline = (
        mean_distance(
            original,
            us.synthesize(us.open(original, schema), method=m, epsilon=1.0, seed=1, test_only_noise_seed=1).table,
            SIZES,
        )
        for m in ("dp-arf", "independent")
    )
    assert ours < (0.5 if proxy == PAIRS else 0.8) * baseline


def parity(rows: int = 8000) -> pa.Table:
    """t is the parity of three columns: no pair and no triple says anything of it."""
    a, b, c, d = np.random.default_rng(6).integers(0, 2, (4, rows))
    return pa.table({"a": a, "b": b, "c": c, "d": d, "t": (a + b + c) % 2})


BINARY = dict.fromkeys("abcdt", 2)
EVEN = ("a", "b", "c", "t")


def test_leaves_know_what_no_triple_knows(silent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The counter-example is `rake` without sets of more than three columns."""
    tune(monkeypatch, "rake", larger_sets=0)
    original = parity()
    ours, triples = (silent(original, schema_of(BINARY), m, epsilon=50.0, target="t").table for m in ("dp-arf", "rake"))
    assert distance(original, ours, EVEN, BINARY) < 0.05
    assert distance(original, triples, EVEN, BINARY) > 0.4


def test_constraints_missing_values_and_bounds_hold(proxy: str) -> None:
    schema = us.Schema.loads(
        '[columns.age]\ntype = "integer"\nmin = 0\nmax = 60\nmissing = true\n'
        '[columns.pay]\ntype = "number"\nmin = 0\nmax = 100\nbins = 20\n'
        '[columns.wed]\ntype = "categorical"\nvalues = ["no", "yes"]\n'
        '[[constraints]]\nif = "age < 15"\nthen = "wed = \'no\'"\n'
    )
    rng = np.random.default_rng(15)
    age = rng.integers(0, 61, 4000)
    gone = rng.random(4000) < 0.2
    frame = pa.table(
        {
            "age": pa.array(age, mask=gone),
            "pay": age * 1.5 + rng.random(4000),
            "wed": np.where((age >= 15) & (rng.random(4000) < 0.6), "yes", "no"),
        }
    )
    table = made(frame, schema, target="wed", rows=2000).table.to_pydict()
    ages = [a for a in table["age"] if a is not None]
    assert 0.1 < 1 - len(ages) / 2000 < 0.3 and min(ages) >= 0 and max(ages) <= 60
    assert min(table["pay"]) >= 0 and max(table["pay"]) <= 100
    assert not any(a is not None and a < 15 and w == "yes" for a, w in zip(table["age"], table["wed"], strict=True))


def test_no_particle_of_the_direct_start_weighs_where_a_rule_forbids(
    silent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tune(monkeypatch, "dp-arf", most_paired_columns=1)
    schema = us.Schema.loads(schema_of(SIZES).dumps() + '[[constraints]]\nif = "a < 2"\nthen = "b < 2"\n')
    weighed = []
    honest = DpArfState._replace

    def watched(self: DpArfState, codes: Any) -> None:
        honest(self, codes)
        breaks = (codes["a"] < 2) & (codes["b"] >= 2)
        weighed.append((breaks.sum(), self.particles.weights[breaks].sum(), self.particles.weights[~breaks].min()))

    monkeypatch.setattr(DpArfState, "_replace", watched)
    frame = linked().filter(pa.array((linked()["a"].to_numpy() >= 2) | (linked()["b"].to_numpy() < 2)))
    silent(frame, schema, "dp-arf", epsilon=0.2)
    ((broken, their_weight, least),) = weighed
    assert broken > 0 and their_weight == 0 and least > 0


def test_given_values_are_kept(proxy: str) -> None:
    release = made(linked(1000), schema_of(SIZES), rows=200, given={"c": 2})
    assert set(release.table["c"].to_pylist()) == {2}


@pytest.mark.parametrize("columns", [{"a": 5}, {"a": 1, "b": 1}, {"a": 2, "b": 1}])
def test_tables_with_nothing_to_split_are_made(columns: dict[str, int], proxy: str) -> None:
    rng = np.random.default_rng(16)
    frame = pa.table({c: rng.integers(0, n, 300) for c, n in columns.items()})
    assert made(frame, schema_of(columns), rows=50).table.num_rows == 50


def test_a_tree_may_have_no_more_splits_than_the_bound() -> None:
    sample = replace(sample_of(tangled(2000), COPIES), tuning=replace(TUNING, most_splits=8))
    grown_tree = sample.adversary(("a", "b", "c", "d"), np.random.default_rng(17))
    assert 4 <= len(grown_tree.splits) <= 8


def test_leafy_particles_are_particles() -> None:
    """Raked without leaves, they are what plain particles are."""
    rng = np.random.default_rng(18)
    codes = {c: rng.integers(0, 3, 400).astype(np.int32) for c in "ab"}
    plain = Particles({"a": 3, "b": 3}, 100.0, codes, np.full(400, 0.25))
    for particles in (plain, leafy := LeafyParticles({"a": 3, "b": 3}, 100.0, codes, np.full(400, 0.25))):
        every = (np.arange(3), np.arange(3))
        particles.add(LogFactor.evidence(NoisyTable(("a", "b"), np.arange(9.0).reshape(3, 3) * 3, 2.0, every)))
        particles.rake(4)
    assert leafy.weights == pytest.approx(plain.weights)
