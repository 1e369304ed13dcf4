"""The harness of the privacy tests, and pools that are small."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from understudy.inference.particles import rounding
from understudy.methods.dp_select import pool

sys.path.append(str(Path(__file__).resolve().parents[2] / "boundary" / "privacy"))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "FEWEST_ROWS", 400)
    monkeypatch.setattr(rounding, "ROUNDS", 20)
