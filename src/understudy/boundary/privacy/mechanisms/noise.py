"""Random bits, and exact integer noise from them, fast: geometric, discrete Laplace, rounded and discrete Gaussian.

A *lazy uniform* is the infinite binary expansion of a real U, uniform on (0, 1), of which the first digits are
known. Whatever the known digits leave open is settled by drawing more digits, never by rounding: so a law that is
defined by comparing U with real numbers is sampled exactly, provided that the words are uniform and independent.

Each sampler is a function of such uniforms, written down in a theorem. Floats only ever answer questions whose
answer is beyond doubt: each float stands with a bound on its distance from the real number that it approximates, and a
draw whose answer could change within that bound is settled by more random digits and by `decimal`, whose logarithm is
correctly rounded, at growing precision. That happens to a few draws in a million, and almost surely ends. Hence the
output has exactly the stated law: no tail is cut, no total-variation term is owed, and a float parameter means the
rational number that it is.

How many draws are settled the slow way depends on the digits drawn up front (`bits`), never the law: the tests run
the samplers with words of a few bits, where nearly every draw is.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InputError, InternalError

WORD = 64
SHORT, LONG = 31, 63  # digits in half a word and in a word, when the last bit is set aside as a coin
LARGEST_SCALE = 2.0**40  # a draw then passes 2**53, where floats stop counting, with probability exp(-2**13): never
SMALLEST_SCALE = 2.0**-500  # its square is still a normal float
FLOAT_ERROR = 2.0**-48  # sixteen times the unit roundoff of float64; numpy promises its log and exp to four units
CHUNK = 1 << 13  # arrays of 64 KiB stay in the second-level cache and below malloc's threshold for fresh pages

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Entropy(Protocol):
    """A source of independent uniform 64-bit words; only a secure one can carry a privacy claim."""

    @property
    def secure(self) -> bool: ...

    def words(self, count: int) -> NDArray[np.uint64]: ...


class SystemEntropy:
    """The operating system's CSPRNG.

    >>> SystemEntropy().words(3).shape
    (3,)
    """

    secure = True

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


class SeededEntropy:
    """Repeatable words for tests; a release made with them is stamped TEST-ONLY, since a seed can be guessed.

    >>> bool((SeededEntropy(7).words(3) == SeededEntropy(7).words(3)).all())
    True
    """

    secure = False

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(seed)

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.atleast_1d(np.asarray(self._bits.random_raw(count), dtype=np.uint64))


@dataclass(frozen=True)
class LazyUniform:
    """One uniform real U: its first `bits` binary digits, read as the integer `digits`."""

    digits: int
    bits: int
    entropy: Entropy

    def refined(self) -> LazyUniform:
        """The same real, with one more word of its expansion known."""
        word = int(self.entropy.words(1)[0])
        return LazyUniform(self.digits << WORD | word, self.bits + WORD, self.entropy)

    def complement(self) -> LazyUniform:
        """1 - U: the expansion with every digit flipped, so the digits still to come are as uniform as before."""
        return LazyUniform((1 << self.bits) - 1 - self.digits, self.bits, self.entropy)

    def context(self) -> Context:
        """Decimal arithmetic far finer than the 2**-bits that is unknown of U."""
        return Context(prec=12 + self.bits // 3)

    def exponential(self) -> tuple[Decimal, Decimal]:
        """Certain bounds on -ln U, which has the unit exponential law."""
        # U is somewhere in [digits, digits + 1] · 2^-bits; −ln falls, so that the upper end gives the lower bound.
        context, whole = self.context(), Decimal(1 << self.bits)
        above = context.next_plus(context.divide(Decimal(self.digits + 1), whole))
        below = context.next_minus(context.divide(Decimal(self.digits), whole))
        # copy_negate, because a unary minus would round to the thread's own precision.
        high = Decimal("Infinity")
        if self.digits:
            high = ln_below(below, context).copy_negate()
        return max(ln_above(above, context).copy_negate(), Decimal(0)), high


@dataclass(frozen=True)
class LazyUniforms:
    """Many uniform reals: each lane is a half word or a word, whose leading `bits` are known digits of one U.

    The lowest bit of a lane is never a digit: it is a fair coin, independent of U.
    """

    lanes: NDArray[np.unsignedinteger[Any]]
    bits: int
    entropy: Entropy

    @classmethod
    def draw(cls, count: int, bits: int, entropy: Entropy) -> LazyUniforms:
        """`count` lanes; few bits (down to 1) only make refinement more common, they never change a law."""
        if not 1 <= bits <= LONG:
            raise InternalError(f"bits is {bits} but must be in 1..{LONG}.", bits)
        if bits > SHORT:
            return cls(entropy.words(count), bits, entropy)
        return cls(entropy.words((count + 1) // 2).view(np.uint32)[:count], bits, entropy)

    def coins(self) -> NDArray[np.bool_]:
        return np.asarray(np.bitwise_and(self.lanes, 1), dtype=np.bool_)

    def digits(self) -> NDArray[np.signedinteger[Any]]:
        """The known digits as non-negative signed integers, which convert to float64 faster than unsigned ones."""
        spare = 8 * self.lanes.itemsize - self.bits
        known: NDArray[np.unsignedinteger[Any]] = np.right_shift(self.lanes, spare)
        return known.view(np.int32) if known.itemsize == 4 else known.view(np.int64)

    def floors(self) -> NDArray[np.float64]:
        """The left end of what is known: U - floor is in [0, 2**-bits], up to a relative rounding of 2**-53."""
        left = self.digits().astype(np.float64)
        left *= math.ldexp(1.0, -self.bits)
        return left

    def __getitem__(self, index: int) -> LazyUniform:
        return LazyUniform(int(self.lanes[index]) >> (8 * self.lanes.itemsize - self.bits), self.bits, self.entropy)


def ln_below(value: Decimal, context: Context) -> Decimal:
    """A certain lower bound on ln(value): decimal's ln is correctly rounded, so the truth is within one unit of it."""
    return context.next_minus(context.ln(value))


