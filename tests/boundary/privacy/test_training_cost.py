"""What trainings cost beside counts: claims, meters and ledgers agree, and none of them says less than the truth."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("dp_accounting", reason="the extra gan is not installed")

import understudy as us
from understudy.boundary.privacy.accountant import epsilon_from_rho, round_up
from understudy.boundary.privacy.asks import Total
from understudy.boundary.privacy.budget import GDP, ZCDP, Budget, Cost, Meter, Spend, claim, compose, covers, total
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.facts import PrivacyUnit, PublicFacts
from understudy.boundary.privacy.gaussian_dp import epsilon_from_gdp
from understudy.boundary.privacy.ledger.ledger import Ledger
from understudy.boundary.privacy.mechanisms.subsampling import Course, epsilon_of_course
from understudy.errors import BudgetExhausted, InternalError, MethodError

SCHEMA = us.Schema.loads('[columns.a]\ntype = "boolean"\n[columns.b]\ntype = "boolean"')
TRAINING = Spend("sampled-gaussian", "training", 1.0, 4.0, 1e-6, 10, rate=0.1, steps=20)
COUNT = Spend("rounded-gaussian", "count", 1.0, 5.0)


def test_a_training_is_priced_by_its_course() -> None:
    cost = TRAINING.cost
    assert cost.rho == 0 and not cost.pure and cost.delta >= Fraction(1e-6)
    assert float(cost.direct) == pytest.approx(epsilon_of_course(Course(0.1, 4.0, 20), 1e-6, 10), rel=1e-12)


@pytest.mark.parametrize(("accounting", "claimed"), [(GDP, epsilon_from_gdp), (ZCDP, epsilon_from_rho)])
def test_the_claim_adds_the_training_to_the_counts(accounting: str, claimed: Callable[..., float]) -> None:
    epsilon, delta = compose([TRAINING, COUNT], 1e-5, accounting)
    counted = claimed(COUNT.cost.by(accounting), Fraction(1e-5) - TRAINING.cost.delta)
    assert delta == 1e-5
    assert float(TRAINING.cost.direct) + counted <= epsilon <= (float(TRAINING.cost.direct) + counted) * (1 + 1e-12)


def normal_profile(mean: float, epsilon: float) -> float:
    """δ(ε) of two normal laws of deviation 1 that are so far apart (Balle & Wang 2018)."""
    from scipy.stats import norm

    return float(norm.cdf(mean / 2 - epsilon / mean) - math.exp(epsilon) * norm.cdf(-mean / 2 - epsilon / mean))


@pytest.mark.parametrize("accounting", [GDP, ZCDP])
@pytest.mark.parametrize("mean", [0.2, 0.5, 1.0])
def test_the_claim_is_never_below_the_truth_of_two_normal_mechanisms(mean: float, accounting: str) -> None:
    """A mechanism with a known profile stands for the training, another for the counts; together they are normal."""
    from scipy.optimize import brentq

    delta = 1e-5
    direct = brentq(lambda e: normal_profile(mean, e) - delta / 2, 0, 30)
    zero, counted = Fraction(0), Fraction(mean**2 / 2)
    trained = Cost(zero, None, Fraction(delta / 2), Fraction(direct), gdp=zero)
    cost = trained + Cost(counted, None, zero, gdp=counted)
    assert normal_profile(mean * math.sqrt(2), claim(cost, delta, accounting)) <= delta


def test_a_training_fits_a_budget_as_its_claim_does() -> None:
    cost = total([TRAINING.cost, COUNT.cost])
    reached = claim(cost, 1e-5)
    assert covers(Budget(reached * (1 + 1e-9), 1e-5), cost)
    assert not covers(Budget(reached * (1 - 1e-9), 1e-5), cost)
    assert not covers(Budget(100.0, 1e-7), cost)  # its δ alone is more
    assert not covers(Budget(100.0, 0.0), cost)


def test_the_meter_refuses_what_is_over_budget_and_changes_nothing() -> None:
    meter = Meter(Budget(float(TRAINING.cost.direct) * 1.5, 1e-5))
    meter.debit([TRAINING])
    with pytest.raises(BudgetExhausted, match="and epsilon"):
        meter.debit([TRAINING])
    assert meter.spends == (TRAINING,)
    meter.debit([Spend("rounded-gaussian", "all that is left", 1.0, meter.remaining().noise_scale(1.0))])
    assert meter.guarantee()[0] <= meter.budget.epsilon


def test_a_pure_budget_has_no_training() -> None:
    with pytest.raises(MethodError, match="isn't pure"):
        Meter(Budget(5.0, 0.0)).check([TRAINING])


@pytest.mark.parametrize("bad", [{"delta": 0.0}, {"sensitivity": 3.0}, {"steps": 0}, {"rate": 0.0}])
def test_a_training_that_is_not_described_is_never_free(bad: dict[str, float]) -> None:
    with pytest.raises(InternalError):
        _ = Spend(**(TRAINING.to_dict() | bad)).cost


def test_spends_come_back_from_their_record_and_others_look_as_before() -> None:
    assert Spend.from_dict(TRAINING.to_dict()) == TRAINING
    assert COUNT.to_dict().keys() == {"mechanism", "asked", "sensitivity", "scale", "delta", "cells"}


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_a_ledger_keeps_trainings_and_claims_what_the_curator_does(tmp_path: Path, neighbours: str) -> None:
    budget = Budget(2.0, 1e-5)
    cost = PublicFacts(SCHEMA, budget).divided(0.85, 0.9).whole
    assert covers(budget, cost)
    ledger = Ledger.open(tmp_path / "ledger")
    ledger.set_limit(budget, neighbours)
    ledger.debit(cost, budget, neighbours, "training", unit=PrivacyUnit())
    assert ledger.entries()[0].cost == cost and ledger.spent() == cost
    assert ledger.standing().epsilon == claim(cost, 1e-5) <= 2.0
    assert ledger.standing().epsilon > 1.99 and ledger.standing().left == pytest.approx(0.0, abs=1e-3)
    with pytest.raises(BudgetExhausted):
        ledger.debit(cost, budget, neighbours, "once more", unit=PrivacyUnit())
    assert len(ledger.entries()) == 1


def test_an_analysts_share_counts_trainings() -> None:
    cost = PublicFacts(SCHEMA, Budget(1.0, 1e-6)).divided(0.85, 0.9).whole
    ledger = Ledger.memory()
    ledger.set_limit(Budget(4.0, 1e-5), "add-remove")
    ledger.set_share("ann", 0.3)
    ledger.debit(cost, Budget(1.0, 1e-6), "add-remove", "training", "ann", unit=PrivacyUnit())
    (account,) = ledger.accounts()
    assert account.epsilon == claim(cost, 1e-5) and 0 < (account.used or 0) <= 1
    with pytest.raises(BudgetExhausted, match="share"):
        for _ in range(10):
            ledger.debit(cost, Budget(1.0, 1e-6), "add-remove", "training", "ann", unit=PrivacyUnit())


def a_curator(budget: Budget, ledger: Ledger | None = None) -> Curator:
    rng = np.random.default_rng(1)
    table = pa.table({"a": rng.random(50) < 0.5, "b": rng.random(50) < 0.5})
    return Curator.on(us.open(table, SCHEMA), budget, ledger=ledger)


def test_a_reserved_budget_counts_with_what_is_left() -> None:
    pytest.importorskip("torch", reason="the extra gan is not installed")
    budget, ledger = Budget(2.0, 1e-5), Ledger.memory()
    curator = a_curator(budget, ledger)
    whole = curator.remaining()
    trained = curator.reserve(0.85, 0.9)
    assert (trained.epsilon, trained.delta) == (2.0 * 0.85, 1e-5 * 0.9)
    assert curator.remaining().value < whole.value
    curator.ask(Total(curator.remaining()))
    assert curator.guarantee[0] <= 0.15 * 2.0 * (1 + 1e-9)
    divided = PublicFacts(SCHEMA, budget).divided(0.85, 0.9)
    trained_cost = Cost(Fraction(0), None, round_up(trained.delta), round_up(trained.epsilon), gdp=Fraction(0))
    assert ledger.spent() == divided.whole == PublicFacts(SCHEMA, divided.counting).whole + trained_cost
    with pytest.raises(MethodError, match="before anything is asked"):
        curator.reserve(0.5, 0.5)


def test_what_no_training_can_promise_is_refused_with_the_reason() -> None:
    pytest.importorskip("torch", reason="the extra gan is not installed")
    with pytest.raises(MethodError, match="no pure form"):
        a_curator(Budget(2.0, 0.0)).reserve(0.5, 0.5)
    people = us.Schema.loads(
        '[unit]\ncolumn = "id"\nmax_rows = 3\n[columns.id]\ntype = "identifier"\n[columns.a]\ntype = "boolean"'
    )
    table = us.open(pa.table({"id": ["x", "y", "z"], "a": [True, False, True]}), people)
    with pytest.raises(MethodError, match="may have 3 rows"):
        Curator.on(table, Budget(2.0, 1e-5)).reserve(0.5, 0.5)
