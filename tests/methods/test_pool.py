"""A pool is bought with its own part of the budget, whatever its method takes for all that is left."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from understudy.boundary.privacy.asks import Marginals
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.boundary.schema.domain import Domain
from understudy.errors import BudgetExhausted
from understudy.methods.aim import Aim
from understudy.methods.dp_select import TUNING, Allowance
from understudy.methods.independent import Independent
from understudy.methods.method import Recipe
from understudy.methods.mst import Mst
from understudy.methods.privbayes.privbayes import PrivBayes
from understudy.methods.rake.rake import Rake

SCHEMA = us.Schema.loads(
    "\n".join(f'[columns.{c}]\ntype = "integer"\nmin = 0\nmax = {n - 1}' for c, n in {"a": 4, "b": 3, "c": 2}.items())
)


def curator(budget: Budget) -> Curator:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 4, 300)
    rows = pa.table({"a": a, "b": (a + rng.integers(0, 2, 300)) % 3, "c": a % 2})
    return Curator.on(us.open(rows, SCHEMA), budget, randomness=ExactRandomness.seeded(3))


@pytest.mark.parametrize("recipe", [Independent(), Mst(), PrivBayes(), Aim(), Rake()], ids=lambda r: type(r).__name__)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_pool_leaves_what_is_kept(recipe: Recipe, delta: float) -> None:
    asked = curator(Budget(2.0, delta))
    part, kept = asked.remaining().split([0.25, 0.75])
    domain = Domain.of(SCHEMA)
    recipe.calibrate(domain, part).fit(Allowance(asked, 0.25), np.random.default_rng(0))
    left = asked.remaining().value
    assert kept.value <= left < kept.value + part.value * Fraction(1, 10)  # and it used nearly all of its own


def test_an_allowance_that_is_used_up_says_so() -> None:
    asked = curator(Budget(1.0, 0.0))
    part = Allowance(asked, 0.5)
    part.ask(Marginals(Domain.of(SCHEMA), [("a",)], part.remaining()))
    with pytest.raises(BudgetExhausted, match="is kept for the selection"):
        part.remaining()


def test_an_allowance_asks_the_curator_itself() -> None:
    """Whatever is asked through it is metered, and on the record."""
    asked = curator(Budget(1.0, 0.0))
    part = Allowance(asked, 0.5)
    part.ask(Marginals(Domain.of(SCHEMA), [("a",)], part.remaining()))
    assert len(asked.record) == len(asked.spends) == 1
    assert asked.guarantee == (0.5, 0.0)


def test_a_pool_that_is_trained_reserves_its_share_of_the_share() -> None:
    """0.8 of a quarter of ε goes to the training; of the rest, 0.8, the pool may count with a sixteenth: 0.05/0.8."""
    pytest.importorskip("torch")
    pytest.importorskip("dp_accounting")
    asked = curator(Budget(4.0, 1e-6))
    part = Allowance(asked, 0.25)
    trained = part.reserve(0.8, 0.9)
    assert trained.epsilon == pytest.approx(0.8) and trained.delta == pytest.approx(0.5e-6)
    assert float(part.remaining().value / asked.remaining().value) == pytest.approx(0.0625)


def test_the_size_of_a_pool() -> None:
    assert [TUNING.pool_size(n, 10.0) for n in (1.0, 32_561.0, 1e9)] == [20_000, 325_610, 2_000_000]
