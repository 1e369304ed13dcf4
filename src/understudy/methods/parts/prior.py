"""What is known of a table before anything is paid for it: the answers of an earlier release, or a public table.

A prior never meets a private row. It is compared with what the release itself has paid for, which is post-processing:

- Counts of single columns of an earlier release are averaged with the new ones by inverse variance, column by column,
  where both differ by no more than their noise.
- Its tables of several columns are further evidence where they agree, up to noise, with the pairs that were measured
  anew. Where they don't, they are taken for a public table.
- Counts of single columns of a public table are averaged with the noisy ones, too. How far they are off beyond chance
  is estimated column by column from the noisy counts, so that a column that is another one here has next to no weight.
- Its pairs are moved to the private margins. How far such a pair may be off is estimated from the pairs that the
  release measured, and where the prior predicts these no better than independent columns would, pairs are left out.

So a prior that is wrong costs little: it is found out by measurements that would have been made anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from understudy.boundary.privacy.mechanisms.score import MOST_EXPECTED
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.errors import MethodError
from understudy.inference.grouping import Floats, Groups, coarser, merged, sum_by_group
from understudy.inference.noisy_table import NoisyTable
from understudy.inference.shrinkage import BALANCING_STEPS, dependence

EARLIER, PUBLIC = "earlier release", "public table"
SURE = 3.0
"""Standard deviations. What noise explains within these is taken for noise; what it doesn't, for a difference."""
LARGEST_REMAINDER = 0.5
"""The part of the dependence found in measured pairs that a prior may leave unexplained: with more it is left out."""
MOST_COLUMNS = 8
"""Of a table of a prior: `rake` measures no larger ones."""
LEAST_PART = 1e-3
"""Of what independent columns would give: what a cell keeps in which the public table has no row."""


@dataclass(frozen=True, eq=False)
class Prior:
    """Tables that were known before, and where they come from."""

    kind: str
    name: str
    """The name of the file or folder, without the path to it."""
    sha256: str
    """Of the file; of an earlier release its certificate, which holds the hashes of all else."""
    tables: tuple[NoisyTable, ...]
    """Of single columns, then of pairs, then larger ones. Counts of public rows have no noise: their variance is 0."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the certificate says besides."""

    def to_dict(self) -> dict[str, Any]:
        """As certificates have it."""
        return {"kind": self.kind, "name": self.name, "sha256": self.sha256, **self.facts}

    def check(self, domain: Domain) -> None:
        """Refuses tables that don't fit the domain, whoever wrote them."""
        if self.kind not in (EARLIER, PUBLIC) or not self.tables:
            raise MethodError(f"the prior {self.name!r} holds no table", self.name)
        for table in self.tables:
            if not _fits(table, domain):
                raise MethodError(f"a table of the prior {self.name!r} does not fit the schema's columns", self.name)

    def with_columns(self, read: Mapping[str, NoisyTable]) -> dict[str, NoisyTable]:
        """Noisy counts of single columns, each averaged with the prior's as far as these can be relied on."""
        found = dict(read)
        for table in self.of(1):
            (name,) = table.columns
            if self.kind == PUBLIC:
                found[name] = found[name].averaged_with(_scaled(table, found[name]))
            elif _agree(found[name], table):
                found[name] = found[name].averaged_with(table)
        return found

    def of(self, columns: int) -> list[NoisyTable]:
        """The tables of so many columns."""
        return [t for t in self.tables if len(t.columns) == columns]


def _fits(table: NoisyTable, domain: Domain) -> bool:
    names = table.columns
    if not 1 <= len(names) <= MOST_COLUMNS or list(names) != sorted(
        set(names) & set(domain.names), key=domain.names.index
    ):
        return False
    shape = tuple(int(g.max(initial=-1)) + 1 for g in table.groups)
    sizes = [g.shape for g in table.groups] == [(domain.size(c),) for c in names]
    # Every group has a code: a cell that none can fall into would hold counts that nothing could fit.
    whole = all(np.array_equal(np.unique(g), np.arange(n)) for g, n in zip(table.groups, shape, strict=True))
    # No score could be exact beside larger counts, and that would be found out after the budget is spent.
    numbers = bool((np.abs(table.counts) <= MOST_EXPECTED).all()) and 0.0 <= float(table.variance) < np.inf
    return sizes and whole and shape == table.counts.shape and numbers


def _agree(new: NoisyTable, old: NoisyTable) -> bool:
    """Whether two noisy readings of the same counts differ by no more than noise: χ² with a degree for each cell."""
    differences = (new.counts - old.counts) ** 2 / (np.asarray(new.variance) + old.variance)
    return float(differences.sum()) <= differences.size + SURE * np.sqrt(2.0 * differences.size)


