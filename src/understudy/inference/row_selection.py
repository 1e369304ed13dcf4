"""Choosing rows out of a pool one by one, each so that the marginals of what was chosen come nearest to what is wanted.

Distances are between distributions, as in the thesis on DP-Select (§4.3.2): between densities (L1, L2) or Kolmogorov. A
candidate touches one cell of each marginal, and what it does to a distance follows from that cell and from a few sums
that are kept up to date. So a candidate costs as much as there are marginals, however many rows there are.

Several *sections* may choose at once, each from a part of the pool and by itself. A pool that has weights, by which it
has measured counts, is a model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from understudy.errors import MethodError
from understudy.inference.model import CodeColumns, Model
from understudy.inference.noisy_table import project_to_simplex
from understudy.inference.particles.particles import Particles, cells_of
from understudy.inference.particles.rounding import ROUNDS, choose_rows
from understudy.parameters import one_of

Floats: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.intp]
Pick: TypeAlias = Callable[[Floats], Places]
"""From the distances of the candidates, section by section, to the one that is taken in each."""

L1, L2, KOLMOGOROV = "L1", "L2", "Kolmogorov"


@dataclass(frozen=True, eq=False)
class Goal:
    """Marginals that are wanted, and the cell of each row of the pool in each of them."""

    cells: NDArray[np.int32]
    """By row and marginal; numbered through, so that no two marginals share a number."""
    sizes: tuple[int, ...]
    shares: Floats
    """What part of the rows each cell should hold: by marginal they add up to 1. Or several such, by section."""
    weights: Floats
    """How much each marginal matters."""

    @classmethod
    def of(cls, cells: Sequence[NDArray[np.integer]], wanted: Sequence[Floats], weights: Sequence[float]) -> Goal:
        """From the cells of all rows and the wanted counts, marginal by marginal; a wanted table of several rows has
        one for each section."""
        tables = [np.atleast_2d(w) for w in wanted]
        sizes = tuple(t.shape[1] for t in tables)
        starts = np.cumsum([0, *sizes[:-1]])
        numbered = np.empty((len(cells[0]), len(cells)), dtype=np.int32)
        for i, of_rows in enumerate(cells):
            numbered[:, i] = of_rows + starts[i]
        shares = np.concatenate([t / t.sum(axis=1, keepdims=True) for t in tables], axis=1)
        return cls(numbered, sizes, shares, np.asarray(weights, dtype=np.float64))

    @property
    def starts(self) -> Places:
        return np.cumsum([0, *self.sizes[:-1]])

    def distances(self, chosen: Places, distance: str, section: int = 0) -> Floats:
        """From scratch: how far the marginals of these rows are from what the section wants."""
        counts = np.bincount(self.cells[chosen].ravel(), minlength=self.shares.shape[1])
        apart = counts / len(chosen) - self.shares[min(section, len(self.shares) - 1)]
        pieces = np.split(apart, self.starts[1:])
        match distance:
            case "L1":
                return np.array([np.abs(p).sum() for p in pieces])
            case "L2":
                return np.array([np.sqrt((p**2).sum()) for p in pieces])
        return np.array([np.abs(np.cumsum(p)).max() for p in pieces])


class RunningDistance(Protocol):
    """What was chosen so far, section by section."""

    def ready(self, rows: int) -> None:
        """Before candidates for a choice of so many rows are looked at."""
        ...

    def distances(self, cells: Places, rows: int) -> Floats:
        """For candidates (section × candidate × marginal): the weighted distance with each, up to a number that all
        candidates of a section share."""
        ...

    def take(self, cells: Places) -> None:
        """One more row in each section, by its cells (section × marginal)."""
        ...


class SectionCounts:
    """The counts of the chosen rows, one line of cells for each section."""

    def __init__(self, goal: Goal, sections: int) -> None:
        self.goal = goal
        self.width = goal.shares.shape[1]
        self.wanted = np.broadcast_to(goal.shares, (sections, self.width)).ravel()
        self.held = np.zeros(sections * self.width)
        self.offsets = np.arange(sections) * self.width

    def at(self, cells: Places) -> Places:
        """Cells as places in the line of all sections."""
        return cells + self.offsets.reshape(-1, *[1] * (cells.ndim - 1))

    def ready(self, rows: int) -> None:
        pass

    def take(self, cells: Places) -> None:
        self.held[self.at(cells)] += 1.0  # a row is in one cell of a marginal: no place comes twice


class RunningL1(SectionCounts):
    """L1: all cells but one change alike for every candidate, so that one cell tells them apart."""

    def distances(self, cells: Places, rows: int) -> Floats:
        places = self.at(cells)
        # What the other cells lose by one row more is the same for every candidate, and is left out.
        gap = np.take(self.held, places) - rows * np.take(self.wanted, places)
        return np.asarray((np.abs(gap + 1.0) - np.abs(gap)) @ self.goal.weights) / rows


class RunningL2(SectionCounts):
    """L2: Σ(n/k − p)² = Σn²/k² − 2Σnp/k + Σp², of which a candidate changes two sums by its one cell."""

    def __init__(self, goal: Goal, sections: int) -> None:
        super().__init__(goal, sections)
        by_section = self.wanted.reshape(sections, -1)
        self.squared = np.add.reduceat(by_section**2, goal.starts, axis=1)
        self.squares, self.products = np.zeros_like(self.squared), np.zeros_like(self.squared)

    def distances(self, cells: Places, rows: int) -> Floats:
        places = self.at(cells)
        squares = self.squares[:, None] + 2.0 * np.take(self.held, places) + 1.0
        products = self.products[:, None] + np.take(self.wanted, places)
        apart = squares / rows**2 - 2.0 * products / rows + self.squared[:, None]
        return np.asarray(np.sqrt(np.maximum(apart, 0.0)) @ self.goal.weights)

    def take(self, cells: Places) -> None:
        places = self.at(cells)
        self.squares += 2.0 * np.take(self.held, places) + 1.0
        self.products += np.take(self.wanted, places)
        super().take(cells)


class RunningKolmogorov(SectionCounts):
    """The largest difference of cumulated shares: a candidate raises all from its cell on.

    So it is the larger of what is largest before the cell as it is, and from the cell on with one row more; both are
    worked out for all cells at once, in one pass along the line of all marginals.
    """

    def __init__(self, goal: Goal, sections: int) -> None:
        super().__init__(goal, sections)
        self.by_section = self.wanted.reshape(sections, -1)
        self.marginal = np.repeat(np.arange(len(goal.sizes), dtype=np.float64), goal.sizes)
        self.with_row = np.zeros(0)

    def ready(self, rows: int) -> None:
        held = self.held.reshape(self.by_section.shape)
        # Each marginal holds one row less than is compared with, so that the sum along it is −1: that is made up for.
        apart = np.cumsum(held - rows * self.by_section, axis=1) + self.marginal
        # Differences are below this: lifted by so much for each marginal, the maxima of one never reach the next.
        apart_at_most = rows + 2.0
        lift, fall = apart_at_most * self.marginal, apart_at_most * (self.marginal[-1] - self.marginal)
        before = np.zeros_like(apart)
        before[:, 1:] = (np.maximum.accumulate(np.abs(apart) + lift, axis=1) - lift)[:, :-1]
        before[:, self.goal.starts] = 0.0
        after = np.maximum.accumulate((np.abs(apart + 1.0) + fall)[:, ::-1], axis=1)[:, ::-1] - fall
        self.with_row = np.maximum(before, after).ravel()

    def distances(self, cells: Places, rows: int) -> Floats:
        return np.asarray(np.take(self.with_row, self.at(cells)) @ self.goal.weights) / rows


RUNNING: dict[str, Callable[[Goal, int], RunningDistance]] = {
    L1: RunningL1,
    L2: RunningL2,
    KOLMOGOROV: RunningKolmogorov,
}
DISTANCES = tuple(RUNNING)


def check_distance(distance: str) -> None:
    one_of("distance", distance, RUNNING, error=MethodError)


def nearest(distances: Floats) -> Places:
    """The candidate of each section that leaves the least distance."""
    return distances.argmin(axis=1)


def choose(goal: Goal, proposed: Places, distance: str = L1, pick: Pick = nearest) -> Places:
    """Rows of the pool (step × section): in every step each section takes one of those proposed to it.

    `proposed` are rows by step, section and candidate.
    """
    steps, sections, _ = proposed.shape
    tally, chosen = RUNNING[distance](goal, sections), np.empty((steps, sections), dtype=np.intp)
    every = np.arange(sections)
    for step in range(steps):
        cells = goal.cells[proposed[step]]
        tally.ready(step + 1)
        taken = pick(tally.distances(cells, step + 1))
        tally.take(cells[every, taken])
        chosen[step] = proposed[step, every, taken]
    return chosen


def proposals(pool: int, rows: int, sections: int, rng: np.random.Generator) -> Places:
    """Each row of a pool at most once: the pool is shuffled, cut into sections, and each section by its steps.

    The last rows of a pool that can't be shared evenly are left out; sections choose ⌈rows/sections⌉ rows each.
    """
    steps = -(-rows // sections)
    candidates = pool // (steps * sections)
    order = rng.permutation(pool)[: candidates * steps * sections]
    return order.reshape(sections, steps, candidates).transpose(1, 0, 2)


TRIES = 8
"""Rows that are drawn for each row of evidence, of which one is kept by weight."""


@dataclass(frozen=True)
class PooledModel:
    """Rows of a pool with their weights, the model that they were drawn from, and how rows are selected.

    Without a distance they are drawn by weight, so that all counts are those of the weighted pool up to rounding. With
    one they are chosen row by row out of the pool as it is, each so that the measured marginals come nearest.
    """

    particles: Particles
    source: Model
    distance: str | None = None
    sections: int = 1
    rounds: int = ROUNDS

    @property
    def total(self) -> float:
        return self.particles.total

    def sample(self, rows: int, rng: np.random.Generator) -> CodeColumns:
        """Selected rows; where more are wanted than the pool has, the others are drawn from it by weight."""
        chosen = rng.permutation(self._chosen(rows, rng))
        return {c: v[chosen] for c, v in self.particles.codes.items()}

    def _chosen(self, rows: int, rng: np.random.Generator) -> Places:
        if self.distance is None:
            return choose_rows(self.particles, rows, rng, self.rounds)
        sections = min(self.sections, rows, self.particles.count)
        selected = min(rows, self.particles.count // sections * sections)
        proposed = proposals(self.particles.count, selected, sections, rng)
        found = choose(self._goal(), proposed, self.distance).ravel()[:selected]
        if rows == selected:
            return found
        return np.concatenate([found, self.particles.draw(rows - selected, rng)])

    def _goal(self) -> Goal:
        """The finest counts that were measured of each set of columns, made into distributions."""
        cells, wanted = [], []
        for columns, block in self.particles.blocks.items():
            known = [(f.seen.counts, f.groups) for f in block.factors if f.seen is not None]
            if known:
                counts, groups = max(known, key=lambda f: f[0].size)
                cells.append(cells_of(self.particles.codes, columns, groups))
                wanted.append(project_to_simplex(counts, self.total).ravel())
        return Goal.of(cells, wanted, [1.0] * len(cells))

    def complete(self, given: CodeColumns, rng: np.random.Generator) -> CodeColumns:
        """Rows of the pool's own model given the evidence, several for each, of which one is kept by its weight."""
        rows = len(next(iter(given.values())))
        drawn = self.source.complete({c: np.repeat(v, TRIES) for c, v in given.items()}, rng)
        logs = self._log_weights(drawn).reshape(rows, TRIES)
        # The Gumbel-max trick: the largest of log-weights with Gumbel noise is a draw by weight.
        kept = np.arange(rows) * TRIES + (logs + rng.gumbel(size=logs.shape)).argmax(axis=1)
        return {c: v[kept] for c, v in drawn.items()}

    def _log_weights(self, codes: CodeColumns) -> Floats:
        """By what factor the projection weighs each of these rows; for rows of the pool that is their weight."""
        logs = np.zeros(len(next(iter(codes.values()))))
        for columns, block in self.particles.blocks.items():
            logs += np.take(block.theta(), cells_of(codes, columns, block.groups))
        return logs
