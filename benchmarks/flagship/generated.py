"""Tables of high order, generated from a fixed public seed: relations that no pair of columns shows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from rake.hostile import Draft, Generator, Made, rng_of

from understudy.boundary.schema.column import Categorical, Number

BITS, FLIPS = 10, 0.05
NUMBERS, CLASSES, LIMIT, BINS = 7, 10, 5.0, 40
SPREAD, NOISE = 2.0, 0.1
Floats = NDArray[np.float64]
Shape = Callable[[Generator, int], dict[int, Floats]]


def xor(k: int, rows: int) -> Made:
    """Ten fair bits and `target`, the parity of k of them, with 5 % of its values flipped.

    Any k of the eleven columns are independent, so that only the k + 1 of the parity together say anything: boosting
    on real rows reaches an AUC of .95.
    """
    rng, table = rng_of(100 + k), Draft()
    bits = rng.integers(0, 2, (rows, BITS))
    used = rng.choice(BITS, k, replace=False)
    for i in range(BITS):
        table.boolean(f"bit{i}", bits[:, i] > 0)
    table.boolean("target", (bits[:, used].sum(axis=1) % 2 == 1) ^ (rng.random(rows) < FLIPS))
    return table.done()


def classes(rows: int) -> Made:
    """Ten classes of equal share in seven numbers, each class a shape of its own in two or three of them.

    All columns are normal with a deviation of 2 first; then those of a class's shape are put onto it, with noise of .1:

    - 0 and 1: rings of radius 1 and 2 in columns 0 and 1;
    - 2 and 3: helices of either hand in columns 0, 1 and 2;
    - 4 and 5: the upper and the lower of two interlocking half moons in columns 2 and 3;
    - 6 and 7: four clusters in columns 4 and 5, on the one diagonal or on the other, at the height of column 3;
    - 8 and 9: a parabola and a wave of column 6 over column 4.

    Means differ little between classes, and a pair of columns tells few of them apart; boosting on real rows gets
    about .83 right.
    """
    rng, table = rng_of(110), Draft()
    label = rng.integers(0, CLASSES, rows)
    x = rng.normal(0, SPREAD, (rows, NUMBERS))
    for number, shape in enumerate(_SHAPES):
        here = np.flatnonzero(label == number)
        for column, values in shape(rng, len(here)).items():
            x[here, column] = values + rng.normal(0, NOISE, len(here))
    for i in range(NUMBERS):
        number = Number(f"x{i}", minimum=-LIMIT, maximum=LIMIT, bins=BINS, decimals=3)
        table.add(number, np.clip(x[:, i], -LIMIT, LIMIT).round(3))
    table.add(Categorical("target", values=tuple(range(CLASSES))), label)
    return table.done()


def _ring(radius: float) -> Shape:
    def shape(rng: Generator, rows: int) -> dict[int, Floats]:
        angle = rng.uniform(0, 2 * np.pi, rows)
        return {0: radius * np.cos(angle), 1: radius * np.sin(angle)}

    return shape


def _helix(hand: int) -> Shape:
    def shape(rng: Generator, rows: int) -> dict[int, Floats]:
        angle = rng.uniform(-np.pi, np.pi, rows)
        return {0: 1.5 * np.cos(angle), 1: hand * 1.5 * np.sin(angle), 2: angle / 1.5}

    return shape


def _moon(side: int) -> Shape:
    def shape(rng: Generator, rows: int) -> dict[int, Floats]:
        angle = rng.uniform(0, np.pi, rows)
        return {2: 1.4 * np.cos(angle) + 0.7 * side, 3: side * (1.4 * np.sin(angle) - 0.4)}

    return shape


def _clusters(diagonal: int) -> Shape:
    def shape(rng: Generator, rows: int) -> dict[int, Floats]:
        one, other = rng.choice([-1.2, 1.2], rows), rng.normal(0, 0.3, rows)
        return {3: np.zeros(rows), 4: one + other, 5: diagonal * one - other}

    return shape


def _curve(wave: bool) -> Shape:
    def shape(rng: Generator, rows: int) -> dict[int, Floats]:
        t = rng.uniform(-2, 2, rows)
        return {4: t, 6: np.sin(3 * t) if wave else t**2 - 1.5}

    return shape


_SHAPES = (
    *(_ring(1.0), _ring(2.0), _helix(1), _helix(-1), _moon(1), _moon(-1)),
    *(_clusters(1), _clusters(-1), _curve(wave=False), _curve(wave=True)),
)
