"""How far an exchange tells two tables apart: by the answers that were given, and by how much the exact ones differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks import (
    Ask,
    Draws,
    Keys,
    Marginals,
    Partitions,
    Quantile,
    Ranks,
    Select,
    Tally,
    Total,
)
from understudy.boundary.privacy.budget import Spend
from understudy.lab.audits.checks.paired_gate import Noise, PairedExchange, PosteriorSample, Selection

CERTAIN = 1e3
"""The log-likelihood ratio of what one table can't have given."""
COUNTS = (Marginals, Partitions, Total, Tally)
CHOICES = (Select, Quantile)


@dataclass(frozen=True)
class NoisyHistogram:
    """One noisy histogram of an exchange: what both tables say, the answer, and the noise that was drawn for it."""

    here: NDArray[np.float64]
    there: NDArray[np.float64]
    value: NDArray[np.float64]
    noise: Noise | None
    """None where the answer is a public fact."""
    spend: Spend | None
    """None where nobody paid."""


def noisy_histograms(exchange: PairedExchange) -> Iterator[NoisyHistogram]:
    """The histograms of an exchange that asks for counts."""
    noises = iter([d for d in exchange.draws if isinstance(d, Noise)])
    spends = exchange.spends if len(exchange.spends) == len(exchange.questions) else (None,) * len(exchange.questions)
    for question, here, there, value, spend in zip(
        exchange.questions, exchange.here, exchange.there, exchange.values, spends, strict=True
    ):
        noise = next(noises, None) if question["scale"] else None
        flat = [np.asarray(x, dtype=np.float64).ravel() for x in (here, there, value)]
        yield NoisyHistogram(flat[0], flat[1], flat[2], noise, spend)


def log_ratio(exchange: PairedExchange) -> float:
    """The logarithm of how much likelier its answers are from `here` than from `there`, by the laws in use."""
    if exchange.kind in COUNTS:
        return sum(map(_count_ratio, noisy_histograms(exchange)))
    if exchange.kind in CHOICES:
        return _choice_ratio(exchange)
    return _OTHERS[exchange.kind](exchange)


def _count_ratio(part: NoisyHistogram) -> float:
    if part.here.shape != part.there.shape:
        return CERTAIN
    if part.noise is None:
        return 0.0 if np.array_equal(part.here, part.there) else CERTAIN
    return _noise_ratio(part.noise, part.value - part.here, part.value - part.there)


def _noise_ratio(noise: Noise, here: NDArray[np.float64], there: NDArray[np.float64]) -> float:
    if noise.mechanism == "discrete-laplace":
        return float(np.abs(there).sum() - np.abs(here).sum()) / noise.scale
    return float((there**2).sum() - (here**2).sum()) / (2 * noise.scale**2)


def _choice_ratio(exchange: PairedExchange) -> float:
    """Of a choice without replacement, as if none were passed over: any function of what is shown is a statistic."""
    drawn = [d for d in exchange.draws if isinstance(d, Selection)]
    if not drawn or np.shape(exchange.here) != np.shape(exchange.there):
        return CERTAIN
    chosen = [int(i) for i in np.ravel(exchange.values[0])]
    here, there = (_order_log_law(np.asarray(s) * drawn[0].exponent, chosen) for s in (exchange.here, exchange.there))
    return here - there


def _order_log_law(weights: NDArray[np.float64], chosen: list[int]) -> float:
    left, total = weights.astype(np.float64).copy(), 0.0
    for index in chosen:
        peak = left.max()
        total += left[index] - peak - math.log(np.exp(left - peak).sum())
        left[index] = -math.inf
    return total


def _key_ratio(exchange: PairedExchange) -> float:
    """Of the values that are shown, with their noisy counts; those that stay hidden are left out."""
    noise = next(d for d in exchange.draws if isinstance(d, Noise))
    here, there = (dict(zip(values, counts, strict=True)) for values, counts in (exchange.here, exchange.there))
    total = 0.0
    for value, noisy in exchange.values[0]:
        if value not in there:
            return CERTAIN
        a, b = (np.array([float(noisy) - counts.get(value, 0)]) for counts in (here, there))
        total += _noise_ratio(noise, a, b)
    return total


def _rank_ratio(exchange: PairedExchange) -> float:
    """Of many choices, one for each rank and group."""
    chosen = [int(i) for value in exchange.values for i in np.ravel(value)]
    drawn = [d for d in exchange.draws if isinstance(d, Selection)]
    others = [d for d in exchange.other_draws if isinstance(d, Selection)]
    if not len(chosen) == len(drawn) == len(others):
        return CERTAIN
    return sum(
        _order_log_law(a.scores * a.exponent, [i]) - _order_log_law(b.scores * a.exponent, [i])
        for i, a, b in zip(chosen, drawn, others, strict=True)
    )


def _sample_ratio(exchange: PairedExchange) -> float:
    """Of draws from the posteriors of two tables."""
    samples = [d for d in exchange.draws if isinstance(d, PosteriorSample)]
    if len(samples) != len(exchange.values):
        return CERTAIN
    return sum(
        _sample_log_law(value, here, s.prior) - _sample_log_law(value, there, s.prior)
        for s, value, here, there in zip(samples, exchange.values, exchange.here, exchange.there, strict=True)
    )


def _sample_log_law(drawn: NDArray[Any], counts: NDArray[Any], prior: Sequence[float]) -> float:
    """Up to what does not depend on the counts: at each node a Dirichlet-multinomial law of its branches."""
    from scipy.special import gammaln

    total, branches = 0.0, 2 if len(prior) > 1 else drawn.size
    for level, alpha in enumerate(prior, 1):
        shape = (branches ** (level - 1), branches, -1)
        n, m = (np.asarray(x, dtype=np.float64).reshape(shape).sum(axis=2) for x in (counts, drawn))
        total += float((gammaln(n + m + alpha) - gammaln(n + alpha)).sum())
        whole = n.sum(axis=1) + branches * alpha
        total -= float((gammaln(whole + m.sum(axis=1)) - gammaln(whole)).sum())
    return total


_OTHERS: dict[type[Ask[Any]], Callable[[PairedExchange], float]] = {
    Keys: _key_ratio,
    Ranks: _rank_ratio,
    Draws: _sample_ratio,
}
