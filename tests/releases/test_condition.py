"""Which share of each cell satisfies an expression: against rows drawn inside the cells."""

from __future__ import annotations

import numpy as np
import pytest

import understudy as us
from understudy.boundary.schema.expression import parse
from understudy.errors import InputError
from understudy.inference.values import decode, evaluate
from understudy.releases.condition import Condition

DOMAIN = us.Domain.of(
    us.Schema.loads("""
[columns.job]
type = "categorical"
values = ["clerk", "cook", "it's"]
missing = true
[columns.grade]
type = "ordinal"
values = [1, 2, 3, 10]
[columns.age]
type = "integer"
min = -10
max = 89
bins = 20
missing = true
[columns.year]
type = "integer"
min = 1
max = 9
[columns.pay]
type = "number"
min = 0
max = 100
decimals = 1
bins = 10
[columns.smoker]
type = "boolean"
missing = true
[columns.hired]
type = "datetime"
min = 2020-01-01
max = 2021-12-31
bins = 8
missing = true
""")
)
DRAWS = 2000

SIMPLE = (
    "age > 40",
    "age >= 40",
    "age < -3 or age is null",
    "not (age > 42 and job = 'cook')",
    "job in ('cook', 'it''s', 'x') and smoker",
    "job <> 'clerk'",
    "grade >= 2 and grade < 10",
    "grade in (1, 10) and not smoker",
    "year between 2 and 4.5 and year <> 3",
    "pay < 10",
    "pay > 12.5 and pay <= 33.3",
    "hired > '2020-05-05' and age > 0",
    "hired between '2020-04-01' and '2021-06-30 12:00:00'",
    "hired is null or smoker is null",
    "age > 12.5",
    "age = 17 or age = 18 or age = 44",
)


def drawn_shares(text: str, columns: tuple[str, ...]) -> np.ndarray:
    """The share of random rows of each cell that satisfy the expression."""
    rng = np.random.default_rng(0)
    cells = DOMAIN.cells(columns)
    found = np.zeros(cells)
    predicate = parse(text, DOMAIN.schema.kinds)
    for cell in range(cells):
        place = np.unravel_index(cell, DOMAIN.shape(columns))
        codes = {c: np.full(DRAWS, p) for c, p in zip(columns, place, strict=True)}
        found[cell] = evaluate(predicate, decode(codes, DOMAIN, rng), DRAWS).true.mean()
    return found.reshape(DOMAIN.shape(columns))


@pytest.mark.parametrize("text", SIMPLE)
def test_shares_are_those_of_rows(text: str):
    """Six standard errors of a share: a false alarm in 1e9 cells. What is 0 or 1 must be so in every draw."""
    condition = Condition.of(text, DOMAIN)
    shares = condition.share[np.ix_(*condition.classes)]
    drawn = drawn_shares(text, condition.columns)
    assert condition.settled
    certain = (shares == 0) | (shares == 1)
    assert np.array_equal(shares[certain], drawn[certain])
    # A single value of a hundred steps is held to be one more step: 1 % of the bin.
    assert np.all(np.abs(shares - drawn) <= 6 * np.sqrt(shares * (1 - shares) / DRAWS) + 0.011)


@pytest.mark.parametrize("text", ["pay > age", "age + 10 > 2 * year", "pay * 0.5 < 20", "hired + 30 < '2021-01-01'"])
def test_columns_that_are_computed_with(text: str):
    """Bins are tried at five points, so shares are rough, and nothing is claimed to be certain."""
    condition = Condition.of(text, DOMAIN)
    shares = condition.share[np.ix_(*condition.classes)]
    drawn = drawn_shares(text, condition.columns)
    assert not condition.settled
    assert np.abs(shares - drawn).max() <= 0.41 and np.abs(shares - drawn).mean() <= 0.05


def test_single_values_that_are_computed_with_are_certain():
    condition = Condition.of("year > grade", DOMAIN)
    assert condition.settled and set(np.unique(condition.share)) == {0.0, 1.0}
    assert np.array_equal(condition.share[np.ix_(*condition.classes)], drawn_shares("year > grade", condition.columns))


@pytest.mark.parametrize(("text", "share"), [("true", 1), ("false", 0), ("pay <= 100", 1), ("job = 'nurse'", 0)])
def test_what_makes_no_difference_is_left_out(text: str, share: int):
    condition = Condition.of(text, DOMAIN)
    assert condition.columns == () and float(condition.share) == share


def test_classes_are_few():
    """A literal makes at most three classes of a column, and one more for missing values."""
    condition = Condition.of("age > 42 and job = 'cook' and pay < 50 and hired < '2021-01-01'", DOMAIN)
    assert condition.share.shape == (2, 3, 2, 3)  # 42 and the new year lie inside bins, 50 between two


def test_coarser_classes_keep_the_whole_share():
    condition = Condition.of("pay > age", DOMAIN)
    weights = [np.random.default_rng(1).random(DOMAIN.size(c)) for c in condition.columns]
    coarse = condition.coarsened(weights, 20)
    assert coarse.share.size <= 20 < condition.share.size

    def whole(c: Condition) -> float:
        return float(c.share[np.ix_(*c.classes)].ravel() @ np.outer(*weights).ravel())

    assert whole(coarse) == pytest.approx(whole(condition), rel=1e-9)


def test_too_many_combinations_are_refused():
    wide = us.Domain.of(
        us.Schema.loads("\n".join(f'[columns.c{i}]\ntype = "integer"\nmin = 0\nmax = 99' for i in range(4)))
    )
    with pytest.raises(InputError, match="100,000,000 combinations of values and may compare at most 4,000,000"):
        Condition.of("c0 + c1 > c2 + c3", wide)
