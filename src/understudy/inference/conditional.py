"""A model given codes of some columns, row by row: the evidence.

On a junction tree this is exact. Messages upwards carry, for each distinct combination of evidence below a link, how
likely it is given the columns that the link shares; the draw downwards weighs each clique's table by them (Koller &
Friedman 2009, chapter 10). Whatever lies below a link matters to the rest through its combination alone, so a table
is worked out once per combination and not once per row.

Evidence to which the model gives no probability can't be conditioned on. It is then passed over where it contradicts
the rest, and the other columns are drawn without it: never a failure, and never a weight that is not a number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet
from understudy.inference.graphical.graphical_model import (
    TINY,
    GraphicalModel,
    JunctionTree,
    Table,
    flat_cells,
    marginalise,
    spread,
    unflatten,
)
from understudy.inference.model import CodeColumns, Model
from understudy.inference.sampling import CODE, draw_given

Numbers = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class ConditioningLimits:
    """How much memory conditioning may take. The law of the rows is the same whatever the blocks and parts are."""

    exact_cells: int = 2_000_000
    """A model of another form is conditioned exactly, as a graphical model, when its tree has at most these."""
    block: int = 5_000_000
    """How many weights are worked out at once; for more combinations of evidence, it is done in blocks."""
    messages: int = 50_000_000
    """How many numbers all messages may hold together; with more combinations, the rows are drawn part by part."""
    pool: int = 100_000
    """How many rows are drawn to choose from where the model can only be sampled."""


LIMITS = ConditioningLimits()


def complete(
    model: GraphicalModel, given: CodeColumns, rng: np.random.Generator, limits: ConditioningLimits = LIMITS
) -> CodeColumns:
    """For each row of evidence a whole row, from the exact conditional; rows of equal evidence are drawn together."""
    shared = [math.prod(model.sizes[c] for c in link.shared if c not in given) for link in model.tree.links]
    key = _combine([(codes, model.sizes[c]) for c, codes in given.items()])
    parts = list(_blocks(len(key.row), sum(shared), limits.messages))
    if len(parts) == 1:
        return ConditionedModel.of(model, given, limits).draw(rng)
    whole: CodeColumns = {c: np.empty(len(key.of_row), dtype=CODE) for c in model.sizes}
    for start, stop in parts:
        inside = _within(key.of_row, start, stop, len(key.row))
        part = ConditionedModel.of(model, {c: v[inside] for c, v in given.items()}, limits)
        for column, codes in part.draw(rng).items():
            whole[column][inside] = codes
    return whole


@dataclass(frozen=True)
class CliqueStep:
    """A clique on the way down: which of its columns are given, were drawn with its parent, or are drawn now."""

    clique: int
    shared: ColumnSet
    evidence: ColumnSet
    drawn: ColumnSet
    new: ColumnSet
    below: tuple[int, ...]


@dataclass(frozen=True)
class _Key:
    """The distinct combinations of evidence in and below a clique: the one of each row, and a row that has each."""

    of_row: Numbers
    row: Numbers


@dataclass(frozen=True)
class ConditionedModel:
    """A graphical model given the codes of some columns in each row."""

    model: GraphicalModel
    given: CodeColumns
    steps: Mapping[int, CliqueStep]
    """By clique, in the order of the walk: parents first."""
    limits: ConditioningLimits = LIMITS
    keys: dict[int, _Key] = field(default_factory=dict)
    messages: dict[int, Table] = field(default_factory=dict)
    """By clique: both are there only where there is evidence in it or below it."""

    @classmethod
    def of(cls, model: GraphicalModel, given: CodeColumns, limits: ConditioningLimits = LIMITS) -> ConditionedModel:
        posterior = cls(model, given, {step.clique: step for step in _walk(model, given)}, limits)
        root, *others = posterior.steps.values()
        for step in reversed(others):
            posterior._gather(step)
            if step.clique in posterior.keys:
                posterior.messages[step.clique] = posterior._message(step)
        posterior._gather(root)
        return posterior

    @property
    def rows(self) -> int:
        return len(next(iter(self.given.values())))

    def draw(self, rng: np.random.Generator) -> CodeColumns:
        """One row for each row of evidence."""
        codes = dict(self.given)
        for step in self.steps.values():
            if not step.new:
                continue
            numbers, parents = self.parents(step, codes)
            cells = np.empty(self.rows, dtype=CODE)
            # Rows in the same state are drawn together, systematically: their counts follow the law up to rounding.
            for start, stop in _blocks(len(numbers), self._cells(step.new), self.limits.block):
                inside = _within(parents, start, stop, len(numbers))
                weights = self.weights(step, numbers[start:stop])
                cells[inside] = draw_given(parents[inside] - start, weights, rng)
            codes |= dict(zip(step.new, unflatten(cells, self._shape(step.new)), strict=True))
        return codes

    def parents(self, step: CliqueStep, codes: CodeColumns) -> tuple[Numbers, Numbers]:
        """The distinct states that the new columns of a step depend on, as numbers; and which of them each row is in.

        A state is a combination of evidence in and below the clique, and a cell of what was drawn with its parent.
        """
        numbers: Numbers = flat_cells(codes, step.drawn, self.model.sizes, self.rows)
        bound = self._cells(step.drawn)
        key = self.keys.get(step.clique)
        if key is not None:
            numbers, bound = numbers + key.of_row * np.int64(bound), len(key.row) * bound
        return _distinct(numbers, bound)

    def weights(self, step: CliqueStep, numbers: Numbers) -> Table:
        """For each state, the weights of the cells of the new columns; a state of no probability falls back."""
        combination, cell = np.divmod(numbers, self._cells(step.drawn))
        known = dict(zip(step.drawn, unflatten(cell, self._shape(step.drawn)), strict=True))
        key = self.keys.get(step.clique)
        table = self._table(step, step.evidence + step.drawn + step.new)
        rows = key.row[combination] if key is not None else combination
        at = (*(self.given[c][rows] for c in step.evidence), *known.values())
        weights = table[at] if at else np.repeat(table[None], len(numbers), axis=0)
        for child in step.below:
            if child in self.messages:
                weights *= self._from_below(child, rows, known, step.new)
        return self._possible(step, weights.reshape(len(numbers), -1), known)

    def _from_below(self, child: int, rows: Numbers, known: CodeColumns, new: ColumnSet) -> Table:
        """A child's message for these rows, shaped to the new columns of its parent."""
        axes = self.steps[child].drawn
        before, after = [c for c in axes if c in known], [c for c in new if c in axes]
        message = self.messages[child].transpose(0, *(1 + axes.index(c) for c in (*before, *after)))
        picked = message[(self.keys[child].of_row[rows], *(known[c] for c in before))]
        return picked.reshape(len(rows), *(self.model.sizes[c] if c in after else 1 for c in new))

    def _possible(self, step: CliqueStep, weights: Table, known: CodeColumns) -> Table:
        """Impossible evidence: draw by what was drawn before alone, and where that is impossible too, by nothing."""
        for columns in (step.drawn, ()):
            empty = np.flatnonzero(weights.sum(axis=1) <= 0)
            if not len(empty):
                break
            table = self._table(step, columns + step.new)
            at = tuple(known[c][empty] for c in columns)
            weights[empty] = table[at].reshape(len(empty), -1) if at else table.ravel()
        return weights

    def _gather(self, step: CliqueStep) -> None:
        """Finds the combinations of evidence in and below a clique, those below its children being known."""
        parts: list[tuple[Numbers, int]] = [(self.given[c], self.model.sizes[c]) for c in step.evidence]
        below = [self.keys[child] for child in step.below if child in self.keys]
        parts += [(key.of_row, len(key.row)) for key in below]
        if parts:
            self.keys[step.clique] = _combine(parts)

    def _message(self, step: CliqueStep) -> Table:
        """P(evidence in and below the clique | columns shared with its parent), up to a factor per combination."""
        key, free = self.keys[step.clique], step.drawn + step.new
        table, clique = self.model.tables[step.clique], self.model.tree.cliques[step.clique]
        # A calibrated table is a joint. Divided by its margin on what the link shares it is a conditional, so that the
        # parent's own table is not counted a second time when the message is multiplied into it.
        above = spread(marginalise(table, clique, step.shared), step.shared, clique)
        share = np.divide(table, above, out=np.zeros_like(table), where=above > 0)
        share = marginalise(share, clique, step.evidence + free)
        axes = {c: i + 1 for i, c in enumerate(free)}
        message = np.empty((len(key.row), *self._shape(step.drawn)))
        for start, stop in _blocks(len(key.row), self._cells(free), self.limits.block):
            rows = key.row[start:stop]
            at = tuple(self.given[c][rows] for c in step.evidence)
            operands: list[Any] = [share, list(axes.values())]
            if at:
                operands = [share[at], [0, *axes.values()]]
            for child in step.below:
                if child in self.messages:
                    message_axes = [0, *(axes[c] for c in self.steps[child].drawn)]
                    operands += [self.messages[child][self.keys[child].of_row[rows]], message_axes]
            # Greedy: the search for the best order of a contraction is exponential in the number of children.
            message[start:stop] = np.einsum(*operands, [0, *(axes[c] for c in step.drawn)], optimize="greedy")
        # The largest entry becomes 1, so that long chains can't vanish; a combination of no probability says nothing.
        top = message.max(axis=tuple(range(1, message.ndim)), keepdims=True)
        return np.where(top > 0, message / np.where(top > 0, top, 1.0), 1.0)

    def _table(self, step: CliqueStep, columns: ColumnSet) -> Table:
        return marginalise(self.model.tables[step.clique], self.model.tree.cliques[step.clique], columns)

    def _shape(self, columns: ColumnSet) -> tuple[int, ...]:
        return tuple(self.model.sizes[c] for c in columns)

    def _cells(self, columns: ColumnSet) -> int:
        return math.prod(self._shape(columns))


