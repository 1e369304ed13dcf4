"""Step 2. Noise is drawn again from what the runs drew from, and compared with the law that was declared.

Every check is a Chernoff bound: for independent draws with a known moment generating function, P[Σx ≥ s] is at most
exp(n·ln M(t) − t·s) for *every* t ≥ 0, so the least of these over any list of t is a bound on the p-value, at any n. No
asymptotics, no seed. Checks are two-sided and refuse below 10⁻¹⁰ a side, so that an audit may make thousands of them
and stay quiet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.lab.audits.checks.paired_gate import (
    COUNTS,
    Noise,
    PairedExchange,
    PosteriorSample,
    Selection,
    evenly,
    noisy_histograms,
)
from understudy.lab.audits.result import FAILED, PASSED, AuditCheck

Residuals = NDArray[np.int64]
Floats = NDArray[np.float64]
# ln E[exp(t·x)]; infinite where there is none.
Moments = Callable[[float], float]

# Any list of t is valid, a finer one only sharper. It ends below 1, where a Laplace size ceases to have moments.
ORDERS = np.geomspace(1e-4, 0.98, 120)
# From this σ on, the discrete Gaussian has the moments of the normal law up to 10⁻⁷⁰.
LARGE = 5.0
# From this σ on, the moments of the rounded Gaussian are bounded instead of summed over tens of thousands of numbers.
FINE = 1000.0


@dataclass(frozen=True)
class NoiseLaw:
    """The moments of a size (which measures the scale) and of the value itself."""

    size: Callable[[Residuals], Floats]
    size_moments: Moments
    value: Callable[[Residuals], Floats]
    value_moments: Moments


def gaussian(sigma: float) -> NoiseLaw:
    """The discrete Gaussian. Its moments are ratios of theta functions, which are those of the normal law up to a

    factor of 1 ± 3·exp(−2π²s²) with s² = σ²/(1−2t): for σ ≥ 5 and t ≥ −1 that is 1 ± 10⁻⁷⁰ (Poisson summation).
    Below that they are summed. E[exp(t·x/σ)] ≤ exp(t²/2) holds without any error (Canonne, Kamath & Steinke 2020,
    Lemma 19).
    """

    squared = _chi_square if sigma >= LARGE else _summed(sigma)
    return NoiseLaw(lambda x: (x / sigma) ** 2, squared, lambda x: x / sigma, lambda t: t * t / 2)


def _chi_square(t: float) -> float:
    return math.inf if t >= 0.5 else -0.5 * math.log1p(-2 * t)


def _summed(sigma: float) -> Moments:
    """By the probabilities themselves, as far out as exp(−x²/2σ²·(1−2t)) is above nothing for every t that is tried."""
    k = np.arange(-400, 401)  # σ is below LARGE: 80 deviations or more to each side
    exponents = -(k**2) / (2 * sigma**2)
    norm = math.log(np.exp(exponents).sum())

    def moments(t: float) -> float:
        if t >= 0.45:  # what lies beyond the sum might matter
            return math.inf
        return math.log(np.exp(exponents * (1 - 2 * t)).sum()) - norm

    return moments


def rounded(sigma: float) -> NoiseLaw:
    """A normal draw, rounded. Its moments are summed; from σ = 1,000 on they are bounded: it is off by half at most, so
    (|y| + ½)² ≤ (1 + s)·y² + (1 + 1/s)/4 for s = 1/σ.
    """
    if sigma >= FINE:
        wider, offset = 1 + 1 / sigma, (1 + sigma) / (4 * sigma**2)

        def squared(t: float) -> float:
            # A size that is too small is bounded from below in the same way, with |y| − ½.
            return _chi_square(t * (wider if t > 0 else 1 - 1 / sigma)) + abs(t) * offset

        return NoiseLaw(
            lambda x: (x / sigma) ** 2, squared, lambda x: x / sigma, lambda t: t * t / 2 + abs(t) / (2 * sigma)
        )
    from scipy.special import logsumexp, ndtr  # when it is needed, as everywhere

    k = np.arange(0, math.ceil(40 * sigma) + 3)
    logs = np.log(np.maximum(ndtr(-(k - 0.5) / sigma) - ndtr(-(k + 0.5) / sigma), 1e-300)) + math.log(2)
    logs[0] = math.log(1 - 2 * ndtr(-0.5 / sigma))

    def moments(t: float) -> float:
        # Beyond forty deviations nothing is left as long as t·x² grows more slowly than the law falls.
        return float(logsumexp(logs + t * (k / sigma) ** 2)) if t < 0.45 else math.inf

    def value_moments(t: float) -> float:
        return float(logsumexp(logs + np.log(np.cosh(t * k / sigma))))

    return NoiseLaw(lambda x: (x / sigma) ** 2, moments, lambda x: x / sigma, value_moments)


def laplace(scale: float) -> NoiseLaw:
    """The discrete Laplace law, P[k] = (1−r)/(1+r)·r^|k| with r = exp(−1/b): geometric series, exactly."""
    r = math.exp(-1 / scale)

    def size_moments(t: float) -> float:
        tail = r * math.exp(t / scale)
        if tail >= 1:
            return math.inf
        return math.log((1 - r) / (1 + r) * (1 + 2 * tail / (1 - tail)))

    def value_moments(t: float) -> float:
        up, down = r * math.exp(t / scale), r * math.exp(-t / scale)
        if max(up, down) >= 1:
            return math.inf
        return 2 * math.log1p(-r) - math.log1p(-up) - math.log1p(-down)

    return NoiseLaw(lambda x: np.abs(x) / scale, size_moments, lambda x: x / scale, value_moments)


LAWS: dict[str, Callable[[float], NoiseLaw]] = {
    "discrete-gaussian": gaussian,
    "thresholded-gaussian": gaussian,
    "rounded-gaussian": rounded,
    "thresholded-rounded-gaussian": rounded,
    "discrete-laplace": laplace,
}


def hoeffding(t: float) -> float:
    """Of anything centred within [−1, 1] (Hoeffding 1963): here the product of two independent, symmetric signs."""
    return t * t / 2


def coin(probability: float) -> Moments:
    return lambda t: math.log1p(probability * math.expm1(t))


def tail_bound(values: Floats, moments: Moments) -> float:
    """An upper bound on the probability of a sum as far out as this one, on its side."""
    total, count = float(values.sum()), values.size
    exponents = [count * moments(t) - t * total for order in ORDERS for t in (order, -order)]
    return math.exp(min(0.0, *exponents))


def signs(first: Residuals, second: Residuals) -> Floats:
    return (np.sign(first) * np.sign(second)).astype(np.float64)


# The chance of a false alarm on one side of one check.
SIDE = 1e-10
CELLS = 4_000
# So many that a mutant with twice the exponent, or half of a prior, is missed in less than one of a million checks.
CHOICES_DRAWN, SAMPLES_DRAWN = 1_000, 4_000
# Scales of one mechanism that are tried: the least, the largest, and some between.
MOST_LAWS = 4
# Of two candidates whose weights are as e to 1, the heavier is chosen this often.
E_TO_ONE = 1 / (1 + np.exp(-1.0))

Make = Callable[[], Randomness]


def check(exchanges: Sequence[PairedExchange], make: Make) -> list[AuditCheck]:
    """The noise of all exchanges, and their choices."""
    found: dict[str, set[float]] = {}
    for exchange in exchanges:
        paid = next(iter(exchange.spends), None)
        drawn = [(d, paid) for d in exchange.draws if isinstance(d, Noise)]
        if exchange.kind in COUNTS:
            drawn = [(part.noise, part.spend) for part in noisy_histograms(exchange) if part.noise]
        for noise, spend in drawn:  # the scale that was declared, or drawn where nothing was
            found.setdefault(noise.mechanism, set()).add((spend or noise).scale)
    draws = [d for exchange in exchanges for d in exchange.draws]
    exponents = {d.exponent for d in draws if isinstance(d, Selection)}
    priors = {d.prior[0] for d in draws if isinstance(d, PosteriorSample)}
    noises = [_noise_check(name, s, make) for name, scales in found.items() for s in evenly(sorted(scales), MOST_LAWS)]
    choices = [choice_check(e, make) for e in evenly(sorted(exponents), MOST_LAWS)]
    return [*noises, *choices, *(sample_check(p, make) for p in evenly(sorted(priors), MOST_LAWS))]


def _noise_check(mechanism: str, scale: float, make: Make) -> AuditCheck:
    complaints = noise_complaints(mechanism, scale, make)
    name = f"{mechanism} of scale {scale:.4g}"
    if complaints:
        return AuditCheck(name, FAILED, f"{CELLS:,} draws don't have that law: {', '.join(complaints)}.")
    return AuditCheck(name, PASSED, f"{3 * CELLS:,} draws have the declared scale and mean, and are unrelated.")


def noise_complaints(mechanism: str, scale: float, make: Make) -> list[str]:
    """The names of the checks that fresh draws fail: two from one source, one from another."""
    one, another = make(), make()
    a, b = (one.noise(mechanism, scale, CELLS) for _ in range(2))
    c = another.noise(mechanism, scale, CELLS)
    law, half = LAWS[mechanism](scale), CELLS // 2
    both = np.concatenate([a, b])
    checks: dict[str, tuple[NDArray[np.float64], Moments]] = {
        "scale": (law.size(both), law.size_moments),
        "mean": (law.value(both), law.value_moments),
        "neighbouring cells are related": (signs(both[0::2], both[1::2]), hoeffding),
        "halves are related": (signs(a[:half], a[half:]), hoeffding),
        "answers share their noise": (signs(a, b), hoeffding),
        "runs share their noise": (signs(a, c), hoeffding),
    }
    return [name for name, (values, moments) in checks.items() if tail_bound(values, moments) < SIDE]


def choice_check(exponent: float, make: Make) -> AuditCheck:
    """Two candidates whose weights should be as e to 1; then two that are alike, chosen by two sources."""
    scores = np.array([0.0, 1.0 / exponent])
    heavier = _chosen(make(), scores, exponent)
    share = f"{heavier.mean():.3f} of {CHOICES_DRAWN:,} draws are of the heavier of two, {E_TO_ONE:.3f} are due"
    even, again = (2 * _chosen(make(), np.zeros(2), exponent) - 1 for _ in range(2))
    wrong = tail_bound(heavier, coin(float(E_TO_ONE))) < SIDE
    shared = tail_bound(even * again, hoeffding) < SIDE
    if shared:
        share += "; runs share their choices"
    return AuditCheck.of(f"choices of exponent {exponent:.4g}", not (wrong or shared), f"{share}.")


def _chosen(randomness: Randomness, scores: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
    """Which of two was drawn, as a number."""
    return np.array([randomness.choose(scores, exponent, 1)[0] for _ in range(CHOICES_DRAWN)], dtype=np.float64)


def sample_check(pseudo_count: float, make: Make) -> AuditCheck:
    """One draw at a time from a leaf that holds rows and another that holds none: what hides the rows is the prior."""
    # As many rows as pseudo-counts: the share that is due is 2/3, and would be 3/4 after half of the prior.
    rows = max(1, round(pseudo_count))
    counts = np.array([rows, 0])
    held, again = (
        np.array([source.draw(counts, (pseudo_count,), 1)[0] for _ in range(SAMPLES_DRAWN)], dtype=np.float64)
        for source in (make(), make())
    )
    due = (rows + pseudo_count) / (rows + 2 * pseudo_count)
    share = f"{held.mean():.3f} of {SAMPLES_DRAWN:,} draws are from the leaf that holds the rows, {due:.3f} are due"
    wrong = tail_bound(held, coin(due)) < SIDE or np.array_equal(held, again)
    return AuditCheck.of(f"draws after pseudo-counts of {pseudo_count:.4g}", not wrong, f"{share}.")
