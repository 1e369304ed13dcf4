"""The three risks that European guidance names for anonymised tables: inference, singling out and linkability.

(Article 29 Working Party, opinion 05/2014.) Inference guesses a secret of a person from the synthetic rows that are
most like them in everything else. Linkability puts two halves of what is known about a person together, because both
lead to the same synthetic row. Singling out tries a description that fits one synthetic row on the training table and
on as many rows of the hold-out; it succeeds where it fits exactly one row, which no earlier one has singled out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from understudy.lab.attacks.confidence import LEVEL, welch
from understudy.lab.attacks.nearest_rows import Floats, Index, Places
from understudy.lab.attacks.threat import Attack, Finding, Threat, matrix, some
from understudy.lab.evaluation.comparison import RowSample, Variable
from understudy.lab.evaluation.row_features import Features

MOST_GUESSED = 2_000
"""Of each kind."""
TOUCHING = 1e-6
"""Added to a distance, so that an equal row outweighs all others and its weight is still finite."""
INFERENCE_STREAM = 4


def inference(threat: Threat) -> Finding:
    """The mean over the secrets, and each by itself; intervals of the parts hold all together at the stated level."""
    if not threat.secrets:
        return Finding.undefined("no column was named as a secret")
    if len(threat.variables) == 1:
        return Finding.undefined(f"there is no column beside {threat.variables[0].name!r} to know a person by")
    rng = threat.generator(INFERENCE_STREAM)
    train, holdout = (s.take(some(s.rows, MOST_GUESSED, rng)) for s in (threat.train, threat.holdout))
    right = {name: [guessed_right(threat, name, rows) for rows in (train, holdout)] for name in threat.secrets}
    # Bonferroni: with so many secrets one would stand out by luck, and be read as the one that leaks.
    level = 1 - (1 - LEVEL) / len(right)
    parts = {name: Finding.hits(inside, outside, level=level) for name, (inside, outside) in right.items()}
    # A row is one observation, by its mean over the secrets: its guesses hang together, so that counting each of them
    # would make the interval too narrow.
    inside, outside = (np.mean([r[kind] for r in right.values()], axis=0) for kind in (0, 1))
    success, baseline = float(inside.mean()), float(outside.mean())
    note = f"{train.rows:,} rows of the table, {holdout.rows:,} of the hold-out, {len(right)} secrets"
    return Finding(success, baseline, success - baseline, welch(inside, outside), note=note).with_parts(parts)


def guessed_right(threat: Threat, secret: str, rows: RowSample) -> NDArray[np.bool_]:
    """Whether the cell of the secret is guessed: the commonest among the nearest rows, nearer ones counting more."""
    others = threat.features_of([v.name for v in threat.variables if v.name != secret])
    # Anonymeter (Giomi et al. 2023) takes the secret of the one nearest row, by Gower's distance; here five rows vote.
    near = Index.of(matrix(others, threat.synthetic)).nearest(matrix(others, rows), LINKED_NEAREST)
    guessed = elected(threat.synthetic.codes[secret][near.places], 1 / (near.distances + TOUCHING))
    return guessed == rows.codes[secret]


def elected(codes: Places, weights: Floats) -> Places:
    """The code of each line that has the most weight; of equals, that of the nearest row."""
    same = codes[:, :, np.newaxis] == codes[:, np.newaxis, :]
    votes = (same * weights[:, np.newaxis, :]).sum(axis=2)
    # `argmax` takes the first of equals, and rows come nearest first.
    return codes[np.arange(len(codes)), votes.argmax(axis=1)]


INFERENCE: tuple[Attack, ...] = (
    Attack(
        "inference",
        "Attribute inference",
        "Somebody who knows all about a person but one thing could learn that thing better because they were in the "
        "table.",
        "Secrets that are guessed rightly from the five synthetic rows most like the person in all other columns; "
        "what holds for everybody is guessed in the hold-out too.",
        inference,
    ),
)


# Both kinds of description are those of Anonymeter (Giomi et al. 2023). What differs: its risk divides the advantage by
# what the control leaves to gain, 1 − baseline; here it is the plain difference, whose interval is Newcombe's.
MOST_GUESSES = 1_000
"""Of descriptions by one column, and of those by several."""
TRIES = 4
"""Descriptions that are drawn for each one that is wanted, since few fit a single row."""
FEWEST_COLUMNS, MOST_COLUMNS = 2, 10
SINGLING_STREAM = 6
EQUAL, AT_MOST, AT_LEAST, UNKNOWN = "=", "≤", "≥", "missing"


@dataclass(frozen=True)
class ColumnCondition:
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
        if self.relation == AT_MOST:
            return column <= self.value
        return column >= self.value


Description = tuple[ColumnCondition, ...]


def singling(threat: Threat) -> Finding:
    """By one column and by several, and both together."""
    rng = threat.generator(SINGLING_STREAM)
    # As many rows of each kind: the fewer rows there are, the likelier a description fits exactly one of them.
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
    rare: list[ColumnCondition] = []
    most = -(-MOST_GUESSES // len(threat.variables))
    for variable in threat.variables:
        cells: NDArray[np.generic] = threat.synthetic.codes[variable.name]
        if variable.on_line:
            cells = threat.synthetic.present(variable.name)
        values, counts = np.unique(cells, return_counts=True)
        if variable.on_line and len(values):
            yield (ColumnCondition(variable.name, AT_MOST, float(values[0])),)
            yield (ColumnCondition(variable.name, AT_LEAST, float(values[-1])),)
        once = values[counts == 1]
        rare += [ColumnCondition(variable.name, EQUAL, float(v)) for v in once[some(len(once), most, rng)]]
    yield from ((rare[i],) for i in rng.permutation(len(rare)))


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
    if not len(known):
        return 0.0
    return float(np.quantile(known, 0.5, method="lower"))


def _condition(sample: RowSample, variable: Variable, row: int, middles: dict[str, float]) -> ColumnCondition:
    name = variable.name
    if not variable.on_line:
        return ColumnCondition(name, EQUAL, float(sample.codes[name][row]))
    value = float(sample.values[name][row])
    if np.isnan(value):
        return ColumnCondition(name, UNKNOWN)
    # Towards the end of the line that is nearer: there are fewer rows beyond the value.
    if value <= middles[name]:
        return ColumnCondition(name, AT_MOST, value)
    return ColumnCondition(name, AT_LEAST, value)


SINGLING_OUT: tuple[Attack, ...] = (
    Attack(
        "singling-out",
        "Singling out",
        "A description made from the synthetic table would fit exactly one person, because they were in the table.",
        "Descriptions that fit one synthetic row and single out a further row of the table; some do so by luck, in the "
        "hold-out too.",
        singling,
    ),
)


# As in Anonymeter, where somebody names the two sets of columns; here they are halves drawn at random.
LINKED_NEAREST = 5
MOST_LINKED = 4_000
"""Of each kind."""
LINKABILITY_STREAM = 5


def linkability(threat: Threat) -> Finding:
    """The share of rows whose two halves, divided at random, have one of their nearest synthetic rows in common."""
    if len(threat.variables) == 1:
        return Finding.undefined(f"{threat.variables[0].name!r} is the only column, so there are no two halves")
    rng = threat.generator(LINKABILITY_STREAM)
    names = [threat.variables[i].name for i in rng.permutation(len(threat.variables))]
    middle = (len(names) + 1) // 2
    halves = threat.features_of(names[:middle]), threat.features_of(names[middle:])
    train, holdout = (s.take(some(s.rows, MOST_LINKED, rng)) for s in (threat.train, threat.holdout))
    inside, outside = (linked(threat, halves, rows) for rows in (train, holdout))
    first, second = (", ".join(v.name for v in half.variables) for half in halves)
    note = f"{first} on one side, {second} on the other"
    return Finding.hits(inside, outside, note=note)


def linked(threat: Threat, halves: tuple[Features, Features], rows: RowSample) -> NDArray[np.bool_]:
    first, second = (
        Index.of(matrix(half, threat.synthetic)).nearest(matrix(half, rows), LINKED_NEAREST).places for half in halves
    )
    return share_one(first, second)


def share_one(first: Places, second: Places) -> NDArray[np.bool_]:
    """Whether a line of one has a place in common with the same line of the other."""
    return (first[:, :, np.newaxis] == second[:, np.newaxis, :]).any(axis=(1, 2))


LINKABILITY: tuple[Attack, ...] = (
    Attack(
        "linkability",
        "Linkability",
        "Two lists, each with half of what is known about a person, could be joined because the person was in the "
        "table.",
        "Rows whose two halves, each by itself, lead to the same one of the five nearest synthetic rows.",
        linkability,
    ),
)
