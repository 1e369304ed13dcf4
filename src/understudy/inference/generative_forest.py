"""A generative forest: every tree is used for every row (Nock & Guillame-Bert 2024, "Generative Forests").

A row goes down one tree after the other. Each split halves what its columns may still be, and at the end every column
is drawn from what is left of it. So the leaves of all trees together cut the domain into boxes, far more than any one
tree could, and the density is a product over the splits that a row meets: it can be written down, drawn from exactly,
and asked for one column given the others.

With which probability a split goes up is counted: among weighted rows of an earlier model (here always particles that
obey paid counts), those in the box so far. Deep down these get few, so the count is shrunk towards what the single
columns and this tree alone say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.partition import Tree, code_bits
from understudy.inference.grouping import Floats
from understudy.inference.model import CodeColumns
from understudy.inference.sampling import CODE, draw_given

Rows: TypeAlias = NDArray[np.intp]
Flags: TypeAlias = NDArray[np.bool_]

STRENGTH = 10.0
"""Rows that the single columns and the tree alone count for, beside those in the box."""
MASS = 1 << 40
"""The whole of a column, whose codes have whole parts of it: their sums are the same in any order."""
FITS, DRAWN_TO_FIT = 4, 40_000
"""Rounds in which single columns are fitted, and the rows drawn in each, at most."""
BLOCK = 30_000_000
"""Values still possible (one for each code of each row) that are held at once."""
MOST_ENUMERATED = 256
"""Combinations of the columns that are not given, up to which each is tried."""
CANDIDATES = 16
"""Completions of a row, of which one is chosen by weight where there are too many combinations."""


@dataclass(frozen=True, eq=False)
class GenerativeForest:
    """The model: trees, single columns, and the rows by which splits are counted."""

    trees: tuple[Tree, ...]
    columns: Mapping[str, Floats]
    """The mass of each code of each column."""
    support: CodeColumns
    """Rows of equal weight."""
    total: float
    strength: float = STRENGTH
    measured: Mapping[str, Floats] | None = None
    """What single columns are known to have, where `columns` was moved away from that to meet it."""

    @cached_property
    def masses(self) -> dict[str, NDArray[np.int64]]:
        """The columns in whole parts of `MASS`, at least one for each code: no row of the domain is impossible."""
        return _masses(self.columns)

    @cached_property
    def lifts(self) -> tuple[Floats, ...]:
        """For each tree and split, by how much more often rows go down and up there than single columns say."""
        masses = _masses(self.measured or self.columns)
        return tuple(_lifts(tree, masses, self.support) for tree in self.trees)

    def with_tree(self, tree: Tree) -> GenerativeForest:
        return replace(self, trees=(*self.trees, tree))

    def fitted_to(self, columns: Mapping[str, Floats], rng: np.random.Generator) -> GenerativeForest:
        """The same forest with other masses of single columns, so that its rows have these counts of them.

        What splits shrink towards pulls single columns away from their counts. A few rounds of draws, each followed by
        half of the step that would mend them, take most of that back.
        """
        fitted, rows = replace(self, measured=columns), len(next(iter(self.support.values())))
        for _ in range(FITS if self.trees else 0):
            drawn = fitted.sample(min(rows, DRAWN_TO_FIT), rng)
            masses = {}
            for name, wanted in columns.items():
                found = np.bincount(drawn[name], minlength=len(wanted)) + 1.0
                aimed = wanted * (found.sum() / wanted.sum()) + 1.0
                masses[name] = fitted.columns[name] * np.sqrt(aimed / found)
            fitted = replace(fitted, columns=masses)
        return fitted

    def sample(self, rows: int, rng: np.random.Generator) -> CodeColumns:
        """Independent draws in law; systematic within a box, so that counts follow the law up to rounding."""
        parts = [self._walked(size, rng).draw(rng) for size in self._blocks(rows)]
        return {name: np.concatenate([part[name] for part in parts]) for name in self.masses}

    def _walked(self, rows: int, rng: np.random.Generator) -> Walk:
        walk = Walk.start(self, rows)
        for number in range(len(self.trees)):
            walk.descend(number, walk.drawing(rng))
        return walk

    def log_density(self, codes: CodeColumns) -> Floats:
        """The logarithm of the probability of each row of codes."""
        rows = len(next(iter(codes.values())))
        parts, start = [np.zeros(0)], 0
        for size in self._blocks(rows) if rows else ():
            parts.append(self._log_density({name: codes[name][start : start + size] for name in self.masses}, size))
            start += size
        return np.concatenate(parts)

    def _log_density(self, codes: CodeColumns, rows: int) -> Floats:
        walk, logs = Walk.start(self, rows), np.zeros(rows)

        def follow(column: str, right: Flags, mine: Rows, chance: Floats) -> Flags:
            goes = right[codes[column][mine]]
            logs[mine] += np.log(np.where(goes, chance, 1.0 - chance))
            return goes

        for number in range(len(self.trees)):
            walk.descend(number, follow)
        return logs + walk.log_mass(codes)

    def complete(self, given: CodeColumns, rng: np.random.Generator) -> CodeColumns:
        """Whole rows given some of their columns: exactly where few combinations are left, else by weighing draws."""
        open_columns = [name for name in self.masses if name not in given]
        combinations = math.prod(len(self.masses[name]) for name in open_columns)
        rows = len(next(iter(given.values())))
        tries = combinations if combinations <= MOST_ENUMERATED else CANDIDATES
        parts, start = [], 0
        for size in self._blocks(rows, tries):
            part = {name: codes[start : start + size] for name, codes in given.items()}
            if combinations <= MOST_ENUMERATED:
                parts.append(self._enumerated(part, open_columns, size, rng))
            else:
                parts.append(self._weighed(part, size, rng))
            start += size
        return {name: np.concatenate([part[name] for part in parts]) for name in self.masses}

    def _enumerated(
        self, given: CodeColumns, open_columns: Sequence[str], rows: int, rng: np.random.Generator
    ) -> CodeColumns:
        """Every combination of the other columns, and one drawn by its probability."""
        shape = [len(self.masses[name]) for name in open_columns]
        every = np.indices(shape).reshape(len(shape), -1).astype(CODE)
        count = every.shape[1]
        whole = {name: np.repeat(codes, count) for name, codes in given.items()}
        whole |= {name: np.tile(every[i], rows) for i, name in enumerate(open_columns)}
        place = _pick(self.log_density(whole).reshape(rows, count), rng)
        return dict(given) | {name: every[i][place] for i, name in enumerate(open_columns)}

    def _weighed(self, given: CodeColumns, rows: int, rng: np.random.Generator) -> CodeColumns:
        """Some walks that keep what is given, each weighed by how likely that made its splits; one of them is kept."""
        # Importance sampling: what is given forces a split, and the weight takes in the probability that it had.
        tried = {name: np.repeat(codes, CANDIDATES) for name, codes in given.items()}
        walk, logs = Walk.start(self, rows * CANDIDATES), np.zeros(rows * CANDIDATES)
        drawing = walk.drawing(rng)

        def decide(column: str, right: Flags, mine: Rows, chance: Floats) -> Flags:
            if column not in tried:
                return drawing(column, right, mine, chance)
            goes = right[tried[column][mine]]
            logs[mine] += np.log(np.where(goes, chance, 1.0 - chance))
            return goes

        for number in range(len(self.trees)):
            walk.descend(number, decide)
        logs += walk.log_mass(tried)
        place = np.arange(rows) * CANDIDATES + _pick(logs.reshape(rows, CANDIDATES), rng)
        return {name: codes[place] for name, codes in (walk.draw(rng) | tried).items()}

    def _blocks(self, rows: int, each: int = 1) -> Iterator[int]:
        """Sizes of parts of the rows, each of which is held `each` times."""
        most = max(1, BLOCK // (each * sum(len(m) for m in self.masses.values())))
        yield from (min(most, rows - start) for start in range(0, max(rows, 1), most))

    def describe(self) -> dict[str, Any]:
        """The forest as plain values: each tree's splits, with the share of rows that go up at each."""
        trees = []
        for tree, lifts in zip(self.trees, self.lifts, strict=True):
            splits = [
                {
                    "column": tree.columns[s.column],
                    "up": np.flatnonzero(code_bits(s.right, tree.sizes[s.column])).tolist(),
                    "lift": [round(float(x), 6) for x in lift],
                    "children": [s.low, s.high],
                }
                for s, lift in zip(tree.splits, lifts, strict=True)
            ]
            trees.append(splits)
        columns = {name: (m / m.sum()).round(9).tolist() for name, m in self.masses.items()}
        return {"columns": columns, "trees": trees, "strength": self.strength}


