"""Intervals hold as often as they say, and the same check finds out noise that is not what was declared.

Every check is at most FALSE_ALARM wrong by chance: the least number of intervals that may hold is the quantile of a
binomial law at that rate.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom, norm

import understudy as us
from understudy.boundary.privacy.measurement import Measurement
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.queries.aggregate_query import AggregateQuery
from understudy.queries.answer import reach
from understudy.queries.query import query_with
from understudy.queries.query_plan import QueryPlan

FALSE_ALARM = 1e-9
GROUPS, EACH = 120, 40
TOML = f"""
[columns.g]
type = "integer"
min = 0
max = {GROUPS - 1}
[columns.x]
type = "number"
min = 0
max = 100
decimals = 0
"""
X = np.tile(np.arange(EACH) * 2.0, GROUPS)
FRAME = pa.table({"g": np.repeat(np.arange(GROUPS), EACH), "x": X})
TRUE = {
    "count(*)": EACH,
    "sum(x)": X[:EACH].sum(),
    "avg(x)": X[:EACH].mean(),
    "median(x)": np.sort(X[:EACH])[EACH // 2 - 1],
}
LEAST = int(binom.ppf(FALSE_ALARM, GROUPS, 0.9))


@dataclasses.dataclass
class Louder(ExactRandomness):
    """The mutant: noise of three times the declared scale, and choices that are three times less sharp."""

    factor: float = 3.0

    def __post_init__(self) -> None:
        super().__init__(ExactRandomness.seeded(5)._entropy)

    def noise(self, mechanism: str, scale: float, size: int) -> np.ndarray:
        return super().noise(mechanism, scale * self.factor, size)

    def choose(self, scores: np.ndarray, exponent: float, k: int) -> list[int]:
        return super().choose(scores, exponent / 100, k)


def held(asked: str, relation: str, delta: float, randomness: ExactRandomness, epsilon: float = 1.0) -> int:
    table = us.open(FRAME, us.Schema.loads(f'neighbours = "{relation}"\n' + TOML))
    plan = QueryPlan(AggregateQuery.of(f"select g, {asked} from data group by g", table.schema), table.schema, 0.9)
    answer = query_with(table, plan, us.Budget(epsilon, delta), randomness=randomness)
    assert all(g.figures[0].low <= g.figures[0].high for g in answer)
    return sum(g.figures[0].low <= TRUE[asked] <= g.figures[0].high for g in answer)


WHY = "the groups' noise is independent, and each interval holds with probability 0.9: a binomial quantile"


@pytest.mark.noise(false_alarm=FALSE_ALARM, why=WHY)
@pytest.mark.parametrize("asked", TRUE)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_intervals_hold(asked: str, delta: float, relation: str):
    assert held(asked, relation, delta, ExactRandomness.system()) >= LEAST


@pytest.mark.parametrize("asked", TRUE)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_check_finds_out_other_noise(asked: str, delta: float):
    # An average's interval gives half of the miss to each of its two parts, so it takes more to break it.
    louder = Louder(factor=12.0 if asked == "avg(x)" else 3.0)
    assert held(asked, "add-remove", delta, louder, epsilon=1.0 if asked == "count(*)" else 20.0) < LEAST


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.5, 40.0])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.999])
def test_the_reach_of_laplace_noise_is_exact(scale: float, confidence: float):
    m = reach(Measurement((), np.zeros(1, dtype=np.int64), "discrete-laplace", scale), confidence)
    ratio = math.exp(-1 / scale)

    def beyond(k: int) -> float:
        return 2 * ratio ** (k + 1) / (1 + ratio) if k >= 0 else 1.0

    assert beyond(m) <= 1 - confidence + 1e-12 and (m == 0 or beyond(m - 1) > 1 - confidence - 1e-12)


@pytest.mark.parametrize("mechanism", ["rounded-gaussian", "discrete-gaussian"])
@pytest.mark.parametrize("scale", [0.3, 1.0, 2.5, 40.0])
def test_the_reach_of_gaussian_noise_covers_its_law(mechanism: str, scale: float):
    m = reach(Measurement((), np.zeros(1, dtype=np.int64), mechanism, scale), 0.95)
    at = np.arange(-500, 501)
    law = np.exp(-(at**2) / (2 * scale**2))
    if mechanism == "rounded-gaussian":
        law = norm.cdf((at + 0.5) / scale) - norm.cdf((at - 0.5) / scale)
    law /= law.sum()
    assert law[np.abs(at) > m].sum() <= 0.05 and m <= 1.96 * scale + 1


def test_more_budget_gives_shorter_intervals():
    table = us.open(FRAME, us.Schema.loads(TOML))
    for asked in TRUE:
        plan = QueryPlan(AggregateQuery.of(f"select {asked} from data", table.schema), table.schema, 0.95)
        widths = []
        for epsilon in (0.2, 20.0):
            figure = query_with(table, plan, us.Budget(epsilon, 1e-6), randomness=ExactRandomness.seeded(1)).figure
            widths.append(figure.high - figure.low)
        assert widths[1] < widths[0]
