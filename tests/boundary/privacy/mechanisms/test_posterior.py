"""Draws from a posterior: their ε against all neighbours and outputs, the law of the urn, and the curator's part."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import gammaln

import understudy as us
from understudy.boundary.privacy.asks import Draws
from understudy.boundary.privacy.budget import GDP, ZCDP, Budget, Spend, compose
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.mechanisms.noise import SeededEntropy, SystemEntropy
from understudy.boundary.privacy.mechanisms.posterior import (
    MOST_DRAWS,
    UNIT,
    check_leaves,
    check_prior,
    epsilon_of_draws,
    least_concentration,
    polya_prior,
    posterior_draws,
    uniform_integers,
)
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.partition import Grid
from understudy.errors import BudgetExhausted, CheckFailed, InputError, InternalError, MethodError
from understudy.inference.polya.polya_prior import PolyaPosterior, PolyaPrior

FALSE_ALARM = 1e-9

# --- The closed form, against everything that can happen on a small tree ----------------------------------------------


def log_probability(counts: np.ndarray, drawn: np.ndarray, prior: tuple[float, ...]) -> float:
    """Of draws with these counts in one order, by rising factorials; a single level has a branch for each leaf."""
    branches, found = (len(counts), 0.0) if len(prior) == 1 else (2, 0.0)
    for level, a in enumerate(prior, start=1):
        n = counts.reshape(branches**level, -1).sum(axis=1).reshape(-1, branches) + a
        m = drawn.reshape(branches**level, -1).sum(axis=1).reshape(-1, branches)
        found += float((gammaln(n + m) - gammaln(n)).sum())
        found -= float((gammaln((n + m).sum(axis=1)) - gammaln(n.sum(axis=1))).sum())
    return found


def counted(leaves: tuple[int, ...], size: int) -> np.ndarray:
    return np.bincount(np.array(leaves, dtype=int), minlength=size)


def brute_force(prior: tuple[float, ...], leaves: int, rows: int, draws: int, relation: str = "replace-one") -> float:
    """The largest log ratio over all tables of `rows` rows, all their neighbours, and all outputs."""
    outputs = [counted(z, leaves) for z in itertools.combinations_with_replacement(range(leaves), draws)]
    largest = 0.0
    for others in itertools.combinations_with_replacement(range(leaves), rows - 1):
        tables = [counted((*others, row), leaves) for row in range(leaves)]
        logs = np.array([[log_probability(t, z, prior) for z in outputs] for t in tables])
        if relation == "replace-one":
            largest = max(largest, float((logs.max(axis=0) - logs.min(axis=0)).max()))
        else:
            without = np.array([log_probability(counted(others, leaves), z, prior) for z in outputs])
            largest = max(largest, float(np.abs(logs - without).max()))
    return largest


SMALL = [
    ((0.5, 2.0), 2, 3),
    ((0.25, 1.0, 2.25), 2, 2),
    ((1.0, 1.0), 3, 3),
    ((3.0, 1.5, 0.75), 1, 2),
    ((0.125,), 3, 4),
    ((2.0, 8.0, 18.0), 1, 3),
]


@pytest.mark.parametrize(("prior", "rows", "draws"), SMALL)
def test_the_closed_form_is_the_supremum_over_all_neighbours_and_outputs(
    prior: tuple[float, ...], rows: int, draws: int
) -> None:
    exact = float(epsilon_of_draws(prior, draws))
    assert abs(brute_force(prior, 2 ** len(prior), rows, draws) - exact) < 1e-10
    assert brute_force(prior, 2 ** len(prior), rows, draws, "add-remove") <= exact + 1e-10


@pytest.mark.parametrize(("leaves", "alpha", "rows", "draws"), [(2, 0.5, 2, 3), (5, 0.25, 2, 3), (7, 3.0, 2, 2)])
def test_the_dirichlet_form_is_ln_1_plus_m_over_alpha(leaves: int, alpha: float, rows: int, draws: int) -> None:
    exact = float(epsilon_of_draws((alpha,), draws))
    assert math.isclose(exact, math.log1p(draws / alpha), rel_tol=1e-14)
    assert abs(brute_force((alpha,), leaves, rows, draws) - exact) < 1e-10
    assert brute_force((alpha,), leaves, rows, draws, "add-remove") <= exact + 1e-10


@settings(max_examples=30, deadline=None)
@given(
    c=st.integers(1, 400).map(lambda n: n / 64),
    depth=st.integers(1, 3),
    exponent=st.floats(-1.0, 4.0),
    rows=st.integers(1, 2),
    draws=st.integers(1, 3),
)
def test_the_closed_form_holds_for_any_tree(c: float, depth: int, exponent: float, rows: int, draws: int) -> None:
    prior = polya_prior(c, depth, exponent)
    assert abs(brute_force(prior, 2**depth, rows, draws) - float(epsilon_of_draws(prior, draws))) < 1e-10


def test_adding_a_row_approaches_the_same_epsilon_as_the_table_grows() -> None:
    """All rows in the other half: the row's own path stays empty, and the root's own term vanishes."""
    prior, draws = (0.5, 2.0), 3
    exact = float(epsilon_of_draws(prior, draws))
    many, output = np.array([0, 0, 0, 10**6]), np.array([3, 0, 0, 0])
    ratio = log_probability(many + np.array([1, 0, 0, 0]), output, prior) - log_probability(many, output, prior)
    assert exact - 1e-5 < ratio <= exact + 1e-10


def test_mutant_the_sum_without_its_second_part_is_not_the_supremum() -> None:
    prior, draws = (0.5, 2.0), 3
    assert abs(sum(math.log1p(draws / a) for a in prior) - brute_force(prior, 4, 2, draws)) > 0.1


def test_where_the_condition_fails_the_formula_does_too_and_is_refused() -> None:
    """2·α₂ < α₁: the ratio is larger at another output than all draws in one leaf."""
    prior = (8.0, 0.5)
    formula = math.log1p(2 / 8) + math.log1p(2 / 0.5) - math.log1p(2 / 1.0)
    assert brute_force(prior, 4, 2, 2) > formula + 0.01
    with pytest.raises(InputError, match="half"):
        epsilon_of_draws(prior, 2)
    with pytest.raises(InputError, match="exponent"):
        polya_prior(1.0, 3, -1.5)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 10**6), st.integers(1, 10**5), st.integers(1, 20), st.floats(0.0, 4.0))
def test_epsilon_falls_with_c_and_grows_with_draws_and_depth(units: int, draws: int, depth: int, power: float) -> None:
    c = units / 64
    here = epsilon_of_draws(polya_prior(c, depth, power), draws)
    assert epsilon_of_draws(polya_prior(2 * c, depth, power), draws) < here
    assert epsilon_of_draws(polya_prior(c, depth, power), draws + 1) > here
    assert epsilon_of_draws(polya_prior(c, depth + 1, power), draws) > here
    assert math.isclose(float(here), PolyaPrior(c, depth, power).log_ratio_limit(draws), rel_tol=1e-3)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 2**30), st.integers(1, 10**6), st.integers(1, 12))
def test_a_price_is_never_below_the_truth_and_hardly_above(units: int, draws: int, depth: int) -> None:
    """Against logarithms of 200 digits."""
    prior = polya_prior(units / UNIT, depth)
    context, truth = Context(prec=200), Decimal(0)
    for j, a in enumerate(prior):
        y = Fraction(draws) / Fraction(a)
        for sign, part in ((1, 1 + y), (-1, 1 + y / 2)) if j else ((1, 1 + y),):
            log = context.ln(context.divide(Decimal(part.numerator), Decimal(part.denominator)))
            truth = context.add(truth, context.multiply(Decimal(sign), log))
    price = epsilon_of_draws(prior, draws)
    assert Fraction(truth) <= price < Fraction(truth) + Fraction(1, 2**78)


@settings(max_examples=40, deadline=None)
@given(st.floats(0.001, 20.0), st.integers(1, 10**5), st.integers(1, 20), st.floats(-0.5, 3.0))
def test_the_least_concentration_is_enough_and_no_less_is(epsilon: float, draws: int, depth: int, power: float) -> None:
    c = least_concentration(epsilon, draws, depth, power)
    assert epsilon_of_draws(polya_prior(c, depth, power), draws) <= Fraction(epsilon)
    less = c * (1 - 1e-5) - 2 / UNIT
    if less > 0:
        assert PolyaPrior(less, depth, power).log_ratio_limit(draws) > epsilon * (1 - 1e-4) - 1e-3


def test_two_thirds_of_the_root_are_prior_where_every_row_is_replaced() -> None:
    """METHODS §E: m = n at ε = 1 and depth 12 needs c ≈ 0.93·m."""
    c = least_concentration(1.0, 10_000, 12)
    assert round(c / 10_000, 2) == 0.93 and 0.64 < 2 * c / (2 * c + 10_000) < 0.67


@pytest.mark.parametrize("prior", [(0.0,), (-1.0,), (math.inf,), (math.nan,), (1 / 3,), (2.0**50,)])
def test_pseudo_counts_that_the_urn_has_no_balls_for_are_refused(prior: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="pseudo-count"):
        check_prior(prior)


@pytest.mark.parametrize("draws", [0, -1, True, 1.5, MOST_DRAWS + 1])
def test_numbers_of_draws_that_are_none_are_refused(draws: object) -> None:
    with pytest.raises(InputError, match="draws"):
        epsilon_of_draws((1.0,), draws)  # type: ignore[arg-type]


# --- The urn ----------------------------------------------------------------------------------------------------------


def misfit(counts: list[int], prior: tuple[float, ...], draws: int, sampler: Callable[[], np.ndarray]) -> float:
    """The p-value of a χ² test of many outputs against the exact law."""
    leaves = len(counts)
    outputs = [counted(z, leaves) for z in itertools.combinations_with_replacement(range(leaves), draws)]
    orders = [gammaln(draws + 1) - gammaln(z + 1).sum() for z in outputs]
    law = np.exp([log_probability(np.array(counts), z, prior) + o for z, o in zip(outputs, orders, strict=True)])
    assert math.isclose(law.sum(), 1)
    place = {tuple(z): i for i, z in enumerate(outputs)}
    runs = 3_000
    seen = np.bincount([place[tuple(sampler())] for _ in range(runs)], minlength=len(outputs))
    rare = law * runs < 5
    kept, expected = np.append(seen[~rare], seen[rare].sum()), np.append(law[~rare], law[rare].sum()) * runs
    return float(stats.chisquare(*((kept, expected) if rare.any() else (kept[:-1], expected[:-1]))).pvalue)


URNS = [([2, 0, 1, 0], (0.5, 2.0), 3), ([0, 4], (0.25,), 4), ([1, 0, 3], (0.5,), 3), ([0] * 8, (0.5, 0.5, 0.5), 2)]


@pytest.mark.parametrize(("counts", "prior", "draws"), URNS)
def test_the_urn_has_the_law_of_the_theorem(counts: list[int], prior: tuple[float, ...], draws: int) -> None:
    """χ² over all outputs, wrong once in a billion."""
    sampler = partial(posterior_draws, np.array(counts), prior, draws, SystemEntropy())
    assert misfit(counts, prior, draws, sampler) > FALSE_ALARM


def test_mutant_an_urn_that_does_not_see_its_draws_is_told_apart() -> None:
    counts, prior, rng = [2, 0, 1, 0], (0.5, 2.0), np.random.default_rng(1)
    mean = PolyaPosterior.of_counts(PolyaPrior(0.5, 2), np.array(counts)).predictive()
    assert misfit(counts, prior, 3, lambda: rng.multinomial(3, mean)) < FALSE_ALARM


def test_mutant_half_the_prior_is_told_apart() -> None:
    sampler = partial(posterior_draws, np.array([2, 0, 1, 0]), (0.25, 1.0), 3, SystemEntropy())
    assert misfit([2, 0, 1, 0], (0.5, 2.0), 3, sampler) < FALSE_ALARM


def test_many_draws_have_the_mean_and_variance_of_a_beta_binomial() -> None:
    """The left half of a large tree: mean and variance at a false alarm of one in a billion."""
    rng, entropy = np.random.default_rng(2), SystemEntropy()
    counts = rng.multinomial(1000, np.full(64, 1 / 64))
    prior, draws, runs = polya_prior(50.0, 6), 200, 1_000
    left = np.array([posterior_draws(counts, prior, draws, entropy)[:32].sum() for _ in range(runs)])
    a, b = 50.0 + counts[:32].sum(), 50.0 + counts[32:].sum()
    law = stats.betabinom(draws, a, b)
    assert abs(left.mean() - law.mean()) < stats.norm.isf(FALSE_ALARM / 2) * law.std() / math.sqrt(runs)
    assert 0.7 < left.var() / law.var() < 1.4  # the variance of 1,000 runs is off by 30 % once in a billion


class FewWords:
    """Words so high that nearly all of them have to be drawn again."""

    secure = False

    def __init__(self) -> None:
        self._words, self.asked = SeededEntropy(3), 0

    def words(self, count: int) -> np.ndarray:
        self.asked += count
        words = self._words.words(count)
        return words | np.uint64(2**63) if self.asked <= 4 * count else words


def test_integers_are_uniform_even_where_most_words_are_refused() -> None:
    bounds = np.full(4000, 2**62 + 2**61, dtype=np.int64)  # the last third of all words favours the small
    found = uniform_integers(bounds, SystemEntropy())
    assert found.min() >= 0 and (found < bounds).all()
    assert stats.kstest(found / bounds, "uniform").pvalue > FALSE_ALARM
    biased = SystemEntropy().words(4000) % np.uint64(bounds[0])
    assert stats.kstest(biased / float(bounds[0]), "uniform").pvalue < FALSE_ALARM


def test_small_bounds_get_every_value() -> None:
    found = uniform_integers(np.full(6000, 3, dtype=np.int64), SystemEntropy())
    assert stats.chisquare(np.bincount(found)).pvalue > FALSE_ALARM
    assert uniform_integers(np.ones(5, dtype=np.int64), FewWords()).tolist() == [0] * 5


def test_a_tree_must_fit_its_leaves_and_sixty_four_bits() -> None:
    assert check_leaves(8, (1.0, 1.0, 1.0)) == 2 and check_leaves(5, (1.0,)) == 5
    with pytest.raises(InputError, match="leaves"):
        check_leaves(6, (1.0, 1.0))
    with pytest.raises(MethodError, match="pseudo-counts"):
        check_leaves(10**7, (2.0**25,))


# --- The distinguishing game: an honest urn passes, half of its c does not --------------------------------------------


def epsilon_at_least(prior: tuple[float, ...], draws: int, runs: int) -> float:
    """A bound on ε by Clopper–Pearson at 1e-9: all draws in the leaf of the one row, or of nobody."""
    with_row, without = np.eye(2 ** len(prior), dtype=np.int64)[[0, -1]]
    hits = [
        sum(posterior_draws(table, prior, draws, SystemEntropy())[0] == draws for _ in range(runs))
        for table in (with_row, without)
    ]
    low = stats.beta.ppf(FALSE_ALARM / 2, hits[0], runs - hits[0] + 1)
    high = stats.beta.isf(FALSE_ALARM / 2, hits[1] + 1, runs - hits[1])
    return float(math.log(low / high))


def test_the_game_finds_half_a_concentration_and_no_fault_with_the_whole() -> None:
    """Wrong about the honest one once in a billion."""
    claimed, draws, depth = 1.0, 1, 1
    c = least_concentration(claimed, draws, depth)
    assert epsilon_at_least(polya_prior(c, depth), draws, 3_000) < claimed
    assert epsilon_at_least(polya_prior(c / 2, depth), draws, 3_000) > claimed


# --- The curator's part -----------------------------------------------------------------------------------------------

SCHEMA = us.Schema.loads('[columns.age]\ntype = "integer"\nmin = 0\nmax = 7')
DOMAIN = Domain.of(SCHEMA)
LEAVES = Grid(("age",), (tuple(range(8)),))
PRIOR = polya_prior(4.0, 3)


def curator_of(epsilon: float = 5.0, delta: float = 0.0, schema: us.Schema = SCHEMA, accounting: str = GDP) -> Curator:
    frame = pa.table({"age": [1, 1, 2, 7], "person": ["a", "b", "c", "d"]}).select(schema.names)
    budget = Budget(epsilon, delta, accounting)
    return Curator.on(us.open(frame, schema), budget, randomness=ExactRandomness.seeded(1))


def test_the_curator_debits_the_exact_epsilon() -> None:
    curator = curator_of()
    (counts,) = curator.ask(Draws(DOMAIN, [LEAVES], [PRIOR], 10))
    assert counts.sum() == 10 and counts.shape == (8,) and not counts.flags.writeable
    (spend,) = curator.spends
    assert (spend.mechanism, spend.scale, spend.prior, spend.cells) == ("posterior-draws", 10.0, PRIOR, 8)
    assert spend.cost.epsilon == epsilon_of_draws(PRIOR, 10)
    assert 0 <= curator.guarantee[0] - float(epsilon_of_draws(PRIOR, 10)) < 1e-12


def test_a_spend_survives_its_record_and_its_price_is_recomputed() -> None:
    spend = Spend("posterior-draws", "10 draws", 1.0, 10, prior=PRIOR)
    again = Spend.from_dict(json.loads(json.dumps(spend.to_dict())))
    assert again == spend and compose([again], 0.0) == compose([spend], 0.0)
    cheaper = dataclasses.replace(spend, prior=polya_prior(8.0, 3))
    assert cheaper.cost.epsilon < spend.cost.epsilon
    assert "prior" not in Spend("exponential", "x", 1.0, 0.5).to_dict()


@pytest.mark.parametrize(
    "change", [{"prior": ()}, {"scale": 2.5}, {"sensitivity": 0.0}, {"prior": (1.0, 0.25)}, {"prior": (0.3,)}]
)
def test_a_spend_without_a_price_is_never_free(change: dict[str, object]) -> None:
    spend = dataclasses.replace(Spend("posterior-draws", "draws", 1.0, 10, prior=PRIOR), **change)
    with pytest.raises((InternalError, InputError)):
        _ = spend.cost


def test_a_person_with_three_rows_costs_three_times() -> None:
    person = '\n[unit]\ncolumn = "person"\nmax_rows = 3\n[columns.person]\ntype = "identifier"'
    schema = us.Schema.loads(SCHEMA.dumps() + person)
    curator = curator_of(20.0, schema=schema)
    curator.ask(Draws(Domain.of(schema), [LEAVES], [PRIOR], 10))
    assert curator.spends[0].cost.epsilon == 3 * epsilon_of_draws(PRIOR, 10)


def test_more_than_the_budget_is_refused_before_anything_is_drawn() -> None:
    curator = curator_of(0.5)
    with pytest.raises(BudgetExhausted):
        curator.ask(Draws(DOMAIN, [LEAVES], [PRIOR], 10))
    assert curator.spends == () and curator.record == ()


@pytest.mark.parametrize(("accounting", "factor"), [(GDP, math.pi / 4), (ZCDP, 0.5)])
def test_with_a_delta_draws_cost_a_part_of_the_square(accounting: str, factor: float) -> None:
    curator = curator_of(5.0, 1e-6, accounting=accounting)
    amount = curator.remaining()
    epsilon = amount.pure_epsilon()
    prior = polya_prior(least_concentration(epsilon, 20, 3), 3)
    curator.ask(Draws(DOMAIN, [LEAVES], [prior], 20))
    cost = curator.spends[0].cost
    price = cost.by(accounting)
    assert price is not None and price <= amount.value < price * Fraction(101, 100)
    assert float(price) == pytest.approx(factor * float(cost.epsilon or 0) ** 2, rel=1e-6)


def test_draws_are_replayed_and_another_question_is_found_out() -> None:
    curator = curator_of()
    drawn = curator.ask(Draws(DOMAIN, [LEAVES], [PRIOR], 10))
    budget = curator.budget
    again = Curator.replaying(SCHEMA, budget, curator.record)
    assert (
        np.array_equal(again.ask(Draws(DOMAIN, [LEAVES], [PRIOR], 10))[0], drawn[0]) and again.spends == curator.spends
    )
    with pytest.raises(CheckFailed):
        Curator.replaying(SCHEMA, budget, curator.record).ask(Draws(DOMAIN, [LEAVES], [PRIOR], 9))