Decision: TypeAlias = Callable[[str, Flags, Rows, Floats], Flags]
"""From the column of a split, the codes that go up, some rows, and their probability to go up: which do."""


@dataclass(eq=False)
class Walk:
    """Rows on their way down the trees: the box of each, and which rows of the support are in the same one."""

    forest: GenerativeForest
    possible: dict[str, Flags]
    """For each column, which of its codes each row may still have."""
    left: dict[str, NDArray[np.int64]]
    """The mass of these codes."""
    box: Rows
    beside: Rows
    """The box of each row of the support; −1 where no row is."""
    boxes: int = 1

    @classmethod
    def start(cls, forest: GenerativeForest, rows: int) -> Walk:
        size = len(next(iter(forest.support.values())))
        return cls(
            forest,
            {name: np.ones((rows, len(mass)), dtype=np.bool_) for name, mass in forest.masses.items()},
            {name: np.full(rows, mass.sum()) for name, mass in forest.masses.items()},
            np.zeros(rows, dtype=np.intp),
            np.zeros(size, dtype=np.intp),
        )

    def descend(self, number: int, decide: Decision) -> None:
        """All rows down one tree."""
        tree, lifts = self.forest.trees[number], self.forest.lifts[number]
        leaf = np.zeros(len(self.box), dtype=np.intp)
        others = np.full(len(self.beside), -1, dtype=np.intp)
        pending = [(0, np.arange(len(self.box)), np.flatnonzero(self.beside >= 0))]
        while pending:
            node, mine, theirs = pending.pop()
            if node < 0:
                leaf[mine], others[theirs] = -1 - node, -1 - node
            elif len(mine):
                split = tree.splits[node]
                column = tree.columns[split.column]
                right = code_bits(split.right, tree.sizes[split.column])
                rises = right[self.forest.support[column][theirs]]
                goes = self._split(column, right, mine, (theirs, rises), lifts[node], decide)
                pending.append((split.low, mine[~goes], theirs[~rises]))
                pending.append((split.high, mine[goes], theirs[rises]))
        self._renumber(leaf, others, tree.cells)

    def _split(
        self, column: str, right: Flags, mine: Rows, support: tuple[Rows, Flags], lift: Floats, decide: Decision
    ) -> Flags:
        """Which of some rows at one split go up, and what is left of its column for each."""
        held = self.possible[column][mine]
        up = np.where(held & right, self.forest.masses[column], 0).sum(axis=1)
        whole = self.left[column][mine]
        chance = self._chance(mine, support, up, whole - up, lift)
        goes = decide(column, right, mine, chance)
        self.possible[column][mine] = held & (right == goes[:, None])
        self.left[column][mine] = np.where(goes, up, whole - up)
        return goes

    def _chance(
        self,
        mine: Rows,
        support: tuple[Rows, Flags],
        up: NDArray[np.int64],
        down: NDArray[np.int64],
        lift: Floats,
    ) -> Floats:
        """The probability to go up: what rows of the box did, and as if some more had gone as is usual."""
        theirs, rises = support
        boxes = self.beside[theirs]
        here = np.bincount(boxes, minlength=self.boxes)[self.box[mine]]
        above = np.bincount(boxes[rises], minlength=self.boxes)[self.box[mine]]
        usual_up, usual_down = up * lift[1], down * lift[0]
        usual = usual_up / (usual_up + usual_down)
        # Never to where nothing is possible any more, and never 1 by rounding where something is.
        return np.where(down == 0, 1.0, (above + self.forest.strength * usual) / (here + self.forest.strength))

    def drawing(self, rng: np.random.Generator) -> Decision:
        """Decides by chance: rows of one box up and down as often as the probability says, up to rounding."""

        def decide(column: str, right: Flags, mine: Rows, chance: Floats) -> Flags:
            _, first, parents = np.unique(self.box[mine], return_index=True, return_inverse=True)
            table = np.stack([1.0 - chance[first], chance[first]], axis=1)
            return draw_given(parents.ravel(), table, rng) == 1

        return decide

    def _renumber(self, leaf: Rows, others: Rows, leaves: int) -> None:
        """Boxes by the leaf as well; a row of the support whose box no row is in is not looked at again."""
        keys, self.box = np.unique(self.box * leaves + leaf, return_inverse=True)
        self.boxes = len(keys)
        there = np.flatnonzero(others >= 0)
        wanted = self.beside[there] * leaves + others[there]
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        self.beside = np.full(len(others), -1, dtype=np.intp)
        self.beside[there] = np.where(keys[place] == wanted, place, -1)

    def draw(self, rng: np.random.Generator) -> CodeColumns:
        """Every column of each row, from what is left of it."""
        return {name: self._drawn(held, self.forest.masses[name], rng) for name, held in self.possible.items()}

    def _drawn(self, held: Flags, mass: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int32]:
        # Rows of which the same codes are left are drawn together.
        packed = np.packbits(held, axis=1)
        _, first, parents = np.unique(
            packed.view(np.dtype((np.void, packed.shape[1]))).ravel(), return_index=True, return_inverse=True
        )
        return draw_given(parents, np.where(held[first], mass, 0).astype(np.float64), rng)

    def log_mass(self, codes: CodeColumns) -> Floats:
        """The logarithm of the probability of these columns' codes, among those that are left."""
        logs = np.zeros(len(self.box))
        for name, values in codes.items():
            logs += np.log(self.forest.masses[name][values] / self.left[name])
        return logs


