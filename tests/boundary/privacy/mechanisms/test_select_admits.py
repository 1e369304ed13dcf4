"""Selection among admissible candidates: its law, enumerated, and what it may tell two neighbouring tables apart by.

The draws go through `Select` itself: a gate draws again and again what a curator would draw once.
False alarms: below 1e-9 for every sample size, by P[n·KL(observed, law) ≥ t] ≤ e^-t·(e·t/d)^d for d + 1 cells and t > d
(Agrawal 2020, Theorem 1.2). Mutants draw the same in every run.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from helpers.randomness import MutantRandomness
from helpers.selection_law import (
    FALSE_ALARM,
    DoubledExponent,
    IgnoredScores,
    Law,
    Only,
    candidates_of,
    law_of,
    refuted,
    schema_of,
    table_of,
)
from helpers.tables import CodeTable
from understudy.boundary.privacy.asks import Select
from understudy.boundary.privacy.asks.ask import Ask, Price
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.gates import Gate
from understudy.boundary.privacy.mechanisms.exponential import Admission
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness, Randomness
from understudy.boundary.privacy.mechanisms.score import Candidate, error_sensitivity
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import Schema
from understudy.methods.parts.select_measure import Acyclic

DRAWS, FEWER_DRAWS = 20_000, 3_000
LAW_BOUND = "a bound on KL for every sample size (Agrawal 2020)"


@dataclass
class DrawingGate(Gate):
    """Counts once, draws `draws` times; the debit is that of one ask."""

    table: CodeTable
    randomness: Randomness
    draws: int
    drawn: Counter[tuple[int, ...]] = field(default_factory=Counter)
    hidden: Any = None

    @property
    def secure(self) -> bool:
        return True

    def answer(self, ask: Ask[Any], price: Price, questions: Any, debit: Callable[[], None]) -> list[Any]:
        self.hidden = ask.exact(self.table)
        debit()
        for _ in range(self.draws):
            (chosen,) = ask.draw(self.hidden, price, self.randomness)
            self.drawn[tuple(map(int, chosen))] += 1
        return [chosen]


def tree_rule(candidates: Sequence[Candidate]) -> Acyclic:
    """What `mst` admits: whatever closes no cycle with what was admitted before."""
    return Acyclic([c.columns for c in candidates])


def selected(
    rows: Sequence[Sequence[int]],
    schema: Schema,
    rule: Admission | None,
    k: int,
    randomness: Randomness,
    draws: int = FEWER_DRAWS,
) -> tuple[DrawingGate, Curator]:
    candidates = candidates_of(schema, 4.0)
    gate = DrawingGate(table_of(rows, schema), randomness, draws)
    curator = Curator(schema, Budget(4.0, 1e-6), gate)
    curator.ask(Select(Domain.of(schema), candidates, curator.remaining(), k, rule or tree_rule(candidates)))
    return gate, curator


ROWS = {3: [(0, 0, 0), (0, 1, 1), (1, 1, 0)], 4: [(0, 0, 0, 1), (0, 1, 1, 0), (1, 1, 0, 1)]}


def exponent_of(curator: Curator, candidates: list[Candidate]) -> float:
    spend = curator.spends[0]
    assert spend.sensitivity == error_sensitivity(candidates, 1)
    return spend.scale / (2 * spend.sensitivity)


def expected(gate: DrawingGate, curator: Curator, schema: Schema, k: int) -> Law:
    candidates = candidates_of(schema, 4.0)
    return law_of(gate.hidden, exponent_of(curator, candidates), k, tree_rule(candidates))


@pytest.mark.slow_after(1)
@pytest.mark.noise(false_alarm=FALSE_ALARM, why=LAW_BOUND)
@pytest.mark.parametrize(("columns", "orders", "draws"), [(3, 6, FEWER_DRAWS), (4, 96, DRAWS)])
def test_spanning_trees_have_the_law_of_draws_among_the_admissible(columns: int, orders: int, draws: int):
    schema, k = schema_of(columns), columns - 1
    gate, curator = selected(ROWS[columns], schema, None, k, ExactRandomness.system(), draws)
    law = expected(gate, curator, schema, k)
    assert len(law) == orders and math.isclose(sum(law.values()), 1.0)
    assert sum(gate.drawn.values()) == draws
    assert len(curator.spends) == k
    assert not refuted(gate.drawn, law)


@pytest.mark.parametrize("mutant", [DoubledExponent, IgnoredScores])
def test_mutants_of_the_draw_are_refuted(mutant: type[MutantRandomness]):
    schema = schema_of(3)
    gate, curator = selected(ROWS[3], schema, None, 2, mutant())
    assert refuted(gate.drawn, expected(gate, curator, schema, 2))


def test_mutant_a_rule_that_looks_at_scores_is_refuted():
    """The tree rule, but the candidate with the smallest score is never let in where another will do."""
    schema = schema_of(4)
    candidates = candidates_of(schema, 4.0)
    counts = table_of(ROWS[4], schema).count_by(Domain.of(schema), [c.columns for c in candidates])
    scores = [c.score(n) for c, n in zip(candidates, counts, strict=True)]
    others = frozenset(range(len(scores))) - {int(np.argmin(scores))}
    peeking = Only(others, tree_rule(candidates))
    gate, curator = selected(ROWS[4], schema, peeking, 3, ExactRandomness.system(), 3 * FEWER_DRAWS)
    assert refuted(gate.drawn, expected(gate, curator, schema, 3))


def test_mutant_filtering_only_the_first_k_is_refuted():
    """Drawing k and then dropping what is not admissible gives fewer than k, and another law."""
    schema = schema_of(3)

    class Short(MutantRandomness):
        def choose(self, scores: np.ndarray, exponent: float, k: int) -> list[int]:
            return super().choose(scores, exponent, k)[:2]

    rule = Only(frozenset({1, 2}))
    gate, curator = selected([*ROWS[3]], schema, rule, 2, Short())
    law = law_of(gate.hidden, exponent_of(curator, candidates_of(schema, 4.0)), 2, rule)
    assert set(law) == {(1, 2), (2, 1)} and refuted(gate.drawn, law)


@pytest.mark.noise(false_alarm=FALSE_ALARM, why=LAW_BOUND)
def test_a_size_rule_never_admits_what_it_refuses():
    schema = schema_of(4)
    rule = Only(frozenset({1, 4, 5}))
    gate, curator = selected(ROWS[4], schema, rule, 1, ExactRandomness.system())
    law = law_of(gate.hidden, exponent_of(curator, candidates_of(schema, 4.0)), 1, rule)
    assert set(law) == {(1,), (4,), (5,)} and not refuted(gate.drawn, law)


# --- Neighbouring tables ----------------------------------------------------------------------------------------------


def renyi(p: Law, q: Law, order: float) -> float:
    """Rényi divergence between two laws on the same cells."""
    logs = [order * math.log(a) + (1 - order) * math.log(q[cell]) for cell, a in p.items()]
    top = max(logs)
    return (top + math.log(sum(math.exp(x - top) for x in logs))) / (order - 1)


def neighbours_of(rows: list[tuple[int, ...]], relation: str) -> list[list[tuple[int, ...]]]:
    every = list(itertools.product((0, 1), repeat=len(rows[0])))
    if relation == "add-remove":
        return [[*rows, row] for row in every] + [rows[:i] + rows[i + 1 :] for i in range(len(rows))]
    return [[*rows[:i], row, *rows[i + 1 :]] for i in range(len(rows)) for row in every]


def largest_share(relation: str, columns: int, k: int, epsilon: float, factor: float = 1.0) -> float:
    """The largest divergence between neighbours over all rows, as a share of the k·ε²/8·α that is paid."""
    schema = schema_of(columns, relation)
    domain, candidates = Domain.of(schema), candidates_of(schema, 2.0)
    rule, pairs = tree_rule(candidates), [c.columns for c in candidates]
    exponent = factor * epsilon / (2 * error_sensitivity(candidates, 1 if relation == "add-remove" else 2))

    def law(rows: list[tuple[int, ...]]) -> Law:
        counts = table_of(rows, schema).count_by(domain, pairs)
        return law_of(np.array([c.score(n) for c, n in zip(candidates, counts, strict=True)]), exponent, k, rule)

    base = law(ROWS[columns])
    others = [law(rows) for rows in neighbours_of(ROWS[columns], relation)]
    return max(
        renyi(p, q, order) / (order * k * epsilon**2 / 8)
        for other in others
        for p, q in ((base, other), (other, base))
        for order in (1.01, 2.0, 8.0, 64.0)
    )


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize(("columns", "k"), [(3, 1), (3, 2), (4, 3)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_neighbours_are_told_apart_by_no_more_than_is_paid(relation: str, columns: int, k: int, epsilon: float):
    """A selection of ε is ε²/8-zCDP (Cesar & Rogers 2021), and k of them compose."""
    assert largest_share(relation, columns, k, epsilon) <= 1.0 + 1e-9


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_mutant_a_doubled_exponent_tells_more_than_is_paid(relation: str):
    assert largest_share(relation, 3, 1, 0.1, factor=2.0) > 1.0
