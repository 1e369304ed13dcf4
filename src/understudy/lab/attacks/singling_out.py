"""Can one person be singled out by a description that is taken from the synthetic table?

A description that fits one synthetic row is tried on the training table and on as many rows of the hold-out. It
succeeds where it fits exactly one row, which no earlier description has singled out, so that a person counts once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from understudy.lab.attacks.attack import Attack, Finding
from understudy.lab.attacks.confidence import LEVEL
from understudy.lab.attacks.threat import Threat, some
from understudy.lab.evaluation.sample import RowSample, Variable

MOST_GUESSES = 1_000
"""Of descriptions by one column, and of those by several."""
TRIES = 4
"""Descriptions that are drawn for each one that is wanted, since few fit a single row."""
FEWEST_COLUMNS, MOST_COLUMNS = 2, 10
PURPOSE = 6
EQUAL, AT_MOST, AT_LEAST, UNKNOWN = "=", "≤", "≥", "missing"


@dataclass(frozen=True)
class Predicate:
    """What a column shall be: a code or a number."""

    column: str
    relation: str
    value: float = 0.0

    def holds(self, sample: RowSample) -> NDArray[np.bool_]:
        values = sample.values.get(self.column)
        column = sample.codes[self.column] if values is None else values
        if self.relation == UNKNOWN:
            return np.isnan(column)
        if self.relation == EQUAL:
            return column == self.value
        return column <= self.value if self.relation == AT_MOST else column >= self.value


Description = tuple[Predicate, ...]


def singling(threat: Threat) -> Finding:
    """By one column and by several, and both together."""
    rng = threat.generator(PURPOSE)
    size = min(threat.train.rows, threat.holdout.rows)
    tables = [s.take(some(s.rows, size, rng)) for s in (threat.train, threat.holdout)]
    kinds = {
        "by one column": _unique(single(threat, rng), threat.synthetic),
        "by several columns": _unique(several(threat, rng), threat.synthetic),
    }
    everything = [d for found in kinds.values() for d in found]
    if not everything:
        return Finding.undefined("no description of the synthetic table fits a single one of its rows")
    level = 1 - (1 - LEVEL) / len(kinds)
    parts = {name: _finding(found, tables, level) for name, found in kinds.items()}
    note = f"{len(everything):,} descriptions, {size:,} rows of each kind"
    return _finding(everything, tables).with_parts(parts, note)


def _finding(descriptions: Sequence[Description], tables: Sequence[RowSample], level: float = LEVEL) -> Finding:
    if not descriptions:
        return Finding.undefined("no such description fits a single synthetic row")
    train, holdout = (singled_out(descriptions, table) for table in tables)
    return Finding.shares(train, len(descriptions), holdout, len(descriptions), level=level)


def _unique(descriptions: Iterator[Description], synthetic: RowSample) -> list[Description]:
    """The first ones that fit exactly one synthetic row."""
    found = (d for d in descriptions if matches(d, synthetic).sum() == 1)
    return [d for _, d in zip(range(MOST_GUESSES), found, strict=False)]


def singled_out(descriptions: Sequence[Description], table: RowSample) -> int:
    """How many rows are the only one that some description fits."""
    fits = (np.flatnonzero(matches(d, table)) for d in descriptions)
    return len({int(rows[0]) for rows in fits if len(rows) == 1})


def matches(description: Description, table: RowSample) -> NDArray[np.bool_]:
    return reduce(np.logical_and, (c.holds(table) for c in description))


def single(threat: Threat, rng: np.random.Generator) -> Iterator[Description]:
    """Every extreme of a number, then values that one synthetic row has, in a random order of the columns' turns."""
    rare: list[Predicate] = []
    most = -(-MOST_GUESSES // len(threat.variables))
    for variable in threat.variables:
        values, counts = np.unique(_known(threat.synthetic, variable), return_counts=True)
        if variable.on_line and len(values):
            yield (Predicate(variable.name, AT_MOST, float(values[0])),)
            yield (Predicate(variable.name, AT_LEAST, float(values[-1])),)
        once = values[counts == 1]
        rare += [Predicate(variable.name, EQUAL, float(v)) for v in once[some(len(once), most, rng)]]
    yield from ((rare[i],) for i in rng.permutation(len(rare)))


def _known(sample: RowSample, variable: Variable) -> NDArray[np.generic]:
    return sample.present(variable.name) if variable.on_line else sample.codes[variable.name]


def several(threat: Threat, rng: np.random.Generator) -> Iterator[Description]:
    """A few columns of a synthetic row: categories as they are, numbers as an end of the range they are nearer to."""
    count = len(threat.variables)
    if count < FEWEST_COLUMNS:
        return
    middles = {v.name: _middle(threat.synthetic, v) for v in threat.variables if v.on_line}
    for _ in range(TRIES * MOST_GUESSES):
        row = int(rng.integers(threat.synthetic.rows))
        size = int(rng.integers(FEWEST_COLUMNS, min(MOST_COLUMNS, count) + 1))
        chosen = [threat.variables[i] for i in rng.choice(count, size, replace=False)]
        yield tuple(_condition(threat.synthetic, v, row, middles) for v in chosen)


def _middle(sample: RowSample, variable: Variable) -> float:
    known = sample.present(variable.name)
    return float(np.quantile(known, 0.5, method="lower")) if len(known) else 0.0


def _condition(sample: RowSample, variable: Variable, row: int, middles: dict[str, float]) -> Predicate:
    name = variable.name
    if not variable.on_line:
        return Predicate(name, EQUAL, float(sample.codes[name][row]))
    value = float(sample.values[name][row])
    if np.isnan(value):
        return Predicate(name, UNKNOWN)
    return Predicate(name, AT_MOST if value <= middles[name] else AT_LEAST, value)


ATTACKS: tuple[Attack, ...] = (
    Attack(
        "singling-out",
        "Singling out",
        "A description made from the synthetic table would fit exactly one person, because they were in the table.",
        "Descriptions that fit one synthetic row and single out a further row of the table; some do so by luck, in the "
        "hold-out too.",
        singling,
    ),
)
