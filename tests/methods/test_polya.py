"""`polya-tree` and `dirichlet`: what they keep without noise, and what every release of theirs must keep to."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from helpers.randomness import BestRandomness
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.gates import RecordGate
from understudy.boundary.privacy.mechanisms.posterior import epsilon_of_draws, polya_prior
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.table import Table
from understudy.errors import CheckFailed, InputError, MethodError
from understudy.methods.dirichlet import Dirichlet, good_draws
from understudy.methods.method import Options, Recipe
from understudy.methods.polya_tree import PolyaTree, by_code, group_by_mass, sampled_depth
from understudy.methods.registry import METHODS, Method
from understudy.releases.synthesis import Plan, synthesize_with

RECIPES: dict[str, Recipe] = {
    "polya-tree": PolyaTree(),
    "polya-tree by sampling": PolyaTree(by="sampling"),
    "dirichlet": Dirichlet(),
}
SCHEMA = Schema.loads("""
[columns.age]
type = "integer"
min = 17
max = 90
[columns.pay]
type = "number"
min = 0
max = 1000
bins = 300
decimals = 2
missing = true
[columns.city]
type = "categorical"
values = ["A", "B", "C"]
[columns.seen]
type = "datetime"
min = 2020-01-01
max = 2020-12-31
bins = 4
[[constraints]]
if = "age < 18"
then = "city = 'A'"
""")
SMALL = Schema.loads("""
[columns.age]
type = "integer"
min = 0
max = 4
[columns.well]
type = "boolean"
missing = true
""")
ROWS = 3_000


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each recipe under a name of its own, so that releases can be made, saved and replayed with it."""
    for name, recipe in RECIPES.items():
        monkeypatch.setitem(METHODS, name, Method(name, "", "", "", lambda options, params, recipe=recipe: recipe))
    yield


class ExpectedDraws(BestRandomness):
    """No noise, the best choice, and draws that are their own expectation."""

    def draw(self, counts: np.ndarray, prior: tuple[float, ...], draws: int) -> np.ndarray:
        steps = np.floor(np.cumsum(counts) / counts.sum() * draws + 0.5).astype(np.int64)
        return np.diff(steps, prepend=0)


def people(rows: int = ROWS, seed: int = 1) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    age = np.minimum(90, 17 + rng.gamma(3, 9, rows).astype(int))
    pay = np.clip(8 * age + rng.normal(0, 40, rows), 0, 1000).round(2)
    return {
        "age": [int(a) for a in age],
        "pay": [None if i % 7 == 0 else float(p) for i, p in enumerate(pay)],
        "city": ["A" if a < 18 else "ABC"[int(a) % 3] for a in age],
        "seen": [f"2020-{1 + int(m):02d}-05" for m in rng.integers(0, 12, rows)],
    }


def small(rows: int = ROWS) -> dict[str, list[Any]]:
    age = np.random.default_rng(2).binomial(4, 0.3, rows)
    return {"age": [int(a) for a in age], "well": [None if i % 5 == 0 else bool(a > 1) for i, a in enumerate(age)]}


def released(name: str, schema: Schema = SCHEMA, epsilon: float = 1.0, delta: float = 0.0, **of: Any) -> us.Release:
    columns = small() if schema.names == SMALL.names else people()
    plan = Plan.of(schema, Budget(epsilon, delta), name, Options(), of.get("rows"), 11)
    return synthesize_with(us.open(pa.table(columns), schema), plan, randomness=ExpectedDraws())


def wasserstein(a: np.ndarray, b: np.ndarray) -> float:
    """Of two samples of one size, on the line of their values."""
    levels = (np.arange(2000) + 0.5) / 2000
    return float(np.abs(np.quantile(a, levels) - np.quantile(b, levels)).mean())


def numbers(values: list[Any]) -> np.ndarray:
    return np.array([v for v in values if v is not None], dtype=float)


# --- By noise ---------------------------------------------------------------------------------------------------------


