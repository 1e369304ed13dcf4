"""The exponential mechanism, exactly: the largest of scores plus Gumbel noise, with lazily revealed noise.

Adding independent standard Gumbels to a_i = exponent * score_i and taking the k largest, in order, is the law of k
rounds of the exponential mechanism without replacement ("peeling": Durfee & Rogers 2019). A standard Gumbel is
-ln(E) for a unit exponential E = -ln(1 - V), V uniform; V is a lazy uniform (see `noise`), so each key a_i - ln(E_i)
is known as an interval. As long as the order of the intervals leaves the answer open, those that overlap draw more
digits, and are computed again by `decimal`. So the law is exact, and a gap between scores can't overflow.

Below it are the rules of admission, by which a selection of several picks may pass over candidates.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.mechanisms.noise import (
    FLOAT_ERROR,
    LONG,
    Entropy,
    LazyUniform,
    LazyUniforms,
    ln_above,
    ln_below,
)
from understudy.errors import InputError, InternalError

Floats = NDArray[np.float64]


def exponential(scores: Floats, exponent: float, entropy: Entropy, k: int = 1, *, bits: int = LONG) -> list[int]:
    """k distinct indices, in order of selection; the first is i with probability proportional to exp(exponent * score).

    For ε-DP with scores of sensitivity Δ the caller passes exponent = ε / (2Δ). A score of -inf is never selected.

    >>> import numpy as np
    >>> from understudy.boundary.privacy.mechanisms.noise import SystemEntropy
    >>> exponential(np.array([0.0, 1e6, -np.inf]), 1.0, SystemEntropy(), k=2)
    [1, 0]
    """
    scores = np.asarray(scores, dtype=np.float64)
    _check(scores, exponent, k)
    # The law doesn't change when all scores are shifted; from the best downwards, float errors shrink with the gap.
    best = float(scores.max())
    uniforms = LazyUniforms.draw(scores.size, bits, entropy)
    low, high = _key_bounds(_shifted(scores, best, exponent), uniforms)
    order = np.argsort(-high, kind="stable")
    # Almost always the bounds of neighbours are apart, and the order of the first k + 1 is certain as it is.
    if bool((low[order[:k]][: order.size - 1] > high[order[1 : k + 1]]).all()):
        return [int(i) for i in order[:k]]
    # The k-th largest lower end: whoever can't reach it is surely beaten by k others, whatever its further digits are.
    bar = np.partition(low, low.size - k)[low.size - k]
    keys = [
        _Key(i, Decimal(float(low[i])), Decimal(float(high[i])), uniforms[i], (float(scores[i]), best, exponent))
        for i in map(int, np.flatnonzero((high >= bar) & (high > -np.inf)))
    ]
    return [key.index for key in _ranked(keys, k)]


def _check(scores: Floats, exponent: float, k: int) -> None:
    if np.isnan(scores).any() or np.isposinf(scores).any():
        raise InputError("scores hold nan or +inf but must be finite, or -inf for never: correct the score.", scores)
    if not 0 <= exponent < math.inf:
        raise InputError(f"exponent is {exponent} but must be finite and at least 0: choose another budget.", exponent)
    eligible = int(np.isfinite(scores).sum())
    if not 1 <= k <= eligible:
        message = f"k is {k} but must be between 1 and {eligible}, the number of finite scores: ask for fewer."
        raise InputError(message, k)


def _shifted(scores: Floats, best: float, exponent: float) -> Floats:
    """exponent * (score - best) with relative error 2**-52; a difference or product out of range is refused."""
    with np.errstate(over="ignore", invalid="ignore"):
        shifted = exponent * (scores - best)
    shifted[np.isneginf(scores)] = -np.inf
    if not np.isfinite(shifted[np.isfinite(scores)]).all():
        message = "exponent times the spread of the scores exceeds 1.8e308, the largest float: rescale the scores."
        raise InputError(message, exponent)
    return shifted


def _key_bounds(shifted: Floats, uniforms: LazyUniforms) -> tuple[Floats, Floats]:
    """Certain bounds on the keys: the key falls as V grows, so the ends of V's interval give those of the key."""
    left = uniforms.floors()
    width = math.ldexp(1.0, -uniforms.bits)
    nearest = left * (1.0 - FLOAT_ERROR)
    farthest = np.minimum((left + width) * (1.0 + FLOAT_ERROR), 1.0)
    low, low_slack = _key(shifted, farthest)
    high, high_slack = _key(shifted, nearest)
    return low - low_slack, high + high_slack


def _key(shifted: Floats, v: Floats) -> tuple[Floats, Floats]:
    """shifted - ln(-ln(1 - v)), and a bound on its rounding: four units each in log1p, log, product and sum.

    A key can be infinite: at v = 0 and v = 1, and at minus infinity for an excluded candidate.
    """
    with np.errstate(divide="ignore"):
        gumbel = -np.log(-np.log1p(-v))
    # The 1 is for log1p, whose relative error is an absolute one under the outer logarithm.
    slack = FLOAT_ERROR * (1.0 + np.abs(shifted) + np.abs(gumbel))
    slack[~np.isfinite(slack)] = 0.0
    with np.errstate(invalid="ignore"):
        key = shifted + gumbel
    return np.where(np.isneginf(shifted), -np.inf, key), slack


