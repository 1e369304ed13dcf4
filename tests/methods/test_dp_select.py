"""`dp-select`: without noise it has the counts of the rows; it replays, refuses what can't be, and beats its pool."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from helpers.randomness import BestRandomness
from helpers.tuning import tune, tuned
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness, Randomness
from understudy.boundary.schema.domain import Domain
from understudy.errors import MethodError
from understudy.inference.model import CodeColumns, Model
from understudy.inference.row_selection import PooledModel
from understudy.methods.dp_select import ENTROPY, TUNING, DpSelect
from understudy.methods.independent import Independent
from understudy.methods.mst import Mst

SMALL = tuned(TUNING, fewest_pool_rows=400, rake={"exchange_rounds": 20})
SIZES = {"a": 4, "b": 3, "c": 3, "d": 2}
COLUMNS = "\n".join(f'[columns.{c}]\ntype = "integer"\nmin = 0\nmax = {n - 1}' for c, n in SIZES.items())
SCHEMA = us.Schema.loads(COLUMNS)
DOMAIN = Domain.of(SCHEMA)
RULE = '\n[[constraints]]\nif = "a = 0"\nthen = "d = 0"'


def people(rows: int = 3000) -> pa.Table:
    """Columns that follow one another, none of which an independent pool knows."""
    rng = np.random.default_rng(0)
    a = rng.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])
    b = np.where(rng.random(rows) < 0.8, a % 3, rng.integers(0, 3, rows))
    c = np.where(rng.random(rows) < 0.7, b, rng.integers(0, 3, rows))
    return pa.table({"a": a, "b": b, "c": c, "d": ((a > 1) ^ (rng.random(rows) < 0.1)).astype(int)})


ROWS = people()


def fitted(
    recipe: DpSelect, randomness: Randomness | None = None, schema: us.Schema = SCHEMA, epsilon: float = 3.0, **of: Any
) -> tuple[Model, Curator]:
    curator = Curator.on(
        us.open(ROWS.select(list(schema.names)), schema),
        Budget(epsilon, of.get("delta", 1e-6)),
        randomness=randomness or BestRandomness(),
    )
    domain = Domain.of(schema)
    recipe = replace(recipe, tuning=SMALL)
    return recipe.calibrate(domain, curator.remaining()).fit(curator, np.random.default_rng(0)), curator


def apart(codes: CodeColumns, width: int = 2) -> float:
    """The mean total variation of all sets of so many columns from the rows."""
    found = []
    for columns in itertools.combinations(SIZES, width):
        shape = [SIZES[c] for c in columns]
        real = [ROWS.column(c).to_numpy() for c in columns]
        both = [np.ravel_multi_index(x, shape) for x in (real, [codes[c] for c in columns])]
        shares = [np.bincount(x, minlength=int(np.prod(shape))) / len(x) for x in both]
        found.append(np.abs(shares[0] - shares[1]).sum() / 2)
    return float(np.mean(found))


@pytest.mark.parametrize(("distance", "most"), [(ENTROPY, 0.03), ("L1", 0.06), ("L2", 0.1), ("Kolmogorov", 0.25)])
def test_without_noise_the_selected_rows_have_the_counts_of_the_rows(distance: str, most: float) -> None:
    """The pool has independent columns: all that rows have in common was selected. As many rows are drawn as there are,
    so that sampling alone would leave the pairs about 0.02 apart. Kolmogorov's distance looks at one cell at a time."""
    model, _ = fitted(DpSelect(Independent(), candidates_factor=20.0, distance=distance), epsilon=20.0)
    pool = model.source.sample(3000, np.random.default_rng(1))  # type: ignore[attr-defined]
    selected = model.sample(3000, np.random.default_rng(1))
    assert apart(pool) > 0.3
    assert apart(selected) < most


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_it_spends_its_budget_and_no_more(delta: float) -> None:
    _, curator = fitted(DpSelect(Mst(), targets=("d",)), ExactRandomness.seeded(1), epsilon=1.0, delta=delta)
    assert 0.99 < curator.guarantee[0] <= 1.0
    assert {s.mechanism for s in curator.spends} == {
        "exponential",
        "discrete-laplace" if delta == 0 else "rounded-gaussian",
    }


def test_it_beats_a_pool_of_the_whole_budget_with_noise() -> None:
    """False alarms: none in practice; the pool knows no pair, and errs by 0.15 and more, five times the bound."""
    model, _ = fitted(DpSelect(Independent()), ExactRandomness.seeded(2), epsilon=1.0)
    assert apart(model.sample(3000, np.random.default_rng(0))) < 0.08


def test_the_same_answers_give_the_same_rows() -> None:
    recipe = DpSelect(Mst(), targets=("d",), distance="L2", sections=2)
    first, curator = fitted(recipe, ExactRandomness.seeded(5))
    again = Curator.replaying(SCHEMA, curator.budget, curator.record)
    second = recipe.calibrate(DOMAIN, again.remaining()).fit(again, np.random.default_rng(0))
    one, other = (m.sample(500, np.random.default_rng(7)) for m in (first, second))
    assert all(np.array_equal(one[c], other[c]) for c in SIZES)


