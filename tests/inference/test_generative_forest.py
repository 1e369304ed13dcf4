"""The generative forest: a density that adds up to one, draws that follow it, and one column given the others."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from understudy.boundary.privacy.measurement import Measurement
from understudy.boundary.schema.partition import Split, Tree
from understudy.inference import generative_forest
from understudy.inference.generative_forest import GenerativeForest
from understudy.inference.graphical.graphical_model import GraphicalModel, JunctionTree
from understudy.inference.model import CodeColumns, DensityModel
from understudy.inference.network import IndependentModel

SIZES = {"a": 3, "b": 2, "c": 4}
TREES = (
    Tree(("a", "b"), (3, 2), (Split(0, 0b110, -1, 1), Split(1, 0b10, -2, -3))),
    Tree(("b", "c"), (2, 4), (Split(1, 0b1100, 1, 2), Split(0, 0b10, -1, -2), Split(1, 0b1000, -3, -4))),
    Tree(("a", "c"), (3, 4), (Split(1, 0b0110, 1, -3), Split(0, 0b001, -1, -2))),
)


def every_row() -> CodeColumns:
    cells = np.indices(tuple(SIZES.values())).reshape(len(SIZES), -1)
    return dict(zip(SIZES, cells, strict=True))


def support(rows: int = 600) -> CodeColumns:
    """c follows a, and b follows neither."""
    rng = np.random.default_rng(1)
    a = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    return {"a": a, "b": rng.integers(0, 2, rows), "c": np.where(rng.random(rows) < 0.8, a, rng.integers(0, 4, rows))}


def forest(trees: tuple[Tree, ...] = TREES, strength: float = 5.0, rows: int = 600) -> GenerativeForest:
    codes = support(rows)
    columns = {c: np.bincount(codes[c], minlength=n).astype(np.float64) for c, n in SIZES.items()}
    return GenerativeForest(trees, columns, codes, float(rows), strength)


def shares(codes: CodeColumns) -> np.ndarray:
    shape = tuple(SIZES.values())
    cells = np.ravel_multi_index([codes[c] for c in SIZES], shape)
    return np.bincount(cells, minlength=int(np.prod(shape))) / len(cells)


@pytest.mark.parametrize("trees", [TREES[:0], TREES[:1], TREES, (*TREES, *TREES[::-1])])
@pytest.mark.parametrize("strength", [0.1, 5.0, 1e6])
def test_the_density_of_all_rows_adds_up_to_one(trees: tuple[Tree, ...], strength: float):
    assert np.exp(forest(trees, strength).log_density(every_row())).sum() == pytest.approx(1.0, abs=1e-9)


def test_draws_follow_the_density():
    model = forest()
    drawn = shares(model.sample(200_000, np.random.default_rng(2)))
    # Systematic draws are nearer than independent ones, whose mean total variation of 24 cells would be .0043.
    assert 0.5 * np.abs(drawn - np.exp(model.log_density(every_row()))).sum() < 0.005


def test_a_single_tree_without_shrinkage_has_the_masses_of_its_leaves():
    model = forest(TREES[1:2], strength=1e-9)
    leaves = TREES[1].assign(model.support)
    wanted = np.bincount(leaves, minlength=4) / len(leaves)
    found = np.bincount(TREES[1].assign(every_row()), np.exp(model.log_density(every_row())), minlength=4)
    assert found == pytest.approx(wanted, abs=1e-6)


def test_trees_together_say_more_than_the_columns():
    """The total variation to the support falls from columns alone to trees."""
    truth = shares(support())
    misfit = [
        0.5 * np.abs(np.exp(forest(trees, 1.0).log_density(every_row())) - truth).sum() for trees in (TREES[:0], TREES)
    ]
    assert misfit[1] < 0.6 * misfit[0]


def test_boxes_that_no_row_of_the_support_is_in_stay_possible():
    model = forest(rows=5)
    logs = model.log_density(every_row())
    assert np.isfinite(logs).all() and np.exp(logs).sum() == pytest.approx(1.0, abs=1e-9)


def test_columns_are_fitted_to_their_counts():
    wanted = {c: v + 40.0 for c, v in forest().columns.items()}

    def misfit(model: GenerativeForest) -> float:
        drawn = model.sample(20_000, np.random.default_rng(3))
        found = [np.bincount(drawn[c], minlength=n) / 20_000 - wanted[c] / wanted[c].sum() for c, n in SIZES.items()]
        return float(np.abs(np.concatenate(found)).sum())

    model = forest(strength=1e4)
    assert misfit(model.fitted_to(wanted, np.random.default_rng(4))) < 0.6 * misfit(model)
    # Without trees there is nothing that would pull a column away, and nothing is drawn.
    assert forest(TREES[:0]).fitted_to(wanted, np.random.default_rng(4)).columns.keys() == SIZES.keys()


@pytest.mark.parametrize("enumerated", [True, False])
@pytest.mark.parametrize("given", [("a",), ("c",), ("a", "b"), ("b", "c")])
def test_completions_follow_the_density_given_what_is_known(
    enumerated: bool, given: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
):
    if not enumerated:
        monkeypatch.setattr(generative_forest, "MOST_ENUMERATED", 0)
    model, rows = forest(), 30_000
    stated = {"a": 2, "b": 1, "c": 3}
    known = {c: np.full(rows, stated[c]) for c in given}
    whole = model.complete(known, np.random.default_rng(5))
    assert all((whole[c] == stated[c]).all() for c in given) and list(whole) == list(SIZES)
    law = np.exp(model.log_density(every_row()))
    law *= np.all([every_row()[c] == stated[c] for c in given], axis=0)
    # Sixteen weighed draws are a little off the law; the mean total variation of so many independent rows is .006.
    most = 0.015 if enumerated else 0.05
    assert 0.5 * np.abs(shares(whole) - law / law.sum()).sum() < most


def test_rows_are_worked_through_in_parts(monkeypatch: pytest.MonkeyPatch):
    model, rows = forest(), every_row()
    whole = model.log_density(rows)
    monkeypatch.setattr(generative_forest, "BLOCK", 50)
    assert model.log_density(rows) == pytest.approx(whole, abs=1e-12)
    assert len(model.sample(23, np.random.default_rng(1))["a"]) == 23
    some = {c: v[:7] for c, v in rows.items() if c != "b"}
    assert (model.complete(some, np.random.default_rng(1))["c"] == rows["c"][:7]).all()


def test_it_is_written_down_as_plain_values():
    told = forest().describe()
    assert [len(tree) for tree in told["trees"]] == [2, 3, 2]
    first = told["trees"][0][0]
    assert first["column"] == "a" and first["up"] == [1, 2] and first["children"] == [-1, 1]
    assert [sum(shares) for shares in told["columns"].values()] == pytest.approx([1.0, 1.0, 1.0], abs=1e-6)


# --- The density of the other models ---------------------------------------------------------------------------------


def graphical() -> GraphicalModel:
    tree = JunctionTree.over([("a", "b"), ("b", "c")], SIZES)
    rng = np.random.default_rng(6)
    potentials = {("a", "b"): rng.normal(size=(3, 2)), ("b", "c"): rng.normal(size=(2, 4))}
    return GraphicalModel.from_potentials(SIZES, tree, potentials, 50.0)


def independent() -> IndependentModel:
    counts = {"a": [5, 0, 3], "b": [4, 4], "c": [1, 2, 3, 2]}
    return IndependentModel.fit([Measurement((c,), np.array(n), "discrete-gaussian", 0.5) for c, n in counts.items()])


@pytest.mark.parametrize("model", [graphical(), independent()], ids=lambda m: type(m).__name__)
def test_the_density_of_other_models_is_that_of_their_draws(model: DensityModel):
    assert isinstance(model, DensityModel)
    law = np.exp(model.log_density(every_row()))
    assert law.sum() == pytest.approx(1.0, abs=1e-9)
    drawn = shares(model.sample(100_000, np.random.default_rng(8)))  # type: ignore[attr-defined]
    # Columns that are drawn each on its own meet by chance: of 24 cells the mean total variation is .006.
    assert 0.5 * np.abs(drawn - law).sum() < 0.02


def test_columns_of_a_junction_tree_that_share_nothing_are_independent():
    tree = JunctionTree.over([("a", "b"), ("c",)], SIZES)
    potentials = {("a", "b"): np.arange(6.0).reshape(3, 2), ("c",): np.array([0.0, 1.0, 0.0, -1.0])}
    law = np.exp(GraphicalModel.from_potentials(SIZES, tree, potentials, 9.0).log_density(every_row()))
    joint = law.reshape(tuple(SIZES.values()))
    assert joint == pytest.approx(joint.sum(axis=2, keepdims=True) * joint.sum(axis=(0, 1), keepdims=True))
    assert list(itertools.chain(joint.shape)) == [3, 2, 4]
