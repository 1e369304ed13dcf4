"""Integer noise against its exact law.

False alarms: a law check rejects only below its level by a bound that holds for every sample size (no normal limit):
P[n KL(observed, law) >= t] <= exp(-t) (e t / d)^d for d + 1 cells and t > d (Agrawal 2020, Theorem 1.2); the checks of
one test share 1e-9. There words come from the operating system, so every run is a new experiment. Mutants are drawn
with the same words in every run.
"""

from __future__ import annotations

import doctest
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.special import ndtr

from understudy.boundary.privacy.mechanisms import noise
from understudy.boundary.privacy.mechanisms.noise import (
    LazyUniform,
    LazyUniforms,
    SeededEntropy,
    SystemEntropy,
    discrete_gaussian,
    discrete_laplace,
    geometric,
    rounded_gaussian,
)
from understudy.errors import InputError, InternalError

FALSE_ALARM = 1e-9
SYSTEM = SystemEntropy()
LAW_BOUND = "a bound on KL for every sample size (Agrawal 2020), its level shared by the checks of the test"


class Script:
    """Given words first, then one word for ever: the reals are chosen by the test."""

    secure = False

    def __init__(self, words, tail=0):
        self.first, self.tail = list(words), tail

    def words(self, count):
        head, self.first = self.first[:count], self.first[count:]
        return np.array(head + [self.tail] * (count - len(head)), dtype=np.uint64)


def refuted(counts, law, level):
    """Whether the law is refuted by the counts, with a false-alarm probability below the level."""
    counts, law = np.asarray(counts, dtype=float), np.asarray(law, dtype=float)
    seen = counts > 0
    if (law[seen] <= 0).any():
        return True
    surprise = float(np.sum(counts[seen] * np.log(counts[seen] / (counts.sum() * law[seen]))))
    degrees = len(law) - 1
    return surprise > degrees and -surprise + degrees * (1 + math.log(surprise / degrees)) < math.log(level)


def gaussian_law(sigma):
    support = np.arange(-math.ceil(40 * sigma) - 2, math.ceil(40 * sigma) + 3)
    weights = np.exp(-(support.astype(float) ** 2) / (2 * sigma**2))
    return support, weights / math.fsum(weights)


def rounded_law(sigma):
    support = np.arange(-math.ceil(40 * sigma) - 2, math.ceil(40 * sigma) + 3)
    # By the nearer tail, where a difference of two numbers close to 1 would lose the rest.
    near = np.abs(support)
    masses = ndtr(-(near - 0.5) / sigma) - ndtr(-(near + 0.5) / sigma)
    return support, masses / math.fsum(masses)


def laplace_law(scale):
    support = np.arange(-math.ceil(60 * scale) - 2, math.ceil(60 * scale) + 3)
    weights = np.exp(-np.abs(support) / scale)
    return support, weights / math.fsum(weights)


def geometric_law(scale):
    support = np.arange(math.ceil(60 * scale) + 2)
    return support, np.exp(-support / scale) * -math.expm1(-1 / scale)


