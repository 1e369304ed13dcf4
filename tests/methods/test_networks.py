"""dp-gan and dp-ctgan: what they learn, what they refuse, and that their releases can be checked without rows."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("dp_accounting", reason="the extra gan is not installed")
pytest.importorskip("torch", reason="the extra gan is not installed")

import understudy as us
from understudy.boundary.privacy.budget import Budget, claim
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.boundary.privacy.mechanisms.subsampling import noise_for
from understudy.boundary.schema.domain import Domain
from understudy.errors import CheckFailed, MethodError
from understudy.inference.discovery import discover
from understudy.inference.generators.adversarial_training import TrainingConfig, calibrated
from understudy.methods import registry
from understudy.methods.dp_ctgan import dp_ctgan
from understudy.methods.dp_gan import dp_gan
from understudy.methods.parts.networks import Network

SHORT = TrainingConfig(steps=12, lessons=15, batch=200, hidden=4, deep_share=0.1)
TINY = TrainingConfig(steps=4, lessons=2, batch=50, hidden=4, deep_share=0.1)
SCHEMA = us.Schema.loads(
    """
    [columns.colour]
    type = "categorical"
    values = ["red", "green", "blue"]
    missing = true
    [columns.size]
    type = "integer"
    min = 0
    max = 59
    [columns.born]
    type = "datetime"
    min = 2020-01-01
    max = 2020-12-31
    [columns.large]
    type = "boolean"
    """
)
RECIPES = {"dp-gan": dp_gan, "dp-ctgan": dp_ctgan}


def some_rows(rows: int = 3000, seed: int = 1) -> pa.Table:
    """`large` follows from `size`, nothing follows from the others."""
    rng = np.random.default_rng(seed)
    size = rng.integers(0, 60, rows)
    colour = np.array(["red", "green", "blue", None], dtype=object)[rng.choice(4, rows, p=[0.5, 0.3, 0.1, 0.1])]
    born = np.datetime64("2020-01-01") + rng.integers(0, 366, rows).astype("timedelta64[D]")
    return pa.table({"colour": pa.array(colour), "size": size, "born": pa.array(born), "large": size >= 30})


@pytest.fixture
def methods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both methods under their names, with a short training."""
    for name, make in RECIPES.items():
        method = registry.Method(name, "(ε, δ)", "", "", lambda options, params, make=make: make(options.targets, TINY))
        monkeypatch.setitem(registry.METHODS, name, method)


def fitted(recipe: Network, budget: Budget, rows: pa.Table, schema: us.Schema = SCHEMA, seed: int = 3) -> tuple:
    curator = Curator.on(us.open(rows, schema), budget, randomness=ExactRandomness.seeded(7))
    model = recipe.calibrate(Domain.of(schema), curator.remaining()).fit(curator, np.random.default_rng(seed))
    return model, curator


@pytest.fixture(scope="module", params=RECIPES)
def learnt(request: pytest.FixtureRequest) -> tuple:
    """One training of each method on rows with a plain relation, with much budget."""
    return fitted(RECIPES[request.param](("large",), SHORT), Budget(8.0, 1e-5), some_rows())


def test_a_plain_relation_is_learnt_and_columns_keep_their_shares(learnt: tuple) -> None:
    model, curator = learnt
    codes = model.sample(4000, np.random.default_rng(5))
    large = codes["large"] == 1
    assert codes["size"][large].mean() > codes["size"][~large].mean() + 15  # 30 apart in truth, 0 if unrelated
    shares = np.bincount(codes["colour"], minlength=4) / 4000
    assert np.abs(shares - [0.5, 0.3, 0.1, 0.1]).max() < 0.06
    assert curator.guarantee[0] <= 8.0 and curator.guarantee[1] == 1e-5
    assert abs(model.total - 3000) < 150


def test_given_values_stay_and_the_others_follow_them(learnt: tuple) -> None:
    model, _ = learnt
    given = {"large": np.repeat([0, 1], 1500).astype(np.int32)}
    codes = model.complete(given, np.random.default_rng(5))
    assert np.array_equal(codes["large"], given["large"])
    assert codes["size"][1500:].mean() > codes["size"][:1500].mean() + 10


@pytest.mark.parametrize("name", RECIPES)
def test_the_same_seeds_give_the_same_weights(name: str) -> None:
    vectors = [fitted(RECIPES[name]((), TINY), Budget(2.0, 1e-5), some_rows(300))[0] for _ in range(2)]
    first, second = (m.model.generator.vector for m in vectors)
    assert np.array_equal(first, second)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", RECIPES)
def test_a_release_verifies_and_replays_without_rows(name: str, methods: None, tmp_path: Path) -> None:
    table = us.open(some_rows(400), SCHEMA)
    release = us.synthesize(table, method=name, epsilon=2.0, delta=1e-5, target="large", rows=200)
    folder = release.save(tmp_path / "out")
    checked = us.verify(folder)
    assert checked.claimed and checked.epsilon <= 2.0 and checked.delta == 1e-5
    assert us.replay(folder).rows == 200
    content = (folder / "certificate.json").read_text()
    assert "privacy loss distribution" in content and "discrete Gaussian noise on the grid" in content
    again = content.replace('"steps": 4', '"steps": 3')
    (folder / "certificate.json").write_text(again)
    with pytest.raises(CheckFailed):
        us.verify(folder)


