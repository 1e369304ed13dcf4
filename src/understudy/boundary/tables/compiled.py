"""The inner loop of `counting`, compiled by numba: the same counts as by numpy, since counts are whole numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

BLOCK = 2048
"""Rows whose cell numbers are formed before they are counted: they stay in the nearest cache."""


def _compiled(loop: Callable[..., Any]) -> Callable[..., Any]:
    """Kept on disk, where there is a folder for it: to compile takes a second, and to load it none."""
    try:
        return numba.njit(nogil=True, cache=True)(loop)
    except RuntimeError:  # no folder that could be written to
        return numba.njit(nogil=True)(loop)


@_compiled
def count_codes(
    codes: NDArray[Any],
    sizes: NDArray[np.uint32],
    members: NDArray[np.int64],
    lengths: NDArray[np.int64],
    starts: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    """Adds each row to one cell of each set: set s has the columns `members[s, :lengths[s]]`, and counts from
    `starts[s]` on. A code of column c must be below `sizes[c]`, or another's memory would be written to."""
    rows = codes.shape[1]
    cells = np.empty(BLOCK, dtype=np.uint32)
    for s in range(len(lengths)):
        # Set by set over all rows: so the counts of one set stay in the cache.
        found = counts[starts[s] : starts[s + 1]]
        for first in range(0, rows, BLOCK):
            length = min(BLOCK, rows - first)
            cells[:] = 0
            for j in range(lengths[s]):
                column = codes[members[s, j], first : first + length]
                size = np.uint32(sizes[members[s, j]])
                for i in range(length):
                    cells[i] = cells[i] * size + np.uint32(column[i])
            for i in range(length):
                found[cells[i]] += 1
