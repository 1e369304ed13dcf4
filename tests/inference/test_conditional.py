"""Models given codes of some columns, against brute force: the full joint table, divided by that of the evidence."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.graphs import COLUMNS, SIZES, dense, fitted, random_potentials, shapes
from understudy.boundary.schema.column import Categorical
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import Schema
from understudy.inference.conditional import LIMITS, ConditionedModel, ConditioningLimits, complete, resample
from understudy.inference.graphical.graphical_model import GraphicalModel, JunctionTree, flat_cells, marginalise
from understudy.inference.marginal_model import MarginalModel
from understudy.inference.network import BayesianNetwork, Family, IndependentModel

Codes = Mapping[str, np.ndarray]
SHAPE = tuple(SIZES.values())
EVERY_ROW = {c: g.ravel().astype(np.int32) for c, g in zip(COLUMNS, np.indices(SHAPE), strict=True)}
EVIDENCE = [e for n in range(1, len(COLUMNS) + 1) for e in itertools.combinations(COLUMNS, n)]


def only(columns: tuple[str, ...], rows: Codes) -> dict[str, np.ndarray]:
    return {c: rows[c] for c in columns}


def law(
    model: GraphicalModel, columns: tuple[str, ...], rows: Codes, limits: ConditioningLimits = LIMITS
) -> np.ndarray:
    """P(the row | its codes in these columns) for each row, by the weights that the draw goes by."""
    posterior = ConditionedModel.of(model, only(columns, rows), limits)
    found = np.ones(posterior.rows)
    for step in posterior.steps.values():
        numbers, states = posterior.parents(step, dict(rows))
        weights = posterior.weights(step, numbers)
        shares = weights / weights.sum(axis=1, keepdims=True)
        found *= shares[states, flat_cells(dict(rows), step.new, SIZES, posterior.rows)]
    return found


def brute_force(joint: np.ndarray, columns: tuple[str, ...]) -> np.ndarray:
    """The same of every row, out of the joint table."""
    others = tuple(i for i, c in enumerate(COLUMNS) if c not in columns)
    return (joint / joint.sum(axis=others, keepdims=True)).ravel()


# --- The exact law ----------------------------------------------------------------------------------------------------


@shapes
@pytest.mark.parametrize("scale", [0.0, 2.0, 10.0])
def test_the_conditional_law_equals_brute_force_for_every_evidence(shape: str, scale: float):
    """Every set of columns as evidence, in one clique or in several, and every combination of its codes at once."""
    potentials = random_potentials(shape, scale, 5)
    model, joint = fitted(shape, potentials), dense(SIZES, potentials, 1.0)
    for columns in EVIDENCE:
        assert np.abs(law(model, columns, EVERY_ROW) - brute_force(joint, columns)).max() < 1e-9, columns


@shapes
@given(seed=st.integers(0, 10**6), columns=st.sampled_from(EVIDENCE))
@settings(max_examples=10, deadline=None)
def test_the_law_of_a_row_does_not_depend_on_the_other_rows(shape: str, seed: int, columns: tuple[str, ...]):
    potentials = random_potentials(shape, 2.0, seed)
    model, joint = fitted(shape, potentials), dense(SIZES, potentials, 1.0)
    some = np.random.default_rng(seed).integers(0, joint.size, 7)
    rows = {c: v[some] for c, v in EVERY_ROW.items()}
    assert np.abs(law(model, columns, rows) - brute_force(joint, columns)[some]).max() < 1e-9


def test_small_blocks_give_the_same_law():
    potentials, small = random_potentials("cycle", 2.0, 5), ConditioningLimits(block=40)
    model, joint = fitted("cycle", potentials), dense(SIZES, potentials, 1.0)
    for columns in EVIDENCE:
        assert np.abs(law(model, columns, EVERY_ROW, small) - brute_force(joint, columns)).max() < 1e-9, columns


@pytest.mark.parametrize("shape", ["chain", "star", "tree", "cycle"])
def test_mutant_without_messages_from_below_is_told_apart(shape: str, monkeypatch: pytest.MonkeyPatch):
    """Evidence that lies in another clique than the column it tells of is then lost."""
    potentials = random_potentials(shape, 2.0, 5)
    joint = dense(SIZES, potentials, 1.0)
    monkeypatch.setattr(ConditionedModel, "_from_below", lambda self, child, rows, known, new: 1.0)
    model = fitted(shape, potentials)
    assert max(np.abs(law(model, e, EVERY_ROW) - brute_force(joint, e)).max() for e in EVIDENCE) > 1e-2


def test_evidence_of_tiny_probability_far_away_does_not_vanish():
    """A chain of 60 columns, each given value of probability e^-30: their product is far below the smallest float."""
    names = [f"c{i}" for i in range(121)]
    sizes = dict.fromkeys(names, 2)
    edges = list(itertools.pairwise(names))
    potentials = {e: np.array([[0.0, -30.0], [-1.0, -31.0]]) for e in edges}
    model = GraphicalModel.from_potentials(sizes, JunctionTree.over(edges, sizes), potentials, 1.0)
    rows = model.complete({c: np.ones(4, dtype=np.int32) for c in names[1::2]}, np.random.default_rng(0))
    posterior = ConditionedModel.of(model, {c: np.ones(1, dtype=np.int32) for c in names[1::2]})
    assert all(np.isfinite(m).all() and m.max() == 1 for m in posterior.messages.values())
    assert all(np.all(rows[c] == 1) for c in names[1::2]) and rows.keys() == set(names)


# --- Drawing ----------------------------------------------------------------------------------------------------------


def draws(shape: str, columns: tuple[str, ...], copies: int) -> tuple[np.ndarray, np.ndarray]:
    """How often each row was drawn, and how often it should be: every combination of evidence `copies` times."""
    potentials = random_potentials(shape, 1.0, 21)
    model, joint = fitted(shape, potentials), dense(SIZES, potentials, 1.0)
    chosen = np.unique(flat_cells(EVERY_ROW, columns, SIZES, joint.size), return_index=True)[1]
    evidence = {c: np.repeat(v[chosen], copies) for c, v in only(columns, EVERY_ROW).items()}
    drawn = model.complete(evidence, np.random.default_rng(2))
    assert all(np.array_equal(drawn[c], v) for c, v in evidence.items())
    counts = np.bincount(np.ravel_multi_index([drawn[c] for c in COLUMNS], SHAPE), minlength=joint.size)
    return counts, copies * brute_force(joint, columns)


@shapes
@pytest.mark.parametrize("columns", [("a",), ("a", "e"), ("b", "d"), ("a", "c", "e")])
def test_drawn_rows_follow_the_conditional_law(shape: str, columns: tuple[str, ...]):
    """Of independent draws of n rows, the mean of Σ|n − E n| is at most Σ√E, and one row moves it by 2 at most: it
    exceeds that by 9√n with a chance below e^-40 (McDiarmid 1989). These draws are steadier, and seeded."""
    counts, expected = draws(shape, columns, 6000)
    rows = expected.sum()
    bound = float(np.sqrt(expected).sum()) + 9 * np.sqrt(rows)
    assert np.abs(counts - expected).sum() < bound < 0.25 * rows


@pytest.mark.parametrize("columns", [("a", "e"), ("b", "d")])
def test_mutant_that_keeps_the_evidence_but_draws_without_it_is_rejected(columns: tuple[str, ...]):
    potentials = random_potentials("chain", 1.0, 21)
    joint = dense(SIZES, potentials, 1.0)
    _, expected = draws("chain", columns, 6000)
    others = tuple(i for i, c in enumerate(COLUMNS) if c in columns)
    blind = 6000 * np.broadcast_to(joint.sum(axis=others, keepdims=True), SHAPE).ravel()
    rows = expected.sum()
    assert np.abs(blind - expected).sum() > float(np.sqrt(expected).sum()) + 9 * np.sqrt(rows)


def test_messages_in_parts_give_the_same_law():
    """A few numbers at a time: rows of equal evidence are still drawn together, so counts stay within rounding."""
    potentials = random_potentials("chain", 1.0, 3)
    model, joint = fitted("chain", potentials), dense(SIZES, potentials, 1.0)
    pair = marginalise(joint, COLUMNS, ("a", "b"))
    evidence = {"a": np.tile(np.arange(2, dtype=np.int32), 5000)}
    drawn = complete(model, evidence, np.random.default_rng(0), ConditioningLimits(messages=3))
    assert np.array_equal(drawn["a"], evidence["a"]) and drawn.keys() == set(COLUMNS)
    for a in range(2):
        counts = np.bincount(drawn["b"][drawn["a"] == a], minlength=SIZES["b"])
        assert np.abs(counts - 5000 * pair[a] / pair[a].sum()).max() < 1


def test_one_combination_of_evidence_is_drawn_to_within_rounding():
    """Each conditional is drawn systematically: of a chain's next column, no count is off by more than one."""
    potentials = random_potentials("chain", 1.0, 3)
    model, joint = fitted("chain", potentials), dense(SIZES, potentials, 1.0)
    drawn = model.complete({"a": np.ones(10_001, dtype=np.int32)}, np.random.default_rng(0))
    expected = 10_001 * marginalise(joint, COLUMNS, ("a", "b"))[1] / marginalise(joint, COLUMNS, ("a",))[1]
    assert np.abs(np.bincount(drawn["b"], minlength=SIZES["b"]) - expected).max() < 1