def _masses(columns: Mapping[str, Floats]) -> dict[str, NDArray[np.int64]]:
    whole = {name: counts * (MASS / counts.sum()) for name, counts in columns.items()}
    return {name: np.maximum(np.rint(parts), 1).astype(np.int64) for name, parts in whole.items()}


def _pick(logs: Floats, rng: np.random.Generator) -> Rows:
    """For each row of log-weights the place of one, drawn by weight."""
    line = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
    return (line < rng.random((len(line), 1)) * line[:, -1:]).sum(axis=1)


def _lifts(tree: Tree, masses: Mapping[str, NDArray[np.int64]], support: CodeColumns) -> Floats:
    """For each split how often rows that reach it go down and up, over what single columns say there."""
    lifts = np.ones((len(tree.splits), 2))
    whole = {name: np.ones(len(mass), dtype=np.bool_) for name, mass in masses.items()}
    pending = [(0, np.arange(len(next(iter(support.values())))), whole)]
    while pending:
        node, rows, held = pending.pop()
        if node < 0:
            continue
        split = tree.splits[node]
        column = tree.columns[split.column]
        right = code_bits(split.right, tree.sizes[split.column])
        rises = right[support[column][rows]]
        sides = [held[column] & ~right, held[column] & right]
        own = np.array([masses[column][side].sum() for side in sides], dtype=np.float64)
        # One row more, divided as single columns have it: a side that no row took stays possible.
        counts = np.array([len(rows) - rises.sum(), rises.sum()]) + own / own.sum()
        lifts[node] = np.divide(counts / counts.sum(), own / own.sum(), out=np.ones(2), where=own > 0)
        for child, side, part in ((split.low, sides[0], rows[~rises]), (split.high, sides[1], rows[rises])):
            pending.append((child, part, {**held, column: side}))
    return lifts