def cells(values, width):
    return np.clip(values // width, -10, 10) + 10


def conforms(draws, law, width=1, level=FALSE_ALARM):
    """Whether draws pass for the law: once in 21 cells of given width with pooled tails, once by residues mod 5.

    Each of the two checks has half of the level.
    """
    support, masses = law
    coarse = np.bincount(cells(support, width), masses, 21), np.bincount(cells(draws, width), minlength=21)
    fine = np.bincount(support % 5, masses, 5), np.bincount(draws % 5, minlength=5)
    return not any(refuted(counts, expected, level / 2) for expected, counts in (coarse, fine))


def width_for(scale):
    return max(1, math.ceil(scale / 3))


# The laws.


@pytest.mark.noise(false_alarm=FALSE_ALARM, why=LAW_BOUND)
@pytest.mark.parametrize("sigma", [0.3, 0.5, 1.0, 1.7, 3.0, 10.0, 50.0, 500.0, 5000.0])
def test_the_discrete_gaussian_has_its_law(sigma):
    assert conforms(discrete_gaussian(sigma, 250_000, SYSTEM), gaussian_law(sigma), width_for(sigma))


@pytest.mark.noise(false_alarm=FALSE_ALARM, why=LAW_BOUND)
@pytest.mark.parametrize("sigma", [0.3, 0.5, 1.0, 1.7, 3.0, 10.0, 50.0, 500.0, 5000.0])
def test_the_rounded_gaussian_has_its_law(sigma):
    assert conforms(rounded_gaussian(sigma, 250_000, SYSTEM), rounded_law(sigma), width_for(sigma))


@pytest.mark.parametrize("sigma", [0.3, 0.5, 1.0])
def test_the_two_gaussians_are_told_apart(sigma):
    assert not conforms(rounded_gaussian(sigma, 250_000, SYSTEM), gaussian_law(sigma))
    assert not conforms(discrete_gaussian(sigma, 250_000, SYSTEM), rounded_law(sigma))


@pytest.mark.noise(false_alarm=FALSE_ALARM, why=LAW_BOUND)
@pytest.mark.parametrize("scale", [0.3, 1.0, 2.5, 20.0, 700.0])
def test_the_discrete_laplace_has_its_law(scale):
    assert conforms(discrete_laplace(scale, 250_000, SYSTEM), laplace_law(scale), width_for(scale))


@pytest.mark.noise(false_alarm=FALSE_ALARM, why=LAW_BOUND)
@pytest.mark.parametrize("scale", [0.3, 1.0, 2.5, 20.0, 700.0, 5000.0])
def test_the_geometric_has_its_law(scale):
    assert conforms(geometric(scale, 250_000, SYSTEM), geometric_law(scale), width_for(scale))


@pytest.mark.parametrize("factor", [0.5, 0.9, 0.95, 1.05, 1.1])
@pytest.mark.parametrize("scale", [1.0, 3.0, 50.0])
def test_a_wrong_scale_is_refuted(scale, factor):
    assert not conforms(discrete_gaussian(scale * factor, 250_000, SYSTEM), gaussian_law(scale), width_for(scale))
    assert not conforms(rounded_gaussian(scale * factor, 250_000, SYSTEM), rounded_law(scale), width_for(scale))
    assert not conforms(discrete_laplace(scale * factor, 250_000, SYSTEM), laplace_law(scale), width_for(scale))
    assert not conforms(geometric(scale * factor, 250_000, SYSTEM), geometric_law(scale), width_for(scale))


def test_a_shift_by_one_is_refuted():
    for sigma in (0.5, 3.0, 10.0):
        assert not conforms(discrete_gaussian(sigma, 250_000, SYSTEM) + 1, gaussian_law(sigma), width_for(sigma))
    assert not conforms(discrete_laplace(3.0, 250_000, SYSTEM) + 1, laplace_law(3.0))


def test_a_rounded_normal_is_refuted():
    draws = np.rint(np.random.default_rng(1).normal(0, 0.5, 250_000)).astype(np.int64)
    assert not conforms(draws, gaussian_law(0.5))


def test_a_doubled_zero_is_refuted():
    """The mutant that forgets to throw minus zero away."""
    magnitudes = geometric(3.0, 250_000, SYSTEM)
    signs = np.where(SYSTEM.words(250_000) & np.uint64(1), 1, -1)
    assert not conforms(magnitudes * signs, laplace_law(3.0))


SHORT_WORDS = [(1, 2_000), (6, 20_000), (8, 20_000), (31, 20_000), (40, 20_000)]


@pytest.mark.slow_after(2)
@pytest.mark.noise(false_alarm=FALSE_ALARM, why=LAW_BOUND)
@pytest.mark.parametrize(("bits", "size"), SHORT_WORDS)
def test_short_words_change_no_law(bits, size):
    assert conforms(discrete_gaussian(3.0, size, SYSTEM, bits=bits), gaussian_law(3.0), level=FALSE_ALARM / 3)
    assert conforms(rounded_gaussian(3.0, size, SYSTEM, bits=bits), rounded_law(3.0), level=FALSE_ALARM / 3)
    assert conforms(discrete_laplace(2.5, size, SYSTEM, bits=bits), laplace_law(2.5), level=FALSE_ALARM / 3)


@pytest.mark.parametrize(("bits", "size"), SHORT_WORDS)
def test_a_wrong_scale_of_short_words_is_refuted(bits, size):
    assert not conforms(discrete_gaussian(1.5, size, SYSTEM, bits=bits), gaussian_law(3.0), level=FALSE_ALARM / 3)
    assert not conforms(rounded_gaussian(1.5, size, SYSTEM, bits=bits), rounded_law(3.0), level=FALSE_ALARM / 3)


def test_short_words_without_refinement_are_refuted():
    """What the same six digits give when nothing settles the doubtful draws."""
    left = LazyUniforms.draw(250_000, 6, SYSTEM).floors() + 2.0**-7
    assert not conforms(np.floor(-2.5 * np.log(left)).astype(np.int64), geometric_law(2.5))


BOUND = 3e-10


def plausible(draws, sigma):
    """Whether mean and variance are; each of three bounds fails with probability below BOUND.

    k is sub-Gaussian with parameter sigma (Canonne, Kamath & Steinke 2020), so the sum of squares has chi-square upper
    tails (Laurent & Massart 2000); the lower tail of a sum of non-negative terms is Bernstein's, by the fourth moment.
    """
    size, x = draws.size, math.log(2 / BOUND)
    support, masses = gaussian_law(sigma)
    second, fourth = (float(np.sum(masses * support.astype(float) ** power)) for power in (2, 4))
    mean, square = float(draws.mean()), float(np.mean(draws.astype(float) ** 2))
    upper = sigma**2 * (1 + 2 * math.sqrt(x / size) + 2 * x / size)
    return abs(mean) <= sigma * math.sqrt(2 * x / size) and second - math.sqrt(2 * fourth * x / size) <= square <= upper


@pytest.mark.noise(false_alarm=3 * BOUND, why="sub-Gaussian mean; Laurent-Massart and Bernstein for the variance")
@pytest.mark.parametrize("sigma", [1.0, 3.0, 500.0])
def test_mean_and_variance(sigma):
    assert plausible(discrete_gaussian(sigma, 1_000_000, SYSTEM), sigma)


@pytest.mark.parametrize("sigma", [1.0, 3.0, 500.0])
def test_another_mean_or_variance_is_refuted(sigma):
    assert not plausible(discrete_gaussian(sigma * 1.05, 1_000_000, SYSTEM), sigma)
    assert not plausible(discrete_gaussian(sigma * 0.95, 1_000_000, SYSTEM), sigma)
    assert not plausible(discrete_gaussian(sigma, 1_000_000, SYSTEM) + max(1, int(sigma / 20)), sigma)


# OpenDP, whose samplers are exact too, as a second opinion.


OPENDP_DRAWS, OUR_DRAWS = 20_000, 250_000


def allowed_gap():
    """Each of four empirical distribution functions strays further from its truth with probability FALSE_ALARM / 4."""
    return sum(math.sqrt(math.log(8 / FALSE_ALARM) / (2 * size)) for size in (OPENDP_DRAWS, OUR_DRAWS))


def gap(ours, theirs):
    points = np.unique(np.concatenate([ours, theirs]))
    ranks = (np.searchsorted(np.sort(draws), points, side="right") / len(draws) for draws in (ours, theirs))
    return float(np.max(np.abs(next(ranks) - next(ranks))))


def true_gap(law, other, shift=0):
    """The largest distance of two distribution functions, the second moved to the right."""
    points = np.union1d(law[0], other[0] + shift)
    return float(np.max(np.abs(rank(law, points) - rank(other, points - shift))))


def rank(law, points):
    support, masses = law
    return np.append(0.0, np.cumsum(masses))[np.searchsorted(support, points, side="right")]


def opendp_draws(kind, scale, size=OPENDP_DRAWS):
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    metric = dp.l2_distance(T="f64") if kind == "gaussian" else dp.l1_distance(T="i64")
    mechanism = dp.m.make_gaussian if kind == "gaussian" else dp.m.make_laplace
    return np.array(mechanism(domain, metric, scale)([0] * size))


@pytest.mark.slow_after(2)
@pytest.mark.noise(false_alarm=FALSE_ALARM, why="four bounds of Massart (1990), and mutants that are two of them away")
@pytest.mark.parametrize("scale", [0.5, 3.0, 50.0])
@pytest.mark.parametrize(
    ("kind", "ours", "law"),
    [("gaussian", discrete_gaussian, gaussian_law), ("laplace", discrete_laplace, laplace_law)],
    ids=["gaussian", "laplace"],
)
def test_opendp_draws_the_same_law(kind, ours, law, scale):
    """What OpenDP draws can't be repeated. While no sample strays, the honest gap is allowed, the mutants' is not."""
    theirs, shift = opendp_draws(kind, scale), math.ceil(scale / 4)
    assert gap(ours(scale, OUR_DRAWS, SYSTEM), theirs) <= allowed_gap()
    assert min(true_gap(law(scale), law(scale / 2)), true_gap(law(scale), law(scale), shift)) > 2 * allowed_gap()
    assert gap(ours(scale * 0.5, OUR_DRAWS, SYSTEM), theirs) > allowed_gap()
    assert gap(ours(scale, OUR_DRAWS, SYSTEM) + shift, theirs) > allowed_gap()


# Exactness, without chance: chosen reals, and the answer by 60-digit arithmetic.


def exact_floor(scale, numerator, bits):
    with localcontext(prec=60):
        return math.floor(-Decimal(scale) * (Decimal(numerator) / Decimal(1 << bits)).ln())


@pytest.mark.parametrize("scale", [0.001, 0.3, 1.0, 3.7, 50.0, 1000.5])
@pytest.mark.parametrize("tail", [1, 2**64 - 2])
def test_every_ten_bit_prefix_gives_the_exact_geometric(scale, tail):
    lanes = (np.arange(1, 1024, dtype=np.uint32) << np.uint32(22)).astype(np.uint32)
    draws = noise._floored(scale, LazyUniforms(lanes, 10, Script([], tail)))
    assert draws.tolist() == [exact_floor(scale, (digits << 64) + tail, 74) for digits in range(1, 1024)]


def boundary_digits(exponent, bits):
    with localcontext(prec=80):
        return math.floor((-exponent).exp() * Decimal(1 << bits))


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.7, 50.0, 1000.5, 5000.25, 2.0**30 + 0.5])
def test_digits_beside_a_boundary_give_the_exact_geometric(scale):
    """A 63-digit U within 2**-62 of exp(-g / scale), where float64 alone can't know the answer."""
    with localcontext(prec=80):
        steps = [max(1, int(scale * share)) for share in (0.01, 0.1, 0.3, 0.7, 1, 2, 5, 9)]
        edges = [(step, boundary_digits(Decimal(step) / Decimal(scale), 127)) for step in steps]
    cases = [(step, (edge >> 64) + offset, edge) for step, edge in edges for offset in (-2, -1, 0, 1, 2)]
    lanes = np.array([digits << 1 for _, digits, _ in cases], dtype=np.uint64)
    for tail in (0, 2**64 - 1):
        truth = [step if (digits << 64 | tail) <= edge else step - 1 for step, digits, edge in cases]
        assert noise._floored(scale, LazyUniforms(lanes, 63, Script([], tail))).tolist() == truth
        careless = np.floor(-scale * np.log((lanes >> np.uint64(1)).astype(float) * 2.0**-63))
        assert careless.tolist() != truth


