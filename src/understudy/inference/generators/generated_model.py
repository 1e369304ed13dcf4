"""The distribution that a trained generator draws from, as a model: rows of groups, freely drawn or given some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.inference.generators.generator import BLOCK, Floats, Generator, draw_codes
from understudy.inference.model import CodeColumns
from understudy.inference.sampling import draw_rows

CANDIDATES = 64
"""Inputs of the generator that are weighed against each other for a row that is given in part."""
POOL = 1 << 12

Codes = NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class GeneratedModel:
    """A generator over groups. Its condition, where it has one, is a column by chance and a value by its law."""

    generator: Generator
    columns: tuple[str, ...]
    laws: tuple[Floats, ...]
    """The distribution of each column by group, from which conditions are drawn."""
    choices: tuple[float, ...]
    """How often each column is the condition; sums to 1."""
    total: float

    def sample(self, rows: int, rng: np.random.Generator) -> CodeColumns:
        columns, groups = self._conditions(rows, rng)
        codes = np.empty((len(self.columns), rows), dtype=np.int32)
        for start in range(0, rows, BLOCK):
            part = slice(start, min(start + BLOCK, rows))
            codes[:, part] = self._drawn(columns[part], groups[part], rng)
        return dict(zip(self.columns, codes, strict=True))

    def complete(self, given: CodeColumns, rng: np.random.Generator) -> CodeColumns:
        """Each row takes one of many inputs, by how likely it makes what is given; the other columns follow from it."""
        places = [self.columns.index(c) for c in given]
        known = np.stack(list(given.values()), axis=1)
        codes = np.empty((len(known), len(self.columns)), dtype=np.int32)
        for start in range(0, len(known), BLOCK):
            part = slice(start, start + BLOCK)
            codes[part] = self._completed(places, known[part], rng)
        return dict(zip(self.columns, codes.T, strict=True)) | given

    def _conditions(self, rows: int, rng: np.random.Generator) -> tuple[Codes, Codes]:
        """For each row the column of its condition and the group; every column's share follows its law."""
        if not self.generator.plan.conditional:
            return np.zeros(rows, dtype=np.int32), np.zeros(rows, dtype=np.int32)
        columns = draw_rows(np.array(self.choices), rows, rng)
        groups = np.zeros(rows, dtype=np.int32)
        for place, law in enumerate(self.laws):
            chosen = np.flatnonzero(columns == place)
            groups[chosen] = draw_rows(law, len(chosen), rng)
        return columns, groups

    def _drawn(self, columns: Codes, groups: Codes, rng: np.random.Generator) -> Codes:
        """A line of groups for each column."""
        plan, rows = self.generator.plan, len(columns)
        noise, uniform = rng.standard_normal((rows, plan.noise)), rng.random((len(self.columns), rows))
        codes = self.generator.draw(noise, uniform, plan.starts[columns] + groups if plan.conditional else None)
        if plan.conditional:
            codes[columns, np.arange(rows)] = groups
        return codes

    def _completed(self, places: Sequence[int], known: Codes, rng: np.random.Generator) -> Codes:
        """By importance: an input's weight is the likelihood of the given groups, capped below so that one is found."""
        laws, starts = self._pool(rng), self.generator.plan.starts
        candidates = rng.integers(0, len(laws), (len(known), CANDIDATES))
        likelihood = np.zeros(candidates.shape)
        for place, groups in zip(places, known.T, strict=True):
            likelihood += np.log(laws[candidates, (starts[place] + groups)[:, None]] + 1e-12)
        weights = np.exp(likelihood - likelihood.max(axis=1, keepdims=True)).cumsum(axis=1)
        chosen = (weights <= rng.random((len(known), 1)) * weights[:, -1:]).sum(axis=1)
        picked = candidates[np.arange(len(known)), np.minimum(chosen, CANDIDATES - 1)]
        return draw_codes(laws[picked], self.generator.plan.sizes, rng)

    def _pool(self, rng: np.random.Generator) -> Floats:
        """The laws of many inputs, where the condition's own column is its group for certain."""
        columns, groups = self._conditions(POOL, rng)
        plan = self.generator.plan
        laws = self.generator.laws(self.generator.inputs(rng.standard_normal((POOL, plan.noise)), columns, groups))
        for place, column in enumerate(plan.columns() if plan.conditional else ()):
            own = np.flatnonzero(columns == place)
            laws[own, column] = 0.0
            laws[own, plan.starts[place] + groups[own]] = 1.0
        return laws

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return self.generator.plan.sizes
