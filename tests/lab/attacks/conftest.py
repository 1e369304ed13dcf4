"""Tables that the tests of attacks share: a training table, a hold-out, others, and the setting of an attack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from people import PEOPLE, make_people

from understudy.boundary.schema.schema import Schema
from understudy.lab.attacks.threat import Threat
from understudy.lab.evaluation.comparison import Comparison


@pytest.fixture(scope="session")
def schema() -> Schema:
    return Schema.loads(PEOPLE)


@pytest.fixture(scope="session")
def train() -> pa.Table:
    return make_people(400, 1)


@pytest.fixture(scope="session")
def holdout() -> pa.Table:
    return make_people(300, 2)


@pytest.fixture(scope="session")
def sample() -> pa.Table:
    """As many people of the same population, who are in neither of the others."""
    return make_people(400, 3)


@pytest.fixture(scope="session")
def setting(schema: Schema) -> Callable[..., Threat]:
    def make(train: Any, holdout: Any, synthetic: Any, secrets: Any = None, seed: int = 0, given: Any = None) -> Threat:
        compared = Comparison.of(train, synthetic, holdout=holdout, schema=given or schema, seed=seed)
        return Threat.of(compared, secrets)

    return make
