"""Hostile tables, generated from a fixed public seed: what a method of marginals may stumble over.

Columns that are functions of others, near-duplicates, dense binary columns, columns without information, missing
values, a category of thousands of values, and far more columns than the budget can look at.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import understudy as us
from understudy.boundary.schema.column import Boolean, Categorical, Column, Integer

SEED = 20_240_229
Codes = NDArray[np.integer]
Generator = np.random.Generator
Flags = NDArray[np.bool_]
Made = tuple[pa.Table, us.Schema]


class Draft:
    """A table in the making: values and public facts, column by column."""

    def __init__(self) -> None:
        self._values: dict[str, pa.Array] = {}
        self._columns: list[Column] = []

    def category(self, name: str, codes: Codes, size: int, missing: Flags | None = None) -> None:
        labels = np.array([f"{name}{i}" for i in range(size)])
        column = Categorical(name, missing=missing is not None, values=tuple(labels.tolist()))
        self.add(column, pa.array(labels[codes], mask=missing))

    def integer(
        self, name: str, values: Codes, low: int, high: int, bins: int | None = None, missing: Flags | None = None
    ) -> None:
        column = Integer(name, missing=missing is not None, minimum=low, maximum=high, bins=bins)
        self.add(column, pa.array(np.clip(values, low, high).astype(np.int64), mask=missing))

    def boolean(self, name: str, values: Flags) -> None:
        self.add(Boolean(name), pa.array(values))

    def done(self) -> Made:
        return pa.table(self._values), us.Schema(tuple(self._columns))

    def add(self, column: Column, values: pa.Array) -> None:
        self._columns.append(column)
        self._values[column.name] = values


def census() -> Made:
    """24 columns, most of them bound to others: codes and their categories, an amount and its decile, one-to-one
    pairs, and five columns that do not apply to the same rows."""
    rng, rows, table = rng_of(1), 7_600, Draft()
    age = np.clip(rng.gamma(3.2, 13, rows), 0, 90).astype(int)
    school = np.clip(rng.normal(8, 3, rows) - 6 * (age < 18) - 0.04 * np.maximum(age - 50, 0), 0, 15).astype(int)
    married = by_score(rng, (age - 30) / 15, 5)
    household = np.clip(rng.poisson(1.2 + 1.3 * (married == 2)), 0, 9) + 1
    place = skewed(rng, rows, 60)
    density = assigned(rng, 60, 10)[place]
    country = skewed(rng, rows, 12, 2.5)
    working = rng.random(rows) < np.where((age >= 16) & (age < 68), 0.55 + 0.025 * school, 0.04)
    occupation = np.where(working, 1 + np.clip(2.6 * school + rng.normal(0, 5, rows), 0, 43).astype(int), 0)
    industry = np.where(working, 1 + (occupation * 7 // 17 + rng.integers(0, 3, rows)) % 19, 0)
    hours = rng.normal(40, 9, rows) - 12 * (rng.random(rows) < 0.2)
    income = np.exp(rng.normal(8.6 + 0.09 * school + 1.1 * working + 0.006 * np.minimum(age, 55), 0.6))
    decile = np.searchsorted(np.quantile(income, np.arange(1, 10) / 10), income)
    tenure = by_score(rng, np.log(income) - 9.5, 3)
    table.integer("age", age, 0, 90)
    table.boolean("female", rng.random(rows) < 0.51)
    table.category("race", (country + skewed(rng, rows, 6, 3.0)) % 6, 6)
    table.category("married", married, 5)
    table.integer("household", household, 1, 10)
    table.integer("children", np.maximum(0, household - 2 - (rng.random(rows) < 0.3)), 0, 8)
    table.category("place", place, 60)
    table.category("region", assigned(rng, 60, 9)[place], 9)
    table.integer("density", density, 0, 9)
    table.category("country", country, 12)
    table.category("country_code", permutation(rng, 12)[country], 12)
    table.boolean("citizen", (country == 0) | (rng.random(rows) < 0.4))
    table.integer("school", school, 0, 15)
    table.category("degree", permutation(rng, 16)[school], 16)
    table.boolean("working", working)
    table.category("occupation", occupation, 45)
    table.category("occupation_group", np.concatenate([[0], 1 + np.sort(assigned(rng, 44, 7))])[occupation], 8)
    table.category("industry", industry, 20)
    table.category("employer", np.where(working, 1 + (industry + skewed(rng, rows, 5)) % 5, 0), 6)
    table.integer("hours", hours.astype(int), 1, 98, missing=~working)
    table.category("travel", np.where(working, 1 + by_score(rng, (density - 4.5) / 2, 4), 0), 5)
    table.integer("income", income.astype(int), 0, 199_999, bins=100)
    table.integer("income_decile", decile, 0, 9)
    table.category("tenure", tenure, 3)
    return table.done()


def binary() -> Made:
    """16 columns of two values, of a model with four factors: small enough to be held whole, and dense in relations."""
    rng, rows, table = rng_of(2), 20_000, Draft()
    factors = rng.normal(size=(rows, 4))
    for i in range(16):
        score = factors @ (rng.normal(size=4) * (rng.random(4) < 0.6)) + rng.normal(size=rows)
        table.boolean(f"b{i}", score > np.quantile(score, rng.uniform(0.15, 0.85)))
    return table.done()


def duplicates() -> Made:
    """A fine column, a coarse one and a category, each with noisy copies that agree on 99, 95 and 90 % of the rows."""
    rng, rows, table = rng_of(3), 10_000, Draft()
    fine = np.clip(rng.gamma(4, 8, rows), 0, 99).astype(int)
    coarse = np.clip(fine // 8 + rng.integers(-1, 2, rows), 0, 9)
    kind = (coarse + skewed(rng, rows, 30, 2.0)) % 30
    for percent in (100, 99, 95, 90):
        kept = rng.random(rows) < percent / 100
        table.integer(f"fine{percent}", np.where(kept, fine, rng.permutation(fine)), 0, 99)
        table.integer(f"coarse{percent}", np.where(kept, coarse, rng.permutation(coarse)), 0, 9)
        table.category(f"kind{percent}", np.where(kept, kind, rng.permutation(kind)), 30)
    return table.done()


def constant() -> Made:
    """Columns that say nothing: one declared value, or many of which a single one occurs; among ordinary ones."""
    rng, rows, table = rng_of(4), 5_000, Draft()
    none = np.zeros(rows, dtype=int)
    _ordinary(table, rng, rows)
    table.category("only", none, 1)
    table.integer("fixed", none + 7, 7, 7)
    table.category("one_of_fifty", none + 31, 50)
    table.integer("one_of_hundred", none + 42, 0, 99)
    return table.done()


def missing() -> Made:
    """Columns that are missing on every row, on half of the rows, and on the rows that another column decides."""
    rng, rows, table = rng_of(5), 5_000, Draft()
    everywhere, half = np.ones(rows, dtype=bool), rng.random(rows) < 0.5
    size = _ordinary(table, rng, rows)
    table.category("never", np.zeros(rows, dtype=int), 5, missing=everywhere)
    table.integer("never_number", np.zeros(rows, dtype=int), 0, 63, missing=everywhere)
    table.integer("half", size + rng.integers(0, 8, rows), 0, 40, missing=half)
    table.category("with_half", (size // 4) % 6, 6, missing=half)
    table.category("small_only", skewed(rng, rows, 6), 6, missing=size > 12)
    return table.done()


def category() -> Made:
    """A category of 2,000 values, on which two of the ordinary columns depend."""
    rng, rows, table = rng_of(6), 20_000, Draft()
    many = skewed(rng, rows, 2_000, 1.1)
    _ordinary(table, rng, rows)
    table.category("many", many, 2_000)
    table.category("group", assigned(rng, 2_000, 12)[many], 12)
    table.boolean("odd", rng.random(rows) < rng.random(2_000)[many])
    return table.done()


def wide() -> Made:
    """120 columns of 2 to 8 values, each a noisy image of an earlier one."""
    rng, rows, table = rng_of(7), 5_000, Draft()
    made: list[Codes] = []
    for i in range(120):
        size = int(rng.integers(2, 9))
        fresh = skewed(rng, rows, size)
        if made:
            parent = made[rng.integers(max(0, i - 12), i)]
            image = rng.integers(0, size, int(parent.max()) + 1)
            fresh = np.where(rng.random(rows) < rng.uniform(0.3, 0.9), image[parent], fresh)
        made.append(fresh)
        table.category(f"w{i}_", fresh, size)
    return table.done()


TABLES: dict[str, Callable[[], Made]] = {
    "census": census,
    "binary": binary,
    "duplicates": duplicates,
    "constant": constant,
    "missing": missing,
    "category": category,
    "wide": wide,
}
TARGETS = {"census": "income_decile"}


def rng_of(number: int) -> Generator:
    return np.random.default_rng((SEED, number))


def _ordinary(table: Draft, rng: Generator, rows: int) -> Codes:
    """Four columns that hang together as columns do; the first of them, to make others depend on it."""
    size = np.clip(rng.gamma(3, 5, rows), 0, 40).astype(int)
    colour = (size // 9 + skewed(rng, rows, 5)) % 5
    table.integer("size", size, 0, 40)
    table.category("colour", colour, 5)
    table.boolean("heavy", size + rng.normal(0, 6, rows) > 16)
    table.category("shop", (colour + rng.integers(0, 3, rows)) % 8, 8)
    return size


def skewed(rng: Generator, rows: int, size: int, power: float = 1.3) -> Codes:
    """Values of which the first are the commonest, as ranks to a power."""
    weights = np.arange(1, size + 1) ** -power
    return np.searchsorted(np.cumsum(weights / weights.sum())[:-1], rng.random(rows), side="right")


def by_score(rng: Generator, score: NDArray[np.float64], size: int) -> Codes:
    """Values that rise with a score of about −2 to 2, but not strictly."""
    return np.clip((score + rng.normal(0, 0.7, len(score)) + 2) * size / 4, 0, size - 1).astype(int)


def assigned(rng: Generator, size: int, groups: int) -> Codes:
    """For each value the group that it belongs to."""
    return rng.permutation(np.concatenate([np.arange(groups), rng.integers(0, groups, size - groups)]))


def permutation(rng: Generator, size: int) -> Codes:
    return rng.permutation(size)