@dataclass(frozen=True)
class ConditionalTable:
    """The distribution of some columns given others: weights of shape (given …, new …)."""

    given: ColumnSet
    new: ColumnSet
    weights: Table

    def potential(self) -> Table:
        """ln P(new | given); uniform where nothing has weight, and hardly any probability in place of none."""
        axes = tuple(range(len(self.given), self.weights.ndim))
        weights = np.where(self.weights.sum(axis=axes, keepdims=True) > 0, self.weights, 1.0)
        return np.log(np.maximum(weights / weights.sum(axis=axes, keepdims=True), TINY))


def product(
    sizes: Mapping[str, int],
    factors: Sequence[ConditionalTable],
    total: float,
    sets: Sequence[ColumnSet] = (),
    limits: ConditioningLimits = LIMITS,
) -> GraphicalModel | None:
    """The product of the factors as a graphical model whose cliques also hold `sets`; None where it is too large."""
    joined = {factor.given + factor.new: factor.potential() for factor in factors}
    tree = JunctionTree.over([*joined, *sets], sizes)
    if tree.cells(sizes) > limits.exact_cells:
        return None
    return GraphicalModel.from_potentials(sizes, tree, joined, total)


def resample(
    model: Model, given: CodeColumns, rng: np.random.Generator, limits: ConditioningLimits = LIMITS
) -> CodeColumns:
    """For a model that can only be sampled: from a large draw, rows that agree with the evidence, or do so most.

    Each row of evidence takes one of the drawn rows that agree with it in as many columns as any does.
    """
    rows = len(next(iter(given.values())))
    pool = model.sample(max(rows, limits.pool), rng)
    size = len(next(iter(pool.values())))
    key = _combine([(codes, int(codes.max()) + 1) for codes in given.values()])
    chosen = np.empty(rows, dtype=np.int64)
    for start, stop in _blocks(len(key.row), size, limits.block):
        # By how many columns agree, whichever they are: where no drawn row has all, the evidence is held to be wrong in
        # as few places as possible.
        agree = np.zeros((stop - start, size), dtype=np.int16)
        for column, codes in given.items():
            agree += pool[column] == codes[key.row[start:stop], None]
        inside = _within(key.of_row, start, stop, len(key.row))
        best = (agree == agree.max(axis=1, keepdims=True)).astype(np.float64)
        chosen[inside] = draw_given(key.of_row[inside] - start, best, rng)
    return {column: codes[chosen] for column, codes in pool.items()} | given