def test_without_noise_columns_and_pairs_are_kept() -> None:
    release, original = released("polya-tree", epsilon=20.0), people()
    made = release.arrow.to_pydict()
    assert wasserstein(numbers(made["age"]), numbers(original["age"])) < 0.3
    assert wasserstein(numbers(made["pay"]), numbers(original["pay"])) < 3.0
    assert abs(made["pay"].count(None) - original["pay"].count(None)) <= ROWS * 0.01
    pairs = [(a, p) for a, p in zip(made["age"], made["pay"], strict=True) if p is not None]
    assert np.corrcoef(np.array(pairs).T)[0, 1] > 0.85
    assert all(c == "A" for a, c in zip(made["age"], made["city"], strict=True) if a < 18)


def test_a_column_alone_is_a_tree_and_nothing_else() -> None:
    schema = Schema.loads('[columns.age]\ntype = "integer"\nmin = 17\nmax = 90')
    table = us.open(pa.table({"age": people()["age"]}), schema)
    plan = Plan.of(schema, Budget(5.0, 0.0), "polya-tree", Options(), None, 11)
    release = synthesize_with(table, plan, randomness=ExpectedDraws())
    asks = [a.question["ask"] for a in release.record]
    assert asks[0] == "total" and set(asks[1:]) == {"partition"}
    assert wasserstein(numbers(release.arrow.to_pydict()["age"]), numbers(people()["age"])) < 0.2


def test_noise_is_beaten_by_shrinking() -> None:
    """At a small ε the tree is nearer to the rows than the plain histogram of the same ε; four noise seeds."""
    schema = Schema.loads('[columns.pay]\ntype = "number"\nmin = 0\nmax = 1000\nbins = 512')
    values = [p for p in people()["pay"] if p is not None]
    table = us.open(pa.table({"pay": values}), schema)

    def error(method: str) -> float:
        made = [
            us.synthesize(table, method=method, epsilon=0.3, delta=0, rows=3000, seed=1, test_only_noise_seed=s).arrow
            for s in range(4)
        ]
        return float(np.mean([wasserstein(numbers(m.to_pydict()["pay"]), np.array(values)) for m in made]))

    assert error("polya-tree") < error("independent") / 2


def test_a_column_of_many_bins_is_not_listed_code_by_code() -> None:
    schema = Schema.loads('[columns.n]\ntype = "integer"\nmin = 0\nmax = 99999\nbins = 100000')
    plan = Plan.of(schema, Budget(5.0, 0.0), "polya-tree", Options(), 50, 11)
    frame = pa.table({"n": np.arange(500) * 200})
    release = synthesize_with(us.open(frame, schema), plan, randomness=ExpectedDraws())
    assert {a.question.get("kind") for a in release.record} == {None, "dyadic"}
    assert len(str([a.question for a in release.record])) < 5_000


@pytest.mark.parametrize(
    ("weights", "groups", "expected"),
    [([1, 1, 1, 1], 2, (0, 0, 1, 1)), ([8, 0, 0, 1, 1], 2, (0, 1, 1, 1, 1)), ([0, 0, 9, 0], 3, (0, 0, 1, 2))],
)
def test_groups_have_about_equal_mass(weights: list[int], groups: int, expected: tuple[int, ...]) -> None:
    coding = Domain.of(Schema.loads(f'[columns.a]\ntype = "integer"\nmin = 0\nmax = {len(weights) - 1}'))["a"]
    assert group_by_mass(np.array(weights, dtype=float), groups, coding).labels == expected


# --- By sampling ------------------------------------------------------------------------------------------------------


def test_sampling_claims_the_closed_form_and_nothing_more() -> None:
    release = released("polya-tree by sampling", dataclasses.replace(SMALL, neighbours="replace-one"), 2.0)
    draws = [s for s in release.certificate.spends if s.mechanism == "posterior-draws"]
    assert [s.scale for s in draws] == [draws[0].scale] * 2
    exact = sum(float(epsilon_of_draws(s.prior, int(s.scale))) for s in draws)
    assert math.isclose(exact, release.certificate.composed[0], rel_tol=1e-9) and 1.99 < exact <= 2.0
    assert draws[0].prior == polya_prior(draws[0].prior[0], 6)  # five codes: three levels, and three more
    assert len(draws[1].prior) == 1