def _scaled(public: NoisyTable, noisy: NoisyTable) -> NoisyTable:
    """Public counts of a column, scaled to the private rows; chance and a bias, seen in the noisy counts, may be in."""
    scale = max(float(noisy.counts.sum()), 1.0) / public.counts.sum()
    expected = scale * public.counts
    # Poisson's variance; with one row more, since a value that no public row has is not therefore impossible.
    chance = scale**2 * (public.counts + 1.0)
    noise = np.broadcast_to(np.asarray(noisy.variance, dtype=np.float64), expected.shape)
    weight = 1.0 / (noise + chance)
    errors = (noisy.counts - expected) ** 2
    excess = float((weight * (errors - noise - chance)).sum())
    # One standard deviation on top, as for pairs: noise may hide a bias.
    doubt = float(np.sqrt((weight**2 * 2.0 * (noise + chance) ** 2).sum()))
    # By what either expects: where the public table has few rows and the noisy counts have many, its error is large.
    square = np.maximum(expected, noisy.counts) ** 2 + chance
    bias = (max(0.0, excess) + doubt) / max(float((weight * square).sum()), 1e-300)
    # Limited translation (Efron & Morris 1972): a count that stands out is not pulled towards one that is wrong.
    standing_out = np.maximum(errors - SURE**2 * (noise + chance), 0.0)
    return replace(public, counts=expected, variance=chance + bias * square + standing_out)


# --- pairs, beside what was measured


@dataclass(frozen=True)
class Margins:
    """What the release knows by now of single columns: non-negative counts by code, which all have one sum."""

    weights: Mapping[str, Floats]
    total: float

    def of(self, columns: ColumnSet, groups: Sequence[Groups]) -> list[Floats]:
        # A share of a row at least, so that nothing is divided by 0.
        found = [sum_by_group(g, self.weights[c]) for c, g in zip(columns, groups, strict=True)]
        return [np.maximum(m, 1e-9 * self.total) for m in found]

    def independent(self, columns: ColumnSet, groups: Sequence[Groups]) -> Floats:
        first, second = self.of(columns, groups)
        return np.outer(first, second) / self.total


@dataclass(frozen=True)
class Expected:
    """What a prior expects of the cells of a pair, and how far its own chance or noise may have moved them."""

    counts: Floats
    variance: Floats

    def at(self, fine: Sequence[Groups], groups: Sequence[Groups], margins: list[Floats]) -> Expected:
        """By other groups: what a group holds is spread over its codes as the column's counts are."""
        first, second = (_moving(a, b, m) for a, b, m in zip(fine, groups, margins, strict=True))
        return Expected(first @ self.counts @ second.T, (first**2) @ self.variance @ (second**2).T)


def _moving(fine: Groups, groups: Groups, weights: Floats) -> Floats:
    """The share of each group of one grouping that falls into each group of another."""
    share = weights / sum_by_group(fine, weights)[fine]
    moved = np.zeros((int(groups.max()) + 1, int(fine.max()) + 1))
    np.add.at(moved, (groups, fine), share)
    return moved


def expected_of(table: NoisyTable, kind: str, margins: Margins) -> Expected:
    """A prior's pair at the private margins."""
    independent = margins.independent(table.columns, table.groups)
    first, second = margins.of(table.columns, table.groups)
    if kind == EARLIER:
        ratio = dependence(table.counts, (first, second), float(table.variance))
        return Expected(independent * ratio, np.full(table.counts.shape, float(table.variance)))
    counts = _fitted(_shrunk(table.counts), first, second)
    # Poisson's variance of a count, scaled from the public rows to the private ones.
    return Expected(counts, independent * (margins.total / table.counts.sum()))


def _shrunk(counts: Floats) -> Floats:
    """Counts of public rows, shrunk towards independent columns as far as chance explains their dependence."""
    independent = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    seen = independent > 0
    chi2 = float(((counts[seen] - independent[seen]) ** 2 / independent[seen]).sum())
    freedom = (np.count_nonzero(counts.sum(axis=1)) - 1) * (np.count_nonzero(counts.sum(axis=0)) - 1)
    # James & Stein's factor: χ² of independent columns is their degrees of freedom on average.
    kept = max(0.0, 1.0 - freedom / max(chi2, 1e-300))
    shrunk = np.maximum(independent + kept * (counts - independent), LEAST_PART * independent)
    # A value that no public row has: nothing is known of it, so it goes with the others as they come.
    return np.where(seen, shrunk, np.nan)


def _fitted(counts: Floats, first: Floats, second: Floats) -> Floats:
    """Raked to the margins (Deming & Stephan 1940): how cells depend on each other stays."""
    independent = np.outer(first, second) / first.sum()
    scale = first.sum() / np.nansum(counts)
    table = np.where(np.isnan(counts), independent, counts * scale)
    for _ in range(BALANCING_STEPS):
        table *= (first / np.maximum(table.sum(axis=1), 1e-12))[:, None]
        table *= second / np.maximum(table.sum(axis=0), 1e-12)
    return table


@dataclass(frozen=True)
class Judgement:
    """How a prior's pairs did on the pairs that were measured."""

    compared: int
    """How many pairs both have."""
    noise_alone: bool
    """Whether both differ by no more than their noise."""
    useful: bool
    """Whether the prior tells more of them than independent columns would, beyond doubt."""
    bias: float
    """The variance of a cell's error beyond noise and chance, as a part of its expected count squared."""


