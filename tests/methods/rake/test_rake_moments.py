"""Moments in a run of `rake`: asked for where rows are few, and never where they would say nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from understudy.methods.rake import moments

SCHEMA = us.Schema.loads(
    "".join(f'[columns.{c}]\ntype = "integer"\nmin = 0\nmax = 39\nbins = 8\n' for c in ("age", "pay", "years"))
)


def asked() -> list[dict[str, Any]]:
    rng = np.random.default_rng(1)
    age = rng.integers(0, 40, 1_500)
    frame = pa.table({"age": age, "pay": (age + rng.integers(0, 8, 1_500)) % 40, "years": rng.integers(0, 40, 1_500)})
    release = us.synthesize(
        us.open(frame, SCHEMA), ledger=False, method="rake", epsilon=1.0, seed=1, test_only_noise_seed=1
    )
    return [a.question for a in release.record if a.question["ask"] == "moment"]


def test_every_pair_of_numbers_has_one() -> None:
    assert [q["columns"][:2] for q in asked()] == [["age", "pay"], ["age", "years"], ["pay", "years"]]


def test_a_number_that_the_model_holds_for_constant_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = moments._deviations

    def constant(state: Any, number: str, by: Any) -> Any:
        return honest(state, number, by) * (number != "years")

    monkeypatch.setattr(moments, "_deviations", constant)
    assert [q["columns"][:2] for q in asked()] == [["age", "pay"]]
    monkeypatch.setattr(moments, "_deviations", lambda *of: 0.0 * honest(*of))
    assert asked() == []