@dataclass(frozen=True)
class _Key:
    """A candidate and what is known of its key, with score, best and exponent as they are, for an exact second look."""

    index: int
    low: Decimal
    high: Decimal
    uniform: LazyUniform
    defining: tuple[float, float, float]

    def refined(self) -> _Key:
        """The same key from one more word of V, with all roundings outwards."""
        uniform = self.uniform.refined()
        least, most = uniform.complement().exponential()
        score, best, exponent = map(Fraction, self.defining)
        shift, context = exponent * (score - best), uniform.context()
        # The digits of the shift before the point come on top of those that V needs after it.
        context.prec += max(0, shift.numerator.bit_length() - shift.denominator.bit_length()) // 3
        middle = context.divide(Decimal(shift.numerator), Decimal(shift.denominator))
        low = context.subtract(context.next_minus(middle), ln_above(most, context))
        high = context.subtract(context.next_plus(middle), ln_below(least, context))
        return _Key(self.index, context.next_minus(low), context.next_plus(high), uniform, self.defining)


def _ranked(keys: Sequence[_Key], k: int) -> list[_Key]:
    """The k largest keys in order; those whose order is in doubt are refined until it isn't (almost surely soon)."""
    while True:
        keys = sorted(keys, key=lambda key: key.high, reverse=True)
        # Neighbours among the first k + 1 whose intervals overlap: either may be the larger one.
        pairs = range(min(k, len(keys) - 1))
        doubtful = {place for i in pairs if keys[i].low <= keys[i + 1].high for place in (i, i + 1)}
        if not doubtful:
            return list(keys[:k])
        keys = [key.refined() if place in doubtful else key for place, key in enumerate(keys)]


# Rules of admission. A selection of k candidates orders all of them once, by scores with Gumbel noise, and takes the
# first k that its rule admits. That is the law of k exponential mechanisms, each among what is then admissible, if what
# is admissible only ever shrinks (the theorem of docs/mechanisms/exponential.md, "Several picks, by a rule"). Were a
# candidate admitted late that had been passed over before, its turn in the hidden order would already be gone, and the
# law would depend on scores in a way that nobody paid for.


class Admission(Protocol):
    """A rule as it stands after some picks: a value that asking doesn't change.

    It may depend on public facts, earlier answers and the picks. It must never depend on which candidates it was asked
    about, for these are private. `after` admits no candidate that the rule before it refused: each rule says in its
    docstring why, `first_admissible` checks it, and `test_admission.py` enumerates the law of each.
    """

    def admits(self, candidate: int) -> bool:
        """Whether this candidate (by index) may be picked next."""
        ...

    def after(self, picked: int) -> Admission:
        """The rule once this candidate, which it admits, is picked."""
        ...


@dataclass(frozen=True)
class OneOfEach:
    """At most one pick for each owner, such as a column or a tree: `owners` has that of every candidate.

    What is admissible only shrinks, since `served` only grows.

    >>> rule = OneOfEach(["a", "a", "b"])
    >>> first_admissible([1, 0, 2], rule, 2)
    [1, 2]
    """

    owners: Sequence[Hashable]
    served: frozenset[Hashable] = frozenset()

    def admits(self, candidate: int) -> bool:
        return self.owners[candidate] not in self.served

    def after(self, picked: int) -> OneOfEach:
        return replace(self, served=self.served | {self.owners[picked]})


class AskedInOrder:
    """A rule of unknown code. Asked about all candidates, by index, it can't tell what the hidden order is."""

    def __init__(self, rule: Admission, candidates: int) -> None:
        self.rule, self.admitted = rule, [bool(rule.admits(i)) for i in range(candidates)]

    def admits(self, candidate: int) -> bool:
        return self.admitted[candidate]

    def after(self, picked: int) -> AskedInOrder:
        later = AskedInOrder(self.rule.after(picked), len(self.admitted))
        # Of all candidates, since a refusal must not depend on the hidden order either.
        if any(new > old for new, old in zip(later.admitted, self.admitted, strict=True)):
            raise InternalError(f"what {type(self.rule).__name__} admits must only shrink.", self.rule)
        return later


def first_admissible(order: Iterable[int], rule: Admission, k: int) -> list[int]:
    """The first k of an order that the rule admits, in turn; fewer where it admits no more.

    Raises before anything is handed out if the rule turns out to admit what it refused: a candidate that was passed
    over, after any later pick; or a pick that an earlier state of the rule refuses.
    """
    picked: list[int] = []
    passed: list[int] = []
    states = [rule]
    for candidate in order:
        if not states[-1].admits(candidate):
            passed.append(candidate)
            continue
        picked.append(candidate)
        states.append(states[-1].after(candidate))
        if not all(s.admits(candidate) for s in states[:-1]) or any(map(states[-1].admits, passed)):
            raise InternalError(
                f"what {type(rule).__name__} admits must only shrink, but after pick {len(picked)} it admits a "
                "candidate that it refused before.",
                rule,
            )
        if len(picked) == k:
            break
    return picked
