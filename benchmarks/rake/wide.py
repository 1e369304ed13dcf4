"""Very wide tables, generated from a fixed public seed: hundreds of columns, of which each has some close relatives.

A few factors move all columns a little, as age and wealth do in a survey, and a factor for each dozen moves those of a
topic more. Every fifth column is a noisy image of an earlier one of its topic: a pair that is well worth measuring
among a hundred thousand that are not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .hostile import Codes, Draft, Generator, Made, rng_of

ROWS = 100_000
COMMON, TOPIC = 3, 12
"""Factors of all columns, and how many columns have one of their own."""
SIZES = {"boolean": (2,), "category": (3, 4, 5, 6, 8, 12, 20, 40), "integer": (10, 24, 50, 100)}
KINDS = ("category", "boolean", "category", "integer", "category")
"""In turn. Every fifth is an image of an earlier column."""
NAMES = {"wide120": 120, "wide500": 500}


def table(columns: int, rows: int = ROWS, seed: int = 9) -> Made:
    rng, draft = rng_of(seed), Draft()
    common = rng.normal(size=(rows, COMMON))
    topic, made = common, list[tuple[Codes, int]]()
    for i in range(columns):
        if i % TOPIC == 0:
            topic, made = np.column_stack([common, rng.normal(size=(rows, 1))]), []
        kind = KINDS[i % len(KINDS)]
        size = int(rng.choice(SIZES[kind]))
        if made and i % len(KINDS) == len(KINDS) - 1:
            codes = _image(rng, *made[rng.integers(len(made))], size=size)
        else:
            codes = _cut(rng, topic, size, ordered=kind != "category")
        made.append((codes, size))
        match kind:
            case "boolean":
                draft.boolean(f"w{i}_", codes > 0)
            case "category":
                draft.category(f"w{i}_", codes, size)
            case _:
                draft.integer(f"w{i}_", codes, 0, size - 1)
    return draft.done()


def _cut(rng: Generator, factors: NDArray[np.float64], size: int, ordered: bool) -> Codes:
    """A mix of the factors cut at random places; the names of categories know no order."""
    mix = rng.normal(size=factors.shape[1]) * np.array([*[0.35] * COMMON, 1.0])
    score = factors @ mix + rng.normal(size=len(factors))
    cuts = np.quantile(score, rng.dirichlet(np.ones(size)).cumsum()[:-1])
    codes = np.searchsorted(cuts, score, side="right")
    return codes if ordered else rng.permutation(size)[codes]


def _image(rng: Generator, parent: Codes, values: int, size: int) -> Codes:
    """What another column says, on most rows."""
    image = rng.integers(0, size, values)
    return np.where(rng.random(len(parent)) < rng.uniform(0.4, 0.95), image[parent], rng.integers(0, size, len(parent)))