@pytest.mark.parametrize("sigma", [0.3, 1.0, 3.7, 50.0, 1000.5, 2.0**30 + 0.5])
def test_digits_beside_a_boundary_give_the_exact_acceptance(sigma):
    magnitudes = [max(0, int(sigma * share)) for share in (0, 0.2, 0.9, 1.5, 3, 5)] + [1, 2, 3]
    with localcontext(prec=80):
        variance, t = Decimal(sigma) ** 2, int(sigma) + 1
        exponents = [(y - variance / t) ** 2 / (2 * variance) for y in magnitudes]
        edges = [boundary_digits(exponent, 127) for exponent in exponents]
    cases = [
        (y, digits, edge)
        for y, edge in zip(magnitudes, edges, strict=True)
        for digits in range((edge >> 64) - 2, (edge >> 64) + 3)
        if 0 <= digits < 2**63
    ]
    lanes = np.array([digits << 1 for _, digits, _ in cases], dtype=np.uint64)
    for tail in (0, 2**64 - 1):
        settled = noise._accepted(
            sigma, np.array([y for y, _, _ in cases], float), LazyUniforms(lanes, 63, Script([], tail))
        )
        assert settled.tolist() == [(digits << 64 | tail) <= edge for _, digits, edge in cases]


def test_zero_digits_are_settled_by_later_ones():
    """U = 2**-64 and U = 2**-192: no float knows, and the tail isn't cut."""
    assert geometric(1.0, 1, Script([0, 1 << 1]), bits=63).tolist() == [exact_floor(1.0, 2 << 1, 64 + 64)]
    assert geometric(10.0, 1, Script([0, 0, 1]), bits=63).tolist() == [exact_floor(10.0, 1, 63 + 128)]


