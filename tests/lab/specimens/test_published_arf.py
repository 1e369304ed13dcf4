"""`published-dp-arf`: each printed step, and why it is not private. False alarms: one in 10⁹ runs."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from understudy.boundary.schema.column import Categorical, Integer, Number
from understudy.boundary.schema.schema import Schema
from understudy.errors import InputError, ReleaseError
from understudy.inference.forest.adversarial_forest import FittedForest, Growth, grow
from understudy.inference.forest.density import CategoryShares, ForestDensity, Normal
from understudy.lab.specimens import published_arf
from understudy.lab.specimens.arf import TRUNCATED_NORMAL, estimate
from understudy.lab.specimens.points import Points

SCHEMA = Schema(
    (
        Integer("age", minimum=18, maximum=64),
        Categorical("smoker", values=("no", "yes", "never")),
        Number("charges", minimum=0, maximum=20_000, decimals=2),
    )
)
FALSE_ALARM = 1e-9


def people(rows: int = 300, *, never: bool = False) -> pa.Table:
    rng = np.random.default_rng(0)
    age, smoker = rng.integers(18, 65, rows), np.where(rng.random(rows) < 0.3, "yes", "no").astype(object)
    charges = np.round(100 * age + 9000 * (smoker == "yes") + rng.normal(0, 300, rows), 2)
    if never:
        smoker[0] = "never"
    return pa.table({"age": age, "smoker": smoker, "charges": charges})


def fitted(trees: int = 10, alpha: float = 0.0) -> tuple[Points, FittedForest, ForestDensity]:
    points = Points.of(people(), SCHEMA)
    grown = grow(points.values, Growth(num_trees=trees), np.random.default_rng(1))
    return points, grown, estimate(points, grown, TRUNCATED_NORMAL, False, alpha)


def test_the_noise_of_a_mean_is_laplace_with_the_observed_range() -> None:
    points, grown, before = fitted(40)
    epsilon = 0.5
    after = published_arf.perturbed(points, grown, before, epsilon, False, np.random.default_rng(2))
    residuals = []
    for j in (0, 2):
        old, new = before.columns[j], after.columns[j]
        assert isinstance(old, Normal) and isinstance(new, Normal)
        for number in range(len(grown.leaves)):
            seen = points.values[(grown.leaf == number).any(axis=1), j]
            scale = (seen.max() - seen.min()) / len(seen) / epsilon or published_arf.SMALLEST / epsilon
            residuals.append((new.mean[number] - old.mean[number]) / scale)
            around = math.sqrt(((seen - new.mean[number]) ** 2).mean())
            assert new.deviation[number] == pytest.approx(around, rel=1e-9)
    assert _distance(np.array(residuals)) < _limit(len(residuals))
    assert _distance(2 * np.array(residuals)) > _limit(len(residuals))  # half the scale would be noticed


def _distance(values: np.ndarray) -> float:
    from scipy.stats import kstest

    return float(kstest(values, "laplace").statistic)


def _limit(count: int) -> float:
    return math.sqrt(math.log(2 / FALSE_ALARM) / (2 * count))


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_probabilities_become_exp_of_half_epsilon_times_themselves(alpha: float) -> None:
    points, grown, before = fitted(alpha=alpha)
    epsilon = 3.0
    after = published_arf.perturbed(points, grown, before, epsilon, False, np.random.default_rng(2))
    old, new = before.columns[1], after.columns[1]
    assert isinstance(old, CategoryShares) and isinstance(new, CategoryShares)
    for number in range(len(grown.leaves)):
        p = old.weigh(np.full(2, number), np.arange(2))
        raised = np.where(p > 0, np.exp(epsilon * p / 2), 0.0)
        assert new.weigh(np.full(2, number), np.arange(2)) == pytest.approx(raised / raised.sum())


def test_coverage_and_bounds_are_those_of_the_raw_rows() -> None:
    points, grown, before = fitted()
    after = published_arf.perturbed(points, grown, before, 0.01, False, np.random.default_rng(2))
    assert after.coverage is before.coverage
    assert after.leaves is before.leaves


def test_a_constant_column_is_released_as_good_as_exactly() -> None:
    rows = people().set_column(0, "age", pa.array([33] * 300))
    made = published_arf.specimen(rows, SCHEMA, 0.01, seed=1).table
    assert set(made["age"].to_pylist()) == {33}


def test_a_category_of_one_person_shows_that_the_person_is_there() -> None:
    """Whoever is alone with a category is told apart: it comes out only if it went in."""
    without = [published_arf.specimen(people(), SCHEMA, 1.0, seed=s, num_trees=5).table for s in range(5)]
    within = [published_arf.specimen(people(never=True), SCHEMA, 1.0, seed=s, num_trees=5).table for s in range(5)]
    assert not any("never" in t["smoker"].to_pylist() for t in without)
    assert all("never" in t["smoker"].to_pylist() for t in within)


def test_it_makes_up_impossible_ages() -> None:
    """A leaf at the end of the ages has no bound there, and its mean gets noise of some fifty years and more."""
    ages = published_arf.specimen(people(), SCHEMA, 0.02, n=3000).table["age"].to_numpy()
    assert ages.min() < 0
    assert ages.max() > 120


def test_parameters_and_defaults_are_the_printed_ones() -> None:
    found = published_arf.specimen(people(), SCHEMA, seed=1)
    printed = {
        "num_trees": 30, "delta": 0, "max_iters": 10, "early_stop": True, "min_node_size": 5, "merge": False,
        "forest": {}, "epsilon": 1.0, "dist": "truncnorm", "oob": False, "alpha": 0,
    }  # fmt: skip
    assert dict(found.parameters) == printed
    assert found.arrow.num_rows == 300
    assert published_arf.specimen(people(), SCHEMA, 0.5, n=7, oob=True, alpha=0.2, seed=1).arrow.num_rows == 7


def test_whatever_epsilon_it_names_there_is_no_guarantee() -> None:
    found = published_arf.specimen(people(), SCHEMA, 0.1, seed=1, num_trees=3)
    assert found.certificate["guarantee"] is None
    with pytest.raises(ReleaseError, match="published-dp-arf"):
        found.save("out")


@pytest.mark.parametrize("epsilon", [0, -1, math.inf, math.nan])
def test_epsilon_must_be_positive(epsilon: float) -> None:
    with pytest.raises(InputError, match="epsilon"):
        published_arf.specimen(people(), SCHEMA, epsilon)