def ln_above(value: Decimal, context: Context) -> Decimal:
    """A certain upper bound on ln(value), for the same reason."""
    return context.next_plus(context.ln(value))


def geometric(scale: float, size: int, entropy: Entropy, *, bits: int | None = None) -> Integers:
    """Draws of G = 0, 1, 2, … with P[G >= g] = exp(-g / scale).

    >>> from understudy.boundary.privacy.mechanisms.noise import SystemEntropy
    >>> bool(geometric(2.0, 100, SystemEntropy()).min() >= 0)
    True
    """
    _check("scale", scale, size)
    draws = np.empty(size, dtype=np.int64)
    for start in range(0, size, CHUNK):
        count = min(CHUNK, size - start)
        draws[start : start + count] = _floored(scale, LazyUniforms.draw(count, bits or _digits_for(scale), entropy))
    return draws


def discrete_laplace(scale: float, size: int, entropy: Entropy, *, bits: int | None = None) -> Integers:
    """Draws of k with P[k] proportional to exp(-|k| / scale).

    >>> from understudy.boundary.privacy.mechanisms.noise import SystemEntropy
    >>> discrete_laplace(0.001, 2, SystemEntropy()).tolist()
    [0, 0]
    """
    # Two independent geometrics G, H: P[G - H = k] = sum over h of p(h) p(h + |k|), proportional to exp(-|k| / scale).
    draws = geometric(scale, size, entropy, bits=bits)
    draws -= geometric(scale, size, entropy, bits=bits)
    return draws


