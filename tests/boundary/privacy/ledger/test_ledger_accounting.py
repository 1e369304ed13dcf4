"""Ledgers that add up by Gaussian differential privacy, and those that were begun with zCDP."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from understudy.boundary.privacy.budget import GDP, ZCDP, Budget, Cost, claim
from understudy.boundary.privacy.facts import PrivacyUnit, PublicFacts
from understudy.boundary.privacy.gaussian_dp import epsilon_from_gdp, gdp_from_epsilon
from understudy.boundary.privacy.ledger import allowance, entries
from understudy.boundary.privacy.ledger.ledger import Ledger
from understudy.boundary.schema.column import Integer
from understudy.boundary.schema.schema import Schema
from understudy.errors import BudgetExhausted

SCHEMA = Schema((Integer("age", minimum=0, maximum=99),))


def debit(ledger: Ledger, epsilon: float, accounting: str) -> int:
    budget = Budget(epsilon, 1e-6, accounting)
    whole = PublicFacts(SCHEMA, budget).whole
    return ledger.debit(whole, budget, "add-remove", "synth", unit=PrivacyUnit())


@pytest.fixture
def gaussian(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ledger:
    monkeypatch.setattr(entries, "ACCOUNTING", GDP)
    return Ledger.open(tmp_path / "gaussian.ledger")


def test_squares_of_mu_add_up(gaussian):
    for epsilon in (1.0, 0.5):
        debit(gaussian, epsilon, GDP)
    spent = gaussian.spent()
    assert spent.gdp == gdp_from_epsilon(1.0, 1e-6) + gdp_from_epsilon(0.5, 1e-6)
    assert gaussian.standing().epsilon == epsilon_from_gdp(spent.gdp, 1e-6)
    assert gaussian.standing().epsilon < claim(spent, 1e-6, ZCDP)


def test_a_limit_is_a_filter_on_their_sum(gaussian):
    gaussian.set_limit(Budget(1.0, 1e-6), "add-remove")
    debit(gaussian, 0.8, GDP)
    # 0.64 + 0.36 of about the square of epsilon: a little more fits than the roots say, and nothing beyond it.
    left = gaussian.standing().left
    assert 0.55 < left < 0.65
    with pytest.raises(BudgetExhausted):
        debit(gaussian, left * 1.05, GDP)


def test_a_zcdp_cost_has_no_place_in_it(gaussian):
    gaussian.set_limit(Budget(1.0, 1e-6, GDP), "add-remove")
    debit(gaussian, 0.1, GDP)
    with pytest.raises(BudgetExhausted):
        debit(gaussian, 0.1, ZCDP)


def test_a_ledger_keeps_what_it_was_begun_with(monkeypatch, tmp_path):
    monkeypatch.setattr(entries, "ACCOUNTING", ZCDP)
    old = Ledger.open(tmp_path / "old.ledger")
    debit(old, 1.0, ZCDP)
    monkeypatch.setattr(entries, "ACCOUNTING", GDP)
    debit(old, 1.0, GDP)
    spent = old.spent()
    assert spent.gdp is None
    # What is mu-GDP is mu^2/2-zCDP: the new release counts there with its g.
    assert spent.rho == PublicFacts(SCHEMA, Budget(1.0, 1e-6, ZCDP)).whole.rho + gdp_from_epsilon(1.0, 1e-6)
    assert old.standing().epsilon == claim(spent, 1e-6, ZCDP)


def test_older_programs_can_not_take_g_for_rho(gaussian):
    debit(gaussian, 1.0, GDP)
    (entry,) = gaussian.export()
    assert entry["cost"]["gdp"].startswith("g")
    assert "rho" not in entry["cost"]


def test_a_sum_of_both_is_bounded_by_zcdp_alone():
    mixed = Cost(Fraction(1, 8), None, Fraction(0)) + Cost(Fraction(1, 8), None, Fraction(0), gdp=Fraction(1, 8))
    assert mixed.gdp is None
    assert mixed.accounting == ZCDP


def test_a_training_far_above_a_share_is_refused_as_such():
    """Its epsilon may be larger than any budget may have: that is no mistake of whoever asks."""
    limit, training = Budget(1.0, 1e-6), Cost(Fraction(0), None, Fraction(0), Fraction(20_000), gdp=Fraction(0))
    assert not allowance.share_fits(limit, 0.5, training)
