"""The score by which a greedy tree chooses its next split: how pure its leaves would be, in rows.

Σ over leaves of Σ over classes of n(leaf, class)² / n(leaf): the rows that would be right if each were given a class
drawn from its own leaf. It is the number of rows minus n times the Gini index, so maximising it is what CART does.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.mechanisms.score import GRID, STEP
from understudy.boundary.schema.domain import ColumnSet
from understudy.boundary.schema.partition import Bundle
from understudy.predictors.splits import CodeRanges, SplitCatalogue

Number = TypeVar("Number", np.int64, np.float64)
MOST_ROWS_IN_FLOATS = 1 << 26
"""Below that, every number on the way to a score is a whole one below 2^53, which a double holds exactly."""

MOST_AT_ONCE, FEW_TO_A_CODE = 1 << 16, 256
"""Counts that are scored together, so that they stay in the cache."""


@dataclass(frozen=True)
class Purity:
    """For each split of the catalogue: the purity of a tree whose leaves are all cut by it, plus a public offset."""

    grid: Bundle
    catalogue: SplitCatalogue
    offsets: NDArray[np.float64]
    """From public facts and earlier answers alone: what the noise of so many leaves would cost."""

    @property
    def columns(self) -> ColumnSet:
        return self.grid.columns

    @property
    def choices(self) -> int:
        return len(self.catalogue.splits)

    def scores(self, counts: Iterable[NDArray[np.int64]]) -> NDArray[np.float64]:
        """Of all splits, from the counts of each column by value, class and leaf.

        Every leaf is rounded down to the public grid on its own, exactly: no other leaf has a part in that.
        """
        pure, start = np.zeros(self.choices, dtype=np.int64), 0
        for block in _blocks(counts):
            running = _running(block)
            _add(pure, self.catalogue, running, block[0].sum(axis=0), start)
            start += len(running) - 1
        return (pure + np.rint(self.offsets * GRID).astype(np.int64)) / GRID

    def sensitivity(self, rows: int, replaced: bool) -> float:
        """At most 1 for a row added or removed, 2 for one replaced, and a step of the grid for each leaf touched.

        A row of class a changes its own leaf alone: with n rows there before, p their shares by class and S = Σ p²,
        (n(2p_a − S) + 1) / (n + 1) is added. As −1 ≤ −S ≤ 2p_a − S ≤ 2p_a − p_a² ≤ 1, this lies in (−1, 1].
        The nodes of a level are disjoint, so that one row moves the sum over all of them by no more than that: they
        are parallel. The rows of a person are added one after the other; a replaced one is removed, and another added.
        """
        return rows * (2.0 if replaced else 1.0) * (1.0 + STEP)


def _blocks(counts: Iterable[NDArray[np.int64]]) -> Iterator[list[NDArray[np.int64]]]:
    """Small columns together, large ones by themselves: what is worked on stays in the cache."""
    waiting: list[NDArray[np.int64]] = []
    for here in counts:
        if waiting and sum(n.size for n in waiting) + here.size > MOST_AT_ONCE:
            yield waiting
            waiting = []
        waiting.append(here)
    yield waiting


def _running(block: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Sums over all codes below each, one column after the other."""
    sums = np.zeros((sum(map(len, block)) + 1, *block[0].shape[1:]), dtype=np.int64)
    if sums[0].size < FEW_TO_A_CODE:
        np.cumsum(np.concatenate(block), axis=0, out=sums[1:])
        return sums
    for code, here in enumerate(itertools.chain.from_iterable(block)):  # several times faster where there is much to it
        np.add(sums[code], here, out=sums[code + 1])
    return sums


def _add(
    pure: NDArray[np.int64], catalogue: SplitCatalogue, running: NDArray[np.int64], total: NDArray[np.int64], start: int
) -> None:
    """Adds the purity of every branch that takes codes of this block to that of its split, in steps of the grid.

    `total` is what each column of the block holds by class and leaf: every row once.
    """
    halves, branches = (s.between(start, start + len(running) - 1) for s in (catalogue.halves, catalogue.branches))
    np.add.at(pure, branches.split, _on_grid(_held(running, branches)))
    half = _held(running, halves)
    other = total - half
    pure[halves.split] = _on_grid(half) + _on_grid(other)


def _held(running: NDArray[np.int64], ranges: CodeRanges) -> NDArray[np.int64]:
    held = running.take(ranges.end, axis=0)
    held -= running.take(ranges.start, axis=0)
    return held


def _on_grid(held: NDArray[np.int64]) -> NDArray[np.int64]:
    """The purity of branches, from what they hold by class and leaf, rounded down leaf by leaf. It uses up `held`.

    With s the sum of squares, n the rows, s = q·n + r: ⌊s·G/n⌋ = q·G + ⌊r·G/n⌋. In doubles the quotient of two whole
    numbers a < 2^53 and n is off by at most a/n · 2^-53 < 1/n, which is its least distance from the next whole number
    above: so rounding it down gives the exact ⌊a/n⌋, much faster than a division of integers. In integers of 64 bits
    all of it holds for leaves of up to three thousand million rows.
    """
    rows = np.maximum(held.sum(axis=1), 1)
    squares = np.multiply(held, held, out=held).sum(axis=1)
    if int(rows.max(initial=0)) < MOST_ROWS_IN_FLOATS:
        return _rounded(squares.astype(np.float64), rows.astype(np.float64)).astype(np.int64)
    return _rounded(squares, rows)


def _rounded(squares: NDArray[Number], rows: NDArray[Number]) -> NDArray[Number]:
    whole = _quotient(squares, rows)
    squares -= whole * rows
    squares *= GRID
    whole *= GRID
    whole += _quotient(squares, rows)
    return whole.sum(axis=1)


def _quotient(numbers: NDArray[Number], by: NDArray[Number]) -> NDArray[Number]:
    if numbers.dtype.kind == "f":
        return np.floor(numbers / by)
    return numbers // by
