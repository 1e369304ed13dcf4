"""How deep, how many trees, how many leaves: a public rule.

It looks at the budget, the schema and the number of rows, declared or bought with a small part of the budget, and at
nothing else. The *signal* is the number of rows over the noise that the whole budget would put on one count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from understudy.errors import InputError

RANDOM, EXPONENTIAL, NOISY = "random", "exponential", "noisy"
STRUCTURES = (RANDOM, EXPONENTIAL, NOISY)

TOTAL_SHARE = 0.05
"""Of the budget, for the number of rows, where it is neither declared nor public."""
SELECTION_SHARE = 0.5
LEVELS_PER_DOUBLING, SIGNAL_OF_A_LEVEL = 0.65, 50.0
MOST_LEVELS, FEWEST_LEAVES, MOST_LEAVES = 10, 32, 8192
LEAVES_PER_SIGNAL = 0.5
MOST_FREE_DEPTH = 10
RANDOM_DEPTH, MOST_RANDOM_TREES = 7, 30
SIGNAL_OF_A_RANDOM_TREE = 500.0
SIGNAL_OF_ALL_SPLITS = 400.0
"""With less, so many choices would be lost in the noise of choosing."""
MOST_TREES, MOST_DEPTH, MOST_ASKED_LEAVES = 1000, 30, 1 << 20


@dataclass(frozen=True)
class Recipe:
    """What a user may settle; None leaves it to the rule."""

    structure: str = EXPONENTIAL
    trees: int | None = None
    depth: int | None = None
    leaves: int | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        if self.structure not in STRUCTURES:
            raise InputError(f"structure ({self.structure!r}) must be one of {', '.join(STRUCTURES)}", self.structure)
        most = {"trees": MOST_TREES, "depth": MOST_DEPTH, "leaves": MOST_ASKED_LEAVES, "rows": 2**52}
        for name, bound in most.items():
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= bound):
                raise InputError(f"{name} ({value!r}) must be a whole number from 1 to {bound:,}, or None", value)


@dataclass(frozen=True)
class Plan:
    """What will be grown."""

    trees: int
    depth: int
    leaves: int
    few: bool = False
    """Whether a greedy tree is offered only some splits of each column."""


def plan(recipe: Recipe, signal: float, columns: int) -> Plan:
    """The recipe with every open part settled.

    >>> plan(Recipe(), 32_000.0, 14)
    Plan(trees=1, depth=6, leaves=8192, few=False)
    """
    signal = max(signal, 1.0)
    if recipe.structure == RANDOM:
        trees = recipe.trees or min(MOST_RANDOM_TREES, max(1, round(math.sqrt(signal / SIGNAL_OF_A_RANDOM_TREE))))
        depth = recipe.depth or min(RANDOM_DEPTH, columns)
    else:
        trees = recipe.trees or 1
        depth = recipe.depth or _levels(signal / trees)
    least = 2 ** min(recipe.depth, MOST_FREE_DEPTH) if recipe.depth else 1  # a depth that is asked for can be reached
    leaves = recipe.leaves or min(MOST_LEAVES, max(FEWEST_LEAVES, least, round(LEAVES_PER_SIGNAL * signal / trees)))
    return Plan(trees, depth, leaves, signal / trees < SIGNAL_OF_ALL_SPLITS)


def _levels(signal: float) -> int:
    levels = round(LEVELS_PER_DOUBLING * math.log2(signal / SIGNAL_OF_A_LEVEL)) if signal > SIGNAL_OF_A_LEVEL else 1
    return min(max(levels, 1), MOST_LEVELS)
