"""What `rake` spends: all of its budget and never more, whatever it is answered.

How many sets it picks, and so how its budget is cut, follows from a noisy number of rows. So the claim of a release is
its budget (`docs/concepts/budget.md`), and the sum of the spends may differ from that by rounding alone: were it less
by an amount that depends on answers, the smaller sum would be no claim.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from helpers.randomness import SeededRandomness, SilentRandomness
from helpers.small_runs import BINARY, MIXED, ManyRows, domain_of, sizes_of, table_of
from helpers.taint import HONEST, PRIVATE, as_csv
from helpers.tuning import tune
from understudy.boundary.privacy.accountant import QUANTUM
from understudy.boundary.privacy.asks import Marginals, Partitions
from understudy.boundary.privacy.budget import Amount, Budget, Cost, Spend, total
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.facts import PublicFacts
from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.boundary.schema.schema import Schema
from understudy.errors import BudgetExhausted
from understudy.methods.method import Options
from understudy.methods.rake.schedule import Schedule
from understudy.methods.rake.tuning import TUNING
from understudy.methods.registry import METHODS
from understudy.releases.synthesis import Plan, synthesize_with

RELATIONS = ("add-remove", "replace-one")
BUDGETS = {"pure": Budget(1.0, 0.0), "approximate": Budget(1.0, 1e-6)}
PAIR = MIXED.split("[columns.c]")[0]
DOMAINS = {"one column": PAIR.split("[columns.b]")[0], "two columns": PAIR, "three": MIXED, "four": BINARY}
UNSPENT = Fraction(1, 2**48)
"""The share of a budget that roundings may leave: a spend is a few parts in 2^52 below what is set aside for it."""


class AnyTotal(SeededRandomness):
    """Honest, but for the first cell of each histogram, which is off by so much: the table seems that large."""

    def __init__(self, seed: int, more: int) -> None:
        super().__init__(seed)
        self._more = more

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        noise = super().noise(mechanism, scale, size)
        noise[0] += self._more
        return noise


class LastFirst(ManyRows):
    """Picks from the end of the list, where the tables of three columns are."""

    def choose(self, scores: NDArray[np.float64], exponent: float, k: int) -> list[int]:
        return list(range(len(scores)))[::-1][:k]


def run(
    columns: str, relation: str, budget: Budget, randomness: Randomness, wishes: dict[str, Any] | None = None
) -> Curator:
    rows = tuple(itertools.product(*map(range, sizes_of(columns))))
    domain = domain_of(columns, relation)
    curator = Curator.on(table_of(columns, relation, rows), budget, randomness=randomness)
    recipe = METHODS["rake"].recipe(Options.from_dict(wishes or {}))
    recipe.calibrate(domain, curator.remaining()).fit(curator, np.random.default_rng(0))
    return curator


def left_over(spends: tuple[Spend, ...], whole: Cost) -> Fraction:
    """The share of the budget that was not spent; negative would be too much."""
    spent = total(s.cost for s in spends)
    if whole.epsilon is not None:
        assert spent.epsilon is not None and spent.delta == 0
        return 1 - spent.epsilon / whole.epsilon
    assert spent.delta == whole.delta
    assert spent.gdp is not None and whole.gdp is not None
    return 1 - spent.gdp / whole.gdp


def run_of(name: str, relation: str, budget: Budget, randomness: Randomness) -> Fraction:
    curator = run(DOMAINS[name], relation, budget, randomness)
    return left_over(curator.spends, PublicFacts(curator.schema, budget).whole)


@pytest.fixture(autouse=True)
def fewer_picks(monkeypatch: pytest.MonkeyPatch) -> None:
    tune(monkeypatch, "rake", most_picks=25)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("name", DOMAINS)
def test_everything_is_spent_and_no_more(name: str, delta: float, relation: str) -> None:
    """Two columns have one pair, and far more picks than that: it is picked again and again."""

    @settings(max_examples=3, deadline=None, derandomize=True, database=None)
    @given(st.sampled_from([-(10**4), 0, 10**4]), st.integers(0, 10**6), st.floats(0.01, 50))
    def check(more: int, seed: int, epsilon: float) -> None:
        assert 0 <= run_of(name, relation, Budget(epsilon, delta), AnyTotal(seed, more)) <= UNSPENT

    check()


@pytest.mark.parametrize("budget", BUDGETS)
def test_how_the_budget_is_cut_follows_answers_and_how_much_is_claimed_does_not(budget: str) -> None:
    asked = BUDGETS[budget]
    few, many = (run(MIXED, "add-remove", asked, AnyTotal(1, more)) for more in (-(10**4), 10**4))
    assert len(few.spends) < len(many.spends)
    claims = [curator.guarantee[0] for curator in (few, many)]
    assert max(claims) <= asked.epsilon and min(claims) >= max(claims) * (1 - 1e-12)
    for curator in (few, many):
        with pytest.raises(BudgetExhausted):
            curator.ask(Marginals(domain_of(MIXED, "add-remove"), [("a",)], asked.capacity.part(2.0**-40)))


@pytest.mark.parametrize("budget", BUDGETS)
def test_picks_that_nothing_was_left_for_are_paid_and_their_measurements_go_to_the_others(budget: str) -> None:
    """A table of all three columns is apart from no other: picked first, it leaves two of three picks with nothing."""
    plenty = replace(BUDGETS[budget], epsilon=20.0)  # else no table of three columns could carry its noise
    curator = run(MIXED, "add-remove", plenty, LastFirst(1), {"workload": "triples"})
    picked = [(a.question["k"], len(a.value)) for a in curator.record if a.question["ask"] == "select"]
    assert any(found < k for k, found in picked)
    assert sum(s.mechanism == "exponential" for s in curator.spends) == sum(k for k, _ in picked)
    assert sum(a.question["ask"] == "partition" for a in curator.record) == sum(found for _, found in picked)
    assert 0 <= left_over(curator.spends, PublicFacts(curator.schema, plenty).whole) <= UNSPENT


@pytest.mark.parametrize(
    "few, options, share",
    [
        (False, {}, TUNING.selection_share),
        (True, {}, TUNING.keen_selection_share),
        (True, {"target": "a"}, TUNING.selection_share),
    ],
)
def test_the_parts_have_the_shares_that_are_documented(
    few: bool, options: dict[str, Any], share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One-ways a tenth, since they are of two values; then a seventh of each step for its selection, and a fifth where
    few sets are picked without a target."""
    tune(monkeypatch, "rake", few_picks=10**6 if few else 0)
    curator = run(BINARY, "add-remove", BUDGETS["approximate"], AnyTotal(1, 10**4), options)
    whole = PublicFacts(curator.schema, BUDGETS["approximate"]).whole.gdp
    parts = {
        ask: total(s.cost for s in curator.spends if s.asked.startswith(ask)).gdp for ask in ("counts by", "counts of")
    }
    selections = total(s.cost for s in curator.spends if s.mechanism == "exponential").gdp
    assert float(parts["counts by"] / whole) == pytest.approx(0.1, rel=1e-12)
    assert float(selections / whole) == pytest.approx(0.9 * share, rel=1e-12)
    assert float(parts["counts of"] / whole) == pytest.approx(0.9 * (1 - share), rel=1e-12)


