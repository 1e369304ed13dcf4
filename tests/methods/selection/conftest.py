"""The harness of the privacy tests, and pools that are small."""

from __future__ import annotations

import pytest

from understudy.inference.particles import rounding
from understudy.methods.dp_select import pool


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "FEWEST_ROWS", 400)
    monkeypatch.setattr(rounding, "ROUNDS", 20)
