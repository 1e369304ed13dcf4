"""A survey of persons, generated from a fixed public seed: 170,000 rows of 35 columns, most of them bound to others.

Surveys of this kind are what a particle model stumbles over at large budgets: chains of columns that are nearly
functions of each other, codes beside their groups, questions that do not apply to the same rows, flags that exclude
each other, and amounts beside their parts. Counts are nearly exact, and next to no row that was never seen is possible.
"""

from __future__ import annotations

import numpy as np

from .hostile import Codes, Draft, Generator, Made, assigned, by_score, rng_of, skewed

ROWS = 170_000
REGIONS, STATES = 181, 24
OCCUPATIONS, TRADES = 62, 9
TARGET = "any_cover"
LIMITS = {"seeing": 2.4, "hearing": 2.0, "walking": 1.6}


def survey(rows: int = ROWS) -> Made:
    rng, table = rng_of(8), Draft()
    age, region = _places(rng, table, rows)
    _origins(rng, table, age, region)
    school = _schooling(rng, table, age)
    working, hours = _work(rng, table, age, school)
    amounts = _amounts(rng, table, age, school, working * hours)
    _cover(rng, table, age, amounts, working)
    _limits(rng, table, age)
    return table.done()


def _places(rng: Generator, table: Draft, rows: int) -> tuple[Codes, Codes]:
    """A region, its state and its division; age with its group; sex and the place in the household."""
    region = skewed(rng, rows, REGIONS, 0.6)
    state = np.sort(assigned(rng, REGIONS, STATES))[region]
    age = np.clip(rng.gamma(3.4, 12.5, rows), 0, 94).astype(int)
    married = np.where(age < 16, 4, by_score(rng, (age - 38) / 16, 4))
    relation = np.where(age < 18, 2 + (rng.random(rows) < 0.12), np.where(married == 2, rng.integers(0, 2, rows), 4))
    other = rng.random(rows) < 0.2
    table.category("region", region, REGIONS)
    table.category("state", state, STATES)
    table.integer("age", age, 0, 94)
    table.boolean("female", rng.random(rows) < 0.5 + 0.0015 * (age - 40))
    table.category("married", married, 5)
    table.category("relation", np.where(other & (age >= 18), 4 + skewed(rng, rows, 6), relation), 10)
    return age, region


def _origins(rng: Generator, table: Draft, age: Codes, region: Codes) -> None:
    """Birth abroad decides citizenship, the years since entry and, nearly, the language and how well English is."""
    rows = len(age)
    # Each region has a country of its own that is common there.
    origin = np.where(rng.random(rows) < 0.2, assigned(rng, REGIONS, 14)[region], skewed(rng, rows, 14, 2.2))
    foreign = (origin > 0) & (rng.random(rows) < 0.6)
    years = np.minimum((age * rng.random(rows) / 5).astype(int), 8)
    citizen = np.where(foreign, 3 + (rng.random(rows) < 0.5), np.where(origin > 0, rng.integers(0, 3, rows), 0))
    table.category("origin", origin, 14)
    table.category(
        "race",
        np.where(
            rng.random(rows) < 0.85,
            np.array([0, 0, 3, 5, 1, 1, 2, 5, 4, 3, 6, 7, 8, 5])[origin],
            skewed(rng, rows, 9, 1.8),
        ),
        9,
    )
    table.boolean("born_abroad", foreign)
    table.category("citizen", citizen, 5)
    table.category("years_since_entry", np.where(foreign, 1 + years, 0), 10)


def _schooling(rng: Generator, table: Draft, age: Codes) -> Codes:
    rows = len(age)
    final = np.clip(rng.normal(11, 4, rows), 0, 22).astype(int)
    school = np.where(age < 3, 0, np.minimum(1 + final, np.maximum(age - 3, 0)))
    enrolled = np.where(age < 3, 0, 1 + (rng.random(rows) < np.where(age < 18, 0.96, np.where(age < 25, 0.4, 0.03))))
    grade = np.where(enrolled == 2, 1 + np.minimum(np.maximum(age - 4, 0), 14), 0)
    table.category("grade", grade, 16)
    table.category("school", school, 24)
    table.category("degree", np.searchsorted([1, 12, 14, 17, 19], school, side="right"), 6)
    return school