def _walk(model: GraphicalModel, given: CodeColumns) -> tuple[CliqueStep, ...]:
    """The tree from the clique with the fewest cells left open: its columns are drawn all at once."""
    tree = model.tree
    open_cells = [math.prod(model.sizes[c] for c in clique if c not in given) for clique in tree.cliques]
    ties: dict[int, list[tuple[int, ColumnSet]]] = {i: [] for i in range(len(tree.cliques))}
    for link in tree.links:
        ties[link.parent].append((link.child, link.shared))
        ties[link.child].append((link.parent, link.shared))
    # Any clique can be the root of a junction tree: the links have no direction but the one that the walk gives them.
    root: tuple[int, int, ColumnSet] = (open_cells.index(min(open_cells)), -1, ())
    steps, found = list[CliqueStep](), [root]
    while found:
        clique, parent, shared = found.pop()
        below = [(child, clique, columns) for child, columns in ties[clique] if child != parent]
        found += below
        columns = tree.cliques[clique]
        steps.append(
            CliqueStep(
                clique,
                shared,
                evidence=tuple(c for c in columns if c in given),
                drawn=tuple(c for c in shared if c not in given),
                new=tuple(c for c in columns if c not in given and c not in shared),
                below=tuple(child for child, _, _ in below),
            )
        )
    return tuple(steps)


