"""Step 1. Every exchange is put to both tables after the same answers: none may differ by more than it declared.

That is what adaptive composition asks of each step. The figures are exact, so that one excess is a violation for sure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.boundary.privacy.asks import Ask, Consult, Draws, Keys, Ranks, Select, Train
from understudy.boundary.privacy.budget import Budget, Spend, compose
from understudy.lab.audits.checks.paired_gate import (
    CHOICES,
    COUNTS,
    Noise,
    NoisyHistogram,
    PairedExchange,
    PosteriorSample,
    Selection,
    noisy_histograms,
)
from understudy.lab.audits.result import AuditCheck

# Counts are exact; norms, scores and composed ε are floats, whose last digits must not be called a violation.
ROUNDING = 1 + 1e-12


@dataclass(frozen=True)
class BoundRatio:
    """A quantity of an exchange beside its bound; above 1 it is a violation."""

    what: str
    ratio: float
    words: str

    @classmethod
    def of(cls, what: str, holds: bool, words: str) -> BoundRatio:
        """Of what holds or does not, and has no size."""
        return cls(what, 0.0 if holds else np.inf, words)


CHECKS = {
    "paid": "every answer is paid for",
    "change": "no exact answer changes by more than its declared sensitivity",
    "noise": "the noise is no smaller than declared",
    "whole": "every answer is the exact one plus its noise",
    "admission": "what a selection refuses stays refused",
    "budget": "the spends together stay within the budget",
}


def check(runs: Sequence[tuple[str, Sequence[PairedExchange]]], budget: Budget) -> list[AuditCheck]:
    """`runs` are all exchanges of some runs, each with the name of its pair."""
    found: dict[str, list[tuple[str, BoundRatio]]] = {name: [] for name in CHECKS}
    for pair, exchanges in runs:
        epsilon, _ = compose([s for exchange in exchanges for s in exchange.spends], budget.delta, budget.accounting)
        words = f"they compose to epsilon {epsilon:.4g} at delta {budget.delta:g}, asked {budget.epsilon:.4g}"
        found["budget"].append((pair, BoundRatio("budget", _over(epsilon, budget.epsilon), words)))
        for exchange in exchanges:
            for excess in bound_ratios(exchange):
                found[excess.what].append((pair, excess))
    checks = []
    for name, seen in found.items():
        if seen:
            pair, worst = max(seen, key=lambda f: f[1].ratio)
            words = f"{worst.words} (pair {pair!r}; the worst of {len(seen):,})."
            checks.append(AuditCheck.of(CHECKS[name], worst.ratio <= ROUNDING, words))
    return checks


def bound_ratios(exchange: PairedExchange) -> Iterator[BoundRatio]:
    answer = f"the answer to {exchange.kind.name!r}"
    if exchange.spends:
        yield BoundRatio.of("paid", True, f"{answer} is debited")
    else:
        yield BoundRatio.of("paid", not exchange.draws, f"nothing is debited for {answer}")
    if exchange.kind is Select and exchange.questions[0]["k"] > 1:
        # One order of noisy scores is k exponential mechanisms only if the admissible candidates become no more.
        k, late = exchange.questions[0]["k"], len(exchange.late)
        words = f"a selection of {k} would admit {late} candidates after it refused them"
        yield BoundRatio.of("admission", not late, f"{words}, declared {k} exponential mechanisms")
    if exchange.kind in COUNTS:
        for part in noisy_histograms(exchange):
            yield from _histogram(part)
    elif exchange.kind in CHOICES and exchange.spends:
        yield from _choice(exchange)
    elif exchange.spends and exchange.kind in _OTHERS:
        yield from _OTHERS[exchange.kind](exchange)


def _histogram(part: NoisyHistogram) -> Iterator[BoundRatio]:
    if part.noise is None:
        same = part.here.shape == part.there.shape and np.array_equal(part.here, part.there)
        yield BoundRatio.of("change", same, "a fact that is called public differs between neighbours")
        return
    if part.here.shape != part.there.shape:  # a domain that was read off the rows
        yield BoundRatio(
            "change", np.inf, f"a histogram has {part.here.size} cells for one table, {part.there.size} for the other"
        )
        return
    drawn = part.noise.values.ravel()
    whole = np.array_equal(part.value, part.here + drawn)
    yield BoundRatio.of("whole", whole, f"noise of {drawn.size} cells on {part.here.size} counts")
    if part.spend is not None:
        yield _change(part.here - part.there, part.spend)
        yield _used(part.noise, part.spend)


def _change(difference: np.ndarray, spend: Spend) -> BoundRatio:
    # Laplace noise hides what moves in L1, Gaussian noise what moves in L2.
    norm, size = "L2", float(np.sqrt((difference**2).sum()))
    if spend.mechanism == "discrete-laplace":
        norm, size = "L1", float(np.abs(difference).sum())
    words = f"{spend.asked} change by {size:.4g} in {norm}, declared {spend.sensitivity:.4g}"
    return BoundRatio("change", _over(size, spend.sensitivity), words)


def _used(noise: Noise, spend: Spend) -> BoundRatio:
    words = f"{spend.asked} get noise of scale {noise.scale:.4g}, declared {spend.scale:.4g}"
    return BoundRatio("noise", _over(spend.scale, noise.scale), words)


def _choice(exchange: PairedExchange) -> Iterator[BoundRatio]:
    spend = exchange.spends[0]
    here, there = (np.asarray(s, dtype=np.float64) for s in (exchange.here, exchange.there))
    moved = np.inf
    if here.shape == there.shape:
        moved = float(np.abs(here - there).max())
    words = f"the scores of {spend.asked} move by {moved:.4g}, declared {spend.sensitivity:.4g}"
    yield BoundRatio("change", _over(moved, spend.sensitivity), words)
    yield from (_chosen(d, spend.scale, spend) for d in exchange.draws if isinstance(d, Selection))


def _chosen(draw: Selection, epsilon: float, spend: Spend) -> BoundRatio:
    """The exponential mechanism chooses with ε/2Δ: scores here go up and down, so that the half can't be saved."""
    declared = epsilon / (2 * spend.sensitivity)
    words = f"{spend.asked} chosen with exponent {draw.exponent:.4g}, declared {declared:.4g}"
    return BoundRatio("noise", _over(draw.exponent, declared), words)


