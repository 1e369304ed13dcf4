"""A curator without noise: with it a method must give back what it measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import understudy as us
from understudy.boundary.privacy.budget import Budget
from understudy.methods.method import Options
from understudy.methods.parts.workload import PAIRS, stated_targets, stated_weights
from understudy.releases.synthesis import Plan, synthesize_with


class Silence:
    """Randomness that adds nothing and chooses the best."""

    secure = False

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        return np.zeros(size, dtype=np.int64)

    def choose(self, scores: NDArray[np.float64], exponent: float, k: int) -> list[int]:
        return [int(i) for i in np.argsort(-scores, kind="stable")[:k]]


Silent = Callable[..., us.Release]


@pytest.fixture
def silent() -> Silent:
    """`silent(frame, schema, method, …)`: a release without noise."""

    def make(
        frame: pa.Table,
        schema: us.Schema,
        method: str = "auto",
        *,
        target: str | Sequence[str] | None = None,
        marginals: Sequence[Sequence[str]] = (),
        weights: Mapping[str | tuple[str, ...], float] | None = None,
        workload: str = PAIRS,
        rows: int | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
    ) -> us.Release:
        options = Options(stated_targets(target), tuple(map(tuple, marginals)), stated_weights(weights or {}), workload)
        plan = Plan.of(schema, Budget(epsilon, delta), method, options, rows, 11)
        return synthesize_with(us.open(frame, schema), plan, randomness=Silence())

    return make
