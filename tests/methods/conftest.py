"""A curator without noise: with it a method must give back what it measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pytest

import understudy as us
from helpers.randomness import BestRandomness
from understudy.boundary.privacy.budget import Budget
from understudy.methods.method import Options
from understudy.methods.parts.workload import PAIRS, stated_targets, stated_weights
from understudy.releases.synthesis import Plan, synthesize_with

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
        return synthesize_with(us.open(frame, schema), plan, randomness=BestRandomness(secure=False))

    return make