# --- Impossible evidence ----------------------------------------------------------------------------------------------


def chain_with_zeros() -> GraphicalModel:
    """a = b always, and c follows b: a = 0 with c = 1 can't be."""
    sizes = {"a": 2, "b": 2, "c": 2, "d": 2}
    tree = JunctionTree.over([("a", "b"), ("b", "c"), ("c", "d")], sizes)
    same, mixed = np.array([[30.0, 0.0], [0.0, 70.0]]), np.array([[30.0, 0.0], [35.0, 35.0]])
    tables = {("a", "b"): same, ("b", "c"): mixed, ("c", "d"): np.array([[60.0, 5.0], [0.0, 35.0]])}
    shared = [marginalise(tables[tree.cliques[k.child]], tree.cliques[k.child], k.shared) for k in tree.links]
    return GraphicalModel(sizes, tree, [tables[c] for c in tree.cliques], shared)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("columns", [c for n in (1, 2, 3, 4) for c in itertools.combinations("abcd", n)])
def test_impossible_evidence_is_kept_and_never_gives_a_weight_that_is_no_number(columns: tuple[str, ...]):
    codes = {c: g.ravel().astype(np.int32) for c, g in zip(columns, np.indices((2,) * len(columns)), strict=True)}
    model = chain_with_zeros()
    posterior = ConditionedModel.of(model, codes)
    drawn = posterior.draw(np.random.default_rng(1))
    assert all(np.array_equal(drawn[c], v) for c, v in codes.items())
    assert drawn.keys() == set("abcd") and all(set(v) <= {0, 1} for v in drawn.values())
    for step in posterior.steps.values():
        weights = posterior.weights(step, posterior.parents(step, drawn)[0])
        assert np.isfinite(weights).all() and np.all(weights.sum(axis=1) > 0)


