"""Budgets, amounts and meters: exact arithmetic, and refusals that change nothing."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.boundary.privacy.accountant import QUANTUM, epsilon_from_rho, rho_from_epsilon
from understudy.boundary.privacy.budget import (
    GDP,
    ZCDP,
    Amount,
    Budget,
    Cost,
    Meter,
    Spend,
    claim,
    compose,
    covers,
    total,
)
from understudy.boundary.privacy.gaussian_dp import (
    epsilon_from_gdp,
    gdp_from_bounded_range,
    gdp_from_epsilon,
    gdp_from_pure,
)
from understudy.errors import BudgetExhausted, InputError, InternalError, MethodError

# From a million quanta on, so that the grid itself takes no more than one part in a million.
VALUES = st.fractions(min_value=2**24 * QUANTUM, max_value=10**4)
AMOUNTS = st.builds(Amount, VALUES, st.booleans(), st.sampled_from([GDP, ZCDP]))
SENSITIVITIES = st.floats(1e-3, 1e6)
NEARLY = Fraction(999_999, 1_000_000)


def price(amount: Amount, spend: Spend) -> Fraction:
    cost = spend.cost
    value = cost.epsilon if amount.pure else cost.by(amount.accounting)
    assert value is not None
    return value


def gaussian(scale: float, delta: float = 0.0) -> Spend:
    return Spend("rounded-gaussian", "count by age", 1.0, scale, delta)


def discrete(scale: float) -> Spend:
    return Spend("discrete-gaussian", "count by age", 1.0, scale)


def laplace(scale: float) -> Spend:
    return Spend("discrete-laplace", "count by age", 1.0, scale)


# --- costs and spends


def test_costs_compose_by_adding():
    pure, rho = Cost(Fraction(1, 2), Fraction(1), Fraction(0)), Cost(Fraction(1, 8), None, Fraction(1, 4))
    assert pure + pure == Cost(Fraction(1), Fraction(2), Fraction(0))
    assert pure + rho == Cost(Fraction(5, 8), None, Fraction(1, 4))
    assert Cost.zero() + pure == pure
    assert total([pure, rho, rho]) == Cost(Fraction(3, 4), None, Fraction(1, 2))
    assert pure.pure
    assert not rho.pure
    assert not Cost(Fraction(0), Fraction(0), Fraction(1, 4)).pure


def test_negative_costs_are_refused():
    with pytest.raises(InternalError, match="rho"):
        Cost(Fraction(-1), None, Fraction(0))


@pytest.mark.parametrize(
    ("spend", "rho", "epsilon", "gdp"),
    [
        (discrete(2.0), Fraction(1, 8), None, None),
        (gaussian(2.0), Fraction(1, 8), None, Fraction(1, 8)),
        (Spend("discrete-gaussian", "pairs", 2.0, 2.0), Fraction(1, 2), None, None),
        (Spend("rounded-gaussian", "pairs", 2.0, 2.0), Fraction(1, 2), None, Fraction(1, 2)),
        (laplace(4.0), Fraction(1, 32), Fraction(1, 4), gdp_from_pure(Fraction(1, 4))),
        (Spend("exponential", "best pair", 3.0, 2.0), Fraction(1, 2), Fraction(2), gdp_from_bounded_range(2)),
        (Spend("thresholded-gaussian", "keys", 1.0, 2.0, 0.25), Fraction(1, 8), None, None),
        (Spend("thresholded-rounded-gaussian", "keys", 1.0, 2.0, 0.25), Fraction(1, 8), None, Fraction(1, 8)),
        (Spend("public", "rows", 0.0, 0.0), Fraction(0), Fraction(0), Fraction(0)),
    ],
)
def test_prices(spend, rho, epsilon, gdp):
    assert spend.cost == Cost(rho, epsilon, Fraction(spend.delta), gdp=gdp)


def test_each_accounting_buys_its_own_noise():
    assert Budget(1.0, 1e-6, ZCDP).capacity == Amount(rho_from_epsilon(1.0, 1e-6), pure=False, accounting=ZCDP)
    assert Budget(1.0, 1e-6, GDP).capacity == Amount(gdp_from_epsilon(1.0, 1e-6), pure=False, accounting=GDP)
    ratio = Budget(1.0, 1e-6, GDP).capacity.noise_scale(1.0) / Budget(1.0, 1e-6, ZCDP).capacity.noise_scale(1.0)
    assert ratio < 0.933
    assert Budget(1.0, 1e-6, GDP).capacity.mechanism == "rounded-gaussian"


@pytest.mark.parametrize("accounting", [GDP, ZCDP])
def test_every_piece_of_a_budget_costs_at_most_itself(accounting):
    whole = Budget(1.0, 1e-6, accounting).capacity
    for piece in [whole, *whole.split([1.0, 2.0, 5.0]), whole.part(0.01)]:
        bought = (
            Spend(piece.mechanism, "count", 2.0, piece.noise_scale(2.0)),
            Spend("exponential", "choice", 1.0, piece.selection_epsilon()),
            Spend("discrete-laplace", "count", 1.0, 1 / float(piece.pure_epsilon())),
        )
        for spend in bought:
            price = spend.cost.by(accounting)
            assert price <= piece.value * (1 + Fraction(1, 2**40)), spend
            assert price >= piece.value * (1 - Fraction(1, 2**40)), spend


def test_gdp_refuses_what_it_can_not_bound():
    meter = Meter(Budget(1.0, 1e-6, GDP))
    with pytest.raises(BudgetExhausted):
        meter.debit([discrete(1000.0)])
    meter.debit([gaussian(1000.0)])
    assert meter.spends and claim(discrete(1000.0).cost, 1e-6, GDP) == math.inf


def test_what_gdp_claims_is_within_the_budget_and_below_zcdp():
    budget = Budget(1.0, 1e-6, GDP)
    parts = budget.capacity.split([1.0] * 7)
    spends = [Spend(p.mechanism, "count", 1.0, p.noise_scale(1.0)) for p in parts]
    meter = Meter(budget)
    meter.debit(spends)
    epsilon, delta = meter.guarantee()
    assert 0.999999 < epsilon <= 1.0 and delta == 1e-6
    assert compose(spends, 1e-6, ZCDP)[0] > 1.07


def test_an_unknown_accounting_is_refused():
    with pytest.raises(InputError, match="accounting"):
        Budget(1.0, 1e-6, "pld")


@pytest.mark.parametrize(
    "spend",
    [
        Spend("telepathy", "x", 1.0, 1.0),
        Spend("", "x", 1.0, 1.0),
        Spend("discrete-gaussian", "x", 1.0, 0.0),
        Spend("rounded-gaussian", "x", 1.0, 0.0),
        Spend("thresholded-gaussian", "x", 1.0, 1.0),
        Spend("thresholded-rounded-gaussian", "x", 1.0, 1.0),
        Spend("public", "x", 0.0, 0.0, 0.1),
    ],
)
def test_what_has_no_price_is_never_free(spend):
    with pytest.raises(InternalError):
        _ = spend.cost
    meter = Meter(Budget(1.0, 1e-6))
    with pytest.raises(InternalError):
        meter.debit([spend])
    assert meter.spends == ()


@given(SENSITIVITIES, st.floats(1e-3, 1e6), st.floats(1e-30, 0.5))
def test_prices_are_rounded_up_to_the_grid(sensitivity, scale, delta):
    cost = Spend("discrete-laplace", "x", sensitivity, scale, delta).cost
    assert 0 <= cost.epsilon - Fraction(sensitivity) / Fraction(scale) < QUANTUM
    assert 0 <= cost.delta - Fraction(delta) < QUANTUM
    assert 0 <= cost.rho - cost.epsilon**2 / 2 < QUANTUM
    assert cost.epsilon % QUANTUM == cost.delta % QUANTUM == cost.rho % QUANTUM == 0


@pytest.mark.parametrize("field", ["sensitivity", "scale", "delta"])
@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf, True, "1"])
def test_spends_hold_only_numbers(field, value):
    with pytest.raises(InternalError, match=field):
        Spend(**{"mechanism": "public", "asked": "x", "sensitivity": 1.0, "scale": 1.0, field: value})


@given(SENSITIVITIES, st.floats(1e-3, 1e9), st.floats(0, 0.5))
def test_spends_survive_json(sensitivity, scale, delta):
    spend = Spend("discrete-gaussian", "count by age × sex", sensitivity, scale, delta, 14)
    assert Spend.from_dict(json.loads(json.dumps(spend.to_dict()))) == spend


@pytest.mark.parametrize(
    "data", [{}, {"mechanism": "public"}, {"mechanism": [], "asked": "x", "sensitivity": 1, "scale": 1}]
)
def test_a_broken_record_is_refused(data):
    with pytest.raises(InputError, match="spend"):
        Spend.from_dict(data)


# --- budgets


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, 1.1e4, True, "1", None])
def test_epsilon_has_bounds(epsilon):
    with pytest.raises(InputError, match=r"^epsilon \("):
        Budget(epsilon, 1e-6)


@pytest.mark.parametrize("delta", [-1e-9, 1.0, math.nan, math.inf, False, "0", None])
def test_delta_has_bounds(delta):
    with pytest.raises(InputError, match=r"^delta \("):
        Budget(1.0, delta)


def test_capacity_is_in_the_budgets_own_currency():
    assert Budget(1, 0).capacity == Amount(Fraction(1), pure=True)
    assert Budget(1.0, 1e-6).capacity == Amount(gdp_from_epsilon(1.0, 1e-6), pure=False, accounting=GDP)
    with pytest.raises(InputError, match="too small"):
        _ = Budget(1e-30, 0.0).capacity


# --- amounts


@given(AMOUNTS, SENSITIVITIES)
def test_noise_costs_at_most_the_amount_and_nearly_all_of_it(amount, sensitivity):
    scale = amount.noise_scale(sensitivity)
    cost = price(amount, Spend(amount.mechanism, "", sensitivity, scale))
    assert NEARLY * amount.value <= cost <= amount.value


@given(AMOUNTS)
def test_selection_costs_at_most_the_amount_and_nearly_all_of_it(amount):
    cost = price(amount, Spend("exponential", "", 1.0, amount.selection_epsilon()))
    assert NEARLY * amount.value <= cost <= amount.value


@given(AMOUNTS, SENSITIVITIES)
def test_slightly_less_noise_would_cost_too_much(amount, sensitivity):
    """The mutant of the two properties above: a scale rounded the wrong way is caught."""
    scale = amount.noise_scale(sensitivity) * (1 - 1e-6)
    assert price(amount, Spend(amount.mechanism, "", sensitivity, scale)) > amount.value


@given(AMOUNTS, st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=20))
def test_pieces_never_exceed_the_whole(amount, weights):
    pieces = amount.split(weights)
    whole = sum(piece.value for piece in pieces)
    assert amount.value - len(weights) * QUANTUM <= whole <= amount.value
    assert all(piece.pure == amount.pure for piece in pieces)
    assert pieces[0].value <= amount.value * Fraction(weights[0]) / sum(map(Fraction, weights))


@given(AMOUNTS, st.floats(1e-3, 1))
def test_a_part_is_rounded_down(amount, share):
    assert 0 <= amount.value * Fraction(share) - amount.part(share).value < QUANTUM


@given(AMOUNTS, SENSITIVITIES, st.lists(st.floats(1e-2, 1e2), min_size=1, max_size=8))
def test_a_split_capacity_can_be_spent_to_the_end(amount, sensitivity, weights):
    spends = [
        Spend(piece.mechanism, "", sensitivity, piece.noise_scale(sensitivity)) for piece in amount.split(weights)
    ]
    assert sum(price(amount, spend) for spend in spends) <= amount.value


def test_tiny_amounts_still_end():
    amount = Amount(Fraction(5, 2) * QUANTUM, pure=False)
    assert amount.value == 2 * QUANTUM
    assert gaussian(amount.noise_scale(1.0)).cost.gdp <= amount.value


@pytest.mark.parametrize(
    "misuse",
    [
        lambda whole: Amount(Fraction(0), pure=True),
        lambda whole: Amount(QUANTUM / 2, pure=False),
        lambda whole: whole.part(0.0),
        lambda whole: whole.part(1.5),
        lambda whole: whole.part(math.nan),
        lambda whole: whole.split([]),
        lambda whole: whole.split([1.0, 0.0]),
        lambda whole: whole.split([1.0, math.inf]),
        lambda whole: whole.noise_scale(0.0),
        lambda whole: whole.noise_scale(math.inf),
    ],
)
def test_misuse_of_an_amount_is_a_bug_of_ours(misuse):
    with pytest.raises(InternalError):
        misuse(Amount(Fraction(1), pure=False))


# --- meters


@pytest.mark.parametrize("accounting", [GDP, ZCDP])
def test_a_meter_spends_exactly_its_budget(accounting):
    meter = Meter(Budget(1.0, 1e-6, accounting))
    for piece in meter.remaining().split([1, 2, 3, 4]):
        meter.debit([Spend(piece.mechanism, "count by age", 1.0, piece.noise_scale(1.0))])
    epsilon, delta = meter.guarantee()
    assert 0.99999 < epsilon <= 1.0
    assert delta == 1e-6
    assert compose(meter.spends, 1e-6, accounting) == (epsilon, delta)
    with pytest.raises(BudgetExhausted):
        meter.debit([gaussian(100.0)])


def test_a_refused_batch_changes_nothing():
    meter = Meter(Budget(1.0, 1e-6))
    meter.debit([gaussian(10.0)])
    before = meter.spent, meter.spends
    with pytest.raises(BudgetExhausted, match=r"g \(0\.125\) must be at most the 0\.02301 left"):
        meter.debit([gaussian(100.0), gaussian(2.0)])
    assert (meter.spent, meter.spends) == before
    assert not meter.admits([gaussian(2.0).cost])
    assert meter.admits([gaussian(100.0).cost])
    assert (meter.spent, meter.spends) == before


def test_a_pure_meter():
    meter = Meter(Budget(1.0, 0.0))
    meter.debit([laplace(2.0), laplace(4.0)])
    assert meter.guarantee() == (0.75, 0.0)
    assert meter.remaining() == Amount(Fraction(1, 4), pure=True)
    with pytest.raises(MethodError, match=r"rounded-gaussian.*isn't pure"):
        meter.debit([gaussian(1e6)])
    with pytest.raises(BudgetExhausted, match=r"epsilon \(0\.5\)"):
        meter.debit([laplace(2.0)])
    meter.debit([laplace(4.0)])
    assert meter.guarantee() == (1.0, 0.0)
    with pytest.raises(BudgetExhausted, match="nothing is left"):
        meter.remaining()


@pytest.mark.parametrize(
    ("accounting", "keys", "bought", "claimed"),
    [
        (GDP, "thresholded-rounded-gaussian", gdp_from_epsilon, epsilon_from_gdp),
        (ZCDP, "thresholded-gaussian", rho_from_epsilon, epsilon_from_rho),
    ],
)
def test_failures_take_their_delta_from_the_conversion(accounting, keys, bought, claimed):
    meter = Meter(Budget(1.0, 1e-6, accounting))
    meter.debit([Spend(keys, "keys", 1.0, 20.0, 4e-7)])
    left, spent = Fraction(1e-6) - meter.spent.delta, meter.spent.by(accounting)
    assert meter.remaining().value == bought(1.0, left) - spent
    assert meter.guarantee() == (claimed(spent, left), 1e-6)
    assert meter.guarantee()[0] > claimed(spent, 1e-6)
    with pytest.raises(BudgetExhausted, match=r"delta \(7e-07\) must be less than the 6e-07 left"):
        meter.debit([Spend(keys, "keys", 1.0, 1e3, 7e-7)])


def test_public_facts_are_free_under_either_budget():
    for delta in (0.0, 1e-6):
        meter = Meter(Budget(1.0, delta))
        meter.debit([Spend("public", "row count", 0.0, 0.0)])
        assert meter.guarantee() == (0.0, delta)
        assert len(meter.spends) == 1


@given(st.lists(st.floats(0.5, 200.0), max_size=30))
def test_what_a_meter_admits_its_budget_covers(scales):
    meter = Meter(Budget(2.0, 1e-6))
    for scale in scales:
        admitted = meter.admits([gaussian(scale).cost])
        before = meter.spent
        try:
            meter.debit([gaussian(scale)])
        except BudgetExhausted:
            assert not admitted
            assert meter.spent == before
    assert covers(meter.budget, meter.spent)
    assert meter.guarantee()[0] <= 2.0


def test_composition_of_what_has_no_guarantee_is_infinite():
    assert compose([gaussian(1.0)], 0.0) == (math.inf, 0.0)
    assert compose([Spend("thresholded-rounded-gaussian", "keys", 1.0, 1.0, 0.1)], 0.01) == (math.inf, 0.01)
    assert compose([], 0.0) == (0.0, 0.0)


@given(st.lists(st.floats(0.1, 100.0), max_size=20))
def test_pure_claims_are_rounded_up(scales):
    cost = total(laplace(scale).cost for scale in scales)
    assert Fraction(claim(cost, 0.0)) >= sum(1 / Fraction(scale) for scale in scales)
