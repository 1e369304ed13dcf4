"""Per-row gradients of a critic, clipped row by row and summed without a loop over rows.

A critic scores a row by its groups: f(x) = Σ over pairs of columns w[x_a, x_b] + v·h(W·x + b). The first, *wide* part
is linear in its weights: the gradient of a row is 1 for the pairs of groups that it has and 0 elsewhere, so all rows
have the same norm and the sum is a count. The second, *deep* part is a network of one hidden layer, whose gradient with
respect to W is an outer product: its norm is the product of two norms, and the sum of clipped gradients is one product
of matrices (Goodfellow 2015).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InternalError

Floats = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Groups:
    """How many groups each column has: a row is one of them in each column, written as ones and zeros side by side."""

    sizes: tuple[int, ...]

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """Where each column begins."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.intp)

    @property
    def width(self) -> int:
        return sum(self.sizes)

    @property
    def pairs(self) -> int:
        return len(self.sizes) * (len(self.sizes) - 1) // 2

    @cached_property
    def upper(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The places of all pairs of groups of different columns, each once, in a table of groups by groups."""
        column = np.repeat(np.arange(len(self.sizes)), self.sizes)
        above, below = np.nonzero(column[:, None] < column[None, :])
        return above, below

    def one_hot(self, codes: Codes) -> Floats:
        found = np.zeros((len(codes), self.width))
        found[np.arange(len(codes))[:, None], codes + self.starts[:-1]] = 1.0
        return found


@dataclass(frozen=True, eq=False)
class Deep:
    """The deep part of a critic: f(x) = last · silu(first' x + bias). Smooth, so that rounding stays rounding."""

    first: Floats
    bias: Floats
    last: Floats

    @classmethod
    def of(cls, vector: Floats, width: int, hidden: int) -> Deep:
        ends = (width * hidden, width * hidden + hidden)
        if len(vector) != ends[1] + hidden:
            raise InternalError(f"a critic of {width} by {hidden} can't have {len(vector)} weights.", vector)
        return cls(vector[: ends[0]].reshape(width, hidden), vector[ends[0] : ends[1]], vector[ends[1] :])

    @property
    def cells(self) -> int:
        return self.first.size + self.bias.size + self.last.size

    def flat(self) -> Floats:
        return np.concatenate([self.first.ravel(), self.bias, self.last])

    def clipped_sum(self, rows: Floats, longest: float) -> Floats:
        """The sum of the rows' gradients, none of them longer than `longest`, as one vector in the order of `flat`."""
        if not len(rows):
            return np.zeros(self.cells)
        before = rows @ self.first + self.bias
        gate = 0.5 + 0.5 * np.tanh(0.5 * before)
        hidden = before * gate
        back = gate * (1.0 + before * (1.0 - gate)) * self.last
        squares = (np.einsum("ij,ij->i", rows, rows) + 1.0) * np.einsum("ij,ij->i", back, back)
        squares += np.einsum("ij,ij->i", hidden, hidden)
        weights = longest / np.maximum(np.sqrt(squares), longest)
        weighted = back * weights[:, None]
        return np.concatenate([(rows.T @ weighted).ravel(), weighted.sum(axis=0), weights @ hidden])


def pair_counts(groups: Groups, rows: Floats) -> NDArray[np.int64]:
    """How many rows have each pair of groups, in the order of `Groups.upper`; whole numbers, so exact in floats."""
    return (rows.T @ rows)[groups.upper].astype(np.int64)


def symmetric(groups: Groups, values: Floats) -> Floats:
    """A table of groups by groups from one number per pair; nothing is said of a column with itself."""
    table = np.zeros((groups.width, groups.width))
    table[groups.upper] = values
    return table + table.T


def cells_of(sizes: Sequence[int], hidden: int) -> int:
    """How many numbers one noisy gradient has."""
    groups = Groups(tuple(sizes))
    wide = (groups.width**2 - sum(s * s for s in groups.sizes)) // 2
    return wide + (hidden * (groups.width + 2) if hidden else 0)


def lengths(groups: Groups, deep_share: float) -> tuple[float, float]:
    """How long the wide and the deep gradient of a row may be, so that both together are of length 1."""
    share = deep_share if groups.pairs else 1.0
    return math.sqrt(1.0 - share), math.sqrt(share)
