"""What somebody who sees only the released rows would look at, knowing the one row that may have been there."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A number counts as that of the row if it is that near, as a share of its size.
NEAR = 0.02
# Stands for anything that can't be read as a number: it is far away from all of them.
FAR = -1e9


def features(columns: Mapping[str, Sequence[Any]], extra: Mapping[str, Any]) -> dict[str, float]:
    """A number for each statistic; any of them may be thresholded."""
    rows = max((len(values) for values in columns.values()), default=0)
    found = {"number of rows": float(rows)}
    alike = np.zeros(rows)
    numbers, shared = {}, []
    for name, value in extra.items():
        values = columns.get(name, [])
        if _is_number(value):
            numbers[name] = _numbers(values)
            same = np.abs(numbers[name] - value) <= NEAR * max(1.0, abs(value))
        else:
            same = np.array([str(v).lower() == str(value).lower() for v in values], dtype=bool)
        alike[: len(same)] += same
        if len(same) == rows:  # somebody else's frame may lack a column
            shared.append(same)
        found[f"rows with the row's {name}"] = float(same.sum())
        if name in numbers:
            known = numbers[name] if len(values) else np.array([FAR])
            found |= {f"largest {name}": known.max(), f"least {name}": known.min(), f"mean {name}": known.mean()}
    found |= {f"rows alike in {k} columns": float((alike >= k).sum()) for k in range(2, len(extra) + 1)}
    # How much pairs of number columns depend on each other.
    for a, b in itertools.combinations(numbers, 2):
        found[f"relation of {a} and {b}"] = _correlation(numbers[a], numbers[b])
    return found | _links(shared)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _numbers(values: Sequence[Any]) -> NDArray[np.float64]:
    try:
        found = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.array([_number(v) for v in values], dtype=np.float64)
    return np.where(np.isfinite(found), found, FAR)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return FAR


def _correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Its size; a column that does not vary depends on none."""
    if len(a) != len(b) or len(a) < 2 or a.std() == 0 or b.std() == 0:
        return 0.0
    return float(abs(((a - a.mean()) * (b - b.mean())).mean() / (a.std() * b.std())))


def _links(shared: Sequence[NDArray[np.bool_]]) -> dict[str, float]:
    """Which columns are rare together, by where each shares the row's value: links between those the row makes rare.

    A method that chooses which columns to measure together betrays its choice: of rare values, only those that were
    measured together come together more often than by chance. Of all columns, the tree of the likeliest links counts.
    """
    from scipy.sparse.csgraph import minimum_spanning_tree

    inner, strength = np.zeros(0, dtype=bool), np.zeros(0)
    if len(shared) > 1 and shared[0].size:
        lonely = np.array([same.mean() < 0.5 for same in shared])
        lift = _lift(np.array(shared) == lonely[:, None])
        one, other = minimum_spanning_tree(lift.max() + 1 - lift).nonzero()
        inner, strength = lonely[one] & lonely[other], np.maximum(lift[one, other], 0)
    share = float(strength[inner].sum() / max(strength.sum(), 1e-9))
    return {"links between the row's rare values": float(inner.sum()), "share of links between the row's": share}


def _lift(rare: NDArray[np.bool_]) -> NDArray[np.float64]:
    """How much more often than by chance two columns are rare in one row, as a logarithm; a little for never."""
    ones = rare.astype(np.float64)
    expected = np.outer(ones.sum(axis=1), ones.mean(axis=1))
    return np.asarray(np.log((ones @ ones.T + 0.1) / (expected + 0.1)))