def beyond(amount: Amount) -> Fraction:
    """By how much selecting and measuring in one step would take more than the step has."""
    schedule = Schedule(1, 1, amount, rounds=[], noise=1.0, selection=TUNING.selection_share)
    return schedule.selecting(amount).value + schedule.measuring(amount).value - amount.value


@settings(derandomize=True, database=None)
@given(st.integers(2**20, 2**80))
def test_a_step_never_takes_more_than_it_has(quanta: int) -> None:
    assert beyond(Amount(quanta * QUANTUM, pure=False)) <= 0


def test_mutant_parts_by_float_shares_take_more_than_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """As floats, 0.1 and 1 − 0.1 add up to more than 1: enough for the meter to stop a run at its last question."""
    monkeypatch.setattr(Schedule, "selecting", lambda self, amount: amount.part(0.1))
    monkeypatch.setattr(Schedule, "measuring", lambda self, amount: amount.part(1.0 - 0.1))
    assert beyond(Amount(Fraction(1, 2), pure=False)) > 0


def test_with_private_columns_the_delta_of_their_keys_is_spent_too(tmp_path: Path) -> None:
    schema, budget = Schema.loads(PRIVATE), Budget(20.0, 1e-6)
    plan = Plan.of(schema, budget, "rake", Options.from_dict({"target": "city"}), 50, seed=1)
    release = synthesize_with(as_csv(HONEST, schema, tmp_path), plan, randomness=SilentRandomness())
    whole = PublicFacts(schema, budget).whole
    assert whole.delta > 0 and 0 <= left_over(release.certificate.spends, whole) <= UNSPENT
    assert release.certificate.composed[0] <= budget.epsilon


# --- Mutants ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", BUDGETS)
def test_mutant_a_selection_that_is_not_set_aside_is_stopped_by_the_meter(
    budget: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Schedule, "measuring", lambda self, amount: amount)
    with pytest.raises(BudgetExhausted):
        run_of("three", "add-remove", BUDGETS[budget], SeededRandomness(1))


@pytest.mark.parametrize("budget", BUDGETS)
def test_mutant_a_round_that_answers_can_cancel_is_refused(budget: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum of its spends would be less where the table seems small: that is the claim of no theorem."""
    honest = Schedule.of

    def impatient(total: float, *of: Any, **more: Any) -> Schedule:
        schedule = honest(total, *of, **more)
        return schedule if total > 1000 else replace(schedule, rounds=schedule.rounds[:-1])

    monkeypatch.setattr(Schedule, "of", impatient)
    monkeypatch.setattr(Schedule, "after", lambda self, *of: self)
    plenty = replace(BUDGETS[budget], epsilon=20.0)  # else single columns would leave little to cancel
    small, large = (run_of("three", "add-remove", plenty, AnyTotal(1, more)) for more in (0, 10**4))
    assert small > 0.05 > UNSPENT >= large >= 0


@pytest.mark.parametrize("budget", BUDGETS)
def test_mutant_measurements_with_the_share_of_all_planned_picks_are_refused(
    budget: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where fewer are admissible than planned, something would be left."""
    honest = Curator.ask

    def planned(self: Curator, ask: Any) -> Any:
        if isinstance(ask, Partitions):
            asked = [a.question["k"] for a in self.record if a.question["ask"] == "select"][-1]
            ask = replace(ask, amount=ask.amount.part(len(ask.partitions) / asked))
        return honest(self, ask)

    monkeypatch.setattr(Curator, "ask", planned)
    plenty = replace(BUDGETS[budget], epsilon=20.0)
    curator = run(MIXED, "add-remove", plenty, LastFirst(1), {"workload": "triples"})
    assert left_over(curator.spends, PublicFacts(curator.schema, plenty).whole) > 0.01
