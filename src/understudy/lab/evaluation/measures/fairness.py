"""Whether the synthetic table serves every group of people alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from understudy.lab.evaluation.comparison import HELD_OUT, Comparison, RowSample, Variable
from understudy.lab.evaluation.measure import GROUPS, HOLDOUT, LOWER, TARGET, Measure, MeasurePart, MeasureResult
from understudy.lab.evaluation.measures.prediction import (
    BOOSTING,
    Predictions,
    TrainingRows,
    trained_on_real,
    trained_on_synthetic,
)
from understudy.lab.evaluation.row_features import Floats, Target

SECTION = "Groups"
FEWEST = 30
"""Real rows of a group, below which chance decides."""


def group_tv(comparison: Comparison) -> MeasureResult:
    parts = [part for name in comparison.groups for part in _group_distances(comparison, comparison[name])]
    return _worst(parts, f"no group has {FEWEST} real rows and a synthetic one")


def _group_distances(comparison: Comparison, group: Variable) -> Iterator[MeasurePart]:
    others = [v for v in comparison.variables if v.name != group.name]
    sizes = [table.counts([group]) for table in comparison.both]
    distances = np.array([_distances(comparison, group, v) for v in others]).reshape(-1, group.size)
    for code, (label, real, synthetic) in enumerate(zip(group.all_labels, *sizes, strict=True)):
        if not (real or synthetic):
            continue
        reason = _too_small(int(real), int(synthetic))
        if not reason and not others:
            reason = "there is no other column to compare"
        value: float | None = None
        if not reason:
            value = float(distances[:, code].mean())
        yield MeasurePart(f"{group.name} = {label}", value, reason, f"{real:,} real rows, {synthetic:,} synthetic")


def _distances(comparison: Comparison, group: Variable, other: Variable) -> Floats:
    """Total variation of the other column within each group."""
    shares = []
    for table in comparison.both:
        counts = table.counts([group, other])
        # A group without rows has shares of 0, and is left out by `_too_small`.
        shares.append(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))
    return np.abs(shares[0] - shares[1]).sum(axis=1) / 2


def _too_small(real: int, synthetic: int) -> str:
    if real < FEWEST:
        return f"the group has {real} real rows, and at least {FEWEST} are needed"
    return "" if synthetic else "the group has no synthetic rows"


def group_size(comparison: Comparison) -> MeasureResult:
    parts = []
    for group in (comparison[name] for name in comparison.groups):
        real, synthetic = (t.counts([group]) / t.rows for t in comparison.both)
        for label, a, b in zip(group.all_labels, real, synthetic, strict=True):
            parts.append(
                MeasurePart(f"{group.name} = {label}", abs(float(a - b)), note=f"real {a:.4f}, synthetic {b:.4f}")
            )
    return _worst(parts, "the tables have no groups")


def _worst(parts: list[MeasurePart], nothing: str, note: str = "") -> MeasureResult:
    known = [p.value for p in parts if p.value is not None]
    if not known:
        return MeasureResult.undefined(nothing, parts)
    # The worst and not the mean: what a large group gains must not make up for what a small one loses.
    return MeasureResult(max(known), parts=tuple(parts), note=note)


@dataclass(frozen=True)
class Rates:
    """How often something holds in each group."""

    rows: NDArray[np.int64]
    holds: NDArray[np.int64]

    @classmethod
    def of(cls, group: Variable, table: RowSample, holds: NDArray[np.bool_]) -> Rates:
        codes = table.codes[group.name]
        return cls(np.bincount(codes, minlength=group.size), np.bincount(codes[holds], minlength=group.size))

    def among(self, groups: NDArray[np.bool_]) -> Floats:
        return self.holds[groups] / self.rows[groups]

    def gap(self, groups: NDArray[np.bool_]) -> float:
        """Between the groups that have the highest and the lowest rate."""
        return float(np.ptp(self.among(groups)))


def parity_gap(comparison: Comparison) -> MeasureResult:
    target = Target.of(comparison)
    if target.variable.on_line:
        return MeasureResult.undefined(f"the target {target.name!r} is a number; parity is about classes")
    real, synthetic = target.known(comparison.real), target.known(comparison.synthetic)
    if not real.rows:
        return MeasureResult.undefined(f"no row of {real.name} has a value of {target.name!r}")
    # Parity is about one class against the rest. With two classes this is the rarer one.
    common = int(np.bincount(target.read(real)).argmax())

    def part(group: Variable) -> MeasurePart:
        # Statistical parity (Dwork et al. 2012) of the rows themselves, without a classifier; a gap that the real rows
        # have is no fault of the synthetic ones.
        rates = [Rates.of(group, t, target.read(t) != common) for t in (real, synthetic)]
        large = (rates[0].rows >= FEWEST) & (rates[1].rows > 0)
        if large.sum() < 2:
            return MeasurePart(group.name, None, f"fewer than two groups have {FEWEST} real rows and a synthetic one")
        a, b = (r.gap(large) for r in rates)
        return MeasurePart(group.name, abs(a - b), note=f"real {a:.4f}, synthetic {b:.4f}")

    return _by_column(comparison, part)


def _by_column(comparison: Comparison, part: Callable[[Variable], MeasurePart], note: str = "") -> MeasureResult:
    """Of every column of groups but the target itself; the worst is the figure."""
    parts = []
    for name in comparison.groups:
        if name == comparison.target:
            parts.append(MeasurePart(name, None, "it is the target itself"))
        else:
            parts.append(part(comparison[name]))
    # There is at least one: the measures that come here need groups.
    return _worst(parts, parts[0].reason, note)


def tstr_gap_groups(comparison: Comparison) -> MeasureResult:
    target = Target.of(comparison)
    if target.variable.on_line:
        return MeasureResult.undefined(f"the target {target.name!r} is a number; accuracy is about classes")
    training = trained_on_synthetic(comparison)
    if training.answers is None:
        return MeasureResult.undefined(training.reason)
    answers = training.answers[HELD_OUT]
    if not answers.said:
        return MeasureResult.undefined(f"no row of {answers.rows.name} has a value of {target.name!r}")
    # The same of models that learnt from real rows: so much of the gap the synthetic ones did not make.
    with_real = _by_column(comparison, lambda group: _accuracy_gap(group, trained_on_real(comparison)))
    beside = ""
    if with_real.value is not None:
        beside = f"trained on real rows, the largest difference is {with_real.value:.4f}"
    return _by_column(comparison, lambda group: _accuracy_gap(group, training), beside)


def _accuracy_gap(group: Variable, training: TrainingRows) -> MeasurePart:
    if training.answers is None:
        return MeasurePart(group.name, None, training.reason)
    answers: Predictions = training.answers[HELD_OUT]
    rates = Rates.of(group, answers.rows, answers.chosen(BOOSTING) == answers.truth)
    large = rates.rows >= FEWEST
    if large.sum() < 2:
        return MeasurePart(group.name, None, f"fewer than two groups have {FEWEST} rows of the hold-out")
    named = [label for label, kept in zip(group.all_labels, large, strict=True) if kept]
    note = ", ".join(f"{label} {rate:.4f}" for label, rate in zip(named, rates.among(large), strict=True))
    return MeasurePart(group.name, rates.gap(large), note=note)


_measure = partial(Measure, section=SECTION, direction=LOWER, low=0.0, high=1.0)

MEASURES: tuple[Measure, ...] = (
    _measure("group-tv", "Distance within the worst group", needs=(GROUPS,), unit="group", compute=group_tv,
             explanation="Total variation within one group of people, mean over the other columns, for the group "
             "that fares worst."),
    _measure("group-size", "Shares of the groups", needs=(GROUPS,), unit="group", compute=group_size,
             explanation="How far the share of rows that a group has is off, for the group that fares worst."),
    _measure("parity-gap", "Difference between groups in the target", needs=(GROUPS, TARGET), unit="column",
             compute=parity_gap,
             explanation="How far the difference between groups in the rate of the rarer class (of all but the "
             "commonest) is off."),
    _measure("tstr-gap-groups", "Difference between groups in accuracy", needs=(HOLDOUT, TARGET, GROUPS),
             unit="column", compute=tstr_gap_groups,
             explanation="How far apart groups of the hold-out are in the accuracy of boosting that learnt from "
             "synthetic rows."),
)  # fmt: skip