def test_the_float_functions_are_as_accurate_as_assumed():
    """Relative error below 2**-51 on a grid; the samplers allow 2**-48 in all."""
    grid = np.concatenate([np.geomspace(2.0**-63, 0.5, 700), 1 - np.geomspace(2.0**-53, 0.5, 700)])
    with localcontext(prec=60):
        claims = [
            (np.log(grid), [Decimal(x).ln() for x in grid.tolist()]),
            (np.exp(-40 * grid), [(-Decimal(x)).exp() for x in (40 * grid).tolist()]),
            (np.log1p(-grid), [(1 - Decimal(x)).ln() for x in grid.tolist()]),
        ]
        for floats, truths in claims:
            errors = [abs(Decimal(x) - truth) / abs(truth) for x, truth in zip(floats.tolist(), truths, strict=True)]
            assert max(errors) < Decimal(2) ** -51 < Decimal(noise.FLOAT_ERROR)


def test_refinement_keeps_what_is_known():
    uniform = LazyUniform(5, 3, Script([7]))
    finer = uniform.refined()
    assert (finer.digits, finer.bits) == (5 * 2**64 + 7, 67)
    assert uniform.complement().digits == 2
    low, high = uniform.exponential()
    finer_low, finer_high = finer.exponential()
    assert low <= finer_low < finer_high <= high
    assert LazyUniform(0, 3, SYSTEM).exponential()[1] == Decimal("Infinity")
    assert LazyUniform(7, 3, SYSTEM).exponential()[0] == 0


