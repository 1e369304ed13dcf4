"""How high a noisy count must be before its key may be shown.

A key that only one person holds exists in one of two neighbouring tables and not in the other. It may be shown with
probability δ at most: that is the failure probability which the mechanism pays (Korolova et al. 2009, with Gaussian
noise as in Swanberg et al. 2023). Keys that both tables hold differ by their counts alone, which the noise covers.
"""

from __future__ import annotations

import math

from understudy.errors import InternalError


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
