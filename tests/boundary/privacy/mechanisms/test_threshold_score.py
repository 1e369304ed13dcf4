"""Key thresholds and selection scores against exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.boundary.privacy.mechanisms.noise import gaussian_tail, key_threshold
from understudy.boundary.privacy.mechanisms.score import GRID, STEP, Candidate, error_sensitivity, rank_scores
from understudy.errors import InternalError

SIGMAS = (0.4, 1.0, 3.7, 25.0, 90.0)
DELTAS = (1e-3, 1e-6, 1e-12)


@cache
def exact_tail(sigma: float, at_least: int) -> float:
    """P[Z ≥ m] of the discrete Gaussian, summed from its probabilities, the small ones first."""
    reach = int(45 * sigma) + abs(at_least) + 5
    k = np.arange(-reach, reach + 1, dtype=np.float64)
    weights = np.exp(-(k**2) / (2 * sigma**2))
    return math.fsum(weights[k >= at_least][::-1]) / math.fsum(weights)


def shown_alone(sigma: float, threshold: int, counts: tuple[int, ...]) -> float:
    """The probability that any key of one person, with these counts, passes: 1 − Π P[count + Z ≤ T]."""
    passes = [exact_tail(sigma, threshold - count + 1) for count in counts]
    return -math.expm1(math.fsum(math.log1p(-p) for p in passes))


def spread(rows: int) -> list[tuple[int, ...]]:
    """All ways in which up to `rows` rows of one person can be spread over keys of their own."""
    found: list[tuple[int, ...]] = [()]
    for most in range(1, rows + 1):
        found += [(*rest, most) for rest in found if sum(rest) + most <= rows and (not rest or rest[-1] <= most)]
    repeated = {tuple(sorted(f + (1,) * extra)) for f in found for extra in range(rows - sum(f) + 1)}
    return sorted(c for c in repeated if c)


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("at_least", [1, 2, 5, 40])
def test_the_tail_is_bounded_from_above(sigma: float, at_least: int) -> None:
    assert exact_tail(sigma, at_least) <= gaussian_tail(sigma, at_least) * (1 + 1e-12)


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("worlds", [1, 2])
def test_keys_of_one_person_pass_with_probability_delta_at_most(
    sigma: float, delta: float, rows: int, worlds: int
) -> None:
    threshold = key_threshold(sigma, delta, rows, worlds)
    assert max(shown_alone(sigma, threshold, counts) for counts in spread(rows)) * worlds <= delta


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("rows", [1, 3])
def test_the_threshold_is_the_least_that_its_bound_allows(sigma: float, delta: float, rows: int) -> None:
    threshold = key_threshold(sigma, delta, rows, worlds=1)
    below = threshold - 1
    assert below < rows + 1 or rows * gaussian_tail(sigma, below - rows + 1) > delta * (1 - 1e-8)


@pytest.mark.parametrize("sigma", SIGMAS[1:])
@pytest.mark.parametrize("mutant", ["own count forgotten", "a tenth of the noise"])
def test_the_same_check_rejects_a_lower_threshold(sigma: float, mutant: str) -> None:
    rows = 1 if mutant != "own count forgotten" else max(3, round(2 * sigma))
    forgetful = key_threshold(sigma, 1e-6, rows, 1) - rows
    threshold = forgetful if mutant == "own count forgotten" else key_threshold(sigma / 10, 1e-6, rows, 1)
    assert shown_alone(sigma, threshold, (rows,)) > 1e-6


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-9, math.nan])
def test_a_threshold_needs_a_delta(delta: float) -> None:
    with pytest.raises(InternalError, match="delta"):
        key_threshold(1.0, delta, 1, 1)


counts_lists = st.lists(st.integers(0, 10_000), min_size=1, max_size=12)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(counts_lists, st.floats(0.0, 1.0), st.data())
def test_rank_scores_are_exact(counts: list[int], probability: float, data: st.DataObject) -> None:
    scores = rank_scores(np.array(counts), probability)
    wanted = Fraction(round(probability * GRID), GRID) * sum(counts)
    cut = data.draw(st.integers(0, len(counts)))
    assert len(scores) == len(counts) + 1
    assert Fraction(float(scores[cut])) == -abs(sum(counts[:cut]) - wanted)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.floats(-1e3, 1e6)), min_size=1, max_size=9),
    st.floats(1e-3, 400.0),  # nine errors of a million, 400 times each, are below 2³², where scores end
    st.floats(-1e6, 1e6),
    st.sampled_from([0.0, 0.25, 1.0, 40.7, 3e5]),
)
def test_error_scores_are_within_a_step_of_the_real_error(
    cells: list[tuple[int, float]], weight: float, offset: float, threshold: float
) -> None:
    counts, estimate = (np.array(x) for x in zip(*cells, strict=True))
    score = Candidate(("a",), estimate, weight, offset, threshold=threshold).score(counts)
    error = sum(max(abs(n - Fraction(e)) - Fraction(threshold), Fraction(0)) for n, e in cells)
    exact = Fraction(weight) * error + Fraction(offset)
    # A step for each estimate and threshold, times the weight; half a step of the weight, times the error; then one.
    slack = Fraction(STEP) * (Fraction(weight) * len(cells) + error + 3) + abs(exact) * Fraction(1, 2**52)
    assert abs(Fraction(score) - exact) <= slack


def test_error_sensitivity_is_that_of_the_heaviest_candidate() -> None:
    candidates = [Candidate(("a",), np.zeros(2), weight) for weight in (0.25, 3.0, 1.0)]
    assert error_sensitivity(candidates, 2) == 6.0 + STEP


@pytest.mark.parametrize(
    ("estimate", "weight", "offset", "threshold"),
    [
        (np.nan, 1.0, 0.0, 0.0),
        (np.inf, 1.0, 0.0, 0.0),
        (0.0, 0.0, 0.0, 0.0),
        (0.0, -1.0, 0.0, 0.0),
        (0.0, 2e6, 0.0, 0.0),
        (0.0, np.nan, 0.0, 0.0),
        (0.0, 1.0, np.inf, 0.0),
        (0.0, 1.0, 0.0, -1.0),
        (0.0, 1.0, 0.0, np.nan),
        (0.0, 1.0, 0.0, 2.0**41),
    ],
)
def test_a_candidate_must_be_finite(estimate: float, weight: float, offset: float, threshold: float) -> None:
    with pytest.raises(InternalError, match="candidate"):
        Candidate(("a",), np.array([estimate]), weight, offset, threshold=threshold)