def _keys(exchange: PairedExchange) -> Iterator[BoundRatio]:
    spend = exchange.spends[0]
    here, there = (
        dict(zip(values, map(int, counts), strict=True)) for values, counts in (exchange.here, exchange.there)
    )
    yield _change(np.array([here.get(k, 0) - there.get(k, 0) for k in sorted({*here, *there})], dtype=float), spend)
    yield from (_used(d, spend) for d in exchange.draws if isinstance(d, Noise))


def _ranks(exchange: PairedExchange) -> Iterator[BoundRatio]:
    """Groups are disjoint: what a person may move in all of them together is what the spend declares."""
    spend = exchange.spends[0]
    drawn, others = ([d for d in draws if isinstance(d, Selection)] for draws in (exchange.draws, exchange.other_draws))
    groups = len(drawn) // len(exchange.spends)
    moved = np.array([np.abs(a.scores - b.scores).max() for a, b in zip(drawn, others, strict=True)])
    worst = float(moved.reshape(len(exchange.spends), groups).sum(axis=1).max())
    words = f"the scores of {spend.asked} move by {worst:.4g} in all groups, declared {spend.sensitivity:.4g}"
    yield BoundRatio("change", _over(worst, spend.sensitivity), words)
    for place, draw in enumerate(drawn):
        yield _chosen(draw, exchange.spends[place // groups].scale, spend)


def _samples(exchange: PairedExchange) -> Iterator[BoundRatio]:
    """Draws from a posterior: as many rows moved, and as many draws from the same prior, as were paid for."""
    for spend, here, there, draw in zip(exchange.spends, exchange.here, exchange.there, exchange.draws, strict=True):
        # Rows, and not an L1 norm: one that is replaced leaves one cell for another, and is one row.
        moved = float(max(np.maximum(here - there, 0).sum(), np.maximum(there - here, 0).sum()))
        words = (
            f"{spend.asked} follow counts that {moved:.4g} rows of a person change, declared {spend.sensitivity:.4g}"
        )
        yield BoundRatio("change", _over(moved, spend.sensitivity), words)
        assert isinstance(draw, PosteriorSample)
        most = max(a / b for a, b in zip(spend.prior, draw.prior, strict=True)) * draw.number / spend.scale
        declared = f"declared {spend.scale:.4g} of {spend.prior[0]:.4g}"
        words = f"{draw.number} draws after pseudo-counts of {draw.prior[0]:.4g}, {declared}"
        yield BoundRatio("noise", most, words)


def _read(exchange: PairedExchange) -> Iterator[BoundRatio]:
    """Rows that a training reads, as codes: one person moves one (a training is of people who have one row)."""
    here, there = (Counter(map(bytes, np.ascontiguousarray(codes))) for codes in (exchange.here, exchange.there))
    moved = float(max((here - there).total(), (there - here).total()))
    yield BoundRatio("change", moved, f"{exchange.spends[0].asked} read {moved:.4g} rows otherwise, declared 1")


_OTHERS: dict[type[Ask[Any]], Callable[[PairedExchange], Iterator[BoundRatio]]] = {
    Keys: _keys,
    Ranks: _ranks,
    Draws: _samples,
    Train: _read,
    Consult: _read,
}


def _over(size: float, bound: float) -> float:
    if not bound:
        return np.inf
    return size / bound
