"""The nearest rows of a table, for tens of thousands of rows with mixed columns.

Indicators of categories make so many dimensions that a tree would visit most of its leaves; a product of matrices in
single precision is faster. It loses digits, so it only proposes neighbours, whose distances are then taken anew.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Matrix = NDArray[np.float32]
Places = NDArray[np.int64]

BLOCK_BYTES = 24_000_000
"""Of the products that are looked at together: more would not stay near the processor."""
LANES = 1024
"""Rows are dealt to so many lanes; the nearest ones lie in the lanes whose own nearest row is nearest."""
SPARE = 4
"""Proposals beyond those that are wanted, since single precision may swap near ones."""


@dataclass(frozen=True)
class Neighbours:
    """Of each asked row the nearest ones, nearest first."""

    distances: Floats
    places: Places


@dataclass(frozen=True)
class Index:
    """Rows to look among. Far-away padding makes their number a multiple of the lanes."""

    rows: Matrix
    middle: Matrix
    turned: Matrix
    """-2 y and |y|² of every row y, centred, as columns: what a row x is multiplied with to get |x - y|² - |x|²."""

    @classmethod
    def of(cls, rows: Matrix) -> Index:
        # About the middle all numbers are small: |x - y|² comes from the difference of products, in single precision.
        middle = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
        lanes = min(LANES, len(rows))
        turned = np.zeros((rows.shape[1] + 1, -(-len(rows) // lanes) * lanes), dtype=np.float32)
        np.subtract(rows.T, middle[:, np.newaxis], out=turned[:-1, : len(rows)])
        turned[-1] = np.square(turned[:-1]).sum(axis=0)
        # In the row of |y|² alone: an infinite coordinate would turn into NaN wherever an asked row has a 0.
        turned[-1, len(rows) :] = np.inf
        turned[:-1] *= -2
        return cls(rows, middle, turned)

    def nearest(self, asked: Matrix, count: int, own: Places | None = None) -> Neighbours:
        """At most so many of each asked row; `own` says which row of the index each of them is, so not a neighbour."""
        block = max(1, BLOCK_BYTES // (4 * self.turned.shape[1]))
        found = []
        for start in range(0, len(asked), block):
            part = slice(start, start + block)
            selves = own
            if own is not None:
                selves = own[part]
            found.append(self._block(asked[part], count, selves))
        return Neighbours(np.concatenate([f.distances for f in found]), np.concatenate([f.places for f in found]))

    def _block(self, asked: Matrix, count: int, own: Places | None) -> Neighbours:
        centred = np.ones((len(asked), asked.shape[1] + 1), dtype=np.float32)
        np.subtract(asked, self.middle, out=centred[:, :-1])
        products = centred @ self.turned
        offered = len(self.rows)
        if own is not None:
            products[np.arange(len(asked)), own] = np.inf
            offered -= 1
        return self._ranked(asked, _smallest(products, min(count + SPARE, offered)), min(count, offered))

    def _ranked(self, asked: Matrix, places: Places, count: int) -> Neighbours:
        """The nearest of the proposed rows, by exact distances; of equally near ones the first."""
        # In the order of the rows, which the stable sort below keeps among equals: the same on every machine.
        places = np.sort(places, axis=1)
        distances = np.empty(places.shape)
        for i in range(places.shape[1]):
            apart = asked - self.rows[places[:, i]]
            distances[:, i] = np.sqrt(np.einsum("ij,ij->i", apart, apart, dtype=np.float64))
        order = np.argsort(distances, axis=1, kind="stable")[:, :count]
        return Neighbours(np.take_along_axis(distances, order, 1), np.take_along_axis(places, order, 1))


def _smallest(products: Matrix, count: int) -> Places:
    """Where the smallest of each line are, in any order."""
    lanes = min(LANES, products.shape[1])
    if count >= lanes:
        return np.argpartition(products, count - 1, axis=1)[:, :count].astype(np.int64)
    # One of the `count` smallest lies in a lane whose minimum is no larger, and fewer than `count` lanes can have a
    # smaller one: so the `count` lanes with the smallest minima hold them all.
    by_lane = products.reshape(len(products), -1, lanes)
    best = np.argpartition(by_lane.min(axis=1), count - 1, axis=1)[:, :count]
    places = (np.arange(by_lane.shape[1])[:, np.newaxis] * lanes + best[:, np.newaxis, :]).reshape(len(products), -1)
    chosen = np.argpartition(np.take_along_axis(products, places, 1), count - 1, axis=1)[:, :count]
    return np.take_along_axis(places, chosen, 1)