def _combine(parts: Sequence[tuple[Numbers, int]]) -> _Key:
    """The distinct combinations of some codes, each given with its number of values."""
    rows = len(parts[0][0])
    key = _Key(np.zeros(rows, dtype=np.int64), np.zeros(1, dtype=np.int64))
    # One column at a time, renumbered after each: the number of all combinations that there could be would soon exceed
    # 64 bits, and those that occur are no more than the rows.
    for codes, size in parts:
        values, of_row = _distinct(key.of_row * np.int64(size) + codes, len(key.row) * size)
        row = np.empty(len(values), dtype=np.int64)
        row[of_row] = np.arange(rows)
        key = _Key(of_row, row)
    return key


def _distinct(numbers: Numbers, bound: int) -> tuple[Numbers, Numbers]:
    """The distinct numbers, rising, and the place of each row's; by counting where the numbers are small."""
    # Counting is faster than sorting, as long as its table is not much larger than what is counted.
    if bound > 4 * len(numbers) + 65536:
        values, places = np.unique(numbers, return_inverse=True)
        return values, places
    values = np.flatnonzero(np.bincount(numbers, minlength=bound))
    lookup = np.zeros(bound, dtype=CODE)
    lookup[values] = np.arange(len(values))
    return values, lookup[numbers]


def _blocks(count: int, cells: int, most: int) -> Iterator[tuple[int, int]]:
    """Ranges that hold at most so many numbers, of `cells` each."""
    size = max(1, most // max(cells, 1))
    return ((start, min(start + size, count)) for start in range(0, count, size))


def _within(numbers: Numbers, start: int, stop: int, count: int) -> slice | Numbers:
    """The rows whose number, of `count` ones, lies in a block."""
    if stop - start == count:
        return slice(None)
    return np.flatnonzero((numbers >= start) & (numbers < stop))
