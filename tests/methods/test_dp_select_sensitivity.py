"""What one person can change in everything that `dp-select` asks for, by the harness of `rake`: over each kind of pool,
with the noise of pure and of approximate budgets, and with neighbours of every kind."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from helpers.neighbours import ADD_REMOVE, HEADS, MODELLED, Pair, open_rows, pairs, worst_pair
from helpers.randomness import SeededRandomness
from helpers.tables import SpyTable
from helpers.tuning import tuned
from helpers.twins import BUDGETS, ITS_OWN, TwinCurator, TwinGate, among_many, domain_of, kinds, violations
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.mechanisms.score import Candidate
from understudy.methods.dp_select import TUNING, DpSelect
from understudy.methods.independent import Independent
from understudy.methods.method import Recipe
from understudy.methods.mst import Mst

SMALL = tuned(TUNING, fewest_pool_rows=400, rake={"exchange_rounds": 20})

POOLS: tuple[Recipe, ...] = (Independent(), Mst())


@dataclass(frozen=True)
class Run:
    """One way to run `dp-select` on two neighbours."""

    pair: Pair
    names: tuple[str, ...] = ("age", "city", "pay")
    pool: Recipe = POOLS[0]
    budget: Budget = BUDGETS["approximate"]
    seed: int = 1

    def compare(self) -> tuple[TwinCurator, TwinGate]:
        relation = self.pair.relation
        first, second = (open_rows(rows, relation, "pyarrow", Path()) for rows in (self.pair.first, self.pair.second))
        gate = TwinGate(first, second, self.budget, SeededRandomness(self.seed))
        curator, domain = TwinCurator(relation, self.budget, gate), domain_of(relation, self.names)
        recipe = DpSelect(self.pool, targets=self.names[:1], tuning=SMALL)
        recipe.calibrate(domain, curator.remaining()).fit(curator, np.random.default_rng(0))
        return curator, gate


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("relation", HEADS)
@pytest.mark.parametrize("budget", BUDGETS)
def test_no_neighbour_changes_more_than_is_declared(relation: str, budget: str) -> None:
    @settings(max_examples=4, deadline=None, derandomize=True, database=None)
    @given(
        pairs(relation),
        st.permutations(MODELLED).map(lambda names: tuple(names[:3])),
        st.sampled_from(POOLS),
        st.integers(0, 10**6),
    )
    def check(pair: Pair, names: tuple[str, ...], pool: Recipe, seed: int) -> None:
        curator, gate = Run(pair, names, pool, BUDGETS[budget], seed).compare()
        assert violations(curator, gate.compared, relation) == set()
        assert {"marginal", "select", "partition"} <= kinds(gate.compared)

    check()


@pytest.mark.parametrize("relation", HEADS)
def test_the_same_check_refuses_half_the_sensitivity(relation: str) -> None:
    curator, gate = Run(among_many(relation), budget=Budget(30.0, 1e-6)).compare()
    assert violations(curator, gate.compared, relation) == set()
    found = violations(curator, gate.compared, relation, declared=0.499)
    assert {"marginal", "select", ITS_OWN} <= found


def test_mutant_a_pool_scaled_to_the_exact_number_of_rows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The document compares shares: a pool that is scaled to |D| moves by one more in all of its cells."""
    honest = Candidate.score

    def scaled(self: Candidate, counts: NDArray[np.int64]) -> float:
        return honest(replace(self, estimate=self.estimate * (counts.sum() / self.estimate.sum())), counts)

    monkeypatch.setattr(Candidate, "score", scaled)
    curator, gate = Run(among_many(ADD_REMOVE), budget=Budget(30.0, 1e-6)).compare()
    assert violations(curator, gate.compared, ADD_REMOVE) == {"select", ITS_OWN}


def test_selected_rows_follow_from_the_answers_alone() -> None:
    """Two tables that give the same answers give the same rows: one is replayed without any table."""
    pair, names = worst_pair(ADD_REMOVE), ("age", "city", "pay")
    table = open_rows(pair.first, ADD_REMOVE, "pyarrow", Path())
    events: list[str] = []
    domain, budget = domain_of(ADD_REMOVE, names), BUDGETS["approximate"]
    asked = Curator.on(SpyTable(table, events), budget, randomness=SeededRandomness(4))  # type: ignore[arg-type]
    recipe = DpSelect(Mst(), distance="L1", sections=2, tuning=SMALL)
    first = recipe.calibrate(domain, asked.remaining()).fit(asked, np.random.default_rng(0))
    counted = len(events)
    rows = first.sample(50, np.random.default_rng(1))
    assert len(events) == counted  # selecting reads no row
    again = Curator.replaying(asked.schema, budget, asked.record)
    second = recipe.calibrate(domain, again.remaining()).fit(again, np.random.default_rng(0))
    replayed = second.sample(50, np.random.default_rng(1))
    assert all(np.array_equal(rows[c], replayed[c]) for c in names)