def discrete_gaussian(sigma: float, size: int, entropy: Entropy, *, bits: int | None = None) -> Integers:
    """Draws of k with P[k] proportional to exp(-k**2 / (2 * sigma**2)).

    >>> from understudy.boundary.privacy.mechanisms.noise import SystemEntropy
    >>> discrete_gaussian(0.01, 2, SystemEntropy()).tolist()
    [0, 0]
    """
    _check("sigma", sigma, size)
    return _filled(size, lambda count: _gaussian_chunk(sigma, count, entropy, bits))


def rounded_gaussian(sigma: float, size: int, entropy: Entropy, *, bits: int | None = None) -> Integers:
    """Draws of sigma * N, N standard normal, rounded to the nearest integer.

    Added to a whole number n it is n + sigma * N, rounded: post-processing of the continuous Gaussian mechanism, whose
    guarantee it therefore has without any correction.

    >>> rounded_gaussian(0.01, 2, SystemEntropy()).tolist()
    [0, 0]
    """
    _check("sigma", sigma, size)
    return _filled(size, lambda count: _rounded_chunk(sigma, count, entropy, bits))


def _filled(size: int, proposed: Callable[[int], Integers]) -> Integers:
    """That many of the draws that are kept of proposals."""
    draws = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        # Kept draws are independent of one another, so the surplus of the last chunk can be dropped.
        kept = proposed(min(CHUNK, 16 + 2 * (size - filled)))[: size - filled]
        draws[filled : filled + kept.size] = kept
        filled += kept.size
    return draws


def _check(name: str, value: float, size: int) -> None:
    if not SMALLEST_SCALE <= value <= LARGEST_SCALE:
        bounds = "2**-500 (it must be above zero) and 2**40"
        raise InputError(f"{name} is {value} but must be between {bounds}: choose another budget.", value)
    if size < 0:
        raise InputError(f"size is {size} but must be at least 0: ask for no fewer than no draws.", size)


def _digits_for(scale: float) -> int:
    """A half word leaves about 20 * scale / 2**31 of the draws open: cheap up to 2**12, then take whole words."""
    return SHORT if scale <= 2.0**12 else LONG


# The geometric law: G = floor(-scale * ln U), since G >= g exactly when U <= exp(-g / scale).


def _floored(scale: float, uniforms: LazyUniforms) -> Floats:
    """floor(-scale * ln U) for every U; exact, as floats."""
    low, high = _scaled_bounds(scale, uniforms.floors(), math.ldexp(1.0, -uniforms.bits))
    draws = np.floor(low, out=low)
    high -= 1.0
    for index in np.flatnonzero(~(high < draws)):  # also when no digit but zero is known, and a bound is not a number
        draws[index] = _settled_floor(scale, uniforms[int(index)])
    return draws


