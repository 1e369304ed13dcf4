"""Tables whose columns are related in a known way, and how far a release is from them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

import understudy as us

SIZES = {"a": 3, "b": 4, "c": 3, "d": 2, "e": 4, "f": 3}
TREE = {"b": "a", "c": "a", "d": "c", "e": "c", "f": "e"}
ROWS = 20_000


def schema_of(sizes: Mapping[str, int]) -> us.Schema:
    return us.Schema.loads(
        "".join(f'[columns.{n}]\ntype = "integer"\nmin = 0\nmax = {size - 1}\n' for n, size in sizes.items())
    )


def along(tree: Mapping[str, str], sizes: Mapping[str, int], rows: int = ROWS, seed: int = 1) -> pa.Table:
    """Each column is a copy of its parent (modulo its size) seven times in ten, and uniform otherwise."""
    rng = np.random.default_rng(seed)
    made: dict[str, np.ndarray] = {}
    for column, size in sizes.items():
        fresh = rng.integers(0, size, rows)
        made[column] = np.where(rng.random(rows) < 0.7, made[tree[column]] % size, fresh) if column in tree else fresh
    return pa.table(made)


def counts(frame: pa.Table, columns: tuple[str, ...], sizes: Mapping[str, int]) -> np.ndarray:
    shape = [sizes[c] for c in columns]
    cells = np.ravel_multi_index([frame.column(c).to_numpy() for c in columns], shape)
    return np.bincount(cells, minlength=int(np.prod(shape)))


def distance(one: pa.Table, other: pa.Table, columns: tuple[str, ...], sizes: Mapping[str, int] = SIZES) -> float:
    """Total variation between the joint tables of two frames."""
    p, q = counts(one, columns, sizes), counts(other, columns, sizes)
    return float(np.abs(p / p.sum() - q / q.sum()).sum() / 2)


def mean_distance(one: pa.Table, other: pa.Table, sizes: Mapping[str, int] = SIZES) -> float:
    return float(np.mean([distance(one, other, p, sizes) for p in itertools.combinations(sizes, 2)]))


def measured(release: us.Release) -> list[frozenset[str]]:
    """The joint tables that were measured, in order."""
    return [frozenset(a.question["columns"]) for a in release.record if a.question["ask"] == "partition"]


COPIES = dict.fromkeys("abcdt", 3)


def tangled(rows: int = 20_000, seed: int = 3) -> pa.Table:
    """Every column copies a hidden one: all pairs are related, and no tree of pairs says so."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, 3, rows)
    return pa.table({c: np.where(rng.random(rows) < 0.6, hidden, rng.integers(0, 3, rows)) for c in COPIES})
