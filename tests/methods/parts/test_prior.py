"""What a prior is taken for, beside noisy tables whose truth is known; and what a wrong one is taken for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import Schema
from understudy.errors import MethodError
from understudy.inference.grouping import Grouping, sum_by_group
from understudy.inference.noisy_table import NoisyTable
from understudy.methods.parts import prior as module
from understudy.methods.parts.prior import (
    EARLIER,
    PUBLIC,
    Judgement,
    Margins,
    Prior,
    expected_of,
    guess_of,
    judge,
    margins_agree,
)

SIZES = {"a": 6, "b": 8}
EACH = tuple(np.arange(n) for n in SIZES.values())
NOISE, ROWS, PUBLIC_ROWS = 40.0, 40_000, 3_000


def truth(rows: int, seed: int) -> np.ndarray:
    """b follows a, more or less; counts of so many rows."""
    place = np.arange(6)[:, None] / 5 - np.arange(8)[None, :] / 7
    share = np.exp(-4.0 * place**2) * (1.0 + np.arange(6))[:, None]
    return np.random.default_rng(seed).multinomial(rows, (share / share.sum()).ravel()).reshape(6, 8)


REAL = truth(ROWS, 1)
MARGINS = Margins({"a": REAL.sum(axis=1).astype(float), "b": REAL.sum(axis=0).astype(float)}, float(ROWS))


def noisy(counts: np.ndarray, seed: int, groups: tuple[np.ndarray, ...] = EACH) -> NoisyTable:
    table = np.apply_along_axis(lambda x: sum_by_group(groups[1], x), 1, counts.astype(float))
    table = np.apply_along_axis(lambda x: sum_by_group(groups[0], x), 0, table)
    table += np.random.default_rng(seed).normal(0.0, NOISE, table.shape)
    return NoisyTable(("a", "b"), table, NOISE**2, groups)


def prior_of(table: NoisyTable, kind: str) -> Prior:
    return Prior(kind, "known", "0" * 64, (table,))


def public(counts: np.ndarray) -> Prior:
    return prior_of(NoisyTable(("a", "b"), counts.astype(float), 0.0, EACH), PUBLIC)


def shuffled(counts: np.ndarray, seed: int) -> np.ndarray:
    """Rows whose columns were shuffled apart."""
    share = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum() ** 2
    return np.random.default_rng(seed).multinomial(counts.sum(), share.ravel()).reshape(counts.shape)


def judged(prior: Prior, seed: int, groups: tuple[np.ndarray, ...] = EACH) -> Judgement:
    return judge(prior, [noisy(REAL, seed, groups)], MARGINS)


COARSE = (np.array([0, 0, 1, 1, 2, 2]), np.array([0, 0, 1, 1, 2, 2, 3, 3]))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("groups", [EACH, COARSE])
def test_public_rows_of_the_same_kind_are_useful_and_others_are_not(seed: int, groups: tuple[np.ndarray, ...]) -> None:
    counts = truth(PUBLIC_ROWS, 100 + seed)
    good, wrong = judged(public(counts), seed, groups), judged(public(counts[::-1]), seed, groups)
    assert good.useful and good.bias < 0.02
    assert not wrong.useful
    assert not judged(public(shuffled(counts, seed)), seed, groups).useful


def test_mutant_that_judges_by_nothing_takes_a_wrong_prior(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST_REMAINDER", np.inf)
    monkeypatch.setattr(module, "SURE", -np.inf)
    assert judged(public(truth(PUBLIC_ROWS, 100)[::-1]), 0).useful


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("groups", [EACH, COARSE])
def test_an_earlier_release_of_the_same_rows_differs_by_noise_alone(seed: int, groups: tuple[np.ndarray, ...]) -> None:
    assert judged(prior_of(noisy(REAL, 50 + seed, groups), EARLIER), seed).noise_alone
    assert judged(prior_of(noisy(REAL, 50 + seed), EARLIER), seed, groups).noise_alone
    assert not judged(prior_of(noisy(shuffled(REAL, seed), 50 + seed, groups), EARLIER), seed).noise_alone


def test_with_nothing_to_compare_public_pairs_are_left_out() -> None:
    assert not judge(public(truth(PUBLIC_ROWS, 1)), [], MARGINS).useful


def test_margins_tell_a_table_of_other_rows_where_no_pair_was_measured_again() -> None:
    now = {n: NoisyTable((n,), MARGINS.weights[n], np.full(SIZES[n], NOISE**2)) for n in SIZES}
    for groups in (EACH, COARSE):
        assert margins_agree(noisy(REAL, 5, groups), now)
        assert not margins_agree(noisy(2 * REAL, 5, groups), now)
        assert not margins_agree(noisy(REAL[::-1], 5, groups), now)


def test_the_finest_common_groups_merge_whole_groups_of_both() -> None:
    rng = np.random.default_rng(4)
    for _ in range(50):
        first, second = (Grouping.of(np.unique(rng.integers(0, 6, 12), return_inverse=True)[1]) for _ in range(2))
        common = module._coarsest(first.of_code, second.of_code)
        for grouping in (first, second):
            for group in range(grouping.count):
                assert len(set(common[grouping.of_code == group])) == 1
        # No finer one does: codes that no chain of shared groups links stay apart.
        linked = np.equal.outer(first.of_code, first.of_code) | np.equal.outer(second.of_code, second.of_code)
        assert np.array_equal(np.linalg.matrix_power(linked.astype(float), 12) > 0, np.equal.outer(common, common))


@pytest.mark.parametrize("kind", [EARLIER, PUBLIC])
def test_what_is_expected_has_the_private_margins(kind: str) -> None:
    table = noisy(REAL, 3) if kind == EARLIER else NoisyTable(("a", "b"), truth(PUBLIC_ROWS, 2) + 0.0, 0.0, EACH)
    expected = expected_of(table, kind, MARGINS).counts
    assert np.allclose(expected.sum(axis=1), MARGINS.weights["a"], rtol=1e-3)
    assert np.allclose(expected.sum(axis=0), MARGINS.weights["b"], rtol=1e-3)
    seen = guess_of(table, kind, 0.01, lambda: MARGINS)()
    assert (np.asarray(seen.variance) > 0).all() and seen.counts.shape == (6, 8)


def test_a_value_that_no_public_row_has_goes_with_the_others_as_they_come() -> None:
    counts = truth(PUBLIC_ROWS, 2) + 0.0
    counts[2] = 0.0
    expected = expected_of(NoisyTable(("a", "b"), counts, 0.0, EACH), PUBLIC, MARGINS).counts
    assert np.isfinite(expected).all()
    assert expected[2].sum() == pytest.approx(MARGINS.weights["a"][2], rel=1e-3)


def single(counts: np.ndarray, variance: float, seed: int | None = None) -> NoisyTable:
    made = counts.astype(float)
    if seed is not None:
        made = made + np.random.default_rng(seed).normal(0.0, np.sqrt(variance), counts.size)
    return NoisyTable(("a",), made, variance, (np.arange(counts.size),))


def read(seed: int, counts: np.ndarray, variance: float = 90_000.0) -> dict[str, NoisyTable]:
    return {"a": replace(single(counts, variance, seed), variance=np.full(counts.size, variance))}


COLUMN = np.array([9_000, 8_000, 6_000, 4_000, 3_000, 3_000, 2_500, 2_000, 1_500, 1_000])


def error(prior: Prior | None, seeds: int = 200) -> float:
    """The mean squared error of noisy counts, with a prior or without."""
    found = [read(s, COLUMN) if prior is None else prior.with_columns(read(s, COLUMN)) for s in range(seeds)]
    return float(np.mean([(f["a"].counts - COLUMN) ** 2 for f in found]))


def test_public_columns_help_where_they_are_alike_and_hardly_hurt_where_they_are_not() -> None:
    drawn = np.random.default_rng(0).multinomial(2_000, COLUMN / COLUMN.sum())
    good, wrong = (Prior(PUBLIC, "p", "", (single(c, 0.0),)) for c in (drawn, drawn[::-1]))
    assert error(good) < 0.6 * error(None)
    assert error(wrong) < 1.05 * error(None)


def test_earlier_columns_are_averaged_where_noise_explains_the_difference_and_only_there() -> None:
    same, other = (Prior(EARLIER, "p", "", (single(c, 90_000.0, 77),)) for c in (COLUMN, COLUMN[::-1]))
    before, after = read(1, COLUMN)["a"], same.with_columns(read(1, COLUMN))["a"]
    assert np.allclose(after.variance, np.asarray(before.variance) / 2)
    assert np.array_equal(other.with_columns(read(1, COLUMN))["a"].counts, before.counts)


DOMAIN = Domain.of(
    Schema.loads("".join(f'[columns.{n}]\ntype = "integer"\nmin = 0\nmax = {s - 1}\n' for n, s in SIZES.items()))
)
GOOD = NoisyTable(("a", "b"), REAL.astype(float), 1.0, EACH)


@pytest.mark.parametrize(
    "table",
    [
        replace(GOOD, counts=GOOD.counts[:, :7]),
        replace(GOOD, counts=np.where(GOOD.counts > 0, np.nan, 0.0)),
        replace(GOOD, counts=np.full((6, 8), np.inf)),
        replace(GOOD, counts=np.full((6, 8), 2.0**60)),
        replace(GOOD, variance=-1.0),
        replace(GOOD, variance=np.nan),
        replace(GOOD, columns=("b", "a")),
        replace(GOOD, columns=("a", "z")),
        replace(GOOD, columns=("a", "a")),
        replace(GOOD, columns=()),
        replace(GOOD, groups=(EACH[0], EACH[1] - 1)),
        replace(GOOD, groups=(EACH[0], EACH[1][:7])),
        replace(GOOD, groups=(EACH[0], np.minimum(EACH[1], 6) * 2)),
    ],
)
def test_tables_that_do_not_fit_are_refused(table: NoisyTable) -> None:
    prior_of(GOOD, EARLIER).check(DOMAIN)
    with pytest.raises(MethodError):
        prior_of(table, EARLIER).check(DOMAIN)
    with pytest.raises(MethodError):
        replace(prior_of(GOOD, "hearsay"), tables=()).check(DOMAIN)
