"""The exponential mechanism against its law, enumerated.

False alarms: below 1e-9 by a bound that holds for every sample size:
P[n KL(observed, law) >= t] <= exp(-t) (e t / d)^d for d + 1 cells and t > d (Agrawal 2020, Theorem 1.2).
Mutants are drawn with the same words in every run.
"""

from __future__ import annotations

import doctest
import itertools
import math
from collections import Counter
from decimal import Decimal, localcontext

import numpy as np
import pytest

from understudy.boundary.privacy.mechanisms import exponential as selection
from understudy.boundary.privacy.mechanisms.exponential import exponential
from understudy.boundary.privacy.mechanisms.noise import SeededEntropy, SystemEntropy
from understudy.errors import InputError

FALSE_ALARM = 1e-9
LAW_BOUND = "a bound on KL for every sample size (Agrawal 2020)"
SYSTEM = SystemEntropy()
DRAWS = 3_000


class Script:
    """Given words first, then one word for ever: the reals are chosen by the test."""

    secure = False

    def __init__(self, words, tail=0):
        self.first, self.tail = list(words), tail

    def words(self, count):
        head, self.first = self.first[:count], self.first[count:]
        return np.array(head + [self.tail] * (count - len(head)), dtype=np.uint64)


def peeling_law(scores, exponent, k):
    """Every ordered selection of k with its probability: k rounds of the exponential mechanism."""
    weights = np.exp(exponent * (np.asarray(scores) - np.max(scores)))

    def probability(chosen):
        rest = [weights.sum() - sum(weights[i] for i in chosen[:place]) for place in range(k)]
        return math.prod(weights[i] / left for i, left in zip(chosen, rest, strict=True))

    return {chosen: probability(chosen) for chosen in itertools.permutations(range(len(weights)), k)}


def refuted(counts, law):
    """Whether the law is refuted by the counts, with false-alarm probability below 1e-9."""
    total, degrees = sum(counts.values()), len(law) - 1
    if any(law.get(cell, 0) <= 0 for cell in counts):
        return True
    surprise = sum(count * math.log(count / (total * law[cell])) for cell, count in counts.items())
    return surprise > degrees and -surprise + degrees * (1 + math.log(surprise / degrees)) < math.log(FALSE_ALARM)


def drawn(scores, exponent, k, draws=DRAWS, **options):
    scores = np.array(scores)
    return Counter(tuple(exponential(scores, exponent, SYSTEM, k, **options)) for _ in range(draws))


UNEQUAL = [
    ([0.0, 1.0, 2.0], 1),
    ([0.0, 1.5, -1.0, 0.25], 2),
    ([0.0, 1.0, 0.5], 3),
    ([3.0, 1.0, 2.0, 2.0, 0.0], 1),
    ([0.0, 1.0, 2.0, 4.0], 2),
]


@pytest.mark.noise(false_alarm=FALSE_ALARM, why=LAW_BOUND)
@pytest.mark.parametrize(("scores", "k"), [([5.0, 5.0, 5.0, 5.0], 2), *UNEQUAL])
def test_the_law_is_that_of_peeling(scores, k):
    assert not refuted(drawn(scores, 0.7, k), peeling_law(scores, 0.7, k))


@pytest.mark.parametrize(("scores", "k"), UNEQUAL)
def test_the_monotone_constant_is_refuted_where_it_is_not_due(scores, k):
    assert refuted(drawn(scores, 1.4, k), peeling_law(scores, 0.7, k))


@pytest.mark.parametrize("mutant", [0.35, 1.05])
def test_a_wrong_exponent_is_refuted(mutant):
    scores = [0.0, 1.0, 2.0, 4.0]
    assert refuted(drawn(scores, mutant, 2), peeling_law(scores, 0.7, 2))


SHORT_WORDS = [(1, 1_500), (3, 2_000), (6, 3_000), (31, 3_000)]


@pytest.mark.slow_after(2)
@pytest.mark.noise(false_alarm=FALSE_ALARM, why=LAW_BOUND)
@pytest.mark.parametrize(("bits", "draws"), SHORT_WORDS)
def test_short_words_change_no_law(bits, draws):
    scores = [0.0, 1.0, 0.5, 2.0]
    assert not refuted(drawn(scores, 1.0, 2, draws, bits=bits), peeling_law(scores, 1.0, 2))


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(("bits", "draws"), SHORT_WORDS)
def test_a_doubled_exponent_of_short_words_is_refuted(bits, draws):
    scores = [0.0, 1.0, 0.5, 2.0]
    assert refuted(drawn(scores, 2.0, 2, draws, bits=bits), peeling_law(scores, 1.0, 2))


def test_short_words_without_refinement_are_refuted():
    """What three digits give when ties fall to the first candidate."""
    v = ((SYSTEM.words(90_000) >> np.uint64(61)).astype(float).reshape(-1, 3) + 0.5) / 8
    chosen = np.argmax(-np.log(-np.log1p(-v)), axis=1)
    assert refuted(Counter((int(i),) for i in chosen), peeling_law([0.0, 0.0, 0.0], 1.0, 1))


def test_excluded_candidates_are_never_selected():
    scores = [0.0, -np.inf, 1.0, -np.inf]
    counts = drawn(scores, 1.0, 2)
    law = {(2 * i, 2 * j): p for (i, j), p in peeling_law([0.0, 1.0], 1.0, 2).items()}
    assert set(counts) == set(law)
    assert not refuted(counts, law)
    assert {tuple(exponential(np.array(scores), 0.0, SYSTEM, 2, bits=1)) for _ in range(200)} == set(law)


