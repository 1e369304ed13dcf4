"""Draws from a posterior as a mechanism: privacy that comes from sampling itself, with its exact ε.

A row is in one leaf of a public tree whose every node at level j has α_j pseudo-counts. The posterior of the leaves'
probabilities is a Polya tree; with one level of many leaves it is a Dirichlet. What is released are m draws from one
measure that was drawn from it, as counts by leaf. `docs/concepts/nonparametric.md` proves that, with 2·α_{j+1} ≥ α_j,
this is ε-DP for replacing a row, and for adding or removing one, with

    ε = Σ_{j≥1} ln(1 + m/α_j) − Σ_{j≥2} ln(1 + m/(2·α_j)),

and that no smaller ε will do.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.accountant import Number, round_up
from understudy.boundary.privacy.mechanisms.noise import Entropy, ln_above
from understudy.errors import InputError, MethodError
from understudy.parameters import whole_number

UNIT = 2**16
"""Pseudo-counts are whole multiples of 1/UNIT, so that the urn is drawn from in whole numbers."""
LARGEST_PSEUDO_COUNT = 2.0**43
"""Times UNIT it is 2^59 balls for each of two branches, below the 2^62 that `check_leaves` allows an urn."""
MOST_DRAWS = 100_000_000
"""A draw takes about a hundred bytes while the urn is drawn from."""
DEEPEST = 40

LARGEST_WORD = np.uint64(2**64 - 1)

Counts = NDArray[np.int64]
Prior = tuple[float, ...]


def polya_prior(concentration: float, depth: int, exponent: float = 2.0) -> Prior:
    """The pseudo-counts c·j^p of the levels 1 … depth, each rounded up to a multiple of 1/UNIT.

    >>> polya_prior(0.5, 3)
    (0.5, 2.0, 4.5)
    """
    if not 1 <= depth <= DEEPEST:
        raise InputError(f"depth ({depth}) of a Polya tree must be from 1 to {DEEPEST}; ask for another", depth)
    if not -1 <= exponent <= 10:
        # 2·α₂ ≥ α₁ needs p ≥ −1 (`check_prior`).
        raise InputError(f"exponent ({exponent}) of a Polya tree must be from -1 to 10; ask for another", exponent)
    levels = tuple(math.ceil(concentration * float(j) ** exponent * UNIT) / UNIT for j in range(1, depth + 1))
    return check_prior(levels)


def check_prior(prior: Sequence[float]) -> Prior:
    """The pseudo-counts of the levels, if the closed form holds for them and the urn can be drawn from exactly."""
    for count in prior:
        if not (0 < count <= LARGEST_PSEUDO_COUNT and float(count * UNIT).is_integer()):
            raise InputError(
                f"pseudo-count ({count}) must be above 0, below {LARGEST_PSEUDO_COUNT:.3g} and a multiple of 1/{UNIT}; "
                "without prior mass a draw would show its row, which no finite epsilon allows",
                count,
            )
    # 2·α_{j+1} ≥ α_j is the condition of the theorem: below it the formula is not the supremum.
    for above, below in itertools.pairwise(prior):
        if 2 * below < above:
            raise InputError(f"pseudo-count ({below}) must be at least half of the {above} of the level above", below)
    return tuple(prior)


def check_leaves(leaves: int, prior: Sequence[float]) -> int:
    """Into how many branches each node splits, if the tree has that many leaves and its urn fits into 64 bits."""
    branches = leaves if len(prior) == 1 else 2
    if branches ** len(prior) != leaves:
        raise InputError(f"leaves ({leaves:,}) must be 2^{len(prior)}, one level for each pseudo-count", leaves)
    # Balls are counted in 64 bits: prior, rows and earlier draws together.
    if branches * max(prior) * UNIT >= 2.0**62:
        raise MethodError(
            f"pseudo-counts ({max(prior):.4g} for each of {branches:,} cells) must sum to below {2.0**62 / UNIT:.4g}; "
            "ask for fewer draws, or with a larger epsilon",
            prior,
        )
    return branches


@lru_cache(maxsize=1024)
def epsilon_of_draws(prior: Prior, draws: int) -> Fraction:
    """The exact ε of `draws` draws, rounded up to the grid of costs.

    >>> abs(float(epsilon_of_draws((2.0,), 2)) - math.log(2)) < 1e-15
    True
    """
    check_draws(draws)
    check_prior(prior)
    if not prior:
        raise InputError("a prior must have one level at least; give its pseudo-counts", prior)
    # exp(ε) is a rational number: one logarithm in 60 digits, rounded up, where the sum of the formula has many.
    ratio = math.prod((1 + draws / Fraction(a) for a in prior), start=Fraction(1))
    ratio /= math.prod((1 + draws / (2 * Fraction(a)) for a in prior[1:]), start=Fraction(1))
    context = Context(prec=60)
    above = context.next_plus(context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))
    return round_up(Fraction(ln_above(above, context)))


def check_draws(draws: int) -> int:
    return whole_number("draws", draws, 1, MOST_DRAWS, advice="; ask for another")


def least_concentration(epsilon: Number, draws: int, depth: int, exponent: float = 2.0) -> float:
    """The smallest c (to about a millionth) for which `draws` draws cost at most ε.

    >>> prior = polya_prior(least_concentration(1.0, 1000, 12), 12)
    >>> 0.99999 < epsilon_of_draws(prior, 1000) <= 1
    True
    """
    levels = np.arange(1.0, depth + 1) ** exponent
    # ε depends on c through m/c, and falls as c grows: bisect on log2 of c/m in floats, for one draw.
    low, high = -60.0, 60.0
    for _ in range(60):
        middle = (low + high) / 2
        y = 1.0 / (2.0**middle * levels)
        if float(np.log1p(y).sum() - np.log1p(y[1:] / 2).sum()) > epsilon:
            low = middle
        else:
            high = middle
    # Then upwards in the exact arithmetic of the price, which has the last word.
    units = math.ceil(2.0**high * check_draws(draws) * UNIT)
    while units <= LARGEST_PSEUDO_COUNT * UNIT / depth ** max(exponent, 0.0):
        if epsilon_of_draws(polya_prior(units / UNIT, depth, exponent), draws) <= epsilon:
            return units / UNIT
        units += 1 + units // 2**24
    raise MethodError(
        f"epsilon ({float(epsilon):.4g}) is too small for {draws} draws of depth {depth}; ask for fewer draws", epsilon
    )


def posterior_draws(counts: Counts, prior: Prior, draws: int, entropy: Entropy) -> Counts:
    """How many of the draws fall into each leaf, given how many rows are in it; exactly by the law of the theorem.

    One level of pseudo-counts splits into all leaves at once (Dirichlet), several halve again and again (Polya tree).

    >>> from understudy.boundary.privacy.mechanisms.noise import SystemEntropy
    >>> int(posterior_draws(np.array([5, 0, 0, 1]), (1.0, 4.0), 30, SystemEntropy()).sum())
    30
    """
    branches = check_leaves(len(counts), prior)
    drawn = np.array([draws], dtype=np.int64)
    for level, pseudo_count in enumerate(prior, start=1):
        below = counts.reshape(branches**level, -1).sum(axis=1)
        drawn = _split(drawn, below, round(pseudo_count * UNIT), entropy)
    return drawn


def _split(drawn: Counts, below: Counts, prior: int, entropy: Entropy) -> Counts:
    """The draws of each node among its branches, by Polya's urn: each is a branch of the prior, of a row, or of an
    earlier draw, by weight. What copies an earlier draw follows it to the first that copies none."""
    branches = len(below) // len(drawn)
    node = np.repeat(np.arange(len(drawn)), drawn)
    place = np.arange(len(node))
    rows = below.reshape(len(drawn), branches).sum(axis=1)
    first = np.cumsum(drawn) - drawn - rows  # the place of a copied draw, from what is left of the ball
    ball = uniform_integers(branches * prior + (place - first[node]) * UNIT, entropy)
    fresh = ball < branches * prior
    chosen = (ball - branches * prior) // UNIT
    copied = chosen >= rows[node]
    source = np.where(copied, first[node] + chosen, place)
    row = np.where(copied, 0, chosen)  # counted from the first of its node
    if branches == 2:
        held = (row >= below[::2][node]).astype(np.int64)
    else:  # a Dirichlet: one node alone
        held = np.searchsorted(np.cumsum(below), row, side="right").astype(np.int64)
    branch = np.where(fresh, ball // prior, held)
    # Every step halves what is left of a chain of copies, until each draw points to where its chain ends.
    while not np.array_equal(further := source[source], source):
        source = further
    return np.bincount((node * branches + branch)[source], minlength=len(below)).astype(np.int64)


def uniform_integers(bounds: Counts, entropy: Entropy) -> Counts:
    """For each bound an integer from 0 up to, not including, it, all equally likely: words that would favour the small
    ones are drawn again."""
    # A word is taken modulo its bound. Those from the last whole multiple of the bound on would make small remainders
    # likelier; they come up with probability bound/2^64 at most.
    limits = bounds.astype(np.uint64)
    words = entropy.words(len(bounds)).copy()
    again = np.flatnonzero(words > LARGEST_WORD - limits)  # the others are below the last whole multiple for certain
    while len(again):
        limit = limits[again]
        again = again[words[again] > LARGEST_WORD - (LARGEST_WORD % limit + np.uint64(1)) % limit]
        words[again] = entropy.words(len(again))
    return np.asarray(words % limits).astype(np.int64)
