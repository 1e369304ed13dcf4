"""One case of a study: a method at an ε, with a seed."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from understudy.boundary.privacy.budget import Budget
from understudy.errors import InputError
from understudy.lab.studies.study import Trial
from understudy.methods.registry import METHODS, find_method
from understudy.parameters import whole_number

MOST_SEEDS = 1000


@dataclass(frozen=True)
class Case:
    """What one child process is to do."""

    method: str
    epsilon: float
    seed: int

    @property
    def key(self) -> tuple[str, float, int]:
        return (self.method, self.epsilon, self.seed)

    def failed(self, reason: str, seconds: float = 0.0, megabytes: float = 0.0) -> Trial:
        """The trial of a case that gave no rows, or rows that nothing can be said about."""
        return Trial(self.method, self.epsilon, self.seed, seconds, megabytes, {}, reason)


BASELINE = Case("real rows", 0.0, 0)
"""The training rows in place of synthetic ones; no method has this name, and no release this ε."""


def cases(methods: Sequence[str] | None, epsilons: Sequence[float], seeds: int, delta: float) -> tuple[Case, ...]:
    """Every method at every ε, once for each seed; a study that is cut short has the first seeds of all of them.

    >>> [case.key for case in cases(["mst"], [1, 3], 2, 1e-6)]
    [('mst', 1.0, 0), ('mst', 3.0, 0), ('mst', 1.0, 1), ('mst', 3.0, 1)]
    """
    names = tuple(dict.fromkeys(METHODS if methods is None else methods))
    _check(names, epsilons, seeds, delta)
    budgets = dict.fromkeys(float(e) for e in epsilons)
    return tuple(Case(m, e, s) for s, e, m in itertools.product(range(seeds), budgets, names))


def _check(methods: Sequence[str], epsilons: Sequence[float], seeds: int, delta: float) -> None:
    if not methods or not epsilons:
        raise InputError("a study needs at least one method and one epsilon", methods)
    for name in methods:
        find_method(name)
    for epsilon in epsilons:
        Budget(epsilon, delta)
    whole_number("seeds", seeds, 1, MOST_SEEDS)
