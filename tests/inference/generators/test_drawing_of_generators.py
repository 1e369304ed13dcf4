"""Rows of a generator: the fast way draws the rows of the plain one, whatever the weights and the number of rows."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.inference.generators import generator as module
from understudy.inference.generators.generator import (
    BLOCK,
    NEAR,
    GeneratedModel,
    Generator,
    GeneratorLayout,
    draw_codes,
)

SIZES = (3, 1, 20, 2)
LAWS = tuple(np.full(s, 1 / s) for s in SIZES)


def generator(conditional: bool, scale: float = 0.5, seed: int = 1) -> Generator:
    plan = GeneratorLayout(SIZES, noise=5, hidden=7, conditional=conditional)
    return Generator(plan, (scale * np.random.default_rng(seed).standard_normal(plan.weights)).astype(np.float32))


def model(conditional: bool) -> GeneratedModel:
    return GeneratedModel(generator(conditional), tuple("abcd"), LAWS, (0.25,) * 4, 100.0)


def plain(made: GeneratedModel, rows: int, rng: np.random.Generator) -> np.ndarray:
    """Laws of every row, one after the other, and draws from them: what releases have always been drawn by."""
    columns, groups = made._conditions(rows, rng)
    codes = np.empty((rows, len(SIZES)), dtype=np.int32)
    for start in range(0, rows, BLOCK):
        part = slice(start, start + BLOCK)
        noise = rng.standard_normal((len(columns[part]), made.generator.plan.noise))
        codes[part] = draw_codes(
            made.generator.laws(made.generator.inputs(noise, columns[part], groups[part])), SIZES, rng
        )
        if made.generator.plan.conditional:
            codes[np.arange(rows)[part], columns[part]] = groups[part]
    return codes.T


@pytest.mark.parametrize("conditional", [False, True])
@pytest.mark.parametrize("rows", [1, NEAR - 1, NEAR, NEAR + 1, BLOCK + NEAR + 3])
def test_a_sample_is_the_one_that_laws_give(conditional: bool, rows: int) -> None:
    made = model(conditional)
    wanted = plain(made, rows, np.random.default_rng(rows))
    found = made.sample(rows, np.random.default_rng(rows))
    assert list(found) == list("abcd") and all(v.dtype == np.int32 for v in found.values())
    assert np.array_equal(np.stack(list(found.values())), wanted)


def test_a_mutant_that_forgets_the_condition_draws_other_rows() -> None:
    made, rng = generator(conditional=True, scale=2.0), np.random.default_rng(2)
    noise, uniform, told = rng.standard_normal((500, 5)), rng.random((4, 500)), rng.integers(0, sum(SIZES), 500)
    assert not np.array_equal(made.draw(noise, uniform, told), made.draw(noise, uniform))


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e3, 1e15])
def test_large_weights_overflow_nowhere(scale: float) -> None:
    """Warnings are errors here. Without weights, a group is the whole part of its uniform number times the size."""
    rng = np.random.default_rng(3)
    uniform = rng.random((4, 300))
    codes = generator(False, scale).draw(rng.standard_normal((300, 5)), uniform)
    assert all(c.min() >= 0 and c.max() < s for c, s in zip(codes, SIZES, strict=True))
    if not scale:
        assert np.array_equal(codes, np.floor(uniform * np.array(SIZES)[:, None]))


def test_the_same_seed_gives_the_same_rows_and_another_gives_others() -> None:
    first, again, other = (model(True).sample(300, np.random.default_rng(s))["c"] for s in (4, 4, 5))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def at_boundaries(made: Generator, rows: int = 2000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Noise, uniform numbers just beside the boundary between two groups, and the groups that they belong to."""
    rng = np.random.default_rng(6)
    noise, uniform, wanted = rng.standard_normal((rows, 5)), np.empty((4, rows)), np.empty((4, rows), dtype=np.int32)
    laws = made.laws(noise)
    for place, column in enumerate(made.plan.columns()):
        cumulative = np.cumsum(laws[:, column], axis=1)
        below = rng.integers(0, SIZES[place], rows)
        uniform[place] = cumulative[np.arange(rows), below] + rng.choice([-1e-9, 1e-9], rows)
        groups = (cumulative <= (uniform[place] * cumulative[:, -1])[:, None]).sum(axis=1)
        wanted[place] = np.minimum(groups, SIZES[place] - 1)
    return noise, uniform, wanted


def test_numbers_at_a_boundary_are_decided_in_double_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant trusts single precision everywhere, and draws other rows."""
    made = generator(False)
    noise, uniform, wanted = at_boundaries(made)
    assert np.array_equal(made.draw(noise, uniform), wanted)
    monkeypatch.setattr(module, "SLACK", 0.0)
    assert not np.array_equal(made.draw(noise, uniform), wanted)


def test_single_precision_is_off_by_far_less_than_its_slack() -> None:
    made, rng = GeneratorLayout((20,) * 8, conditional=False), np.random.default_rng(7)
    weights = Generator(made, (0.2 * rng.standard_normal(made.weights)).astype(np.float32))
    noise = rng.standard_normal((4000, made.noise))
    apart = np.abs(weights._upright_scores(noise, None) - weights._upright_scores(noise.astype(np.float32), None))
    assert 0 < apart.max() < module.SLACK / 5  # of scores; shares of a law move by less


def test_large_scores_are_drawn_in_double_precision() -> None:
    """Of scores beyond TAME single precision knows too few digits; all rows are drawn again."""
    made, rng = generator(False, 30.0), np.random.default_rng(8)
    noise, uniform = rng.standard_normal((500, 5)), rng.random((4, 500))
    assert np.array_equal(made.draw(noise, uniform), made._drawn(noise, uniform, None)[0])
