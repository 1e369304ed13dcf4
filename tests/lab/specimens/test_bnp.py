"""`published-bnp`: the urn has the law that is printed, its δ is what the bound says, and it can't be a release."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom, chi2

import understudy as us
from understudy.errors import InputError, ReleaseError
from understudy.inference.polya.pitman_yor import least_delta, log_ratio, simulated_delta, urn
from understudy.lab.specimens.published_bnp import specimen

FALSE_ALARM = 1e-9
RUNS = 8_000


def sequence_law(counts: list[int], draws: int, theta: float, sigma: float) -> dict[tuple[int, ...], float]:
    """Every sequence of draws with its probability, one draw after the other, as printed."""
    law: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(draws):
        longer = {}
        for drawn, p in law.items():
            now = list(counts)
            for value in drawn:
                now[value : value + 1] = [now[value] + 1] if value < len(now) else [1]
            whole = theta + sum(now)
            weights = [n - sigma for n in now] + [theta + sigma * len(now)]
            longer |= {(*drawn, v): p * w / whole for v, w in enumerate(weights)}
        law = longer
    return law


def misfit(counts: list[int], theta: float, sigma: float, drawn_sigma: float) -> float:
    rng = np.random.default_rng(3)
    law = sequence_law(counts, 3, theta, sigma)
    seen = Counter(tuple(int(v) for v in urn(np.array(counts), 3, theta, drawn_sigma, rng)) for _ in range(RUNS))
    likely = {s: p for s, p in law.items() if RUNS * p >= 10}
    rest = RUNS - sum(seen[s] for s in likely), RUNS * (1 - sum(likely.values()))
    terms = [(seen[s] - RUNS * p) ** 2 / (RUNS * p) for s, p in likely.items()]
    return float(chi2.sf(sum(terms) + (rest[0] - rest[1]) ** 2 / max(rest[1], 1.0), len(likely)))


@pytest.mark.parametrize(("theta", "sigma"), [(1.0, 0.0), (2.0, 0.5), (0.5, 0.25)])
def test_the_urn_has_the_printed_law(theta: float, sigma: float) -> None:
    """χ² over all sequences of three draws; it cries wolf once in a billion."""
    assert misfit([2, 1], theta, sigma, sigma) > FALSE_ALARM


def test_mutant_an_urn_without_discount_is_told_apart() -> None:
    assert misfit([2, 1], 1.0, 0.5, 0.0) < FALSE_ALARM


def test_the_bound_on_delta_by_hand() -> None:
    """Two rows, one draw, θ = 1, σ = 0: a row is copied with probability 1/3. Two draws: 1 − (2/3)(3/4) = 1/2."""
    assert math.isclose(least_delta(2, 1, 1.0, 0.0), 1 / 3)
    assert math.isclose(least_delta(2, 2, 1.0, 0.0), 1 / 2)
    # As many draws as rows, without discount and mass: (n − 1)/(2n − 1) of being missed.
    assert math.isclose(least_delta(500, 500, 0.0, 0.0), 1 - 499 / 999)


def test_a_row_of_its_own_is_copied_as_often_as_the_bound_says() -> None:
    rng, counts = np.random.default_rng(5), np.ones(30, dtype=np.int64)
    copied = sum(bool((urn(counts, 30, 1.0, 0.3, rng) == 0).any()) for _ in range(4000))
    bound = least_delta(30, 30, 1.0, 0.3)
    assert FALSE_ALARM < binom.cdf(copied, 4000, bound) < 1 - FALSE_ALARM
    assert not FALSE_ALARM < binom.cdf(copied, 4000, bound * 0.8) < 1 - FALSE_ALARM


def test_the_log_ratio_against_the_product_of_printed_probabilities() -> None:
    x, y = np.array([0.1, 0.1, 0.2]), np.array([0.1, 0.2, 0.2])
    z = np.array([0.1, 0.7, 0.2])  # an old value, a new one, an old one
    # θ = 1, σ = ½: for x (1.5/4)(2/5)(0.5/6), for y (0.5/4)(2/5)(1.5/6); the new value has the same chance for both.
    assert abs(log_ratio(x, y, z, 1.0, 0.5)) < 1e-12
    assert math.isclose(log_ratio(x, y, np.array([0.1]), 1.0, 0.5), math.log(1.5 / 0.5))
    assert log_ratio(np.array([0.1, 0.3]), np.array([0.1, 0.2]), np.array([0.3]), 1.0, 0.5) == math.inf
    assert log_ratio(np.array([0.1, 0.3]), np.array([0.1, 0.2]), np.array([0.2]), 1.0, 0.5) == -math.inf


def test_what_the_simulation_misses() -> None:
    """With values that many rows share it finds next to nothing; the bound for a row of its own is one half."""
    rng = np.random.default_rng(8)
    shared = simulated_delta(3.0, 40, 40, 1.0, 0.0, lambda n, r: r.integers(0, 4, n) / 4, 200, rng)
    apart = simulated_delta(3.0, 40, 40, 1.0, 0.0, lambda n, r: r.random(n), 200, rng)
    bound = least_delta(40, 40, 1.0, 0.0)
    assert shared < 0.05 and 0.45 < bound < 0.55
    assert FALSE_ALARM < binom.cdf(round(200 * apart), 200, bound) < 1 - FALSE_ALARM


SCHEMA = us.Schema.loads("""
[columns.pay]
type = "number"
min = 0
max = 1000
decimals = 3
[columns.city]
type = "categorical"
values = ["A", "B"]
""")


def test_rows_are_copied_and_there_is_no_guarantee() -> None:
    rows = pa.table({"pay": np.arange(50) + 0.125, "city": ["AB"[i % 2] for i in range(50)]})
    made = specimen(rows, SCHEMA, seed=4)
    copies = set(zip(*made.arrow.to_pydict().values(), strict=True)) & set(zip(*rows.to_pydict().values(), strict=True))
    assert made.guarantee is None and made.certificate["guarantee"] is None
    assert made.arrow.num_rows == 50 and len(copies) > 5
    assert made.parameters["delta_at_least"] == least_delta(50, 50, 1.0, 0.5)
    assert specimen(rows, SCHEMA, n=7, seed=1).table.num_rows == 7
    with pytest.raises(ReleaseError, match="published-bnp"):
        made.save("anywhere")


@pytest.mark.parametrize(("theta", "sigma"), [(-1.0, 0.0), (1.0, 1.0), (1.0, -0.1), (math.inf, 0.0)])
def test_urns_that_are_none_are_refused(theta: float, sigma: float) -> None:
    with pytest.raises(InputError, match="sigma"):
        least_delta(10, 10, theta, sigma)