@pytest.mark.parametrize(("distance", "sections"), [(None, 1), ("L1", 1), ("L1", 3), ("Kolmogorov", 7)])
@pytest.mark.parametrize("rows", [1, 2, 100, 5000])
def test_as_many_rows_as_are_asked_for(distance: str | None, sections: int, rows: int, model: PooledModel) -> None:
    """More of them than the pool has, too."""
    drawn = PooledModel(model.particles, model.source, distance, sections).sample(rows, np.random.default_rng(0))
    assert {len(v) for v in drawn.values()} == {rows}
    assert all(v.min() >= 0 and v.max() < SIZES[c] for c, v in drawn.items())


@pytest.fixture(scope="module")
def model() -> PooledModel:
    found, _ = fitted(DpSelect(Independent(), candidates_factor=1.0))
    assert isinstance(found, PooledModel)
    return found


def test_rows_given_some_of_their_columns_follow_the_selection(model: PooledModel) -> None:
    """d given a: the pool has none of it. Exact would be 0.1 and 0.9; false alarms are below 1e-9 (Hoeffding: 4,000
    draws are 0.05 off with probability 4e-9 each, and the bound leaves 0.15)."""
    given = {"a": np.repeat([0, 3], 4000)}
    made = model.complete(given, np.random.default_rng(0))
    assert np.array_equal(made["a"], given["a"])
    shares = made["d"].reshape(2, -1).mean(axis=1)
    assert shares[0] < 0.25 and shares[1] > 0.75
    pool = model.source.complete(given, np.random.default_rng(0))
    assert np.abs(np.diff(pool["d"].reshape(2, -1).mean(axis=1)))[0] < 0.05


def test_rules_of_the_schema_hold() -> None:
    schema = us.Schema.loads(COLUMNS + RULE)
    model, _ = fitted(DpSelect(Independent()), schema=schema)
    drawn = model.sample(2000, np.random.default_rng(0))
    assert not ((drawn["a"] == 0) & (drawn["d"] == 1)).any()


def test_a_table_of_one_column() -> None:
    schema = us.Schema.loads('[columns.a]\ntype = "integer"\nmin = 0\nmax = 3')
    model, _ = fitted(DpSelect(Independent()), schema=schema)
    drawn = model.sample(3000, np.random.default_rng(0))
    shares = np.bincount(drawn["a"], minlength=4) / 3000
    assert np.abs(shares - np.bincount(ROWS.column("a").to_numpy()) / 3000).max() < 0.01


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"pool_share": 0.0}, r"pool_share \(0.0\) must be above 0 and below 1"),
        ({"pool_share": 1.0}, r"pool_share \(1.0\) must be above 0 and below 1"),
        ({"candidates_factor": 0.5}, r"candidates_factor \(0.5\) must be from 1 to 100"),
        ({"distance": "cosine"}, "must be one of entropy, L1, L2, Kolmogorov"),
        ({"sections": 0}, r"sections \(0\) must be a whole number from 1 to 1,000"),
        ({"sections": 5}, r"sections \(5\) are for rows that are chosen one by one"),
        ({"targets": ("z",)}, "'z'"),
    ],
)
def test_what_can_not_be_is_refused_before_anything_is_spent(wish: dict[str, Any], message: str) -> None:
    with pytest.raises(us.errors.UnderstudyError, match=message):
        DpSelect(Independent(), **wish).calibrate(DOMAIN, Budget(1.0, 1e-6).capacity)


def test_the_refusals_of_the_pool_are_refusals_of_the_whole() -> None:
    with pytest.raises(MethodError, match="mst measures pairs only"):
        DpSelect(Mst(workload="triples")).calibrate(DOMAIN, Budget(1.0, 1e-6).capacity)


def test_a_release_of_it_is_saved_verified_and_replayed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Under both relations of neighbours; the rows come out of the record alone."""
    tune(monkeypatch, "dp-select", fewest_pool_rows=400, rake={"exchange_rounds": 20})
    for relation in ("add-remove", "replace-one"):
        schema = us.Schema.loads(f'neighbours = "{relation}"\n' + COLUMNS)
        made = us.synthesize(us.open(ROWS, schema), epsilon=1.0, method="dp-select", target="d", seed=3)
        made.save(tmp_path / relation)
        assert us.verify(tmp_path / relation).epsilon <= 1.0
        assert us.replay(tmp_path / relation) is not None
        assert relation == "add-remove" or made.table.num_rows == 3000


def test_a_trained_pool_refuses_private_columns_before_anything_is_spent(tmp_path: Path):
    pytest.importorskip("torch", reason="the extra gan is not installed")
    schema = us.Schema.loads('[columns.job]\ntype = "categorical"\nvalues = "private"\n[columns.old]\ntype = "boolean"')
    table, ledger = (
        us.open(pa.table({"job": ["a", "b"] * 50, "old": [True, False] * 50}), schema),
        tmp_path / "l.sqlite",
    )
    with pytest.raises(us.MethodError, match="'job' are private, and a pool that is trained"):
        us.synthesize(table, epsilon=1.0, method="dp-select", pool="dp-gan", ledger=ledger)
    assert not ledger.exists()
