"""Exact integer noise, fast: the geometric, the discrete Laplace and the discrete Gaussian law.

Each sampler is a function of *real* uniforms (see `entropy`), written down in a theorem. Floats only ever answer
questions whose answer is beyond doubt: each float stands with a bound on its distance from the real number that it
approximates, and a draw whose answer could change within that bound is settled by more random digits and by
`decimal`, whose logarithm is correctly rounded, at growing precision. That happens to a few draws in a million, and
almost surely ends. Hence the output has exactly the stated law: no tail is cut, no total-variation term is owed, and
a float parameter means the rational number that it is.

How many draws are settled the slow way depends on the digits drawn up front (`bits`), never the law: the tests run
the samplers with words of a few bits, where nearly every draw is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.mechanisms.entropy import LONG, SHORT, Entropy, LazyUniform, LazyUniforms
from understudy.errors import InputError, InternalError

LARGEST_SCALE = 2.0**40  # a draw then passes 2**53, where floats stop counting, with probability exp(-2**13): never
SMALLEST_SCALE = 2.0**-500  # its square is still a normal float
FLOAT_ERROR = 2.0**-48  # sixteen times the unit roundoff of float64; numpy promises its log and exp to four units
CHUNK = 1 << 13  # arrays of 64 KiB stay in the second-level cache and below malloc's threshold for fresh pages

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def geometric(scale: float, size: int, entropy: Entropy, *, bits: int | None = None) -> Integers:
    """Draws of G = 0, 1, 2, … with P[G >= g] = exp(-g / scale).

    >>> from understudy.boundary.privacy.mechanisms.entropy import SystemEntropy
    >>> bool(geometric(2.0, 100, SystemEntropy()).min() >= 0)
    True
    """
    _check("scale", scale, size)
    draws = np.empty(size, dtype=np.int64)
    for part in _chunks(size):
        count = part.stop - part.start
        draws[part] = _floored(scale, LazyUniforms.draw(count, bits or _digits_for(scale), entropy))
    return draws


def discrete_laplace(scale: float, size: int, entropy: Entropy, *, bits: int | None = None) -> Integers:
    """Draws of k with P[k] proportional to exp(-|k| / scale).

    >>> from understudy.boundary.privacy.mechanisms.entropy import SystemEntropy
    >>> discrete_laplace(0.001, 2, SystemEntropy()).tolist()
    [0, 0]
    """
    # Two independent geometrics G, H: P[G - H = k] = sum over h of p(h) p(h + |k|), proportional to exp(-|k| / scale).
    draws = geometric(scale, size, entropy, bits=bits)
    draws -= geometric(scale, size, entropy, bits=bits)
    return draws


def discrete_gaussian(sigma: float, size: int, entropy: Entropy, *, bits: int | None = None) -> Integers:
    """Draws of k with P[k] proportional to exp(-k**2 / (2 * sigma**2)).

    >>> from understudy.boundary.privacy.mechanisms.entropy import SystemEntropy
    >>> discrete_gaussian(0.01, 2, SystemEntropy()).tolist()
    [0, 0]
    """
    _check("sigma", sigma, size)
    draws = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        # Kept draws are independent of one another, so the surplus of the last chunk can be dropped.
        kept = _gaussian_chunk(sigma, min(CHUNK, 16 + 2 * (size - filled)), entropy, bits)[: size - filled]
        draws[filled : filled + kept.size] = kept
        filled += kept.size
    return draws


def _check(name: str, value: float, size: int) -> None:
    if not SMALLEST_SCALE <= value <= LARGEST_SCALE:
        bounds = "2**-500 (it must be above zero) and 2**40"
        raise InputError(f"{name} is {value} but must be between {bounds}: choose another budget.", value)
    if size < 0:
        raise InputError(f"size is {size} but must be at least 0: ask for no fewer than no draws.", size)


def _chunks(size: int) -> Iterator[slice]:
    return (slice(start, min(start + CHUNK, size)) for start in range(0, size, CHUNK))


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
    width = math.ldexp(1.0, -uniforms.bits)
    for index in np.flatnonzero((surplus > -FLOAT_ERROR) & (surplus < width + FLOAT_ERROR)):
        accepted[index] = _settled_bernoulli(_exponent(sigma, int(magnitudes[index])), uniforms[int(index)])
    return accepted


def _exponent(sigma: float, magnitude: int) -> Fraction:
    variance = Fraction(sigma) ** 2
    return (magnitude - variance / (math.floor(sigma) + 1)) ** 2 / (2 * variance)


def _settled_bernoulli(exponent: Fraction, uniform: LazyUniform) -> bool:
    """Whether U < exp(-exponent), that is -ln U > exponent, with as many digits of U as it takes."""
    while True:
        uniform = uniform.refined()
        low, high = uniform.exponential()
        if low > exponent:
            return True
        if high < exponent:
            return False


# How high a noisy count must be before its key may be shown. A key that only one person holds exists in one of two
# neighbouring tables and not in the other. It may be shown with probability δ at most: that is the failure probability
# which the mechanism pays (Korolova et al. 2009, with Gaussian noise as in Swanberg et al. 2023). Keys that both tables
# hold differ by their counts alone, which the noise covers.


def gaussian_tail(sigma: float, at_least: int) -> float:
    """At least P[Z ≥ m] of the discrete Gaussian: P[N(0,σ²) ≥ m−1] (Canonne, Kamath & Steinke 2020, Prop. 25)."""
    return 0.5 * math.erfc((at_least - 1) / (sigma * math.sqrt(2.0)))


def key_threshold(sigma: float, delta: float, rows: int, worlds: int) -> int:
    """The least T such that keys held by one person alone pass `count + noise > T` with probability δ at most.

    A person has at most `rows` rows, so at most `rows` keys of their own, each with a count of at most `rows`: by the
    union bound rows × P[Z > T − rows] ≤ δ/worlds is enough. `worlds` is 2 under replace-one, where each of the two
    tables may hold keys that the other does not.
    """
    if not 0 < delta < 1:
        raise InternalError(f"delta ({delta}) of a key threshold must be between 0 and 1", delta)
    target = delta / (rows * worlds) * (1 - 1e-9)  # erfc is rounded; leave it room
    low, high = 1, 2
    while gaussian_tail(sigma, high) > target:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if gaussian_tail(sigma, middle) > target else (low, middle)
    return rows + high - 1