@pytest.mark.parametrize("words", [1, 2, 5])
def test_bounds_hold_the_truth_and_shrink_with_every_word(words):
    """-ln U is within its bounds, no wider than what is unknown of U, whatever precision the thread has set."""
    for digits in (1, 2**62 + 12345, 2**63 - 2):
        uniform = LazyUniform(digits, 63, SeededEntropy(8))
        for _ in range(words):
            uniform = uniform.refined()
        with localcontext(prec=5):
            low, high = uniform.exponential()
        with localcontext(prec=200):
            whole = Decimal(1 << uniform.bits)
            truths = -(Decimal(uniform.digits + 1) / whole).ln(), -(Decimal(uniform.digits) / whole).ln()
            assert low < truths[0] < truths[1] < high
            assert high - low < (truths[1] - truths[0]) * Decimal("1.001")


# Shapes, bounds and sources.


@pytest.mark.parametrize("draw", [geometric, discrete_laplace, discrete_gaussian])
def test_size_dtype_and_repeatability(draw):
    assert draw(3.0, 0, SYSTEM).shape == (0,)
    draws = draw(3.0, noise.CHUNK + 3, SeededEntropy(5))
    assert draws.shape == (noise.CHUNK + 3,)
    assert draws.dtype == np.int64
    assert (draws == draw(3.0, noise.CHUNK + 3, SeededEntropy(5))).all()
    assert (draws != draw(3.0, noise.CHUNK + 3, SeededEntropy(6))).any()


@pytest.mark.parametrize("draw", [geometric, discrete_laplace, discrete_gaussian])
@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, 2.0**41, 2.0**-501])
def test_a_scale_out_of_bounds_is_refused(draw, scale):
    with pytest.raises(InputError, match=r"must be between .* 2\*\*40"):
        draw(scale, 1, SYSTEM)


@pytest.mark.parametrize("draw", [geometric, discrete_laplace, discrete_gaussian])
def test_a_negative_size_is_refused(draw):
    with pytest.raises(InputError, match="size is -1"):
        draw(1.0, -1, SYSTEM)


@pytest.mark.parametrize("draw", [geometric, discrete_laplace, discrete_gaussian])
def test_extreme_scales_work(draw):
    """At 2**40 a draw passes 2**46 with probability exp(-64); below 0.001 all but exp(-1000) of the draws are zero.

    None of 1,000 passes 2**38, a quarter of the scale, with probability 0.23**1000.
    """
    assert not draw(2.0**-500, 1_000, SYSTEM).any()
    assert not draw(0.001, 1_000, SYSTEM).any()
    wide = draw(2.0**40, 1_000, SYSTEM)
    assert 2**38 < np.abs(wide).max() < 2**46


def test_too_many_bits_are_our_bug():
    with pytest.raises(InternalError, match=r"bits is 64 but must be in 1\.\.63"):
        geometric(1.0, 1, SYSTEM, bits=64)


def test_only_the_system_is_secure():
    assert SystemEntropy().secure
    assert not SeededEntropy(1).secure
    assert SystemEntropy().words(4).dtype == SeededEntropy(1).words(4).dtype == np.uint64
    assert len(set(SystemEntropy().words(100).tolist())) == 100


def test_the_coin_is_no_digit():
    lanes = np.array([0, 1], dtype=np.uint64)
    uniforms = LazyUniforms(lanes, 63, SYSTEM)
    assert uniforms.coins().tolist() == [False, True]
    assert uniforms.digits().tolist() == [0, 0]


@pytest.mark.parametrize("module", [noise, noise])
def test_the_examples_run(module):
    assert doctest.testmod(module).failed == 0
