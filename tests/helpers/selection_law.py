"""The exact law of a selection on small tables, and selections that break it."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from helpers.randomness import MutantRandomness
from helpers.tables import CodeTable
from understudy.boundary.privacy.mechanisms.exponential import Admission
from understudy.boundary.privacy.mechanisms.score import Candidate
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import Schema

FALSE_ALARM = 1e-9
Law = dict[tuple[int, ...], float]


def schema_of(columns: int, neighbours: str = "add-remove") -> Schema:
    names = "abcd"[:columns]
    text = f'neighbours = "{neighbours}"\n'
    return Schema.loads(text + "".join(f'[columns.{n}]\ntype = "integer"\nmin = 0\nmax = 1\n' for n in names))


def table_of(rows: Sequence[Sequence[int]], schema: Schema) -> CodeTable:
    codes = np.array(rows, dtype=np.uint8).T
    return CodeTable(
        schema, (["x"], np.array([len(rows)])), codes=dict(zip(Domain.of(schema).names, codes, strict=True))
    )


def candidates_of(schema: Schema, total: float) -> list[Candidate]:
    """Every pair against one of three opposite guesses: a neighbour moves the score of one up, and of another down."""
    pairs = itertools.combinations(Domain.of(schema).names, 2)
    guesses = [np.array([[0, total], [total, 0.0]]), np.array([[total, 0], [0.0, total]]), np.zeros((2, 2))]
    return [Candidate(p, guesses[i % 3]) for i, p in enumerate(pairs)]


@dataclass(frozen=True)
class Only:
    """Nothing but these candidates, and of them what another rule admits, if one is given."""

    allowed: frozenset[int]
    rule: Admission | None = None

    def admits(self, candidate: int) -> bool:
        return candidate in self.allowed and (self.rule is None or self.rule.admits(candidate))

    def after(self, picked: int) -> Only:
        return Only(self.allowed, self.rule and self.rule.after(picked))


def law_of(scores: np.ndarray, exponent: float, k: int, rule: Admission) -> Law:
    """Draw by draw, the exponential mechanism among those that are still admissible."""
    weights = np.exp(exponent * (scores - scores.max()))
    law: Law = {}

    def extend(chosen: tuple[int, ...], probability: float, rule: Admission) -> None:
        left = [i for i in range(len(weights)) if i not in chosen and rule.admits(i)]
        if len(chosen) == k or not left:
            law[chosen] = law.get(chosen, 0.0) + probability
            return
        whole = sum(weights[i] for i in left)
        for i in left:
            extend((*chosen, i), probability * weights[i] / whole, rule.after(i))

    extend((), 1.0, rule)
    return law


def refuted(counts: Counter[tuple[int, ...]], law: Law) -> bool:
    total, degrees = sum(counts.values()), len(law) - 1
    if any(law.get(cell, 0.0) <= 0 for cell in counts):
        return True
    surprise = sum(n * math.log(n / (total * law[cell])) for cell, n in counts.items())
    return surprise > degrees and -surprise + degrees * (1 + math.log(surprise / degrees)) < math.log(FALSE_ALARM)


class DoubledExponent(MutantRandomness):
    def choose(self, scores: np.ndarray, exponent: float, k: int) -> list[int]:
        return super().choose(scores, 2 * exponent, k)


class IgnoredScores(MutantRandomness):
    def choose(self, scores: np.ndarray, exponent: float, k: int) -> list[int]:
        return super().choose(np.zeros_like(scores), exponent, k)