def judge(prior: Prior, measured: Sequence[NoisyTable], margins: Margins) -> Judgement:
    """Compares the prior with noisy tables of pairs."""
    both = [(t, m) for m in measured for t in prior.of(2) if t.columns == m.columns]
    if not both:
        return Judgement(0, noise_alone=True, useful=False, bias=0.0)
    found = [_beside(t, m, prior.kind, margins) for t, m in both]
    seen, noise, expected, chance, independent = (np.concatenate(parts) for parts in zip(*found, strict=True))
    errors, gaps = (seen - expected) ** 2, (seen - independent) ** 2
    # Cells weigh by what noise leaves of them, so that neither the largest nor the emptiest decide alone.
    weight = 1.0 / (noise + independent)
    # The difference of both sums of squares is linear in the measured counts, and so is its noise.
    gain = float((weight * (gaps - errors)).sum())
    doubt = 2.0 * float(np.sqrt((weight**2 * noise * (expected - independent) ** 2).sum()))
    remainder, dependent = (float((weight * (squares - noise)).sum()) for squares in (errors, gaps))
    scale = float((weight * independent**2).sum())
    excess = max(0.0, float((weight * (errors - noise - chance)).sum()))
    # One standard deviation on top: few noisy pairs may look better than the prior is.
    spread = float(np.sqrt((weight**2 * (2.0 * noise**2 + 4.0 * noise * errors)).sum()))
    return Judgement(
        len(found),
        noise_alone=prior.kind == EARLIER and _differ_by_noise(both),
        useful=gain > SURE * doubt and remainder < LARGEST_REMAINDER * dependent,
        bias=(excess + spread) / scale,
    )


def _differ_by_noise(both: Sequence[tuple[NoisyTable, NoisyTable]]) -> bool:
    """Whether pairs of readings differ by no more than noise, on the finest cells that both are made of."""
    squares, cells = 0.0, 0
    for old, new in both:
        common = [_coarsest(a, b) for a, b in zip(old.groups, new.groups, strict=True)]
        (first, one), (second, other) = (_merged(t, common) for t in (old, new))
        squares += float(((first - second) ** 2 / (one + other)).sum())
        cells += first.size
    return squares <= cells + SURE * float(np.sqrt(2.0 * cells))


def margins_agree(table: NoisyTable, columns: Mapping[str, NoisyTable]) -> bool:
    """Whether each margin of an earlier table differs by no more than noise from what is known of its column now.

    It needs no pair that both have, and covers tables of any size. A table has up to eight margins, of which some have
    two groups only, so that twice as much is allowed as where all cells are tested together.
    """
    for name, groups in zip(table.columns, table.groups, strict=True):
        old, new = table.margin(name), columns[name]
        variance = np.broadcast_to(np.asarray(new.variance, dtype=np.float64), new.counts.shape)
        noise = sum_by_group(groups, variance) + old.variance
        squares = (sum_by_group(groups, new.counts) - old.counts) ** 2 / noise
        if not float(squares.sum()) <= squares.size + 2.0 * SURE * float(np.sqrt(2.0 * squares.size)):
            return False
    return True


def _coarsest(first: Groups, second: Groups) -> Groups:
    """The finest grouping that merges whole groups of both."""
    labels, before = first, np.full_like(first, -1)
    while not np.array_equal(labels, before):
        before = labels
        for groups in (first, second):
            least = np.full(int(groups.max()) + 1, labels.max())
            np.minimum.at(least, groups, labels)
            labels = least[groups]
    return np.asarray(np.unique(labels, return_inverse=True)[1], dtype=np.intp)


def _merged(table: NoisyTable, groups: Sequence[Groups]) -> tuple[Floats, Floats]:
    """Counts by coarser groups, and their variance: that of all cells which each one is the sum of."""
    coarse = [coarser(fine, g) for fine, g in zip(table.groups, groups, strict=True)]
    return merged(table.counts, coarse), merged(np.full(table.counts.shape, table.variance), coarse)


def _beside(table: NoisyTable, measured: NoisyTable, kind: str, margins: Margins) -> tuple[Floats, ...]:
    """Cell by cell: what was measured and its noise, what the prior expects and its chance, and independent columns."""
    codes = [np.maximum(margins.weights[c], 1e-9 * margins.total) for c in table.columns]
    there = expected_of(table, kind, margins).at(table.groups, measured.groups, codes)
    noise = np.full(measured.counts.shape, measured.variance)
    independent = margins.independent(measured.columns, measured.groups)
    moved = measured.shifted_to({c: NoisyTable((c,), margins.weights[c], 0.0) for c in measured.columns})
    return tuple(x.ravel() for x in (moved.counts, noise, there.counts, there.variance, independent))


def guess_of(table: NoisyTable, kind: str, bias: float, margins: Callable[[], Margins]) -> Callable[[], NoisyTable]:
    """A pair of the prior as a noisy table at today's margins, with the error that it must be allowed."""

    def seen() -> NoisyTable:
        now = margins()
        expected = expected_of(table, kind, now)
        independent = now.independent(table.columns, table.groups)
        return replace(table, counts=expected.counts, variance=expected.variance + bias * independent**2)

    return seen
