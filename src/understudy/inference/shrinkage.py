"""Noisy counts shrunk towards what is expected of them, as far as the counts themselves say: empirical Bayes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STANDS_OUT = 9.0
"""A difference of three standard deviations is kept but for 1/z², whatever the others of its level look like."""
FEWEST_VALUES = 9
PRIOR_VALUES, SMALLEST_SPREAD = 4.0, 1e-6
RATIOS = np.concatenate([[0.0], np.exp(np.linspace(-4.0, 7.0, 34))])
STRATA, STEPS, PSEUDO_COUNT = 4, 60, 0.1
SMALLEST_FACTOR, LARGEST_FACTOR = 1e-3, 1e3
BALANCING_STEPS = 50


def smoothed(counts: Floats, variances: Floats) -> Floats:
    """Counts along a line, halved again and again: how a segment's sum splits is shrunk towards its widths.

    Each split is the best estimate of it given the sum above, and is shrunk by how much the splits of its level differ
    from even ones beyond their noise.
    """
    if counts.size < FEWEST_VALUES:
        return counts
    sums, noise = (np.concatenate([[0.0], np.cumsum(x)]) for x in (counts, variances))
    low, high, total = np.array([0]), np.array([counts.size]), np.array([counts.sum()])
    found = counts.astype(np.float64)
    while low.size:
        middle = (low + high) // 2
        left, right = sums[middle] - sums[low], sums[high] - sums[middle]
        left_noise, right_noise = noise[middle] - noise[low], noise[high] - noise[middle]
        both = left_noise + right_noise
        left = left + (total - left - right) * left_noise / both
        even = total * (middle - low) / (high - low)
        left = even + _kept(left - even, left_noise * right_noise / both) * (left - even)
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        total = np.concatenate([left, total - left])
        found[low[high - low == 1]] = total[high - low == 1]
        low, high, total = (x[high - low > 1] for x in (low, high, total))
    return found


def evened(counts: Floats, variances: Floats) -> Floats:
    """Counts of values without an order, each shrunk towards the mean by the share of its variance that is noise.

    How much true counts differ from each other is learned from the counts themselves, and, where they are few, from
    Jeffreys' prior (a Dirichlet of halves), which counts as much as PRIOR_VALUES of them. The sum stays.
    """
    size, total = counts.size, max(1.0, float(counts.sum()))
    if size < 2:
        return counts
    # The variance of one count n·p under p ~ Dirichlet(½, …, ½) is n²·(1/k)(1 − 1/k)/(k/2 + 1).
    prior = total**2 * (1 - 1 / size) / (size * (size / 2 + 1))
    seen = float(((counts - total / size) ** 2 - variances).sum())
    spread = max((PRIOR_VALUES * prior + seen) / (PRIOR_VALUES + size - 1), SMALLEST_SPREAD * prior)
    shrunk = total / size + (counts - total / size) * spread / (spread + variances)
    return shrunk + (counts.sum() - shrunk.sum()) * variances / max(float(variances.sum()), 1e-300)


def _kept(difference: Floats, variance: Floats) -> Floats:
    """The share of each difference that is not noise, judged by all of them together, or by its own size."""
    # James & Stein's factor for all together; and of limited translation (Efron & Morris 1972), so that what stands out
    # is not shrunk because the rest is noise.
    squares = difference**2
    typical = max(0.0, 1.0 - float(variance.mean()) / max(float(squares.mean()), 1e-300))
    own = np.divide(squares - variance, squares, out=np.zeros_like(squares), where=squares > STANDS_OUT * variance)
    return np.maximum(typical, own)


def dependence(counts: Floats, margins: tuple[Floats, Floats], variance: float) -> Floats:
    """By what factor each cell of a noisy table differs from independent columns; 1 where noise explains it all.

    The prior of the factor is learned from the table itself, apart for cells of similar expectation (Robbins 1956;
    Kiefer & Wolfowitz 1956, by expectation–maximisation on a grid). Then the margins are restored (Sinkhorn).
    """
    expected = np.outer(*margins) / margins[0].sum()
    factor = _posterior(counts.ravel(), expected.ravel(), variance).reshape(counts.shape)
    table = expected * np.clip(factor, SMALLEST_FACTOR, LARGEST_FACTOR)
    # Shrinking cell by cell moved the margins, which are known better than any cell.
    for _ in range(BALANCING_STEPS):
        table *= (margins[0] / np.maximum(table.sum(axis=1), 1e-12))[:, None]
        table *= margins[1] / np.maximum(table.sum(axis=0), 1e-12)
    return np.clip(table / np.maximum(expected, 1e-300), SMALLEST_FACTOR, LARGEST_FACTOR)


def _posterior(counts: Floats, expected: Floats, variance: float) -> Floats:
    factor = np.ones_like(expected)
    strata = np.searchsorted(np.quantile(expected, np.arange(1, STRATA) / STRATA), expected, side="right")
    for stratum in range(STRATA):
        cells = np.flatnonzero(strata == stratum)
        if cells.size:
            factor[cells] = _posterior_mean(counts[cells], expected[cells], variance)
    return factor


def _posterior_mean(counts: Floats, expected: Floats, variance: float) -> Floats:
    logs = -0.5 * (counts[:, None] - expected[:, None] * RATIOS) ** 2 / variance
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    prior = np.full(RATIOS.size, 1.0 / RATIOS.size)
    # Expectation–maximisation of the prior on a grid of ratios; the pseudo-count keeps every ratio possible.
    for _ in range(STEPS):
        posterior = likelihood * prior
        posterior /= posterior.sum(axis=1, keepdims=True)
        prior = posterior.sum(axis=0) + PSEUDO_COUNT
        prior /= prior.sum()
    return np.asarray(posterior @ RATIOS)