def test_a_number_of_draws_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = PolyaTree(by="sampling", draws=123, exponent=1.0)
    monkeypatch.setitem(METHODS, "asked", Method("asked", "", "", "", lambda options, params: recipe))
    release = released("asked", SMALL, rows=123)
    values = {a.question["columns"][0]: a.value for a in release.record if a.question["ask"] == "draws"}
    assert all(v.sum() == 123 for v in values.values())
    # As many rows as draws: the draws themselves.
    coding = release.domain["age"]
    made = np.bincount(release.arrow.to_pydict()["age"], minlength=5)
    assert np.array_equal(made, by_code(values["age"], coding, sampled_depth(coding)))


def test_every_code_has_its_leaves() -> None:
    for size in (2, 3, 5, 8, 74, 100):
        coding = Domain.of(Schema.loads(f'[columns.a]\ntype = "integer"\nmin = 1\nmax = {size}'))["a"]
        depth = sampled_depth(coding)
        held = by_code(np.ones(1 << depth, dtype=np.int64), coding, depth)
        assert held.sum() == 1 << depth and held.max() / held.min() <= 9 / 8
        tree, _ = (
            PolyaTree(by="sampling")
            .calibrate(Domain.of(SMALL), Budget(1.0, 0.0).capacity)
            ._tree(  # type: ignore[union-attr]
                coding, depth, Budget(1.0, 0.0).capacity.value, 10
            )
        )
        leaf = tree.assign({"a": np.arange(size)})
        assert np.array_equal((leaf * size) >> depth, np.arange(size))


@pytest.mark.parametrize(
    "recipe",
    [PolyaTree(by="magic"), PolyaTree(draws=5), PolyaTree("sampling", 0), PolyaTree("sampling", exponent=-2.0)],
)
def test_impossible_wishes_are_refused_before_anything_is_spent(recipe: PolyaTree) -> None:
    with pytest.raises(InputError):
        recipe.calibrate(Domain.of(SMALL), Budget(1.0, 0.0).capacity)


def test_a_joint_domain_that_is_too_large_is_refused() -> None:
    with pytest.raises(MethodError, match="cells"):
        Dirichlet().calibrate(
            Domain.of(Schema.loads(SCHEMA.dumps().replace("bins = 300", "bins = 90000"))), Budget(1.0, 0.0).capacity
        )


def test_dirichlet_keeps_what_columns_have_in_common() -> None:
    release = released("dirichlet", SMALL, 5.0)
    pairs = {(a, w) for a, w in zip(*release.arrow.to_pydict().values(), strict=True)}
    assert (4, True) in pairs and (4, False) not in pairs and (0, None) in pairs
    (spend,) = [s for s in release.certificate.spends if s.mechanism == "posterior-draws"]
    assert spend.cells == 15 and math.isclose(math.log1p(spend.scale / spend.prior[0]), 0.95 * 5, rel_tol=1e-3)
    assert 1 <= good_draws(10.0, 10**6, spend.cost.epsilon or 0) <= good_draws(10**6, 15, spend.cost.epsilon or 0)  # type: ignore[arg-type]


# --- All of them ------------------------------------------------------------------------------------------------------