def _work(rng: Generator, table: Draft, age: Codes, school: Codes) -> tuple[Codes, Codes]:
    """Eight questions; none applies to children, and most of them only to those who work."""
    rows = len(age)
    adult = age >= 16
    works = adult & (rng.random(rows) < np.where(age < 66, 0.45 + 0.018 * school, 0.12))
    status = np.where(~adult, 0, np.where(works, 1 + (rng.random(rows) < 0.03), 3 + (rng.random(rows) < 0.9)))
    recent = works | (adult & (rng.random(rows) < 0.12))
    occupation = 1 + np.clip(2.4 * school + rng.normal(4, 9, rows), 0, OCCUPATIONS - 2).astype(int)
    industry = 1 + (occupation * 5 // 14 + skewed(rng, rows, 4, 2.0)) % 20
    hours = np.clip(np.where(rng.random(rows) < 0.5, 40, rng.normal(37, 12, rows)), 1, 98).astype(int)
    table.category("status", status, 5)
    table.category("employer", np.where(recent, 1 + (industry + skewed(rng, rows, 8, 2.0)) % 8, 0), 9)
    table.category("occupation", np.where(recent, occupation, 0), OCCUPATIONS)
    trades = np.concatenate([[0], 1 + np.sort(assigned(rng, OCCUPATIONS - 1, TRADES - 1))])
    table.category("trade", trades[np.where(recent, occupation, 0)], TRADES)
    table.category("industry", np.where(recent, industry, 0), 21)
    table.integer("hours", hours, 1, 98, missing=~works)
    return works, hours


def _amounts(rng: Generator, table: Draft, age: Codes, school: Codes, hours: Codes) -> Codes:
    """Wages, pensions and their sum, each rounded as people do; nobody under 15 has any."""
    rows = len(age)
    wages = np.exp(rng.normal(6.9 + 0.055 * school, 0.55, rows)) * hours
    pension = np.exp(rng.normal(9.5, 0.5, rows)) * ((age >= 62) & (rng.random(rows) < 0.8))
    none = age < 15
    for name, amount in (("wages", wages), ("pension", pension), ("income", wages + pension)):
        table.integer(name, (amount / 100).round().astype(int) * 100, 0, 399_999, bins=60, missing=none)
    return np.where(none, 0, wages + pension)


def _cover(rng: Generator, table: Draft, age: Codes, income: Codes, works: Codes) -> None:
    """Kinds of cover, and what follows from them: any private one, any public one, any at all."""
    rows = len(age)
    rich = np.minimum(income / 60_000, 1.5)
    employer = rng.random(rows) < np.where(works, 0.35 + 0.4 * rich, 0.3)
    own = rng.random(rows) < 0.09
    old = (age >= 65) & (rng.random(rows) < 0.97)
    poor = rng.random(rows) < np.where(age < 19, 0.35, 0.25 * (1.2 - rich) * ~employer)
    private, public = employer | own, old | poor
    military = rng.random(rows) < 0.03
    private, public = private | military, public | military
    table.boolean("employer_cover", employer)
    table.boolean("own_cover", own)
    table.boolean("military_cover", military)
    table.boolean("poor_cover", poor)
    table.boolean("old_age_cover", old)
    table.boolean("private_cover", private)
    table.boolean("public_cover", public)
    table.boolean("any_cover", private | public)


def _limits(rng: Generator, table: Draft, age: Codes) -> None:
    """Rare limits that come with age and with each other, and whether there is any."""
    frail = rng.normal(0, 1, len(age)) + (age - 60) / 20
    limits = {f"limit_{kind}": frail + rng.normal(0, 0.8, len(age)) > bar for kind, bar in LIMITS.items()}
    for name, flags in limits.items():
        table.boolean(name, flags)
    table.boolean("any_limit", np.any(list(limits.values()), axis=0))
