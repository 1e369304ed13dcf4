"""Noise that several sites make together: each adds a part, and the sum of t parts is as good as a rounded Gaussian.

A site's part is a discrete Gaussian on a grid so fine that a deviation has more than 2^20 steps of it. The sum of t
such parts is close to a discrete Gaussian (Kairouz, Liu & Steinke 2021), and on so fine a grid that is close to a
normal draw, rounded. How close, in the logarithm of the probabilities, is `closeness`; a spend pays for it in ε and δ.
The proof: docs/mechanisms/shared-noise.md. Parts beyond the t that are counted on are independent of these, and only
blur the sum further.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InternalError

if TYPE_CHECKING:
    from understudy.boundary.privacy.budget import Spend
    from understudy.boundary.privacy.mechanisms.randomness import Randomness

FINEST = 32
"""Bits behind the point, at most: counts below 2^30 and their noise then stay within the 64 bits of a masked number."""
LEAST_STEPS = 2.0**20
"""Of the grid in one deviation of a part; with fewer, being close would cost more than the rest of a budget."""
REACH = 64.0
"""Deviations beyond which nothing is compared: noise passes them with probability below 2^-2000."""
NEVER = Fraction(1, 2**400)
"""More than all tails beyond REACH, and than all that Poisson's summation leaves out at LEAST_STEPS."""


def bits_of(sigma: float, parts: int) -> int:
    """How many bits behind the point the numbers have of which σ is made by `parts` sites; a public fact."""
    steps = math.frexp(sigma / math.sqrt(parts))[1]
    return min(FINEST, max(0, FINEST + 1 - steps))


def part_scale(sigma: float, parts: int) -> float:
    """The deviation of one site's part, in steps of the grid: the least float by which `parts` of them reach σ."""
    bits = bits_of(sigma, parts)
    scale = math.ldexp(sigma, bits) / math.sqrt(parts)
    wanted = Fraction(sigma) ** 2 * 4**bits
    # In exact arithmetic, upwards: parts that fall short by one rounding would be a claim that does not hold.
    while Fraction(scale) ** 2 * parts < wanted:
        scale = math.nextafter(scale, math.inf)
    return scale


def closeness(spend: Spend) -> Fraction:
    """How far the sum's law is from that of a rounded Gaussian, in all counts that one unit can move: an ε and a δ.

    Counts are whole, so that at most Δ₂² of them move, and never more than there are. In each, with S the deviation of
    the sum in steps, the logarithms differ by C²/(8S²) at most up to C deviations, where C has room for the shift.
    """
    parts, scale = spend.parts, part_scale(spend.scale, spend.parts)
    if scale < LEAST_STEPS:
        raise InternalError(f"scale ({spend.scale}) of shared spend '{spend.asked}' is too small for its grid.", spend)
    moved = min(Fraction(spend.cells), Fraction(spend.sensitivity) ** 2)
    reach = Fraction(REACH) + Fraction(spend.sensitivity) / Fraction(spend.scale)
    each = reach**2 / (8 * parts * Fraction(scale) ** 2)
    # e^x − 1 ≤ x·(1 + x) for x ≤ 1 is what the same distance is in total variation.
    return (moved + 1) * (each * (1 + each) + parts * NEVER)


def drawn_parts(
    hidden: Sequence[NDArray[np.int64]], spends: Sequence[Spend], randomness: Randomness
) -> list[NDArray[np.uint64]]:
    """A site's counts with its part of the noise, in steps of the grid, modulo 2^64."""
    noisy = []
    for counts, spend in zip(hidden, spends, strict=True):
        fine = np.asarray(counts).astype(np.int64).view(np.uint64)
        if spend.mechanism != "public":
            scale = part_scale(spend.scale, spend.parts)
            part = randomness.noise("discrete-gaussian", scale, counts.size).reshape(counts.shape)
            # Unsigned numbers wrap around, which is what masks need; the sum of all comes back into its range.
            fine = np.left_shift(fine, np.uint64(bits_of(spend.scale, spend.parts))) + part.view(np.uint64)
        noisy.append(fine)
    return noisy


def combined(sums: Sequence[NDArray[np.uint64]], spends: Sequence[Spend]) -> list[NDArray[Any]]:
    """Sums over all sites, modulo 2^64, as whole noisy counts: rounded, which is post-processing."""
    counts: list[NDArray[Any]] = []
    for summed, spend in zip(sums, spends, strict=True):
        signed = summed.view(np.int64)
        if spend.mechanism != "public" and (bits := bits_of(spend.scale, spend.parts)):
            signed = (signed + (1 << (bits - 1))) >> bits
        counts.append(signed)
    return counts