CLAIMS = {
    "pure": ("add-remove", 0.0, ""),
    "with delta": ("add-remove", 1e-6, ""),
    "replace-one": ("replace-one", 0.0, ""),
    "persons": (
        "add-remove",
        0.0,
        '\n[unit]\ncolumn = "person"\nmax_rows = 3\n[columns.person]\ntype = "identifier"\n',
    ),
}


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("name", RECIPES)
def test_releases_claim_what_was_asked_and_verify_and_replay(name: str, claim: str, tmp_path: Path) -> None:
    neighbours, delta, unit = CLAIMS[claim]
    base = SMALL if name == "dirichlet" else SCHEMA
    schema = dataclasses.replace(Schema.loads(base.dumps() + unit), neighbours=neighbours)
    columns = (small if name == "dirichlet" else people)(600)
    columns |= {"person": [f"p{i // 3}" for i in range(600)]} if unit else {}
    release = us.synthesize(us.open(pa.table(columns), schema), method=name, epsilon=1.0, delta=delta)
    assert 0.98 <= release.certificate.composed[0] <= 1.0 and release.certificate.delta == delta
    kinds = {s.mechanism for s in release.certificate.spends}
    noise = "discrete-laplace" if delta == 0 else "rounded-gaussian"
    drawn = {"posterior-draws"} | (set() if neighbours == "replace-one" else {noise})
    assert kinds - {"public"} == ({noise, "exponential"} if name == "polya-tree" else drawn)
    if neighbours == "replace-one":
        assert release.arrow.num_rows == 600
    folder = release.save(tmp_path / "release")
    assert us.verify(folder).claimed and us.replay(folder).rows == release.arrow.num_rows


@pytest.mark.parametrize("name", [n for n in RECIPES if n != "polya-tree"])
def test_a_cheaper_prior_in_the_certificate_is_found_out(name: str, tmp_path: Path) -> None:
    release = released(name, SMALL)
    spends = tuple(dataclasses.replace(s, prior=tuple(2 * a for a in s.prior)) for s in release.certificate.spends)
    forged = dataclasses.replace(release, certificate=dataclasses.replace(release.certificate, spends=spends))
    with pytest.raises(CheckFailed, match="spends"):
        us.replay(forged.save(tmp_path / "forged"))


class PinnedGate(RecordGate):
    """Counts the rows of its own table for every question, and then answers from the record of another."""

    def __init__(self, table: Table, release: us.Release) -> None:
        super().__init__(release.record, secure=True)
        self._table, self.exact = table, list[Any]()

    def answer(self, ask: Any, price: Any, questions: Any, debit: Any) -> Any:
        self.exact.append(ask.exact(self._table))
        return super().answer(ask, price, questions, debit)


HOSTILE = {"age": 10**6, "pay": None, "city": "Atlantis", "seen": "1066-10-14", "well": None}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", RECIPES)
def test_a_hostile_row_changes_the_answers_alone(name: str) -> None:
    """Taint: with the answers pinned, everything that is shown is the same; and no histogram moves by more than 1."""
    schema = SMALL if name == "dirichlet" else SCHEMA
    columns, budget = (small if name == "dirichlet" else people)(), Budget(3.0, 0.0)
    plan = Plan.of(schema, budget, name, Options(), None, 11)
    more = {c: [*values, HOSTILE[c]] for c, values in columns.items()}
    first = synthesize_with(us.open(pa.table(columns), schema), plan, randomness=ExpectedDraws())
    gates = [PinnedGate(us.open(pa.table(c), schema), first) for c in (columns, more)]
    again = [plan.release(Curator(schema, budget, gate), "pyarrow", lambda step: None) for gate in gates]
    assert all(gate.exhausted for gate in gates)
    assert again[0].arrow.equals(again[1].arrow) and again[0].certificate.spends == again[1].certificate.spends
    for one, other in zip(*(gate.exact for gate in gates), strict=True):
        if isinstance(one, list):
            assert [np.abs(a - b).sum() for a, b in zip(one, other, strict=True)] == [1] * len(one)


@pytest.mark.slow
def test_the_seed_repeats_a_release() -> None:
    table = us.open(pa.table(people()), SCHEMA)
    for name in ("polya-tree", "polya-tree by sampling"):
        one, two = (us.synthesize(table, method=name, epsilon=1.0, seed=4, test_only_noise_seed=5) for _ in range(2))
        assert one.arrow.equals(two.arrow)


def test_counts_can_be_asked_of_both_forms() -> None:
    for name in ("polya-tree", "polya-tree by sampling"):
        found = released(name, epsilon=20.0).count("age < 40")
        assert found.low <= found.value <= found.high
