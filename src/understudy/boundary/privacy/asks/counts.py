"""Asks that count rows: histograms, the number of rows, sums by group, private values, and draws from a posterior.

Every row is in one cell of a histogram, so that one person moves it by their own rows in L1 and in L2, and a replaced
one by both persons' rows in L1, and √2 times those of one in L2 (`PublicFacts.l1`, `l2`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from understudy.boundary.privacy.asks.ask import (
    Arrays,
    Ask,
    Counts,
    Description,
    Price,
    Question,
    Result,
    is_whole,
)
from understudy.boundary.privacy.asks.checks import check_cells, check_kinds, check_partition, check_scale
from understudy.boundary.privacy.budget import Amount, Spend
from understudy.boundary.privacy.facts import PublicFacts
from understudy.boundary.privacy.measurement import FoundValues, Measurement, frozen
from understudy.boundary.privacy.mechanisms.noise import key_threshold
from understudy.boundary.privacy.mechanisms.posterior import Prior, check_leaves
from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.boundary.privacy.mechanisms.shared_noise import combined
from understudy.boundary.privacy.mechanisms.training import Keep, at_once
from understudy.boundary.schema.column import Categorical
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.federation import SECURE_SUM
from understudy.boundary.schema.grouped_sums import GroupedSums, Summand, SumNeighbours
from understudy.boundary.schema.magnitude import check_tally
from understudy.boundary.schema.moment import CellSums
from understudy.boundary.schema.partition import Partition
from understudy.boundary.tables.table import Table
from understudy.errors import InternalError, MethodError

LARGEST_COUNT = 2**62
"""Of a recorded sum, in either direction: the noise of the smallest budgets stays far below it."""


class NoisyCounts(Ask[Result]):
    """An ask for whole numbers, each of which gets integer noise of its own; a public fact gets none.

    Proofs: docs/mechanisms/discrete-gaussian.md, gaussian-dp.md and discrete-laplace.md.
    """

    def draw(self, hidden: list[Counts], price: Price, randomness: Randomness, keep: Keep = at_once) -> Arrays:
        noisy: Arrays = []
        for counts, spend in zip(hidden, price.spends, strict=True):
            # No neighbour changes it (`spends` proved so): noise would hide nothing.
            if spend.mechanism == "public":
                noisy.append(counts)
            else:
                noisy.append(counts + randomness.noise(spend.mechanism, spend.scale, counts.size).reshape(counts.shape))
        return noisy

    def summed(self, answers: Sequence[Arrays], price: Price) -> Arrays:
        """The noisy answers of all sites, added up; those of a secure sum modulo 2^64, where masks cancel."""
        facts = price.facts
        if facts.federation is not None and facts.federation.trust == SECURE_SUM:
            wide = [[a.astype(np.uint64) for a in arrays] for arrays in answers]
            return list(combined([reduce(np.add, same) for same in zip(*wide, strict=True)], price.spends))
        return [reduce(np.add, [a.astype(np.int64) for a in same]) for same in zip(*answers, strict=True)]

    def fits(self, values: Arrays, price: Price) -> bool:
        within = zip(values, self.shapes(price), strict=True)
        return all(is_whole(v, -LARGEST_COUNT, LARGEST_COUNT, shape) for v, shape in within)

    def shapes(self, price: Price) -> list[tuple[int, ...]]:
        """Of each array; one row, where nothing else is said."""
        return [(spend.cells,) for spend in price.spends]


def histogram_spends(
    facts: PublicFacts, amount: Amount, weights: Sequence[float] | None, counted: Sequence[tuple[ColumnSet, int, str]]
) -> list[Spend]:
    """Of histograms, each with its columns, cells and words; `amount` is split by `weights`, else evenly."""
    for columns, cells, _ in counted:
        check_cells(columns, cells)
    sensitivity = facts.count_sensitivity(amount)
    parts = amount.split(weights or [1.0] * len(counted))
    spends = []
    for (_, cells, asked), part in zip(counted, parts, strict=True):
        scale = part.noise_scale(sensitivity)
        check_scale(asked, scale, cells)
        spends.append(Spend(amount.mechanism, asked, sensitivity, scale, cells=cells))
    return spends


@dataclass(frozen=True)
class Marginals(NoisyCounts[list[Measurement]]):
    """Noisy contingency tables of sets of columns, in one pass; `amount` is split by `weights`, else evenly."""

    domain: Domain
    sets: Sequence[ColumnSet]
    amount: Amount
    weights: Sequence[float] | None = None

    name = "marginal"
    description = Description(
        "contingency tables of sets of columns",
        "L1 and L2 of a histogram",
        "integer noise in every cell",
        "[Gaussian](../mechanisms/discrete-gaussian.md), [Laplace](../mechanisms/discrete-laplace.md)",
    )

    def spends(self, facts: PublicFacts) -> list[Spend]:
        counted = [(c, self.domain.cells(c), self.words(c)) for c in self.sets]
        return histogram_spends(facts, self.amount, self.weights, counted)

    @staticmethod
    def words(columns: ColumnSet) -> str:
        """How a spend says that these were counted together."""
        return f"counts by {', '.join(columns)}"

    def questions(self, price: Price) -> list[Question]:
        return [
            {"ask": self.name, "columns": list(c), "scale": s.scale}
            for c, s in zip(self.sets, price.spends, strict=True)
        ]

    def shapes(self, price: Price) -> list[tuple[int, ...]]:
        return [self.domain.shape(columns) for columns in self.sets]

    def exact(self, table: Table) -> list[Counts]:
        return table.count_by(self.domain, self.sets)

    def answer(self, values: Arrays, price: Price) -> list[Measurement]:
        return [
            Measurement(tuple(c), n, s.mechanism, s.scale, noises=price.facts.noises)
            for c, n, s in zip(self.sets, values, price.spends, strict=True)
        ]


@dataclass(frozen=True)
class Partitions(NoisyCounts[list[Measurement]]):
    """Noisy histograms over public partitions (a tree's leaves, a merged marginal), in one pass.

    A partition puts every row into one cell, by public rules: its sensitivities are those of a marginal.
    """

    domain: Domain
    partitions: Sequence[Partition]
    amount: Amount
    weights: Sequence[float] | None = None

    name = "partition"
    description = Description(
        "histograms over public partitions (a grid, a tree's leaves)",
        "L1 and L2 of a histogram",
        "integer noise in every cell",
        "[Gaussian](../mechanisms/discrete-gaussian.md), [Laplace](../mechanisms/discrete-laplace.md)",
    )

    def spends(self, facts: PublicFacts) -> list[Spend]:
        for part in self.partitions:
            check_partition(self.domain, part)
        counted = [
            (p.columns, p.cells, f"counts of {p.cells} cells over {', '.join(p.columns)}") for p in self.partitions
        ]
        return histogram_spends(facts, self.amount, self.weights, counted)

    def questions(self, price: Price) -> list[Question]:
        return [
            {"ask": self.name, **p.describe(), "scale": s.scale}
            for p, s in zip(self.partitions, price.spends, strict=True)
        ]

    def exact(self, table: Table) -> list[Counts]:
        return table.count_cells(self.domain, self.partitions)

    def answer(self, values: Arrays, price: Price) -> list[Measurement]:
        return [
            Measurement(p.columns, n, s.mechanism, s.scale, p, price.facts.noises)
            for p, n, s in zip(self.partitions, values, price.spends, strict=True)
        ]


@dataclass(frozen=True)
class Total(NoisyCounts[Measurement]):
    """The number of rows: noisy for an amount of budget, or exact and free where it is public (replace-one).

    A person moves the number of rows by their own, in either norm; one put in place of another by one at most, since
    under replace-one a person has one row that counts, or none.
    """

    amount: Amount | None = None

    name = "total"
    description = Description(
        "the number of rows",
        "the rows of a person",
        "integer noise; exact and free under replace-one without a unit",
        "[Gaussian](../mechanisms/discrete-gaussian.md), [Laplace](../mechanisms/discrete-laplace.md)",
    )

    def spends(self, facts: PublicFacts) -> list[Spend]:
        if facts.public_rows:
            return [Spend("public", "number of rows, public under replace-one", 0.0, 0.0)]
        if self.amount is None:
            raise MethodError("the number of rows is private: it needs a part of the budget", self)
        moved = float(facts.rows)
        scale = self.amount.noise_scale(moved)
        check_scale("number of rows", scale)
        return [Spend(self.amount.mechanism, "number of rows", moved, scale)]

    def questions(self, price: Price) -> list[Question]:
        return [{"ask": self.name, "scale": price.spends[0].scale}]

    def exact(self, table: Table) -> list[Counts]:
        return [np.array([table.count_rows()], dtype=np.int64)]

    def answer(self, values: Arrays, price: Price) -> Measurement:
        (count,), (spend,) = values, price.spends
        return Measurement((), count, spend.mechanism, spend.scale, noises=price.facts.noises)


@dataclass(frozen=True)
class Tally(NoisyCounts[list[Measurement]]):
    """Noisy totals of some summands by group, in one pass; what no neighbour can move is exact and free.

    Each summand proves its own sensitivity (`schema.grouped_sums`).
    """

    domain: Domain
    sums: GroupedSums
    amount: Amount
    weights: Sequence[float] | None = None

    name = "tally"
    description = Description(
        "counts, counts of persons and sums of a column, by group",
        "L1 and L2 of a sum, from the bounds of its values",
        "integer noise in every cell",
        "[sums](../mechanisms/sums.md)",
    )

    def spends(self, facts: PublicFacts) -> list[Spend]:
        check_cells(self.sums.by, self.domain.cells(self.sums.by))
        summands = self.sums.summands
        check_kinds(*summands, *filter(None, [self.sums.where]))
        check_tally(self.sums, facts.schema)
        # Each site would count them, and its count has another sensitivity than one of rows has.
        if facts.federation is not None and facts.federation.places > 1 and self.sums.persons:
            raise MethodError("persons who may be at several sites can't be counted once each; count rows", self)
        parts = self.amount.split(self.weights or [1.0] * len(summands))
        return [self.spend(facts, summand, part) for summand, part in zip(summands, parts, strict=True)]

    def spend(self, facts: PublicFacts, summand: Summand, amount: Amount) -> Spend:
        """Of one summand."""
        cells = self.domain.cells(self.sums.by)
        # With a unit a replacement may have no row that counts, as where it does not satisfy a condition.
        filtered = self.sums.where is not None or facts.schema.unit is not None
        neighbours = SumNeighbours(facts.rows, facts.replaced, cells, filtered)
        # L1 for Laplace noise, L2 for Gaussian noise (docs/mechanisms/sums.md).
        l1, l2 = summand.sensitivity(neighbours)
        sensitivity = l1 if amount.pure else l2
        asked = " ".join(["sum of", *filter(None, [summand.describe()["add"], summand.looked_at])])
        # Under replace-one no neighbour has more rows or fewer: a count of all rows is public.
        if sensitivity == 0:
            return Spend("public", f"{asked}, public under replace-one", 0.0, 0.0)
        scale = amount.noise_scale(sensitivity)
        check_scale(asked, scale)
        return Spend(amount.mechanism, asked, sensitivity, scale, cells=cells)

    def questions(self, price: Price) -> list[Question]:
        return [
            {"ask": self.name, **self.sums.describe(), **summand.describe(), "scale": spend.scale}
            for summand, spend in zip(self.sums.summands, price.spends, strict=True)
        ]

    def shapes(self, price: Price) -> list[tuple[int, ...]]:
        return [self.domain.shape(self.sums.by)] * len(price.spends)

    def exact(self, table: Table) -> list[Counts]:
        return table.count_tally(self.domain, self.sums)

    def answer(self, values: Arrays, price: Price) -> list[Measurement]:
        return [
            Measurement(self.sums.by, n, s.mechanism, s.scale, noises=price.facts.noises)
            for n, s in zip(values, price.spends, strict=True)
        ]


@dataclass(frozen=True)
class Moments(NoisyCounts[list[Measurement]]):
    """Noisy totals of numbers that public grids give to their cells, in one pass; one number where a grid has many.

    A moment proves its own sensitivity (`schema.moment`).
    """

    domain: Domain
    moments: Sequence[CellSums]
    amount: Amount

    name = "moment"
    description = Description(
        "sums of a public whole number per cell of a grid",
        "L1 and L2 of a sum, from the largest number",
        "integer noise in every total",
        "[moments](../mechanisms/moments.md)",
    )

    def spends(self, facts: PublicFacts) -> list[Spend]:
        spends = []
        for moment, part in zip(self.moments, self.amount.split([1.0] * len(self.moments)), strict=True):
            check_kinds(moment)
            check_partition(self.domain, moment.grid)
            # With a unit, one put in place of another may have no row that counts.
            filtered = facts.schema.unit is not None
            l1, l2 = moment.sensitivity(SumNeighbours(facts.rows, facts.replaced, moment.totals, filtered))
            sensitivity = l1 if part.pure else l2
            asked = f"moment of {', '.join(moment.grid.columns)}"
            if sensitivity == 0:
                raise InternalError("a moment must tell some cells apart.", moment)
            scale = part.noise_scale(sensitivity)
            check_scale(asked, scale)
            spends.append(Spend(part.mechanism, asked, sensitivity, scale, cells=moment.totals))
        return spends

    def questions(self, price: Price) -> list[Question]:
        return [
            {"ask": self.name, **moment.describe(), "scale": spend.scale}
            for moment, spend in zip(self.moments, price.spends, strict=True)
        ]

    def exact(self, table: Table) -> list[Counts]:
        counted = table.count_cells(self.domain, [m.grid for m in self.moments])
        return [m.sums(n) for m, n in zip(self.moments, counted, strict=True)]

    def answer(self, values: Arrays, price: Price) -> list[Measurement]:
        return [
            Measurement(m.grid.columns, n, s.mechanism, s.scale, noises=price.facts.noises)
            for m, n, s in zip(self.moments, values, price.spends, strict=True)
        ]


@dataclass(frozen=True)
class Keys(Ask[FoundValues]):
    """The values of a private column whose noisy counts pass a threshold; seeing any costs a part of δ, too.

    `mechanisms.noise.key_threshold` proves that keys of one person alone pass with probability δ at most.
    """

    column: str
    amount: Amount

    name = "keys"
    description = Description(
        "the values of a private column that many people share",
        "L2 of a histogram, and δ for keys of one person alone",
        "Gaussian noise, and a threshold",
        "[thresholded keys](../mechanisms/thresholded-keys.md)",
    )

    def spends(self, facts: PublicFacts) -> list[Spend]:
        column = self.column
        if self.amount.pure:
            raise no_pure_keys(column)
        if not (isinstance(facts.schema[column], Categorical) and facts.schema[column].private):
            raise MethodError(f"{column!r} is not a categorical column with private values; use its schema", column)
        if facts.keys is not None and column not in facts.keys:
            raise InternalError(f"column ({column!r}) must be one of the keys that the budget was divided for.", column)
        sigma, delta = self.amount.noise_scale(facts.l2), facts.key_delta
        check_scale(f"values of {column}", sigma)
        asked = f"values of {column} above {_threshold(facts, sigma, delta):,}"
        return [Spend(self.amount.key_mechanism, asked, facts.l2, sigma, delta)]

    def questions(self, price: Price) -> list[Question]:
        (spend,) = price.spends
        threshold = _threshold(price.facts, spend.scale, spend.delta)
        return [{"ask": self.name, "column": self.column, "scale": spend.scale, "threshold": threshold}]

    def exact(self, table: Table) -> tuple[list[str], Counts]:
        return table.count_values(self.column)

    def draw(
        self, hidden: tuple[list[str], Counts], price: Price, randomness: Randomness, keep: Keep = at_once
    ) -> Arrays:
        (spend,), (values, counts) = price.spends, hidden
        threshold = _threshold(price.facts, spend.scale, spend.delta)
        noisy = counts + randomness.noise(spend.mechanism, spend.scale, len(counts))
        # Sorted, since the order in which the table held them is not paid for.
        shown = sorted((v, int(n)) for v, n in zip(values, noisy, strict=True) if n > threshold)
        return [np.array([[v, str(n)] for v, n in shown], dtype=np.str_).reshape(len(shown), 2)]

    def fits(self, values: Arrays, price: Price) -> bool:
        (pairs,), (spend,) = values, price.spends
        if pairs.dtype.kind != "U" or pairs.ndim != 2 or pairs.shape[1] != 2:
            return False
        shown, counts = pairs[:, 0].tolist(), pairs[:, 1].tolist()
        if shown != sorted(set(shown)) or not all(n.isascii() and n.isdecimal() and len(n) < 17 for n in counts):
            return False
        return all(int(n) > _threshold(price.facts, spend.scale, spend.delta) for n in counts)

    def answer(self, values: Arrays, price: Price) -> FoundValues:
        (pairs,) = values
        return FoundValues(tuple(map(str, pairs[:, 0])), frozen(pairs[:, 1].astype(np.int64)))


def _threshold(facts: PublicFacts, sigma: float, delta: float) -> int:
    # Under replace-one either of the two tables may hold keys that the other doesn't.
    return key_threshold(sigma, delta, facts.rows, worlds=2 if facts.replaced else 1)


def no_pure_keys(column: str) -> MethodError:
    """Seeing a value at all may tell that its one holder is there: that has no pure form."""
    return MethodError(
        f"the values of {column!r} are private, and learning them needs a delta above 0; "
        "list them in the schema, or ask with a delta",
        column,
    )


@dataclass(frozen=True)
class Draws(Ask[list[Counts]]):
    """For each public partition, how many of `draws` draws from the posterior of its cells fall into each cell.

    The cells are the leaves of a tree with these pseudo-counts per level. Its price is exact, and pure, for one row;
    those of a person are changed one after the other.
    """

    domain: Domain
    partitions: Sequence[Partition]
    priors: Sequence[Prior]
    draws: int

    name = "draws"
    description = Description(
        "how many draws from a posterior fall into each cell",
        "the rows of a person",
        "none: sampling is the mechanism",
        "[draws from a posterior](../mechanisms/posterior-draws.md)",
    )

    def spends(self, facts: PublicFacts) -> list[Spend]:
        spends = []
        for part, prior in zip(self.partitions, self.priors, strict=True):
            check_partition(self.domain, part)
            check_leaves(part.cells, prior)
            asked = f"{self.draws} draws over {', '.join(part.columns)}"
            rows = float(facts.rows)
            spends.append(Spend("posterior-draws", asked, rows, self.draws, cells=part.cells, prior=prior))
        return spends

    def questions(self, price: Price) -> list[Question]:
        return [
            {"ask": self.name, **part.describe(), "prior": list(prior), "draws": self.draws}
            for part, prior in zip(self.partitions, self.priors, strict=True)
        ]

    def exact(self, table: Table) -> list[Counts]:
        return table.count_cells(self.domain, self.partitions)

    def draw(self, hidden: list[Counts], price: Price, randomness: Randomness, keep: Keep = at_once) -> Arrays:
        return [randomness.draw(n, prior, self.draws) for n, prior in zip(hidden, self.priors, strict=True)]

    def fits(self, values: Arrays, price: Price) -> bool:
        within = zip(values, self.partitions, strict=True)
        return all(is_whole(v, 0, self.draws, (p.cells,)) and v.sum() == self.draws for v, p in within)
