"""Deliberately broken ways of running our methods. The auditor must catch each of them; one that survives is a bug."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks import ASKS
from understudy.boundary.privacy.asks.ask import Ask, Result
from understudy.boundary.privacy.budget import Spend
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.mechanisms.noise import SeededEntropy
from understudy.boundary.privacy.mechanisms.posterior import Prior
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness, Randomness
from understudy.boundary.privacy.mechanisms.subsampling import GRID_SCALE
from understudy.boundary.privacy.mechanisms.teachers import ExactVotes
from understudy.boundary.privacy.mechanisms.training import Deep, GradientSums
from understudy.boundary.schema.column import Categorical, Integer, Number
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.grouped_sums import GroupedSums
from understudy.boundary.schema.partition import Partition
from understudy.boundary.schema.schema import Schema
from understudy.lab.audits.checks.boundary import DRAFTS, FILES, UNITS
from understudy.lab.audits.harness import Harness, opened
from understudy.lab.audits.mutants import broken_boundary as broken
from understudy.lab.audits.pairs import LOST, ODD, PADDED, WIDE, Row
from understudy.parameters import known_name


@dataclass(frozen=True)
class Mutant:
    """One mistake, and the harness that makes it."""

    name: str
    mistake: str
    harness: Harness
    revealed_by: tuple[str, ...] = ()
    """Of a mistake that is made before or beside the noise: the looks at the boundary that should find it."""
    of_training: bool = False
    """Whether only a training can make it."""

    @property
    def boundary(self) -> bool:
        return bool(self.revealed_by)


@dataclass(frozen=True)
class ScaledRandomness:
    """Noise of a fraction of its scale, choices of a multiple of their exponent, draws after a part of the prior."""

    honest: Randomness
    noise_scale: float = 1.0
    exponent: float = 1.0
    prior: float = 1.0

    @property
    def secure(self) -> bool:
        return True

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        return self.honest.noise(mechanism, scale * self.noise_scale, size)

    def choose(self, scores: NDArray[np.float64], exponent: float, k: int) -> list[int]:
        return self.honest.choose(scores, exponent * self.exponent, k)

    def draw(self, counts: NDArray[np.int64], prior: Prior, draws: int) -> NDArray[np.int64]:
        return self.honest.draw(counts, tuple(a * self.prior for a in prior), draws)


def halved() -> ScaledRandomness:
    """Half of the noise, twice the exponent, half of the prior's pseudo-counts: all that hides a row."""
    return ScaledRandomness(ExactRandomness.system(), 0.5, 2.0, 0.5)


class RepeatedSeed(ExactRandomness):
    """A generator that starts from the same seed in every release, and says that it is secure."""

    @classmethod
    def again(cls) -> RepeatedSeed:
        return cls(SeededEntropy(1))

    # Otherwise the certificate would be stamped as a test, and guarantee nothing.
    @property
    def secure(self) -> bool:
        return True


class HalfSensitive(Curator):
    """Believes that one person moves every answer by half of what is true, and draws less noise accordingly."""

    kinds = (broken.BrokenAsk,)

    def ask(self, ask: Ask[Result]) -> Result:
        return super().ask(broken.BrokenAsk(ask, self._halved, lambda honest: ScaledRandomness(honest, 0.5, 2.0)))

    def _halved(self, spends: Sequence[Spend]) -> list[Spend]:
        halved = [dataclasses.replace(s, sensitivity=s.sensitivity / 2) for s in spends]
        # The scale of a choice is its ε, that of posterior draws their number: neither is noise.
        kept = ("exponential", "posterior-draws")
        return [s if s.mechanism in kept else dataclasses.replace(s, scale=s.scale / 2) for s in halved]


class Forgetful(Curator):
    """Answers its first exchange, and forgets to debit it."""

    kinds = (*ASKS, broken.BrokenAsk)

    def ask(self, ask: Ask[Result]) -> Result:
        if self.record:
            return super().ask(ask)
        return super().ask(broken.BrokenAsk(ask, price=lambda spends: []))


class Monotone(Curator):
    """Chooses with ε/Δ, which is right for scores that a new row can only raise; ours go up and down."""

    kinds = (broken.BrokenAsk,)

    def ask(self, ask: Ask[Result]) -> Result:
        return super().ask(broken.BrokenAsk(ask, spoil=lambda honest: ScaledRandomness(honest, exponent=2.0)))


class Blocks:
    """Counts the first half of the rows, by their place in the table, as one of two parts that share no row.

    Under add-remove that is no partition: a row that comes first moves another one on to the second half.
    """

    def __init__(self, frame: Any, schema: Schema) -> None:
        half = len(frame) // 2
        self._whole = opened(frame, schema)
        first = getattr(frame, "slice", lambda at, rows: frame.head(rows))(0, half)  # of Arrow, or of pandas
        self._half = opened(first, schema)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)

    def count_by(self, domain: Domain, sets: Sequence[ColumnSet]) -> list[NDArray[np.int64]]:
        return self._half.count_by(domain, sets)

    def count_cells(self, domain: Domain, partitions: Sequence[Partition]) -> list[NDArray[np.int64]]:
        return self._half.count_cells(domain, partitions)

    def count_tally(self, domain: Domain, tally: GroupedSums) -> list[NDArray[np.int64]]:
        return self._half.count_tally(domain, tally)


def observed_categories(rows: Sequence[Row], schema: Schema) -> Schema:
    """Every list of values is what the rows hold."""
    found = [c for c in schema.modelled if isinstance(c, Categorical)]
    seen = {c.name: tuple(sorted({str(row[c.name]) for row in rows if row[c.name] is not None})) for c in found}
    return schema.with_columns([dataclasses.replace(c, values=seen[c.name]) for c in found])


