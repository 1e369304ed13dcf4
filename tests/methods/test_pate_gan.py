"""pate-gan: teachers who share no row, votes of a known price, and a student who meets made rows only."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("dp_accounting", reason="the extra gan is not installed")
pytest.importorskip("torch", reason="the extra gan is not installed")

import understudy as us
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.boundary.privacy.mechanisms.teachers import ExactVotes, Teachers, votes_sensitivity
from understudy.boundary.privacy.mechanisms.training import Groups
from understudy.boundary.schema.domain import Domain
from understudy.errors import InternalError, MethodError
from understudy.methods.pate_gan import PateConfig, PateGan, student

GROUPS = Groups((3, 4))
SCHEMA = us.Schema.loads(
    '[columns.a]\ntype = "categorical"\nvalues = ["x", "y"]\n[columns.b]\ntype = "categorical"\nvalues = ["x", "y"]'
)


def some_codes(rows: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, s, rows) for s in GROUPS.sizes], axis=1)


def teachers(codes: np.ndarray, seed: int = 1, votes: int = 50) -> Teachers:
    return Teachers(exact(codes, seed), votes, 1.0)


def exact(codes: np.ndarray, seed: int = 1) -> ExactVotes:
    return ExactVotes(codes, GROUPS, 5, ExactRandomness.seeded(seed))


def test_every_row_has_one_teacher() -> None:
    codes = some_codes(200, 1)
    asked = exact(codes)
    assert asked._rows.sum() == 200
    assert asked._counts.sum() == 200  # one pair of columns: each row is in one cell of one teacher


def test_a_judgement_is_the_likelihood_ratio_of_pairs() -> None:
    codes, shares = some_codes(40, 2), np.full(12, 1 / 12)
    asked = exact(codes)
    of = exact(codes[:0]).assigned(40)  # the same seed gives the same coins
    made = some_codes(9, 3)
    wanted = [
        sum((np.sum((codes[of == t] == row).all(axis=1)) * 12 + 2.0) / (np.sum(of == t) + 2.0) > 1.0 for t in range(5))
        for row in made
    ]
    assert asked.count(GROUPS.one_hot(made), shares).tolist() == wanted


@pytest.mark.parametrize("seed", range(20))
def test_one_row_moves_each_count_of_votes_by_one_at_most(seed: int) -> None:
    codes, shares = some_codes(30, seed), np.full(12, 1 / 12)
    made = GROUPS.one_hot(some_codes(50, seed + 100))
    other = codes.copy()
    other[0] = (other[0] + 1) % GROUPS.sizes
    change = exact(codes, seed).count(made, shares) - exact(other, seed).count(made, shares)
    assert np.abs(change).max() <= 1
    assert np.linalg.norm(change) <= votes_sensitivity(50)


def test_votes_that_are_not_paid_for_are_refused() -> None:
    asked = teachers(some_codes(9, 1), votes=5)
    with pytest.raises(InternalError, match="6 votes can't be asked where 5"):
        asked.votes(GROUPS.one_hot(some_codes(6, 1)), np.full(12, 1 / 12))


def test_the_student_is_ridge_regression_of_the_votes_on_pairs() -> None:
    rng = np.random.default_rng(4)
    rows = GROUPS.one_hot(some_codes(60, 5))
    votes = rng.standard_normal(60)
    features = np.stack([np.outer(r, r)[GROUPS.upper] for r in rows])
    ridge = 3.0
    wanted = features.T @ np.linalg.solve(features @ features.T + ridge * np.eye(60), votes - votes.mean())
    assert np.allclose(student(GROUPS, rows, votes, ridge)[GROUPS.upper], wanted)


def related(rows: int) -> pa.Table:
    same = np.random.default_rng(6).random(rows) < 0.5
    texts = np.where(same, "x", "y")
    return pa.table({"a": texts, "b": texts})


def test_with_much_budget_the_generator_learns_from_votes() -> None:
    curator = Curator.on(us.open(related(4000), SCHEMA), Budget(1000.0, 1e-5), randomness=ExactRandomness.seeded(3))
    recipe = PateGan(PateConfig(rounds=6, votes=60, lessons=60))
    model = recipe.calibrate(Domain.of(SCHEMA), curator.remaining()).fit(curator, np.random.default_rng(1))
    codes = model.sample(4000, np.random.default_rng(2))
    assert (codes["a"] == codes["b"]).mean() > 0.7  # half, were they unrelated
    assert [s.mechanism for s in curator.spends] == ["rounded-gaussian"] * 3
    assert curator.spends[-1].sensitivity == votes_sensitivity(360)
    assert curator.guarantee[0] <= 1000.0


def test_replaying_its_record_gives_the_same_generator() -> None:
    recipe, domain, budget = PateGan(PateConfig(rounds=2, votes=10, lessons=3)), Domain.of(SCHEMA), Budget(2.0, 1e-5)
    curator = Curator.on(us.open(related(100), SCHEMA), budget)
    first = recipe.calibrate(domain, curator.remaining()).fit(curator, np.random.default_rng(1))
    again = Curator.replaying(SCHEMA, budget, curator.record)
    second = recipe.calibrate(domain, again.remaining()).fit(again, np.random.default_rng(1))
    assert np.array_equal(first.model.generator.vector, second.model.generator.vector)
    assert again.spends == curator.spends


def test_pure_budgets_are_refused() -> None:
    curator = Curator.on(us.open(related(20), SCHEMA), Budget(2.0, 0.0))
    with pytest.raises(MethodError, match="no pure form"):
        PateGan().calibrate(Domain.of(SCHEMA), curator.remaining())