def test_what_contradicts_is_passed_over_and_the_rest_still_counts():
    """a = 0 with c = 1 is impossible; d is drawn by c all the same, which makes it 1."""
    rows = {"a": np.zeros(500, dtype=np.int32), "c": np.ones(500, dtype=np.int32)}
    assert set(chain_with_zeros().complete(rows, np.random.default_rng(1))["d"]) == {1}


# --- The other models -------------------------------------------------------------------------------------------------

NAMES = ("a", "b", "c")
DOMAIN = Domain.of(Schema(tuple(Categorical(n, values=tuple(range(s))) for n, s in zip(NAMES, (2, 3, 4), strict=True))))


def three_columns(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(24)).reshape(2, 3, 4)


def network(joint: np.ndarray, limits: ConditioningLimits = LIMITS) -> BayesianNetwork:
    """c, then b given c, then a given both: any joint table can be written like that."""
    families = [
        Family("c", (), joint.sum(axis=(0, 1))[None, :]),
        Family("b", ("c",), joint.sum(axis=0).T),
        Family("a", ("c", "b"), joint.transpose(2, 1, 0).reshape(12, 2)),
    ]
    return BayesianNetwork({"a": 2, "b": 3, "c": 4}, families, 100.0, limits)


def joint_of(model: GraphicalModel) -> np.ndarray:
    """The whole joint of three columns: out of a clique, or of two that share a column."""
    if len(model.tree.cliques) == 1:
        return model.marginal(NAMES) / model.total
    tables = [np.expand_dims(t, [i for i, n in enumerate(NAMES) if n not in c])
              for c, t in zip(model.tree.cliques, model.tables, strict=True)]  # fmt: skip
    shared = np.expand_dims(model.shared[0], [i for i, n in enumerate(NAMES) if n not in model.tree.links[0].shared])
    return tables[0] * tables[1] / shared / model.total