def _scaled_bounds(scale: float, left: Floats, width: float) -> tuple[Floats, Floats]:
    """Bounds on -scale * ln U for U in [left, left + width], where `left` is rounded relatively by 2**-53.

    ln(left + width) <= ln(left) + width / left; the roundings of `left`, log, product and sums add up to less than
    FLOAT_ERROR times (value + scale).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        span = (scale * width) / left
        value = np.log(left, out=left)
        value *= -scale
        slack = value * FLOAT_ERROR
        slack += scale * FLOAT_ERROR
        span += slack
        return value - span, np.add(value, slack, out=value)


def _settled_floor(scale: float, uniform: LazyUniform) -> int:
    """floor(-scale * ln U) with as many digits of U as it takes: finitely many, almost surely."""
    while True:
        uniform = uniform.refined()
        context, factor = uniform.context(), Decimal(scale)  # exact: a float is a finite decimal
        low, high = (context.multiply(end, factor) for end in uniform.exponential())
        floor = math.floor(context.next_minus(low))
        if context.next_plus(high) < floor + 1:
            return floor


# The discrete Gaussian law: Canonne, Kamath & Steinke (2020), Algorithm 3. Propose y from the discrete Laplace law with
# t = floor(sigma) + 1 and keep it with probability exp(-(|y| - sigma**2 / t)**2 / (2 * sigma**2)).


def _gaussian_chunk(sigma: float, count: int, entropy: Entropy, bits: int | None) -> Integers:
    """The kept ones of `count` proposals.

    A proposal is a geometric magnitude with a fair sign, thrown away when it is minus zero: Laplace, from one U.
    """
    scale = math.floor(sigma) + 1
    # The order of these draws is part of what a seeded run replays: proposals with their coins, then acceptances.
    proposals = LazyUniforms.draw(count, bits or _digits_for(scale), entropy)
    magnitudes = _floored(scale, proposals)
    negative = proposals.coins()
    kept = _accepted(sigma, magnitudes, LazyUniforms.draw(count, bits or SHORT, entropy))
    kept &= ~(negative & (magnitudes == 0))
    np.negative(magnitudes, out=magnitudes, where=negative)
    return magnitudes[kept].astype(np.int64)


def _accepted(sigma: float, magnitudes: Floats, uniforms: LazyUniforms) -> NDArray[np.bool_]:
    """Whether U < exp(-x) for x = (|y| - sigma**2 / t)**2 / (2 * sigma**2); exact.

    With s = |y| - sigma**2 / t in units of sigma, the float x = s**2 / 2 errs by at most 2**-50 * (s + s**2), and
    (s + s**2) * exp(-x) < 2: so exp(-x) errs by less than FLOAT_ERROR, absolutely.
    """
    exponents = magnitudes - sigma * sigma / (math.floor(sigma) + 1)
    exponents /= sigma
    exponents *= exponents
    exponents *= -0.5
    surplus = np.exp(exponents, out=exponents)
    surplus -= uniforms.floors()
    accepted = surplus > 0
    width, variance = math.ldexp(1.0, -uniforms.bits), Fraction(sigma) ** 2
    for index in np.flatnonzero((surplus > -FLOAT_ERROR) & (surplus < width + FLOAT_ERROR)):
        exact = (int(magnitudes[index]) - variance / (math.floor(sigma) + 1)) ** 2 / (2 * variance)
        accepted[index] = _settled_bernoulli(exact, uniforms[int(index)])
    return accepted


def _settled_bernoulli(exponent: Fraction, uniform: LazyUniform) -> bool:
    """Whether U < exp(-exponent), that is -ln U > exponent, with as many digits of U as it takes."""
    while True:
        uniform = uniform.refined()
        low, high = uniform.exponential()
        if low > exponent:
            return True
        if high < exponent:
            return False


# The normal law, rounded: Y = -ln U, kept with probability exp(-(Y - 1)**2 / 2), has the density of |N| (von Neumann
# 1951), and a coin gives the sign. What comes out is floor(sigma * Y + 1/2) with that sign; ties have probability 0.


def _rounded_chunk(sigma: float, count: int, entropy: Entropy, bits: int | None) -> Integers:
    """The kept ones of `count` proposals."""
    proposals = LazyUniforms.draw(count, bits or _digits_for(sigma), entropy)
    trials = LazyUniforms.draw(count, bits or SHORT, entropy)
    left, width = proposals.floors(), math.ldexp(1.0, -proposals.bits)
    low, high = _scaled_bounds(1.0, left.copy(), width)
    with np.errstate(invalid="ignore", over="ignore"):  # where no digit but zero is known, a bound is not a number
        middle, reach = 0.5 * (low + high), 0.5 * (high - low) + FLOAT_ERROR * (1.0 + high)
        surplus = np.exp(-0.5 * (middle - 1.0) ** 2) - trials.floors()
    # The slope of exp(-(y - 1)**2 / 2) is nowhere steeper than 1, so its error is no larger than that of y.
    reach += FLOAT_ERROR
    kept = surplus > 0
    low, high = _scaled_bounds(sigma, left, width)
    draws = np.floor(low + 0.5)
    # Halves are exact floats: no rounding stands between a bound and its verdict.
    sure = (low > draws - 0.5) & (high < draws + 0.5)
    sure &= (surplus < -reach) | (surplus > reach + math.ldexp(1.0, -trials.bits))
    for index in np.flatnonzero(~sure):
        settled = _settled_normal(sigma, proposals[int(index)], trials[int(index)])
        kept[index] = settled is not None
        draws[index] = settled or 0
    np.negative(draws, out=draws, where=proposals.coins())
    return draws[kept].astype(np.int64)


def _settled_normal(sigma: float, proposal: LazyUniform, trial: LazyUniform) -> int | None:
    """The magnitude of one draw, or None where it is not kept, with as many digits of both uniforms as it takes."""
    kept = None
    while True:
        proposal, trial = proposal.refined(), trial.refined()
        context, (low, high) = proposal.context(), proposal.exponential()
        if kept is None:
            kept = _is_kept(low, high, trial)
        if kept is False:
            return None
        least = context.next_minus(context.fma(Decimal(sigma), low, Decimal("0.5")))
        most = context.next_plus(context.fma(Decimal(sigma), high, Decimal("0.5")))
        if kept and math.floor(least) == (math.floor(most) if most.is_finite() else None):
            return math.floor(least)


def _is_kept(low: Decimal, high: Decimal, trial: LazyUniform) -> bool | None:
    """Whether V < exp(-(Y - 1)**2 / 2), that is -2 * ln V > (Y - 1)**2, for Y between these bounds; None if unsure."""
    context, (least, most) = trial.context(), trial.exponential()
    # By the context throughout, each step rounded outwards: a bare minus would round to the thread's own precision.
    above, below = context.next_plus(context.subtract(high, 1)), context.next_minus(context.subtract(low, 1))
    farthest = max(above, below.copy_negate())
    nearest = max(below, above.copy_negate(), Decimal(0))
    if context.next_minus(context.multiply(least, 2)) > context.next_plus(context.multiply(farthest, farthest)):
        return True
    if context.next_plus(context.multiply(most, 2)) < context.next_minus(context.multiply(nearest, nearest)):
        return False
    return None


# How high a noisy count must be before its key may be shown. A key that only one person holds exists in one of two
# neighbouring tables and not in the other. It may be shown with probability δ at most: that is the failure probability
# which the mechanism pays (Korolova et al. 2009, with Gaussian noise as in Swanberg et al. 2023). Keys that both tables
# hold differ by their counts alone, which the noise covers.


def gaussian_tail(sigma: float, at_least: int) -> float:
    """At least P[Z ≥ m] of the rounded Gaussian, which is P[N(0,σ²) ≥ m−½], and of the discrete one: P[N(0,σ²) ≥ m−1]
    (Canonne, Kamath & Steinke 2020, Prop. 25)."""
    return 0.5 * math.erfc((at_least - 1) / (sigma * math.sqrt(2.0)))


def key_threshold(sigma: float, delta: float, rows: int, worlds: int) -> int:
    """The least T such that keys held by one person alone pass `count + noise > T` with probability δ at most.

    A person has at most `rows` rows, so at most `rows` keys of their own, each with a count of at most `rows`: by the
    union bound rows × P[Z > T − rows] ≤ δ/worlds is enough. `worlds` is 2 under replace-one, where each of the two
    tables may hold keys that the other does not.
    """
    if not 0 < delta < 1:
        raise InternalError(f"delta ({delta}) of a key threshold must be between 0 and 1", delta)
    # `math.erfc` errs relatively by far less than the 1e-9 that is left for it.
    target = delta / (rows * worlds) * (1 - 1e-9)
    low, high = 1, 2
    while gaussian_tail(sigma, high) > target:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        if gaussian_tail(sigma, middle) > target:
            low = middle
        else:
            high = middle
    # count + noise > T with a count of at most `rows` needs noise ≥ T − rows + 1, which is `high`.
    return rows + high - 1
