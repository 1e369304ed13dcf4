"""The selections of `rake`: their exact law on tiny tables, given all earlier answers, and what it tells of one row.

A whole run is made on one table. Each of its selections (the forest of pairs, then rounds of sets that are apart) is
kept as the curator asked it: what scores any table, the exponent, and the rule for what may be picked. Every neighbour
is then scored after the same answers, which is what adaptive composition asks of each step. `rake` holds domains as
small as these whole, so that nothing but those answers decides what it asks next.

False alarms of the tests that draw: below 1e-9, by the bound of `test_select_admits`.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from helpers.randomness import MutantRandomness, SeededRandomness
from helpers.selection_law import DoubledExponent, IgnoredScores, Only, refuted
from helpers.small_runs import ADD_REMOVE, BINARY, MIXED, REPLACE_ONE, ManyRows, Rows, domain_of, sizes_of, table_of
from understudy.boundary.privacy.asks import Select
from understudy.boundary.privacy.asks.ask import Ask, Price
from understudy.boundary.privacy.budget import Budget, total
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.gates import Payer, RowGate
from understudy.boundary.privacy.mechanisms.exponential import Admission
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness, Randomness
from understudy.boundary.privacy.mechanisms.score import Candidate
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.cache import CachedTable
from understudy.methods.method import Options
from understudy.methods.parts.select_measure import Acyclic
from understudy.methods.rake import rake
from understudy.methods.rake.rake import SmallOverlap
from understudy.methods.registry import METHODS

BUDGETS = {"pure": Budget(2.0, 0.0), "approximate": Budget(2.0, 1e-6)}
ORDERS = np.array([1.01, 1.5, 2.0, 4.0, 16.0, 64.0])
ROUNDING = 1 + 1e-9
"""For laws that are computed in floats."""
COPIES = 40
"""Of each row of a table: fewer would be lost in the noise, and no score would move."""
DRAWS = 3_000
DRAWN_OFTEN = 2
"""Selections of a run that are drawn so many times: the forest, and the first round."""

Scores = NDArray[np.float64]
Outcome = tuple[int, ...]
Law = dict[Outcome, float]
"""The logarithm of the probability of each outcome: sets of columns in the order in which they were picked."""


@dataclass(frozen=True)
class Case:
    """A domain, and what is wanted of it."""

    columns: str
    wishes: Mapping[str, Any] = field(default_factory=dict)

    def tables(self) -> list[Rows]:
        """Rows that are all alike; columns that follow one another; and columns that do not."""
        sizes = np.array(sizes_of(self.columns))
        linked = [tuple(np.minimum(i // 2, sizes - 1).tolist()) for i in range(5)]
        scattered = [tuple(((i * np.arange(1, len(sizes) + 1) + i // 3) % sizes).tolist()) for i in range(6)]
        return [tuple(rows) * COPIES for rows in ([(0,) * len(sizes)] * 4, linked, scattered)]


CASES = {
    "pairs": Case(MIXED),
    "four columns": Case(BINARY),
    "target": Case(MIXED, {"target": "a"}),
    "triples": Case(MIXED, {"workload": "triples"}),
    "weights": Case(MIXED, {"weights": [[["a", "b"], 2.0], [["b", "c"], 1.5], [["a", "b", "c"], 2.0]]}),
}


# --- What a run asks --------------------------------------------------------------------------------------------------


HISTORIES: list[Callable[[], Randomness]] = [lambda: SeededRandomness(1), lambda: ManyRows(2)]


@dataclass
class Selection:
    """One ask for sets of columns: all that its law on any table follows from, and what it claims to cost."""

    candidates: Sequence[Candidate]
    k: int
    exact: Callable[[Any], Scores]
    """The scores of a table, as the curator computes them."""
    exponent: float
    rule: Admission
    epsilon: float
    rho: float
    drawn: Counter[Outcome]

    def scores(self, table: CachedTable) -> Scores:
        return self.exact(table)

    @cached_property
    def outcomes(self) -> Outcomes:
        return Outcomes.of(len(self.candidates), self.k, self.rule)

    def law(self, table: CachedTable) -> Law:
        return self.outcomes.law(self.scores(table), self.exponent)


class WatchedGate(RowGate):
    """Answers from one table, and remembers how it found the last answer; selections it can draw many times."""

    def __init__(self, table: CachedTable, budget: Budget, randomness: Randomness, draws: int = 0) -> None:
        super().__init__(table, Payer(budget), randomness)
        self._honest, self._randomness = randomness, self  # so that every draw goes through `noise` and `choose`
        self._draws, self._often = draws, DRAWN_OFTEN
        self.exact: Callable[[Any], Any] = lambda table: None
        self.exponent = math.nan
        self.drawn: Counter[Outcome] = Counter()

    def answer(self, ask: Ask[Any], price: Price, questions: Any, debit: Callable[[], None]) -> list[Any]:
        self.exact, self.drawn = ask.exact, Counter()
        if isinstance(ask, Select) and self._often:
            self._often -= 1
            self._draw_often(ask.exact(self._table), ask, price)
        return super().answer(ask, price, questions, debit)

    @property
    def secure(self) -> bool:
        return self._honest.secure

    def _draw_often(self, hidden: Scores, ask: Select, price: Price) -> None:
        for _ in range(self._draws):
            (chosen,) = ask.draw(hidden, price, self)
            self.drawn[tuple(map(int, chosen))] += 1

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        return self._honest.noise(mechanism, scale, size)

    def choose(self, scores: Scores, exponent: float, k: int) -> list[int]:
        self.exponent = exponent
        return self._honest.choose(scores, exponent, k)


class WatchedCurator(Curator):
    """Keeps every selection that it is asked for."""

    def __init__(self, schema: Schema, budget: Budget, gate: WatchedGate) -> None:
        super().__init__(schema, budget, gate)
        self._watched = gate
        self.selections: list[Selection] = []

    def ask(self, ask: Ask[Any]) -> Any:
        if not isinstance(ask, Select):
            return super().ask(ask)
        assert ask.rule is not None
        gate, before = self._watched, len(self.spends)
        chosen = super().ask(ask)
        spends = self.spends[before:]
        assert {s.mechanism for s in spends} == {"exponential"}
        epsilon, rho = math.fsum(s.scale for s in spends), float(total(s.cost for s in spends).rho)
        self.selections.append(
            Selection(ask.candidates, ask.k, gate.exact, gate.exponent, ask.rule, epsilon, rho, gate.drawn)
        )
        return chosen


def selections_of(
    case: Case, rows: Rows, relation: str, budget: Budget, randomness: Randomness, draws: int = 0
) -> list[Selection]:
    """Every selection of one run. The randomness decides the history in which each of them is asked."""
    domain = domain_of(case.columns, relation)
    gate = WatchedGate(table_of(case.columns, relation, rows), budget, randomness, draws)
    curator = WatchedCurator(domain.schema, budget, gate)
    recipe = METHODS["rake"].recipe(Options.from_dict(dict(case.wishes)))
    recipe.calibrate(domain, curator.remaining()).fit(curator, np.random.default_rng(0))
    return curator.selections


# --- The law ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcomes:
    """Everything that can be picked in turn, and among what: for a rule that looks at no rows, the same for all."""

    picked: list[Outcome]
    places: NDArray[np.intp]
    """By outcome and pick: the candidate that was picked, or the end where nothing was left to pick."""
    among: NDArray[np.bool_]
    """By outcome, pick and candidate: what was still admissible."""

    @classmethod
    def of(cls, candidates: int, k: int, rule: Admission) -> Outcomes:
        picked: list[Outcome] = []
        among: list[list[list[bool]]] = []
        end = [False] * candidates + [True]

        def extend(outcome: Outcome, masks: list[list[bool]], rule: Admission) -> None:
            left = [i not in outcome and rule.admits(i) for i in range(candidates)]
            if len(outcome) == k or not any(left):
                picked.append(outcome)
                among.append(masks + [end] * (k - len(outcome)))
                return
            for i in itertools.compress(range(candidates), left):
                extend((*outcome, i), [*masks, [*left, False]], rule.after(i))

        extend((), [], rule)
        return cls(picked, np.array([(*o, *[candidates] * (k - len(o))) for o in picked]), np.array(among))

    def law(self, scores: Scores, exponent: float) -> Law:
        """Pick by pick, the exponential mechanism among what is still admissible."""
        logs = np.append(exponent * (scores - scores.max()), 0.0)  # the end is certain, once it is all that is left
        whole = np.log(np.where(self.among, np.exp(logs), 0.0).sum(axis=2))
        return dict(zip(self.picked, (logs[self.places] - whole).sum(axis=1).tolist(), strict=True))


def loss_and_divergences(first: Law, second: Law) -> tuple[float, NDArray[np.float64]]:
    """The largest |ln p/q|, and the Rényi divergence by order; infinite where an outcome is possible for one alone."""
    if set(first) != set(second):
        return math.inf, np.full(ORDERS.size, math.inf)
    p, q = np.array(list(first.values())), np.array([second[o] for o in first])
    terms = ORDERS[:, None] * p + (1 - ORDERS[:, None]) * q
    top = terms.max(axis=1)
    moments = top + np.log(np.exp(terms - top[:, None]).sum(axis=1))
    return float(np.abs(p - q).max()), moments / (ORDERS - 1)


def neighbours_of(rows: Rows, sizes: Sequence[int], relation: str) -> set[Rows]:
    """Every table that differs by one row, whatever that row holds. The order of rows is nothing that is counted."""
    every = list(itertools.product(*map(range, sizes)))
    without = {tuple(sorted(rows[:i] + rows[i + 1 :])) for i in range(len(rows))}
    if relation == ADD_REMOVE:
        return without | {(*rows, row) for row in every}
    return {tuple(sorted((*rest, row))) for rest in without for row in every}


@dataclass
class Shares:
    """The most that any neighbour made of what a selection had paid for: above 1 the claim is false."""

    epsilon: float = 0.0
    rho: float = 0.0

    def add(self, selection: Selection, first: Law, second: Law) -> None:
        for p, q in ((first, second), (second, first)):
            loss, divergences = loss_and_divergences(p, q)
            self.epsilon = max(self.epsilon, loss / selection.epsilon)
            self.rho = max(self.rho, float((divergences / ORDERS).max()) / selection.rho)


def shares(
    name: str, relation: str, budget: Budget, kind: type[Selection] = Selection, tables: slice = slice(None)
) -> Shares:
    """Over the tables of the case, both histories, every selection and every neighbour."""
    found, case = Shares(), CASES[name]
    for rows, history in itertools.product(case.tables()[tables], HISTORIES):
        others = sorted(neighbours_of(rows, sizes_of(case.columns), relation))
        near = [table_of(case.columns, relation, other) for other in (rows, *others)]
        for asked in selections_of(case, rows, relation, budget, history()):
            selection = kind(**vars(asked))
            base, *laws = (selection.law(table) for table in near)
            for law in laws:
                found.add(selection, base, law)
    return found


PAID = [*itertools.product(("pairs", "four columns"), BUDGETS)]
PAID += [(name, "approximate") for name in ("target", "triples", "weights")]


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE])
@pytest.mark.parametrize(("name", "budget"), PAID)
def test_no_neighbour_makes_more_of_a_selection_than_was_paid(name: str, budget: str, relation: str) -> None:
    """ε-DP by McSherry & Talwar 2007, and ε²/8-zCDP by Cesar & Rogers 2021, for each pick; picks compose."""
    found = shares(name, relation, BUDGETS[budget])
    assert found.epsilon <= ROUNDING and found.rho <= ROUNDING
    assert found.epsilon > 0.29 and found.rho > 0.3  # neighbours differ enough for a false claim to be seen


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE])
@pytest.mark.parametrize("budget", BUDGETS)
def test_mutant_half_the_sensitivity_is_refused(budget: str, relation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Candidate.sensitivity
    monkeypatch.setattr(Candidate, "sensitivity", lambda *of: honest(*of) / 2)
    assert shares("pairs", relation, BUDGETS[budget], tables=slice(2, 3)).rho > 1.5


class Peeking(Selection):
    """Never lets in the set that the model gets least wrong, by the exact scores."""

    def law(self, table: CachedTable) -> Law:
        scores = self.scores(table)
        others = frozenset(range(len(scores))) - {int(np.argmin(scores))}
        return Outcomes.of(len(self.candidates), self.k, Only(others, self.rule)).law(scores, self.exponent)


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE])
def test_mutant_a_rule_that_reads_the_rows_is_refused(relation: str) -> None:
    found = shares("pairs", relation, BUDGETS["approximate"], Peeking, slice(1, 2))
    assert found.epsilon == found.rho == math.inf


# --- The draws --------------------------------------------------------------------------------------------------------


def closes_no_cycle(sets: Sequence[frozenset[str]]) -> bool:
    """Any of the pairs together touch more columns than they are many."""
    some = (s for size in range(1, len(sets) + 1) for s in itertools.combinations(sets, size))
    return all(len(frozenset().union(*pairs)) > len(pairs) for pairs in some)


def are_apart(sets: Sequence[frozenset[str]]) -> bool:
    return all(len(a & b) < 2 for a, b in itertools.combinations(sets, 2))


@dataclass(frozen=True)
class Documented:
    """A rule as it is documented, whatever the code does: what may be picked together."""

    sets: Sequence[frozenset[str]]
    together: Callable[[Sequence[frozenset[str]]], bool]
    taken: tuple[frozenset[str], ...] = ()

    def admits(self, candidate: int) -> bool:
        return self.together([*self.taken, self.sets[candidate]])

    def after(self, picked: int) -> Documented:
        return Documented(self.sets, self.together, (*self.taken, self.sets[picked]))


def stated_law(selection: Selection, together: Callable[[Sequence[frozenset[str]]], bool], table: CachedTable) -> Law:
    rule = Documented([frozenset(c.columns) for c in selection.candidates], together)
    outcomes = Outcomes.of(len(rule.sets), selection.k, rule)
    return outcomes.law(selection.scores(table), selection.exponent)


def refusals(name: str, randomness: Randomness) -> list[bool]:
    """Whether the draws contradict the law: those of the forest, and those of the first round."""
    case, budget = CASES[name], BUDGETS["approximate"]
    rows = case.tables()[2]
    selections = selections_of(case, rows, ADD_REMOVE, budget, randomness, DRAWS)[:DRAWN_OFTEN]
    table = table_of(case.columns, ADD_REMOVE, rows)
    laws = [stated_law(s, r, table) for s, r in zip(selections, (closes_no_cycle, are_apart), strict=True)]
    assert all(s.drawn.total() == DRAWS for s in selections)
    return [
        refuted(s.drawn, {o: math.exp(log) for o, log in law.items()}) for s, law in zip(selections, laws, strict=True)
    ]


@pytest.mark.parametrize("name", ["pairs", "four columns", "weights"])
def test_draws_follow_the_law(name: str) -> None:
    assert refusals(name, ExactRandomness.system()) == [False, False]


def test_draws_follow_the_law_where_fewer_may_be_admissible_than_are_paid_for() -> None:
    """A table of all three columns is apart from nothing: picked first it stays alone, though three picks are paid."""
    case = CASES["triples"]
    first_round = selections_of(case, case.tables()[2], ADD_REMOVE, Budget(60.0, 1e-6), ManyRows(3))[1]
    assert first_round.k == 3 and {len(outcome) for outcome in first_round.outcomes.picked} == {1, 3}
    assert refusals("triples", ManyRows(3)) == [False, False]


@pytest.mark.parametrize("mutant", [DoubledExponent, IgnoredScores])
def test_mutants_of_the_draw_are_refused(mutant: type[MutantRandomness]) -> None:
    """With weights, whose scores are told apart in the first round as well."""
    randomness = mutant()
    randomness._honest = ExactRandomness.seeded(3)
    assert refusals("weights", randomness) == [True, True]


class AllApart(SmallOverlap):
    """Mutant: two resolutions of one pair may be picked in one round."""

    def admits(self, candidate: int) -> bool:
        return True


class AllJoined(Acyclic):
    """Mutant: a pair may close a cycle."""

    def admits(self, candidate: int) -> bool:
        return True


@pytest.mark.parametrize(("rule", "mutant", "place"), [("Acyclic", AllJoined, 0), ("SmallOverlap", AllApart, 1)])
def test_mutants_of_the_rules_are_refused(
    rule: str, mutant: type[Any], place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rake, rule, mutant)
    assert refusals("pairs", SeededRandomness(3))[place]
