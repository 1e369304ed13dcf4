"""Tables made up for `dp-arf`: what needs four columns to be seen, and what has too many columns for pairs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from marginals.coded import Coded

ROWS, WIDE_ROWS, WIDE_COLUMNS = 25_000, 12_500, 300
FLIPPED = 0.1
Made = tuple[dict[str, np.ndarray], dict[str, int]]


def parity(rng: np.random.Generator) -> Made:
    """Ten fair coins; the target is the parity of three of them, flipped once in ten."""
    coins = rng.integers(0, 2, (10, ROWS))
    target = np.where(rng.random(ROWS) < FLIPPED, 1, 0) ^ coins[0] ^ coins[3] ^ coins[7]
    return _named(list(coins), target), dict.fromkeys([*(f"c{i}" for i in range(10)), "t"], 2)


def rules(rng: np.random.Generator) -> Made:
    """Twelve related columns; the target follows a tree of six random splits in depth, but for one row in twenty."""
    sizes = [2, 3, 4, 5, 6, 8] * 2
    hidden = rng.integers(0, 4, ROWS)
    columns = [np.where(rng.random(ROWS) < 0.4, hidden % s, _geometric(rng, s, ROWS)) for s in sizes]
    chance = np.zeros(ROWS)
    _follow(rng, columns, sizes, np.arange(ROWS), 6, chance)
    target = (rng.random(ROWS) < chance).astype(np.int64)
    return _named(columns, target), _named_sizes(sizes)


def _follow(
    rng: np.random.Generator,
    columns: list[np.ndarray],
    sizes: list[int],
    rows: np.ndarray,
    depth: int,
    chance: np.ndarray,
) -> None:
    if depth == 0:
        chance[rows] = rng.choice([0.05, 0.95])
        return
    column = int(rng.integers(len(sizes)))
    side = rng.random(sizes[column]) < 0.5
    side[0] = not side[1:].all()
    right = side[columns[column][rows]]
    for part in (rows[right], rows[~right]):
        _follow(rng, columns, sizes, part, depth - 1, chance)


def wide(rng: np.random.Generator) -> Made:
    """Three hundred columns, of which each repeats the one before half of the time; two of them settle the target."""
    sizes = [2 + i % 7 for i in range(WIDE_COLUMNS)]
    columns = [np.zeros(WIDE_ROWS, dtype=np.int64)]
    for size in sizes:
        fresh = _geometric(rng, size, WIDE_ROWS)
        columns.append(np.where(rng.random(WIDE_ROWS) < 0.5, columns[-1] % size, fresh))
    columns = columns[1:]
    noise = rng.random(WIDE_ROWS) < FLIPPED
    return _named(columns, noise ^ (columns[0] == 1) ^ (columns[99] > 1)), _named_sizes(sizes)


TABLES: dict[str, Callable[[np.random.Generator], Made]] = {"parity": parity, "rules": rules, "wide300": wide}


def write(name: str, folder: Path) -> None:
    """The files of a coded table: four parts to train, one to test."""
    folder.mkdir(parents=True, exist_ok=True)
    codes, sizes = TABLES[name](np.random.default_rng(0))
    cut = len(codes["t"]) * 4 // 5
    train, test = ({c: v[part] for c, v in codes.items()} for part in (slice(cut), slice(cut, None)))
    Coded(train, test, sizes, frozenset()).write(folder)
    (folder / "facts.json").write_text(json.dumps({"rows": cut, "target": "t", "binary": True}))


def _geometric(rng: np.random.Generator, size: int, rows: int) -> np.ndarray:
    return np.minimum(rng.geometric(2 / (size + 2), rows) - 1, size - 1)


def _named(columns: list[np.ndarray], target: np.ndarray) -> dict[str, np.ndarray]:
    return {f"c{i}": v for i, v in enumerate(columns)} | {"t": target.astype(np.int64)}


def _named_sizes(sizes: list[int]) -> dict[str, int]:
    return {f"c{i}": s for i, s in enumerate(sizes)} | {"t": 2}
