"""Noise conformance: residuals of real answers, through the curator, against the law that the spend declares.

Each check is a Chernoff bound of `audits.checks.conformance`, whose moments are tested in tests/lab/audits. A run makes
five two-sided checks and refuses below 10⁻¹⁰ per side: false alarms are rarer than 10⁻⁹ a run, over the randomness of
the operating system; no seed is needed. Mutants draw the same noise in every run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from helpers.randomness import PairedNoise, RepeatedNoise, ReusedNoise, ScaledNoise, ShiftedNoise
from helpers.tables import KINDS, CountedOnce, MadeUpTable, Opener
from understudy.boundary.privacy.asks import Keys, Marginals, Partitions, Total
from understudy.boundary.privacy.budget import GDP, ZCDP, Amount, Budget, Spend
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness, Randomness
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.partition import Grid
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.table import Table
from understudy.lab.audits.checks.conformance import LAWS, Moments, NoiseLaw, Residuals, hoeffding, signs, tail_bound

SIDE = 1e-10
SIDES = 10
FALSE_ALARM = SIDES * SIDE
WHY = "ten Chernoff bounds of 1e-10 each"


def complaints(histograms: Sequence[Residuals], law: NoiseLaw) -> list[str]:
    """The names of the checks that two histograms of noise fail. Pairs are disjoint, hence independent."""
    a, b = (h.ravel() for h in histograms)
    both = np.concatenate([a, b])
    half = both.size // 4 * 2 // 2
    checks: dict[str, tuple[NDArray[np.float64], Moments]] = {
        "scale": (law.size(both), law.size_moments),
        "mean": (law.value(both), law.value_moments),
        "neighbouring cells": (signs(both[0::2], both[1::2]), hoeffding),
        "halves": (signs(a[:half], a[half : 2 * half]), hoeffding),
        "histograms": (signs(a, b), hoeffding),
    }
    assert 2 * len(checks) == SIDES
    return [name for name, (values, moments) in checks.items() if tail_bound(values, moments) < SIDE]


SCHEMA = Schema.loads("".join(f'[columns.{c}]\ntype = "integer"\nmin = 0\nmax = 99\n' for c in "abc"))
SETS = [("a", "b"), ("a", "c")]
ROWS = {c: [(7 * i * i + k * i + k) % 100 for i in range(40)] for k, c in enumerate("abc")}
AMOUNTS = {
    "rounded-gaussian": (Budget(1.0, 1e-6), Amount(Fraction(1, 100), pure=False)),
    "discrete-gaussian": (Budget(1.0, 1e-6, ZCDP), Amount(Fraction(1, 100), pure=False, accounting=ZCDP)),
    "discrete-laplace": (Budget(1.0, 0.0), Amount(Fraction(1, 5), pure=True)),
}


def exact(columns: tuple[str, str]) -> NDArray[np.int64]:
    """Counted a second time, without any of our code."""
    table = np.zeros((100, 100), dtype=np.int64)
    for i, j in zip(ROWS[columns[0]], ROWS[columns[1]], strict=True):
        table[i, j] += 1
    return table


def law_of(spend: Spend) -> NoiseLaw:
    return LAWS[spend.mechanism](spend.scale)


def measured_complaints(table: Table, mechanism: str, randomness: Randomness) -> list[str]:
    budget, amount = AMOUNTS[mechanism]
    curator = Curator.on(table, budget, randomness=randomness)
    measured = curator.ask(Marginals(Domain.of(SCHEMA), SETS, amount))
    assert {s.mechanism for s in curator.spends} == {mechanism}
    residuals = [m.counts - exact(columns) for m, columns in zip(measured, SETS, strict=True)]
    return complaints(residuals, law_of(curator.spends[0]))


@pytest.mark.noise(false_alarm=FALSE_ALARM, why=WHY)
@pytest.mark.parametrize("mechanism", AMOUNTS)
@pytest.mark.parametrize("kind", KINDS)
def test_noise_has_the_declared_law(kind: str, mechanism: str, on_back_end: Opener) -> None:
    table = on_back_end(kind, ROWS, SCHEMA)
    assert measured_complaints(table, mechanism, ExactRandomness.system()) == []


MUTANTS: dict[str, tuple[Callable[[], Randomness], str]] = {
    "half noise": (lambda: ScaledNoise(0.5), "scale"),
    "scale × 0.9": (lambda: ScaledNoise(0.9), "scale"),
    "scale × 1.1": (lambda: ScaledNoise(1.1), "scale"),
    "shifted by one": (lambda: ShiftedNoise(ones=1), "mean"),
    "shifted by half a scale": (lambda: ShiftedNoise(share=0.5), "mean"),
    "one value for all cells": (lambda: RepeatedNoise(0.0), "neighbouring cells"),
    "halves repeated": (lambda: RepeatedNoise(0.5), "halves"),
    "pairs of cells share": (PairedNoise, "neighbouring cells"),
    "histograms share": (ReusedNoise, "histograms"),
}


@pytest.mark.parametrize("mechanism", AMOUNTS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_check_rejects_every_mutant(kind: str, mechanism: str, on_back_end: Opener) -> None:
    table = CountedOnce(on_back_end(kind, ROWS, SCHEMA))
    for name, (make, complaint) in MUTANTS.items():
        assert complaint in measured_complaints(table, mechanism, make()), name


def partition_complaints(table: Table, mechanism: str, randomness: Randomness) -> list[str]:
    budget, amount = AMOUNTS[mechanism]
    each = tuple(range(100))
    curator = Curator.on(table, budget, randomness=randomness)
    measured = curator.ask(Partitions(Domain.of(SCHEMA), [Grid(s, (each, each)) for s in SETS], amount))
    residuals = [m.counts - exact(columns).ravel() for m, columns in zip(measured, SETS, strict=True)]
    return complaints(residuals, law_of(curator.spends[0]))


@pytest.mark.noise(false_alarm=FALSE_ALARM, why=WHY)
@pytest.mark.parametrize("mechanism", AMOUNTS)
def test_partitions_get_the_same_noise(mechanism: str, on_back_end: Opener) -> None:
    table = on_back_end("pyarrow", ROWS, SCHEMA)
    assert partition_complaints(table, mechanism, ExactRandomness.system()) == []


@pytest.mark.parametrize("mechanism", AMOUNTS)
def test_partitions_reject_every_mutant(mechanism: str, on_back_end: Opener) -> None:
    table = on_back_end("pyarrow", ROWS, SCHEMA)
    for name, (make, complaint) in MUTANTS.items():
        assert complaint in partition_complaints(table, mechanism, make()), name


def keys_complaints(randomness: Randomness, accounting: str = GDP) -> list[str]:
    """Counts so high above the threshold that every key is shown: the residuals are not cut."""
    columns = "".join(f'[columns.{c}]\ntype = "categorical"\nvalues = "private"\n' for c in "kl")
    names = [f"key {i:05d}" for i in range(10_000)]
    table = MadeUpTable(Schema.loads(columns), (names, np.full(10_000, 10**6)))
    curator = Curator.on(table, Budget(1.0, 1e-6, accounting), randomness=randomness)
    shown = [curator.ask(Keys(c, Amount(Fraction(1, 200), False, accounting))) for c in "kl"]
    assert all(list(keys.values) == names for keys in shown)
    return complaints([keys.counts - 10**6 for keys in shown], law_of(curator.spends[0]))


@pytest.mark.noise(false_alarm=FALSE_ALARM, why=f"{WHY}; no count of a million falls below the threshold (e^-1e9)")
@pytest.mark.parametrize("accounting", [GDP, ZCDP])
def test_keys_get_the_same_noise(accounting: str) -> None:
    assert keys_complaints(ExactRandomness.system(), accounting) == []


@pytest.mark.parametrize("accounting", [GDP, ZCDP])
def test_keys_reject_every_mutant(accounting: str) -> None:
    for name, (make, complaint) in MUTANTS.items():
        assert complaint in keys_complaints(make(), accounting), name


TOTALS = 400


def totals_complaints(mechanism: str, make: Callable[[], Randomness], table: Table) -> list[str]:
    budget, amount = AMOUNTS[mechanism]
    curator = Curator.on(table, budget, randomness=make())
    small = amount.part(1 / TOTALS)
    answers = np.array([curator.ask(Total(small)).counts[0] for _ in range(TOTALS)]) - len(ROWS["a"])
    return complaints([answers[: TOTALS // 2], answers[TOTALS // 2 :]], law_of(curator.spends[0]))


def one_column() -> MadeUpTable:
    columns = Schema.loads('[columns.k]\ntype = "integer"\nmin = 0\nmax = 1\n')
    return MadeUpTable(columns, (["k"], np.array([len(ROWS["a"])])))


@pytest.mark.noise(false_alarm=FALSE_ALARM, why=WHY)
@pytest.mark.parametrize("mechanism", AMOUNTS)
def test_totals_get_the_same_noise(mechanism: str) -> None:
    assert totals_complaints(mechanism, ExactRandomness.system, one_column()) == []


@pytest.mark.parametrize("mechanism", AMOUNTS)
def test_totals_reject_mutants(mechanism: str) -> None:
    table = one_column()
    assert totals_complaints(mechanism, lambda: ScaledNoise(0.5), table) == ["scale"]
    assert "mean" in totals_complaints(mechanism, lambda: ShiftedNoise(share=1.0), table)
    assert "histograms" in totals_complaints(mechanism, ReusedNoise, table)


def test_the_stated_rate_of_false_alarms_is_one_in_a_thousand_million() -> None:
    assert pytest.approx(1e-9) == FALSE_ALARM