def observed_bounds(rows: Sequence[Row], schema: Schema) -> Schema:
    """Every number is binned between the least and the largest value of the rows."""
    found: list[Number | Integer] = []
    for column in schema.modelled:
        if isinstance(column, Number | Integer):
            seen: list[Any] = [row[column.name] for row in rows if isinstance(row[column.name], int | float)]
            # A column that is constant in the rows still needs an interval.
            found.append(dataclasses.replace(column, minimum=min(seen), maximum=max(*seen, min(seen) + 1)))
    return schema.with_columns(found)


class Unclipped(GradientSums):
    """Sums gradients as long as they are."""

    def clipped(self, critic: Deep, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return critic.clipped_sum(rows, 1e9)  # no gradient is that long


class HalfNoise(GradientSums):
    """Draws noise of half the scale."""

    def noise(self, size: int) -> NDArray[np.int64]:
        return self.randomness.noise("discrete-gaussian", GRID_SCALE / 2, size)


class Shuffled(GradientSums):
    """Goes through the shuffled rows in batches of one size, and is accounted as if rows had joined by coins."""

    _order: NDArray[np.intp] = np.zeros(0, dtype=np.intp)

    def batch(self) -> NDArray[np.intp]:
        size = round(self.course.rate * len(self.codes))
        if len(self._order) < size:
            keys = self.randomness.noise("discrete-gaussian", GRID_SCALE, len(self.codes))
            self._order = np.argsort(keys, kind="stable")
        batch, self._order = self._order[:size], self._order[size:]
        return batch


class SharedTeachers(ExactVotes):
    """Every row is known to three teachers."""

    def taught(self, codes: NDArray[np.integer[Any]]) -> Any:
        of = self.assigned(len(codes))
        parts = [self.known(codes, (of + k) % self.teachers) for k in range(3)]
        return sum(c for c, _ in parts), sum(n for _, n in parts)


class RawLaw(ScaledRandomness):
    """No noise on the counts that make the law of conditions; all else is honest."""

    @classmethod
    def system(cls) -> RawLaw:
        return cls(ExactRandomness.system())

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        # Gradients get noise of GRID_SCALE and more; what is far below that can only be noise on counts.
        if mechanism in ("discrete-gaussian", "rounded-gaussian") and scale < GRID_SCALE / 4:
            return np.zeros(size, dtype=np.int64)
        return super().noise(mechanism, scale, size)


_ALL = (
    Mutant("half-noise", "draws noise of half the scale it declares", Harness(randomness=halved)),
    Mutant("half-sensitivity", "declares half of the true sensitivity", Harness(curator=HalfSensitive)),
    Mutant("domain-from-data", "takes the categories from the rows", Harness(schema=observed_categories)),
    Mutant("bins-from-data", "takes the bounds of numbers from the rows", Harness(schema=observed_bounds)),
    Mutant("reused-seed", "starts its generator from the same seed every time", Harness(randomness=RepeatedSeed.again)),
    Mutant("skipped-debit", "gives an answer that it does not debit", Harness(curator=Forgetful)),
    Mutant("exact-row-count", "releases as many rows as there are", Harness(rows=len)),
    Mutant("monotone-constant", "chooses with the exponent of monotone scores", Harness(curator=Monotone)),
    Mutant("index-blocks", "splits the rows by their place in the table", Harness(opened=Blocks)),
    Mutant(
        "storage-types", "reads a frame's columns by how they are stored", Harness(opened=broken.by_storage), (ODD,)
    ),
    Mutant("raw-ids", "tells people apart by their ids as written", Harness(opened=broken.by_raw_id), (PADDED,)),
    Mutant("free-total", "gives the number of people's rows away", Harness(curator=broken.FreeTotal), (LOST,)),
    Mutant(
        "unit-blind-ledger", "adds up claims about rows and people", Harness(ledger=broken.UnitBlind.memory), (UNITS,)
    ),
    Mutant(
        "late-admission",
        "comes back to what a selection passed over",
        Harness(curator=broken.LateAdmission),
        (ODD, WIDE),
    ),
    Mutant(
        "draft-guarantee", "guarantees what a draft rests on", Harness(guaranteed=broken.as_if_confirmed), (DRAFTS,)
    ),
    Mutant("rows-in-files", "leaves rows in a file", Harness(opened=broken.left_in_files), (FILES,)),
    Mutant("open-spill", "spills rows where others can read them", Harness(opened=broken.spilled_beside), (FILES,)),
    Mutant("no-clipping", "sums gradients as long as they are", Harness(sums=Unclipped), of_training=True),
    Mutant("half-gradient-noise", "draws half of the noise on gradients", Harness(sums=HalfNoise), of_training=True),
    Mutant(
        "shuffled-batches", "goes through the rows in batches of one size", Harness(sums=Shuffled), of_training=True
    ),
    Mutant("shared-teachers", "lets three teachers know a row", Harness(votes=SharedTeachers), of_training=True),
    Mutant(
        "raw-condition-law",
        "puts no noise on the counts that make conditions",
        Harness(randomness=RawLaw.system),
        of_training=True,
    ),
)
MUTANTS = {mutant.name: mutant for mutant in _ALL}
OF_TRAINING = tuple(m.name for m in MUTANTS.values() if m.of_training)


def harness_of(mutant: str | None) -> Harness:
    """The honest harness, or a mutant's."""
    if mutant is None:
        return Harness()
    return MUTANTS[known_name("mutant", mutant, MUTANTS)].harness


def revealed_by(mutant: str | None) -> tuple[str, ...]:
    """The looks at the boundary that should find a mistake; none of one that is made in the noise or its price."""
    if mutant is None:
        return ()
    return MUTANTS[mutant].revealed_by
