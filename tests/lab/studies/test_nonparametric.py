"""The study of nonparametric Bayes: its exact figures against enumeration, its findings, and its page."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import stats

from understudy.inference.polya.polya_prior import PolyaPrior
from understudy.lab.studies.documents import nonparametric
from understudy.lab.studies.documents.nonparametric import (
    LAWS,
    NonparametricSize,
    densities_apart,
    equal_values_ratio,
    rows_apart,
    study,
    worst_pair,
    write,
)
from understudy.lab.studies.documents.nonparametric_page import (
    NonparametricStudy,
    RatioCloud,
    pictures,
    render,
)
from understudy.lab.studies.layout import TextTable
from understudy.pages.curves import Box

SMALL = NonparametricSize(rows=2_000, depth=6, measures=20, repeats=4, neighbours=15, runs=60)


@pytest.fixture(scope="module")
def small() -> NonparametricStudy:
    return study(3, SMALL)


def enumerated(tree: PolyaPrior, rows: int, draws: int) -> list[tuple[float, float]]:
    """Loss and probability of every output, for the row at the first leaf against the last, where all others are."""
    first, last = 0.0, 1 - 1e-9
    x, y = (tree.posterior(np.array([row, *[last] * (rows - 1)])) for row in (first, last))
    found = []
    for leaves in itertools.combinations_with_replacement(range(tree.leaves), draws):
        counts = np.bincount(leaves, minlength=tree.leaves)
        orders = math.factorial(draws) / math.prod(math.factorial(n) for n in counts)
        found.append(
            (x.log_probability(counts) - y.log_probability(counts), orders * math.exp(x.log_probability(counts)))
        )
    return found


@pytest.mark.parametrize(("depth", "rows", "draws"), [(1, 2, 4), (2, 2, 4), (3, 3, 3), (3, 1, 2)])
def test_the_law_of_the_loss_is_that_of_all_outputs(depth: int, rows: int, draws: int) -> None:
    tree = PolyaPrior(0.7, depth)
    law, brute = worst_pair(tree, rows, draws), enumerated(tree, rows, draws)
    assert math.isclose(law.probabilities.sum(), 1)
    assert math.isclose(law.values.max(), tree.log_ratio_limit(draws), rel_tol=1e-12)
    for epsilon in (-0.5, 0.0, 0.2, 1.0, 2.0):
        exceeds = sum(p for loss, p in brute if loss > epsilon)
        delta = sum(p * max(0.0, 1 - math.exp(epsilon - loss)) for loss, p in brute)
        assert math.isclose(law.exceeds(epsilon), exceeds, abs_tol=1e-9)
        assert math.isclose(law.delta(epsilon), delta, abs_tol=1e-9)


def test_all_draws_in_one_leaf_against_the_probability_of_an_output() -> None:
    tree, rng = PolyaPrior(2.0, 3), np.random.default_rng(1)
    x, y = rng.random(5), rng.random(5)
    ratios = equal_values_ratio(tree, x, y, 4)
    for leaf, ratio in enumerate(ratios):
        output = np.eye(8, dtype=int)[leaf] * 4
        whole = tree.posterior(x).log_probability(output) - tree.posterior(y).log_probability(output)
        assert math.isclose(ratio, whole, abs_tol=1e-9)


def test_the_findings_of_the_document(small: NonparametricStudy) -> None:
    """ε falls with c and grows with n, depth and m; what random neighbours show is never above it."""
    over = {s.parameter: s for s in small.suprema}
    assert list(over["c"].exact) == sorted(over["c"].exact, reverse=True)
    assert all(list(over[p].exact) == sorted(over[p].exact) for p in ("n", "depth", "m"))
    assert all(seen <= exact + 1e-9 for s in small.suprema for seen, exact in zip(s.simulated, s.exact, strict=True))
    assert any(seen < 0.8 * exact for s in small.suprema for seen, exact in zip(s.simulated, s.exact, strict=True))


def test_the_best_c_for_l1_lies_inside(small: NonparametricStudy) -> None:
    for law in LAWS:
        medians = [b.middle for b in small.distances[f"L1 distance | {law.name} | c"]]
        assert 0 < int(np.argmin(medians)) < len(medians) - 1


def test_a_simulation_stays_below_the_worst_pair(small: NonparametricStudy) -> None:
    tree = small.failures[0].curves
    names = list(tree)
    assert all(b <= a + 1e-12 for a, b in zip(tree[names[0]], tree[names[1]], strict=True))
    assert np.mean(tree["simulated"]) < np.mean(tree[names[0]])
    urn = small.failures[1].curves
    assert urn["simulated, 8 shared values"][-1] == 0.0 < urn["exact, at any ε at least"][-1]


def test_distances_by_hand() -> None:
    """With c so large that every draw is uniform: L1 from uniform(¼, ¾) is 1, and Hellinger² is 1 − 1/√2."""
    law, rng = LAWS[0], np.random.default_rng(2)
    posterior = PolyaPrior(1e12, 6).posterior(law.sample(10, rng))
    l1, hellinger = densities_apart(law, posterior, NonparametricSize(measures=3), rng)
    assert np.allclose(l1, 1.0, atol=1e-4) and np.allclose(hellinger**2, 1 - math.sqrt(0.5), atol=1e-4)
    assert rows_apart(law, 20_000, 1e-3, 12, rng) < 0.02


def test_the_densities_are_those_of_the_laws() -> None:
    points = (np.arange(1000) + 0.5) / 1000
    for law, known in zip(LAWS, (stats.uniform(0.25, 0.5), stats.beta(2, 2)), strict=True):
        assert np.allclose(law.density(points), known.pdf(points))
        assert stats.kstest(law.sample(2000, np.random.default_rng(1)), known.cdf).pvalue > 1e-9


def test_a_box_has_the_quantiles_of_its_values() -> None:
    values = np.random.default_rng(1).normal(size=37)
    assert np.allclose(Box.of(1.0, list(values)).values, np.quantile(values, [0, 0.25, 0.5, 0.75, 1]))
    assert Box.of(1.0, [5.0]).values == (5.0,) * 5


def test_the_page_is_self_contained_and_says_what_was_missed(
    small: NonparametricStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = render(small)
    assert page == render(small) and small.missed.replace("'", "&#39;") in page
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|src=|@import|url\(|<link|<iframe|<img", page)
    assert all(ElementTree.fromstring(f.standalone()).tag.endswith("svg") for f in pictures(small))
    monkeypatch.setattr(nonparametric, "study", lambda seed, size: small)
    assert write(tmp_path / "page.html").read_text() == page


def test_real_columns_have_a_table_of_their_own(small: NonparametricStudy) -> None:
    columns = TextTable("Distances of real columns", ("column", "by noise"), (("charges", "3.2"),), "Lower is better.")
    page = render(dataclasses.replace(small, columns=columns))
    assert "On real columns" in page and "charges" in page and "On real columns" not in render(small)


def test_posterior_draws_are_densities_and_their_mean_is_theirs(small: NonparametricStudy) -> None:
    for found in small.draws.values():
        draws = np.array(found.draws)
        assert len(draws) == 30
        assert draws.mean(axis=1) == pytest.approx(np.ones(30)) and np.mean(found.histogram) == pytest.approx(1.0)
        assert np.array(found.mean) == pytest.approx(draws.mean(axis=0))
        assert np.mean(found.predictive) == pytest.approx(1.0)
    assert set(small.draws) == {law.name for law in LAWS}


def test_a_cloud_counts_what_lies_above_its_line() -> None:
    cloud = RatioCloud("t", 1.0, (0.5, 1.5, math.inf, -math.inf), "note")
    assert cloud.above == 0.5
    drawn = next(f for f in pictures(dataclasses.replace(study(1, SMALL), clouds=[cloud])) if f.title == "t")
    assert "50.0% of 4 runs lie above the line, 25.0% at infinity" in drawn.standalone()


def test_clouds_are_of_the_very_runs_that_give_delta(small: NonparametricStudy) -> None:
    """Where all values are apart, a run is above every line as soon as the redrawn row was copied."""
    tree, shared, apart = small.clouds
    assert len(tree.ratios) == len(shared.ratios) == SMALL.runs
    assert all(math.isfinite(r) for r in tree.ratios)
    assert {r for r in apart.ratios if not math.isfinite(r)} <= {math.inf}


def test_a_larger_exponent_is_cheaper(small: NonparametricStudy) -> None:
    price = small.exponent_price
    assert price is not None and list(price.exact) == sorted(price.exact, reverse=True)
    trees = [PolyaPrior(10.0, SMALL.depth, p) for p in price.at]
    assert price.exact == tuple(t.log_ratio_limit(50) for t in trees)
    assert all(seen <= exact + 1e-9 for seen, exact in zip(price.simulated, price.exact, strict=True))
    assert len(small.exponents) == 2 * len(LAWS)
    assert "The exponent p" in render(small)
