"""The Pitman–Yor urn on values of a line, and what it tells of its rows.

Each value is a copy of an earlier one with probability (count − σ)/(θ + n), and new from a base measure without atoms
with probability (θ + σk)/(θ + n), where k distinct values were seen (Pitman & Yor 1997). With σ = 0 it is the urn of a
Dirichlet process.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InputError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def check_urn(theta: float, sigma: float) -> None:
    if not (0 <= sigma < 1 and 0 <= theta < math.inf):
        raise InputError(f"sigma ({sigma}) must be from 0 to below 1, and theta ({theta}) at least 0", (theta, sigma))


def urn(counts: Integers, draws: int, theta: float, sigma: float, rng: np.random.Generator) -> Integers:
    """Which value each draw has, given how often each of the k values was seen; new values are numbered from k on.

    Whoever is copied is drawn from all before, and where it is the first of its value, the copy is a new value after
    all with probability σ: that takes σ from each value.
    """
    seen = int(counts.sum())
    position = rng.random(draws) * (theta + seen + np.arange(draws))
    fresh = position < theta
    copied = np.minimum((position - theta).astype(np.int64), seen + np.arange(draws) - 1)
    founder = np.zeros(seen + draws, dtype=bool)
    founder[np.cumsum(counts) - counts] = True
    escapes = rng.random(draws) < sigma
    founder[seen:] = fresh
    # Whether a copy founds a value depends on its source, which came before: a few rounds settle all of them.
    while not np.array_equal(founder[seen:], new := fresh | (founder[copied] & escapes)):
        founder[seen:] = new
    source = np.concatenate([np.arange(seen), np.where(founder[seen:], seen + np.arange(draws), copied)])
    value = np.concatenate([np.repeat(np.arange(len(counts)), counts), len(counts) + np.cumsum(founder[seen:]) - 1])
    # Pointer doubling: every round jumps twice as far, so that log₂ of the longest chain of copies is enough.
    while not np.array_equal(source, further := source[source]):
        source = further
    return np.asarray(value[source][seen:])


def least_delta(rows: int, draws: int, theta: float, sigma: float) -> float:
    """The probability that a row with a value of its own is copied: no smaller δ holds, at any ε.

    >>> round(least_delta(1000, 1000, 0.0, 0.0), 4)
    0.5003
    """
    check_urn(theta, sigma)
    kept = np.log1p((sigma - 1) / (theta + rows + np.arange(draws)))
    return float(-np.expm1(kept.sum()))


def log_ratio(x: Floats, y: Floats, z: Floats, theta: float, sigma: float) -> float:
    """ln q(z | x) − ln q(z | y), for x and y of the same size; infinite where z has a value of x that y has not."""
    mine, other = _log_weight(x, z, theta, sigma), _log_weight(y, z, theta, sigma)
    copied_of_x = np.isin(z, x)
    if bool((copied_of_x & ~np.isin(z, y)).any()):
        return math.inf
    if bool((~copied_of_x & np.isin(z, y)).any()):
        return -math.inf
    return mine - other


def _log_weight(x: Floats, z: Floats, theta: float, sigma: float) -> float:
    """ln of the part of q(z | x) that depends on x: rising factorials of counts, and the chances of new values."""
    from scipy.special import gammaln

    values, drawn = np.unique(z, return_counts=True)
    rows, counts = np.unique(x, return_counts=True)
    seen = np.zeros(len(values))
    known = np.isin(values, rows)
    seen[known] = counts[np.searchsorted(rows, values[known])]
    old = gammaln(seen[known] - sigma + drawn[known]) - gammaln(seen[known] - sigma)
    new = gammaln(1 - sigma + drawn[~known] - 1) - gammaln(1 - sigma)
    chances = np.log(theta + sigma * (len(rows) + np.arange(np.count_nonzero(~known))))
    return float(old.sum() + new.sum() + chances.sum())


def simulated_delta(
    epsilon: float,
    rows: int,
    draws: int,
    theta: float,
    sigma: float,
    sample: Callable[[int, np.random.Generator], Floats],
    runs: int,
    rng: np.random.Generator,
) -> float:
    """The seed's Monte-Carlo δ: how often z, made from random rows x, is e^ε likelier than from x with one row redrawn.

    It is that of typical rows and a typical change: an estimate of an average, and no bound.
    """
    ratios = simulated_ratios(rows, draws, theta=theta, sigma=sigma, sample=sample, runs=runs, rng=rng)
    return float((ratios > epsilon).mean())


def simulated_ratios(
    rows: int,
    draws: int,
    theta: float,
    sigma: float,
    sample: Callable[[int, np.random.Generator], Floats],
    runs: int,
    rng: np.random.Generator,
) -> Floats:
    """Of each run, ln of how much likelier z is from x than from x with one row redrawn; it may be infinite."""
    found = np.empty(runs)
    for run in range(runs):
        x = sample(rows, rng)
        y = x.copy()
        y[rng.integers(rows)] = sample(1, rng)[0]
        values, counts = np.unique(x, return_counts=True)
        picked = urn(counts, draws, theta, sigma, rng)
        found[run] = log_ratio(x, y, np.concatenate([values, rng.random(draws)])[picked], theta, sigma)
    return found
