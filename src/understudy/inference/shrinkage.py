"""Noisy counts shrunk towards what is expected of them, as far as the counts themselves say: empirical Bayes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, gammaln

Floats = NDArray[np.float64]

STANDS_OUT = 9.0
"""A difference of three standard deviations is kept but for 1/z², whatever the others of its level look like."""
FIRST_CUTS = (0.3125, 0.4375, 0.5625, 0.6875)
"""Where lines are cut first; their halves are cut in the middle."""
PRIOR_SPLITS, SMALLEST_SPLIT, LEAST_ROWS = 1.0, 1e-3, 1e-9
NEGLIGIBLE = 0.05
"""Of the rows: noise in all values together that is not worth taking away."""
CLEAR = 9.0
"""A count of so many standard deviations is as good as without noise, whatever the others are."""
PLACES = np.concatenate([[0.0, 0.05, 0.15, 0.3], np.arange(0.5, 14.0, 0.5)])
"""Where a count may be, in standard deviations of its noise."""
SHAPES = (0.1, 0.3, 1.0, 4.0, 20.0)
USUAL_SHAPE, SHAPE_SPREAD = 0.7, 1.2
"""How uneven values are: the shape of their distribution is about that of Jeffreys' prior, half, or somewhat more; its
logarithm has this standard deviation."""
SMALLEST_SPREAD, SMALLEST_LIKELIHOOD = 1e-6, 1e-300
RATIOS = np.concatenate([[0.0], np.exp(np.linspace(-4.0, 7.0, 34))])
STRATA, STEPS, PSEUDO_COUNT = 4, 60, 0.1
SMALLEST_FACTOR, LARGEST_FACTOR = 1e-3, 1e3
BALANCING_STEPS = 50


def smoothed(counts: Floats, variances: Floats) -> Floats:
    """Counts along a line, halved again and again: how a segment's sum splits is shrunk towards the slope around it.

    Each split is the best estimate of it given the sum above, and is shrunk by how much splits of its level differ from
    that slope beyond their noise. Where halves meet an estimate has steps, so the line is cut first at several places,
    and the mean is taken.
    """
    size, cuts = counts.size, len(FIRST_CUTS)
    if size < 2:
        return counts
    sums, noise = (np.concatenate([[0.0], np.cumsum(x)]) for x in (counts, variances))
    # All cuts at once: the segments of each are in order, one line after the other.
    low, high, total = np.zeros(cuts, dtype=np.intp), np.full(cuts, size), np.full(cuts, counts.sum())
    share, depth = np.array(FIRST_CUTS), 0
    while len(low) < cuts * size:
        divided = high - low > 1
        below, above, whole = low[divided], high[divided], total[divided]
        middle = below + np.maximum(((above - below) * share).astype(np.intp), 1)
        left, right = sums[middle] - sums[below], sums[above] - sums[middle]
        left_noise, right_noise = noise[middle] - noise[below], noise[above] - noise[middle]
        both = left_noise + right_noise
        left = left + (whole - left - right) * left_noise / both
        sloped = (whole - _slopes(low, high, total, size)[divided] * (above - middle) * (above - below) / 2) / (
            above - below
        )
        expected = np.clip(sloped * (middle - below), np.minimum(whole, 0.0), np.maximum(whole, 0.0))
        kept = _kept(left - expected, left_noise * right_noise / both, whole, depth)
        left = expected + kept * (left - expected)
        first = np.arange(len(low)) + np.cumsum(divided) - divided
        low, high, total = (np.repeat(x, 1 + divided) for x in (low, high, total))
        first = first[divided]
        high[first], low[first + 1], total[first], total[first + 1] = middle, middle, left, whole - left
        share, depth = np.array(0.5), depth + 1
    return np.asarray(total.reshape(cuts, size).mean(axis=0))


def _slopes(low: NDArray[np.intp], high: NDArray[np.intp], total: Floats, size: int) -> Floats:
    """How much the density rises per place in each segment, by those beside it on the same line."""
    density, centre, places = total / (high - low), (low + high) / 2, np.arange(len(low))
    before, after = places - (low > 0), places + (high < size)
    apart = centre[after] - centre[before]
    # Two halves have no curve yet: what rises from one to the other is as likely to be flat within each.
    known = (apart > 0) & (len(low) > 2 * len(FIRST_CUTS))
    return np.divide(density[after] - density[before], apart, out=np.zeros(len(low)), where=known)


def evened(counts: Floats, variances: Floats) -> Floats:
    """Counts of values without an order: what is expected of each if they all come from one Gamma distribution.

    How uneven they are, its shape, is learned from the counts themselves, and, where they are few, from what is usual.
    So a count that noise took below zero is small and not negative, and one that stands out stays. The sum stays.
    """
    total, deviations = max(1.0, float(counts.sum())), np.sqrt(variances)
    if counts.size < 2 or deviations.sum() < NEGLIGIBLE * total:
        return counts
    mean = total / counts.size
    hidden = counts < CLEAR * deviations
    points = deviations[hidden, None] * PLACES
    nearer = (points[:, 1:] + points[:, :-1]) / 2  # the bounds of what each point stands for
    likely = np.exp(-0.5 * ((counts[hidden, None] - points) / deviations[hidden, None]) ** 2)
    clear, noise = np.maximum(counts[~hidden], LEAST_ROWS), variances[~hidden]
    evidence, first = np.empty(len(SHAPES)), np.empty((len(SHAPES), counts.size))
    for i, shape in enumerate(SHAPES):
        below = np.pad(gammainc(shape, nearer * (shape / mean)), ((0, 0), (1, 0)))
        weights = likely * np.diff(below, append=1.0)
        sums = np.maximum(weights.sum(axis=1), SMALLEST_LIKELIHOOD)
        first[i, hidden] = (weights * points).sum(axis=1) / sums
        # Far from 0 both density and noise are about normal, so that one step of Newton's finds the mean.
        density = shape * np.log(shape / mean) - gammaln(shape) + (shape - 1) * np.log(clear) - clear * (shape / mean)
        slope, bend = (shape - 1) / clear - shape / mean, (shape - 1) / clear**2
        first[i, ~hidden] = counts[~hidden] + slope / (1 / noise + bend)
        usual = -0.5 * (np.log(shape / USUAL_SHAPE) / SHAPE_SPREAD) ** 2
        evidence[i] = usual + np.log(sums).sum() + (density + 0.5 * np.log(2 * np.pi * noise)).sum()
    shares = np.exp(evidence - evidence.max())
    found = shares @ first / shares.sum()
    return np.asarray(found + (counts.sum() - found.sum()) * variances / variances.sum())


def _kept(difference: Floats, variance: Floats, whole: Floats, depth: int) -> Floats:
    """The share of each difference that is not noise, judged by all of them together, or by its own size."""
    # What counts is how uneven a split is relative to the rows it splits: so a full segment keeps more than an empty
    # one. How much splits of this depth vary is learned from them, and from a Polya tree of parameter depth²/2 (Lavine
    # 1992), which counts as much as one split that is known well.
    half, usual = np.maximum(whole, 0.0) / 2 + LEAST_ROWS, 1.0 / (1.0 + (1.0 + depth) ** 2)
    known = (usual * half**2 / (usual * half**2 + variance)) ** 2
    seen = float((known * (difference**2 - variance) / half**2).sum())
    spread = max((PRIOR_SPLITS * usual + seen) / (PRIOR_SPLITS + float(known.sum())), SMALLEST_SPLIT * usual)
    typical = spread * half**2 / (spread * half**2 + variance)
    # Of limited translation (Efron & Morris 1972), so that what stands out is not shrunk because the rest is noise.
    squares = difference**2
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
