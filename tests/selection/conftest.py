"""The harness of the privacy tests, and pools that are small."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from understudy.models import rounding
from understudy.synthesizers import pool

sys.path.append(str(Path(__file__).resolve().parents[1] / "privacy"))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "FEWEST_ROWS", 400)
    monkeypatch.setattr(rounding, "ROUNDS", 20)
