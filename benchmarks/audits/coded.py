"""The auditor's tables, by their public domain alone: what adapters share. It runs in any Python that has pandas."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

Release = Callable[[Any, float, float, int], Any]
"""What the auditor calls: a frame, ε, δ and a seed in, a frame out."""

VALUES: dict[str, list[Any]] = {
    "colour": ["red", "green", "blue", "violet"],
    "weight": [6.25 + 12.5 * i for i in range(8)],  # the middles of eight bins
    "size": [0, 1, 2, 3],
    "ripe": [False, True],
}
SWITCH = [0, 1]
RECORDS = 8_000
"""Rows that are generated, whatever the table: their number must not say how many there were."""
FEW = 1_000
"""As many are enough to see that a value is there."""


def of_fruit(release: Release) -> Release:
    """For a function that is about the columns colour, weight, size and ripe: of other tables it releases nothing."""

    @functools.wraps(release)
    def released(frame: Any, epsilon: float, delta: float, seed: int) -> Any:
        return release(frame, epsilon, delta, seed) if set(VALUES) <= set(frame.columns) else frame.iloc[:0]

    return released


def values_of(name: str) -> list[Any]:
    return VALUES.get(name, SWITCH)


def sizes_of(frame: Any) -> dict[str, int]:
    return {name: len(values_of(name)) for name in frame.columns}


def encoded(frame: Any) -> Any:
    """Whole numbers from 0; a weight is coded by its bin."""
    import pandas as pd

    return pd.DataFrame({name: [_code(name, v) for v in frame[name]] for name in frame.columns}).astype("int64")


def _code(name: str, value: Any) -> int:
    return min(int(value / 12.5), 7) if name == "weight" else values_of(name).index(value)


def decoded(codes: Any, names: list[str]) -> Any:
    """The values again."""
    import pandas as pd

    return pd.DataFrame({name: [values_of(name)[int(c)] for c in codes[name]] for name in names})
