"""What is measured: one method of one tool on one table, at one budget, with one seed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

METHODS = {
    "ours": (
        *("independent", "marginals", "privbayes", "mwem", "mst", "aim", "aim+target"),
        *("rake", "rake+target", "dp-arf", "dp-arf+target"),
    ),
    "smartnoise": ("mst", "mwem", "mwem-split", "aim"),
    "dpmm": ("privbayes", "mst", "aim"),
}
"""`mwem-split` is SmartNoise's MWEM on groups of three columns: the whole histogram of Adult fits no memory."""
OURS = "ours"
DELTA = 1e-6


@dataclass(frozen=True)
class Case:
    """One measurement to be made; its fields name it in the cache."""

    tool: str
    method: str
    table: str
    epsilon: float
    delta: float
    seed: int

    def __str__(self) -> str:
        return f"{self.tool} {self.method} on {self.table}, epsilon {self.epsilon:g}, seed {self.seed}"


def cases(
    tools: Sequence[str], methods: Sequence[str], tables: Sequence[str], epsilons: Sequence[float], seeds: int
) -> Iterator[Case]:
    """The whole grid. Seeds come outermost, so that a run that is stopped has one of everything."""
    pairs = [(tool, method) for tool in tools for method in METHODS[tool] if not methods or method in methods]
    for seed, table, epsilon, (tool, method) in itertools.product(range(seeds), tables, epsilons, pairs):
        yield Case(tool, method, table, epsilon, DELTA, seed)


def same_task(method: str) -> str:
    """The method that rivals are compared by: a variant competes with its plain form, and our best with AIM."""
    plain = method.removesuffix("+target").removesuffix("-split")
    return "aim" if plain in ("rake", "dp-arf") else plain