def test_a_network_is_conditioned_exactly():
    joint = three_columns(1)
    graph = network(joint).graph
    assert graph is not None and np.abs(joint_of(graph) - joint).max() < 1e-12


def test_marginals_that_form_a_tree_are_conditioned_exactly():
    joint = three_columns(2)
    ab, bc = joint.sum(axis=2), joint.sum(axis=0)
    graph = MarginalModel(DOMAIN, {("a", "b"): 50 * ab, ("b", "c"): 50 * bc}, 50.0).graph
    assert graph is not None
    assert np.abs(joint_of(graph) - ab[:, :, None] * bc / ab.sum(axis=0)[None, :, None]).max() < 1e-12


def test_marginals_that_close_a_cycle_are_raked_on_the_tree():
    """The three pairs of a joint: the maximum-entropy table has them all, and so has the graph."""
    joint = three_columns(3)
    pairs = {("a", "b"): joint.sum(axis=2), ("b", "c"): joint.sum(axis=0), ("c", "a"): joint.sum(axis=1).T}
    model = MarginalModel(DOMAIN, {columns: 50 * table for columns, table in pairs.items()}, 50.0)
    assert model.graph is not None
    for columns, table in pairs.items():
        assert np.abs(model.graph.marginal(columns) / 50 - table).max() < 2e-3, columns
    assert np.abs(joint_of(model.graph) - joint).max() > 2e-3  # a fourth fact, which pairs don't hold


def independent(joint: np.ndarray) -> IndependentModel:
    return IndependentModel({n: joint.sum(axis=tuple({0, 1, 2} - {i})) for i, n in enumerate(NAMES)}, 1.0)


def shares(codes: Codes, column: str, size: int) -> np.ndarray:
    return np.bincount(codes[column], minlength=size) / len(codes[column])


def test_independent_columns_learn_nothing():
    joint = three_columns(4)
    drawn = independent(joint).complete({"a": np.ones(20_000, dtype=np.int32)}, np.random.default_rng(1))
    assert np.abs(shares(drawn, "c", 4) - joint.sum(axis=(0, 1))).max() <= 1 / 20_000 and set(drawn["a"]) == {1}


def test_too_large_a_network_is_resampled():
    """By Hoeffding, a share of at least 5,000 ordinary matches is off by 0.05 with a chance below 4e-11; what would be
    drawn without the evidence is off by more."""
    joint = three_columns(5)
    model = network(joint, ConditioningLimits(exact_cells=10))
    assert model.graph is None
    wanted = joint[1].sum(axis=0) / joint[1].sum()
    drawn = model.complete({"a": np.ones(20_000, dtype=np.int32)}, np.random.default_rng(1))
    assert set(drawn["a"]) == {1} and np.abs(shares(drawn, "c", 4) - wanted).max() < 0.05
    assert np.abs(joint.sum(axis=(0, 1)) - wanted).max() > 0.05


def test_resampling_takes_the_rows_that_agree_most():
    """b = 2 never occurs: the rows that agree in a alone are taken, and b = 2 is written all the same."""
    joint = np.zeros((2, 3, 4))
    joint[0, 0, 0] = joint[1, 1, 3] = 0.5
    given_codes = {"a": np.array([0, 1, 1], dtype=np.int32), "b": np.full(3, 2, dtype=np.int32)}
    drawn = resample(network(joint), given_codes, np.random.default_rng(1))
    assert drawn["c"].tolist() == [0, 3, 3] and drawn["b"].tolist() == [2, 2, 2]