@pytest.mark.parametrize("gap", [1e6, 1e15, 1e300])
@pytest.mark.parametrize("bits", [2, 63])
def test_huge_gaps_decide(gap, bits):
    """A gap of a million is lost with probability exp(-1e6)."""
    scores = np.array([0.0, -gap, gap])
    assert all(exponential(scores, 1.0, SYSTEM, 3, bits=bits) == [2, 0, 1] for _ in range(100))


def test_small_gaps_below_a_huge_one_keep_their_law():
    """Two candidates 1e15 below the best differ by one, which is far below the float error of their keys."""
    scores = [1e15, 0.0, 1.0]
    law = {(0, 1, 2): 1 / (1 + math.e), (0, 2, 1): math.e / (1 + math.e)}
    assert not refuted(drawn(scores, 1.0, 3, 1_000), law)
    assert refuted(drawn(scores, 4.0, 3, 1_000), law)


def test_one_candidate_and_all_candidates():
    assert exponential(np.array([-3.0]), 5.0, SYSTEM) == [0]
    assert sorted(exponential(np.zeros(500), 1.0, SYSTEM, 500)) == list(range(500))


def test_equal_digits_are_told_apart_by_later_ones():
    """The same V up to 63 digits: the smaller continuation has the larger key. Keys are refined from the front."""
    scores, word = np.zeros(2), 0xDEADBEEF << 32
    assert exponential(scores, 1.0, Script([word, word, 5, 9])) == [0]
    assert exponential(scores, 1.0, Script([word, word, 9, 5])) == [1]
    assert exponential(scores, 1.0, Script([word, word, 5, 5, 9, 8])) == [1]
    assert exponential(scores, 1.0, Script([0, 0, 0, 0, 1, 0])) == [1]


def exact_key(digits, shift):
    with localcontext(prec=60):
        return shift - (-(1 - Decimal(digits) / (1 << 63)).ln()).ln()


def test_keys_a_rounding_apart_are_ordered_exactly():
    """The second score makes the keys equal up to its own rounding: 60 digits decide, and float64 is often wrong."""
    careless = 0
    for first, second in SeededEntropy(3).words(200).reshape(100, 2).tolist():
        offset = float(exact_key(first >> 1, 0) - exact_key(second >> 1, 0))
        keys = exact_key(first >> 1, 0), exact_key(second >> 1, Decimal(offset))
        truth = 0 if keys[0] > keys[1] else 1
        assert exponential(np.array([0.0, offset]), 1.0, Script([first, second])) == [truth]
        v = np.array([first >> 1, second >> 1]).astype(float) * 2.0**-63
        careless += int(np.argmax(np.array([0.0, offset]) - np.log(-np.log1p(-v)))) != truth
    assert careless > 0


def test_many_keys_are_put_into_the_order_of_the_exact_ones():
    """All of them, as under a rule, and the first few; the float bounds alone tell them apart."""
    words, scores = SeededEntropy(5).words(300), np.linspace(-4.0, 0.0, 300)
    keys = [exact_key(int(word) >> 1, Decimal(score)) for word, score in zip(words, scores.tolist(), strict=True)]
    order = sorted(range(300), key=lambda i: keys[i], reverse=True)
    for k in (1, 7, 299, 300):
        assert exponential(scores, 1.0, Script(words.tolist()), k) == order[:k]


def test_the_float_bounds_hold_the_exact_key():
    words = SeededEntropy(4).words(200)
    shifts = -np.geomspace(1e-9, 1e9, 200)
    low, high = selection._key_bounds(shifts, selection.LazyUniforms(words, 63, SYSTEM))
    exact = [exact_key(int(word) >> 1, Decimal(shift)) for word, shift in zip(words, shifts.tolist(), strict=True)]
    assert all(a < key < b for a, key, b in zip(low.tolist(), exact, high.tolist(), strict=True))
    assert float(np.max((high - low) / (1 + np.abs(shifts)))) < 1e-12


@pytest.mark.parametrize("scores", [[0.0, np.nan], [0.0, np.inf]])
def test_scores_that_are_no_scores_are_refused(scores):
    with pytest.raises(InputError, match="nan or \\+inf"):
        exponential(np.array(scores), 1.0, SYSTEM)


@pytest.mark.parametrize("exponent", [-1.0, math.nan, math.inf])
def test_an_impossible_exponent_is_refused(exponent):
    with pytest.raises(InputError, match="exponent is"):
        exponential(np.zeros(2), exponent, SYSTEM)


@pytest.mark.parametrize(("scores", "k"), [([0.0, -np.inf], 2), ([0.0], 0), ([], 1), ([-np.inf], 1)])
def test_an_impossible_k_is_refused(scores, k):
    with pytest.raises(InputError, match=f"k is {k} but must be between 1 and"):
        exponential(np.array(scores), 1.0, SYSTEM, k)


def test_a_spread_beyond_float_is_refused():
    with pytest.raises(InputError, match="rescale the scores"):
        exponential(np.array([1e308, -1e308]), 1.0, SYSTEM)


def test_a_seed_repeats_the_selection():
    scores = np.linspace(0, 1, 50)
    assert exponential(scores, 1.0, SeededEntropy(2), 10) == exponential(scores, 1.0, SeededEntropy(2), 10)


def test_the_examples_run():
    assert doctest.testmod(selection).failed == 0
