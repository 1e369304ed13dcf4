"""Step 2. Noise is drawn again from what the runs drew from, and compared with the law that was declared.

Every check is two-sided and refuses below 10⁻¹⁰ a side, so that an audit may make thousands of them and stay quiet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.lab.audits.checks.law import LAWS, Moments, coin, hoeffding, signs, tail_bound
from understudy.lab.audits.checks.loss import COUNTS, noisy_histograms
from understudy.lab.audits.checks.paired_gate import Noise, PairedExchange, PosteriorSample, Selection
from understudy.lab.audits.result import FAILED, PASSED, Check

SIDE = 1e-10
CELLS = 4_000
CHOICES_DRAWN, SAMPLES_DRAWN = 1_000, 4_000
"""So many that a mutant with twice the exponent, or half of a prior, is missed in less than one of a million checks."""
MOST_LAWS = 4
"""Scales of one mechanism that are tried: the least, the largest, and some between."""
E_TO_ONE = 1 / (1 + np.exp(-1.0))
"""Of two candidates whose weights are as e to 1, the heavier is chosen this often."""

Make = Callable[[], Randomness]


def check(exchanges: Sequence[PairedExchange], make: Make) -> list[Check]:
    """The noise of all exchanges, and their choices."""
    noises = [_noise_check(m, s, make) for m, scales in _declared(exchanges).items() for s in _some(scales)]
    exponents = _some({d.exponent for a in exchanges for d in a.draws if isinstance(d, Selection)})
    priors = _some({d.prior[0] for a in exchanges for d in a.draws if isinstance(d, PosteriorSample)})
    return [*noises, *(choice_check(e, make) for e in exponents), *(sample_check(p, make) for p in priors)]


def _declared(exchanges: Sequence[PairedExchange]) -> dict[str, set[float]]:
    """For each mechanism the scales that were declared, or drawn where nothing was."""
    found: dict[str, set[float]] = {}
    for noise, scale in _noises(exchanges):
        found.setdefault(noise.mechanism, set()).add(scale)
    return found


def _noises(exchanges: Sequence[PairedExchange]) -> Iterator[tuple[Noise, float]]:
    for exchange in exchanges:
        if exchange.kind in COUNTS:
            yield from (
                (p.noise, p.spend.scale if p.spend else p.noise.scale) for p in noisy_histograms(exchange) if p.noise
            )
        else:
            yield from (
                (d, exchange.spends[0].scale if exchange.spends else d.scale)
                for d in exchange.draws
                if isinstance(d, Noise)
            )


def _some(values: set[float]) -> list[float]:
    ordered = sorted(values)
    places = np.unique(np.linspace(0, len(ordered) - 1, min(MOST_LAWS, len(ordered))).round().astype(int))
    return [ordered[i] for i in places] if ordered else []


def _noise_check(mechanism: str, scale: float, make: Make) -> Check:
    complaints = noise_complaints(mechanism, scale, make)
    name = f"{mechanism} of scale {scale:.4g}"
    if complaints:
        return Check(name, FAILED, f"{CELLS:,} draws don't have that law: {', '.join(complaints)}.")
    return Check(name, PASSED, f"{3 * CELLS:,} draws have the declared scale and mean, and are unrelated.")


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


def choice_check(exponent: float, make: Make) -> Check:
    """Two candidates whose weights should be as e to 1; then two that are alike, chosen by two sources."""
    scores = np.array([0.0, 1.0 / exponent])
    heavier = _chosen(make(), scores, exponent)
    share = f"{heavier.mean():.3f} of {CHOICES_DRAWN:,} draws are of the heavier of two, {E_TO_ONE:.3f} are due"
    even, again = (2 * _chosen(make(), np.zeros(2), exponent) - 1 for _ in range(2))
    wrong = tail_bound(heavier, coin(float(E_TO_ONE))) < SIDE
    shared = tail_bound(even * again, hoeffding) < SIDE
    said = f"{share}{'; runs share their choices' if shared else ''}."
    return Check(f"choices of exponent {exponent:.4g}", FAILED if wrong or shared else PASSED, said)


def _chosen(randomness: Randomness, scores: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
    """Which of two was drawn, as a number."""
    return np.array([randomness.choose(scores, exponent, 1)[0] for _ in range(CHOICES_DRAWN)], dtype=np.float64)


def sample_check(pseudo_count: float, make: Make) -> Check:
    """One draw at a time from a leaf that holds rows and another that holds none: what hides the rows is the prior."""
    rows = max(1, round(pseudo_count))
    counts = np.array([rows, 0])
    held, again = (_held(make(), counts, pseudo_count) for _ in range(2))
    due = (rows + pseudo_count) / (rows + 2 * pseudo_count)
    share = f"{held.mean():.3f} of {SAMPLES_DRAWN:,} draws are from the leaf that holds the rows, {due:.3f} are due"
    wrong = tail_bound(held, coin(due)) < SIDE or np.array_equal(held, again)
    return Check(f"draws after pseudo-counts of {pseudo_count:.4g}", FAILED if wrong else PASSED, f"{share}.")


def _held(randomness: Randomness, counts: NDArray[np.int64], pseudo_count: float) -> NDArray[np.float64]:
    draws = [randomness.draw(counts, (pseudo_count,), 1)[0] for _ in range(SAMPLES_DRAWN)]
    return np.array(draws, dtype=np.float64)
