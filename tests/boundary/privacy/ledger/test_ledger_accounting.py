"""Ledgers that add up by Gaussian differential privacy, and those that were begun with zCDP."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from understudy.boundary.privacy.accountant import QUANTUM, epsilon_from_rho, rho_from_epsilon, round_down, round_up
from understudy.boundary.privacy.budget import ACCOUNTING, GDP, ZCDP, Budget, Cost, claim, pure_cost
from understudy.boundary.privacy.facts import PrivacyUnit, PublicFacts
from understudy.boundary.privacy.gaussian_dp import epsilon_from_gdp, gdp_from_epsilon
from understudy.boundary.privacy.ledger import allowance, entries
from understudy.boundary.privacy.ledger.chain import insert
from understudy.boundary.privacy.ledger.ledger import Ledger
from understudy.boundary.schema.column import Integer
from understudy.boundary.schema.schema import Schema
from understudy.errors import BudgetExhausted

SCHEMA = Schema((Integer("age", minimum=0, maximum=99),))


def debit(ledger: Ledger, epsilon: float, accounting: str) -> int:
    budget = Budget(epsilon, 1e-6, accounting)
    whole = PublicFacts(SCHEMA, budget).whole
    return ledger.debit(whole, budget, "add-remove", "synth", "ada", unit=PrivacyUnit())


@pytest.fixture
def gaussian(tmp_path: Path) -> Ledger:
    return Ledger.open(tmp_path / "gaussian.ledger")


@pytest.fixture
def old(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ledger:
    """One that was begun when zCDP was all there was: its first debit has a rho."""
    ledger = Ledger.open(tmp_path / "old.ledger")
    with monkeypatch.context() as then:
        then.setattr(entries, "ACCOUNTING", ZCDP)
        debit(ledger, 0.1, ZCDP)
    return ledger


def test_what_is_new_is_counted_by_gaussian_differential_privacy(gaussian):
    assert ACCOUNTING == GDP
    debit(gaussian, 0.1, Budget(0.1, 1e-6).accounting)
    assert gaussian.spent().accounting == GDP


def test_squares_of_mu_add_up(gaussian):
    for epsilon in (1.0, 0.5):
        debit(gaussian, epsilon, GDP)
    spent = gaussian.spent()
    assert spent.gdp == gdp_from_epsilon(1.0, 1e-6) + gdp_from_epsilon(0.5, 1e-6)
    assert gaussian.standing().epsilon == epsilon_from_gdp(spent.gdp, 1e-6)
    assert gaussian.standing().epsilon < claim(spent, 1e-6, ZCDP)


def test_a_limit_is_a_filter_on_their_sum(gaussian):
    gaussian.set_limit(Budget(1.0, 1e-6), "add-remove", failure_delta=0.0)
    debit(gaussian, 0.8, GDP)
    # 0.64 + 0.36 of about the square of epsilon: a little more fits than the roots say, and nothing beyond it.
    left = gaussian.standing().left
    assert 0.55 < left < 0.65
    with pytest.raises(BudgetExhausted):
        debit(gaussian, left * 1.05, GDP)


@pytest.mark.parametrize("limited", [False, True])
def test_a_zcdp_cost_has_no_place_in_it(gaussian, limited):
    if limited:
        gaussian.set_limit(Budget(1.0, 1e-6, GDP), "add-remove")
        gaussian.set_share("ada", 0.5)
    debit(gaussian, 0.1, GDP)
    with pytest.raises(BudgetExhausted, match="adds up by Gaussian differential privacy"):
        debit(gaussian, 0.1, ZCDP)
    assert len(gaussian.entries()) == 1


def test_a_row_that_has_no_g_spoils_the_sum_of_its_analyst(gaussian):
    """No debit writes one, but a file may hold one: ρ is never taken for g."""
    debit(gaussian, 0.1, GDP)
    debit(gaussian, 0.1, GDP)
    with closing(sqlite3.connect(gaussian.path)) as database:
        database.row_factory = sqlite3.Row
        row = dict(database.execute("SELECT * FROM debits WHERE id = 2").fetchone())
        database.row_factory = None
        insert(database, "debits", row | {"rho": row["rho"].removeprefix("g")})
        database.commit()
        (spent,) = entries.totals_of(database).values()
    assert spent.gdp is None
    assert spent == gaussian.spent()
    assert gaussian.standing().epsilon == claim(spent, 1e-6, ZCDP)


def test_a_ledger_keeps_what_it_was_begun_with(old):
    first = PublicFacts(SCHEMA, Budget(0.1, 1e-6, ZCDP)).whole.rho
    debit(old, 1.0, GDP)
    spent = old.spent()
    assert spent.gdp is None
    # What is mu-GDP is mu^2/2-zCDP: the new release counts there with its g.
    assert spent.rho == first + gdp_from_epsilon(1.0, 1e-6)
    assert old.standing().epsilon == claim(spent, 1e-6, ZCDP)


def test_its_limit_stays_a_limit_on_the_sum_of_rho(old):
    old.set_limit(Budget(1.0, 1e-6), "add-remove", failure_delta=0.0)
    left = rho_from_epsilon(1.0, 1e-6) - old.spent().rho
    for cost in (Cost(left + QUANTUM, None, Fraction(0)), Cost(left + QUANTUM, None, Fraction(0), gdp=left + QUANTUM)):
        with pytest.raises(BudgetExhausted, match="left of the limit"):
            old.debit(cost, Budget(1.0, 1e-6), "add-remove", "synth", unit=PrivacyUnit())
    old.debit(Cost(left, None, Fraction(0), gdp=left), Budget(1.0, 1e-6), "add-remove", "synth", unit=PrivacyUnit())
    assert 0.99999 < old.standing().epsilon <= 1.0
    assert old.standing().left == 0.0


def test_what_is_left_of_it_can_be_spent_by_a_new_release_and_hardly_more(old):
    old.set_limit(Budget(1.0, 1e-6), "add-remove")
    left = old.standing().left
    # A new release of the same epsilon has more g than an old one had rho: so less than by zCDP is left for it.
    assert 0.8 < left < 0.95
    with pytest.raises(BudgetExhausted):
        debit(old, left * 1.00001, GDP)
    debit(old, left, GDP)


def test_failures_and_pure_parts_add_up_in_it_as_before(old):
    before = old.spent()
    old.debit(pure_cost(Fraction(1, 8)), Budget(0.125, 0.0), "add-remove", "draws", unit=PrivacyUnit())
    keys = Cost(Fraction(1, 1024), None, round_up(4e-7), gdp=Fraction(1, 1024))
    old.debit(keys, Budget(0.3, 1e-6), "add-remove", "keys", unit=PrivacyUnit())
    spent = old.spent()
    assert spent.rho == before.rho + Fraction(1, 128) + Fraction(1, 1024)
    assert old.standing().epsilon == epsilon_from_rho(spent.rho, Fraction(1e-6) - round_up(4e-7))


def test_its_shares_are_parts_of_rho(old):
    old.set_limit(Budget(1.0, 1e-6), "add-remove")
    old.set_share("ada", 0.25)
    quarter = rho_from_epsilon(1.0, 1e-6) / 4 - old.spent().rho
    for value, fits in ((quarter + QUANTUM, False), (quarter, True)):
        cost = Cost(round_down(value), None, Fraction(0), gdp=round_down(value))
        if fits:
            old.debit(cost, Budget(0.5, 1e-6), "add-remove", "q", "ada", unit=PrivacyUnit())
        else:
            with pytest.raises(BudgetExhausted, match="of the share"):
                old.debit(cost, Budget(0.5, 1e-6), "add-remove", "q", "ada", unit=PrivacyUnit())


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
