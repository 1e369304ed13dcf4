"""Attacks as measures of a trial: the same figures as those of an attack by itself."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from understudy.boundary.schema.schema import Schema
from understudy.lab.attacks.attack_measures import (
    ATTACK_MEASURES,
    BASELINE,
    HIGH,
    LOW,
    PREFIX,
    SUCCESS,
    measure_attacks,
)
from understudy.lab.attacks.attacks import ATTACKS, attack_tables
from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.measure import NEEDS

SCHEMA = Schema.loads(
    '[columns.x]\ntype = "integer"\nmin = 0\nmax = 999\n[columns.y]\ntype = "categorical"\nvalues = ["a", "b"]\n'
)
NAMES = tuple(m.name for m in ATTACK_MEASURES)


def people(seed: int, rows: int = 60) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({"x": rng.integers(0, 1000, rows), "y": rng.choice(["a", "b"], rows)})


def compared(target: str | None = "y", rows: int = 60) -> Comparison:
    """Members are released as they are."""
    return Comparison.of(people(0, rows), people(0, rows), holdout=people(1, rows), schema=SCHEMA, target=target)


def test_figures_are_those_of_the_attack_by_itself():
    found = measure_attacks(compared(), NAMES)
    by_itself = attack_tables(people(0), people(1), people(0), schema=SCHEMA, secrets=["y"])
    assert tuple(found) == NAMES == tuple(PREFIX + a.name for a in ATTACKS)
    for name, figure in found.items():
        finding = by_itself[name.removeprefix(PREFIX)]
        parts = {p.name: p.value for p in figure.parts}
        assert figure.value == finding.advantage and finding.interval is not None
        assert parts == {
            SUCCESS: finding.success,
            BASELINE: finding.baseline,
            LOW: finding.interval[0],
            HIGH: finding.interval[1],
        }
    assert found["attack-copies"].value is not None and found["attack-copies"].value > 0.9


def test_a_measure_alone_gives_the_same_and_needs_a_holdout():
    together = measure_attacks(compared(), NAMES)
    for measure in ATTACK_MEASURES:
        assert measure.of(compared()) == together[measure.name]
    bare = Comparison.of(people(0), people(0), schema=SCHEMA)
    assert {m.of(bare).reason for m in ATTACK_MEASURES} == {NEEDS["hold-out"]}


def test_without_a_target_every_column_is_a_secret():
    every = attack_tables(people(0), people(1), people(0), schema=SCHEMA)["inference"].advantage
    assert measure_attacks(compared(None), ("attack-inference",))["attack-inference"].value == every


def test_too_few_rows_give_no_figure():
    found = measure_attacks(compared(rows=5), ("attack-copies",))["attack-copies"]
    assert found.value is None and "fewer than 10 say nothing" in found.reason
    assert measure_attacks(compared(), ()) == {}