def test_a_ledger_is_debited_once_for_all_and_refuses_the_second(methods: None, tmp_path: Path) -> None:
    table, ledger = us.open(some_rows(200), SCHEMA), us.Ledger.open(tmp_path / "ledger")
    ledger.set_limit(Budget(3.0, 1e-5), "add-remove")
    us.synthesize(table, method="dp-gan", epsilon=2.0, delta=1e-5, ledger=ledger, rows=10)
    assert len(ledger.entries()) == 1 and 1.99 < ledger.standing().epsilon <= 2.0
    with pytest.raises(us.BudgetExhausted):
        us.synthesize(table, method="dp-gan", epsilon=2.0, delta=1e-5, ledger=ledger, rows=10)
    assert len(ledger.entries()) == 1


@pytest.mark.slow
def test_a_public_row_count_is_accounted_as_replace_one() -> None:
    schema = us.Schema.loads('neighbours = "replace-one"\n' + SCHEMA.dumps().split("\n", 1)[1])
    model, curator = fitted(dp_gan((), TINY), Budget(2.0, 1e-5), some_rows(300), schema)
    spend = curator.spends[-1]
    assert spend.sensitivity == 2.0 and model.total == 300
    trained = Budget(2.0 * 0.85, 1e-5 * 0.9)
    assert spend.scale == noise_for(spend.rate, 4, trained.epsilon, trained.delta, True, spend.cells)


def test_private_values_are_bought_with_the_counting_part() -> None:
    schema = us.Schema.loads(
        '[columns.town]\ntype = "categorical"\nvalues = "private"\n[columns.ill]\ntype = "boolean"'
    )
    rng, ledger = np.random.default_rng(1), us.Ledger.memory()
    rows = pa.table({"town": np.array(["Ulm", "Bern"])[rng.integers(0, 2, 4000)], "ill": rng.random(4000) < 0.5})
    curator, recipe = Curator.on(us.open(rows, schema), Budget(4.0, 1e-5), ledger=ledger), dp_gan((), TINY)
    recipe.prepare(curator)
    domain = Domain.of(discover(schema, curator))
    model = recipe.calibrate(domain, curator.remaining()).fit(curator, rng)
    assert domain["town"].labels is not None and {"Ulm", "Bern"} <= set(domain["town"].labels)
    assert curator.guarantee[0] <= 4.0 and claim(ledger.spent(), 1e-5) <= 4.0
    assert set(model.sample(5, rng)) == {"town", "ill"}


def test_one_column_needs_no_training() -> None:
    schema = us.Schema.loads('[columns.a]\ntype = "boolean"')
    model, curator = fitted(dp_gan(), Budget(2.0, 1e-5), pa.table({"a": [True, False] * 50}), schema)
    assert [a.question["ask"] for a in curator.record] == ["marginal"]
    assert set(model.sample(10, np.random.default_rng(1))) == {"a"}


def test_pure_budgets_are_refused_before_anything_is_spent(methods: None) -> None:
    with pytest.raises(MethodError, match="no pure form"):
        us.synthesize(us.open(some_rows(50), SCHEMA), method="dp-gan", epsilon=2.0, delta=0)


def test_progress_tells_the_epsilon_so_far_and_the_curve_is_kept() -> None:
    told: list[tuple[int, int, float]] = []
    recipe = dataclasses.replace(dp_gan((), TINY), report=lambda *facts: told.append(facts))
    _, curator = fitted(recipe, Budget(2.0, 1e-5), some_rows(300))
    assert [step for step, _, _ in told] == [1, 2, 3, 4] and {steps for _, steps, _ in told} == {4}
    spent = [epsilon for _, _, epsilon in told]
    assert spent == sorted(spent) and spent[-1] == curator.guarantee[0] <= 2.0  # the counting part included
    curve = curator.record[-1].value
    assert curve.shape == (4, 2) and curve[:, 0].tolist() == [1, 2, 3, 4]


def test_a_calibrated_column_follows_its_law() -> None:
    rng = np.random.default_rng(2)
    scores, law = rng.standard_normal((500, 4)), np.array([0.1, 0.2, 0.3, 0.4])
    weights = np.exp(scores + calibrated(scores, law))
    mean = (weights / weights.sum(axis=1, keepdims=True)).mean(axis=0)
    assert np.abs(mean - law).max() < 1e-6


def test_rows_of_all_kinds_come_out_as_the_schema_says(methods: None) -> None:
    release = us.synthesize(us.open(some_rows(300), SCHEMA), method="dp-ctgan", epsilon=2.0, delta=1e-5, rows=500)
    assert release.table.num_rows == 500
    assert set(release.table["colour"].to_pylist()) <= {"red", "green", "blue", None}
    assert all(0 <= v <= 59 for v in release.table["size"].to_pylist())
    assert release.certificate.stamp is None


class CountsOnly:
    """A table that hands out counts, as one on a server does."""

    def __init__(self, table: us.Table) -> None:
        self._whole = table

    def __getattr__(self, name: str) -> Any:
        if name == "read_codes":
            raise AttributeError(name)
        return getattr(self._whole, name)


@pytest.mark.parametrize(("method", "pool"), [("dp-gan", ""), ("pate-gan", ""), ("dp-select", "dp-ctgan")])
def test_a_table_of_counts_is_refused_before_anything_is_spent(method: str, pool: str, tmp_path: Path) -> None:
    schema = us.Schema.loads('[columns.a]\ntype = "boolean"\n[columns.b]\ntype = "boolean"')
    table = CountsOnly(us.open(pa.table({"a": [True, False] * 50, "b": [True, False] * 50}), schema))
    with pytest.raises(us.MethodError, match="hands out counts only"):
        us.synthesize(table, epsilon=1.0, method=method, pool=pool, ledger=tmp_path / "ledger.sqlite")
    assert not (tmp_path / "ledger.sqlite").exists()
