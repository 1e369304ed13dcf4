"""The rows of a ledger, as what they mean, and how they are read from its tables.

A cost is stored as whole quanta in decimal digits: SQLite's integers end at 2^63, and floats are not exact.
"""

from __future__ import annotations

import operator
import sqlite3
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from understudy.boundary.privacy.accountant import QUANTUM, round_up
from understudy.boundary.privacy.budget import ACCOUNTING, GDP, ZCDP, Budget, Cost
from understudy.boundary.privacy.facts import PrivacyUnit
from understudy.boundary.privacy.ledger.database import DIVIDED_VERSION, SHARED_VERSION, UNIT_VERSION, append, pragma
from understudy.boundary.privacy.ledger.division import Division, plain
from understudy.errors import InputError

_DIRECT = "+"
"""Marks the ε of trainings, which a claim adds to that of everything else (see `budget.Cost`)."""
_GAUSSIAN = "g"
"""Marks g, in the place of ρ. Programs that know none refuse to read it, and so can't take it for ρ."""


@dataclass(frozen=True)
class Limit:
    """One row of `limits`: from `time` on, all releases together may reach `budget`."""

    id: int
    time: str
    budget: Budget
    neighbours: str
    unit: PrivacyUnit | None = None
    """None where it was not said: then it is that of the debits."""
    division: Division | None = None
    """None for a pure limit, and where the next debit settles it."""

    def to_dict(self) -> dict[str, Any]:
        """For exports."""
        return {
            "kind": "limit",
            "id": self.id,
            "time": self.time,
            "neighbours": self.neighbours,
            "unit": self.unit and self.unit.to_dict(),
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "failure_delta": self.division and plain(self.division.failure_delta),
            "training_epsilon": self.division and plain(self.division.training_epsilon),
        }


@dataclass(frozen=True)
class Entry:
    """One row of `debits`: a release, its cost, the (ε, δ) it was `asked` with, and its unit, if that is known."""

    id: int
    time: str
    purpose: str
    analyst: str
    neighbours: str
    cost: Cost
    asked: Budget
    unit: PrivacyUnit | None = None

    def to_dict(self) -> dict[str, Any]:
        """For exports."""
        price, epsilon, delta = texts_of(self.cost, self.cost.accounting)
        currency = "rho" if self.cost.gdp is None else "gdp"
        return {
            "kind": "debit",
            "id": self.id,
            "time": self.time,
            "neighbours": self.neighbours,
            "unit": self.unit and self.unit.to_dict(),
            "epsilon": self.asked.epsilon,
            "delta": self.asked.delta,
            "purpose": self.purpose,
            "analyst": self.analyst,
            "cost": {currency: price, "epsilon": epsilon, "delta": delta},
        }


@dataclass(frozen=True)
class UnitStatement:
    """One row of `units`: the first `debits` debits, whose units were not recorded, had this one."""

    id: int
    time: str
    debits: int
    unit: PrivacyUnit

    def to_dict(self) -> dict[str, Any]:
        """For exports."""
        unit = self.unit.to_dict()
        return {"kind": "unit", "id": self.id, "time": self.time, "debits": self.debits, "unit": unit}


@dataclass(frozen=True)
class Receipt:
    """Which debit of which ledger paid for a release, and the limit that was in force, if any.

    `name` is the file's name without its folder. `identity` tells ledgers of one name apart.
    """

    name: str
    identity: str
    entry: int
    limit: Budget | None

    def __str__(self) -> str:
        return f"debit {self.entry} of ledger {self.name} ({self.identity})"

    def to_dict(self) -> dict[str, Any]:
        """For certificates."""
        limit = None if self.limit is None else {"epsilon": self.limit.epsilon, "delta": self.limit.delta}
        return {"name": self.name, "identity": self.identity, "entry": self.entry, "limit": limit}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Receipt:
        """The inverse of `to_dict`."""
        limit = data["limit"] and Budget(data["limit"]["epsilon"], data["limit"]["delta"])
        return cls(data["name"], data["identity"], data["entry"], limit)


@dataclass(frozen=True)
class Standing:
    """Where a data set stands: all releases together are (`epsilon`, `delta`)-DP for one unit.

    The unit is None where nothing was debited yet, and where the units of old debits are not known.
    `left` is the largest ε that a single further release at the limit's δ could still have, without private values or a
    training; None without a limit. What is left for those follows from the `division` of the limit, which is None where
    the limit is pure, or where the first debit will settle it.
    """

    limit: Budget | None
    neighbours: str | None
    entries: int
    spent: Cost
    epsilon: float
    delta: float
    left: float | None
    unit: PrivacyUnit | None = None
    division: Division | None = None


@dataclass(frozen=True)
class Share:
    """One row of `shares`: from `time` on, `analyst` may use up this share of the limit: of g (or ρ), or of pure ε."""

    id: int
    time: str
    analyst: str
    share: float

    def to_dict(self) -> dict[str, Any]:
        """For exports."""
        return {"kind": "share"} | asdict(self)


@dataclass(frozen=True)
class Account:
    """What one analyst asked for so far, and may still ask; shares may add up to more than 1, the limit holds for all.

    `epsilon` is what this analyst alone has learned at the limit's δ. `left` is the largest ε of one more request.
    """

    analyst: str
    share: float | None
    entries: int
    spent: Cost
    used: float | None
    epsilon: float
    left: float | None


def accounting_of(database: sqlite3.Connection) -> str:
    """How the debits add up: as they did from the first of them on.

    It never changes after that: a sum that starts as one and ends as the other is covered by no theorem.
    """
    first = database.execute("SELECT rho FROM debits ORDER BY id LIMIT 1").fetchone()
    if first is None:
        return ACCOUNTING
    return GDP if str(first[0]).startswith(_GAUSSIAN) else ZCDP


def limits_of(database: sqlite3.Connection) -> list[Limit]:
    accounting, divisions = accounting_of(database), _divisions_of(database)
    rows = database.execute(f"SELECT id, time, epsilon, delta, neighbours, {unit_of(database)} FROM limits ORDER BY id")
    return [
        Limit(row, time, Budget(epsilon, delta, accounting), relation, read_unit(unit), divisions.get(row))
        for row, time, epsilon, delta, relation, unit in rows
    ]


def _divisions_of(database: sqlite3.Connection) -> dict[int, Division]:
    if pragma(database, "user_version") < DIVIDED_VERSION:
        return {}
    rows = database.execute("SELECT divided, failure_delta, training_epsilon FROM divisions")
    return {limit: Division(*(_quanta(text) * QUANTUM for text in parts)) for limit, *parts in rows}


def division_of(limit: Limit, spent: Cost) -> Division | None:
    """What a limit with debits is held to: its division, or in a ledger from before divisions, the one to come."""
    if limit.division is not None or limit.budget.pure or spent == Cost.zero():
        return limit.division
    return Division.following(limit.budget, spent)


def divide(database: sqlite3.Connection, limit: int, division: Division) -> None:
    """Settles the division of a limit, once."""
    parts = {"failure_delta": _text(division.failure_delta), "training_epsilon": _text(division.training_epsilon)}
    append(database, "divisions", divided=limit, **parts)


def newest_limit(database: sqlite3.Connection) -> Limit | None:
    limits = limits_of(database)
    return limits[-1] if limits else None


def unit_of(database: sqlite3.Connection) -> str:
    """The column of units, or null for all rows of a ledger that has none yet."""
    return "unit" if pragma(database, "user_version") >= UNIT_VERSION else "NULL"


def read_unit(text: str | None) -> PrivacyUnit | None:
    try:
        return None if text is None else PrivacyUnit.from_text(text)
    except (ValueError, KeyError, TypeError):
        raise InputError(f"unit ({text}) in a ledger can't be read; restore a copy.", text) from None


def debit_units_of(database: sqlite3.Connection) -> list[PrivacyUnit]:
    """Every unit that a debit has, recorded or stated; without reading the debits one by one, which may be many."""
    if pragma(database, "user_version") < UNIT_VERSION:
        return []
    recorded = database.execute("SELECT unit FROM debits WHERE unit IS NOT NULL GROUP BY unit ORDER BY max(id) DESC")
    return [unit for (text,) in recorded if (unit := read_unit(text))] + [s.unit for s in statements_of(database)]


def unknown_units_of(database: sqlite3.Connection) -> tuple[int, int]:
    """How many debits have a unit that nobody recorded or stated, and the last of them."""
    stated = max((s.debits for s in statements_of(database)), default=0)
    where = f"{unit_of(database)} IS NULL AND id > ?"
    count, last = database.execute(f"SELECT count(*), max(id) FROM debits WHERE {where}", (stated,)).fetchone()
    return int(count), int(last or 0)


def held_unit(database: sqlite3.Connection) -> PrivacyUnit | None:
    """The unit of the debits, or where there are none, of the limit."""
    limit, known = newest_limit(database), debit_units_of(database)
    if known:
        return known[0]
    return limit.unit if limit else None


def statements_of(database: sqlite3.Connection) -> list[UnitStatement]:
    if pragma(database, "user_version") < UNIT_VERSION:
        return []
    rows = database.execute("SELECT id, time, debits, unit FROM units ORDER BY id")
    return [UnitStatement(row, time, debits, PrivacyUnit.from_text(unit)) for row, time, debits, unit in rows]


def shares_of(database: sqlite3.Connection) -> list[Share]:
    if pragma(database, "user_version") < SHARED_VERSION:
        return []
    return [Share(*row) for row in database.execute("SELECT id, time, analyst, share FROM shares ORDER BY id")]


def newest_shares(database: sqlite3.Connection) -> dict[str, float]:
    return {share.analyst: share.share for share in shares_of(database)}


def relations_of(database: sqlite3.Connection) -> set[str]:
    return {relation for (relation,) in database.execute("SELECT DISTINCT neighbours FROM debits")}


def totals_of(database: sqlite3.Connection) -> dict[str, Cost]:
    """The composed cost of each analyst. Added up as whole quanta: a ledger may have many thousands of rows."""
    sums: dict[str, list[int]] = {}
    impure: set[str] = set()
    discrete: set[str] = set()  # those with a debit that has no g, which then bounds nothing of theirs
    for analyst, rho, epsilon, delta in database.execute("SELECT analyst, rho, epsilon, delta FROM debits"):
        own, direct = _split(epsilon)
        added = map(_quanta, (rho.removeprefix(_GAUSSIAN), own, delta, direct))
        sums[analyst] = list(map(operator.add, sums.get(analyst, (0, 0, 0, 0)), added))
        if own is None:
            impure.add(analyst)
        if not rho.startswith(_GAUSSIAN):
            discrete.add(analyst)
    return {
        name: _cost(quanta, pure=name not in impure, gaussian=name not in discrete) for name, quanta in sums.items()
    }


def _cost(quanta: Iterable[int], *, pure: bool, gaussian: bool) -> Cost:
    price, epsilon, delta, direct = (number * QUANTUM for number in quanta)
    # μ-GDP is μ²/2-zCDP, so that g stands for ρ, too.
    return Cost(price, epsilon if pure else None, delta, direct, price if gaussian else None)


def entries_of(database: sqlite3.Connection) -> list[Entry]:
    """Every debit; one whose unit was not recorded has the one that was stated of it, if any was."""
    stated = statements_of(database)
    cost_and_unit = f"rho, epsilon, delta, asked_epsilon, asked_delta, {unit_of(database)}"
    rows = database.execute(f"SELECT id, time, purpose, analyst, neighbours, {cost_and_unit} FROM debits ORDER BY id")
    entries = []
    for number, time, purpose, analyst, neighbours, rho, epsilon, delta, asked_epsilon, asked_delta, text in rows:
        unit = read_unit(text) or next((s.unit for s in stated if number <= s.debits), None)
        own, direct = _split(epsilon)
        quanta = map(_quanta, (rho.removeprefix(_GAUSSIAN), own, delta, direct))
        cost = _cost(quanta, pure=own is not None, gaussian=rho.startswith(_GAUSSIAN))
        told = {"purpose": purpose, "analyst": analyst, "neighbours": neighbours}
        entries.append(
            Entry(number, time, **told, cost=cost, asked=Budget(asked_epsilon, asked_delta, cost.accounting), unit=unit)
        )
    return entries


def answer_of(database: sqlite3.Connection, question: str) -> bytes | None:
    row = database.execute("SELECT answer FROM answers WHERE question = ?", (question,)).fetchone()
    return bytes(row[0]) if row else None


def texts_of(cost: Cost, accounting: str) -> tuple[str, str | None, str]:
    """ρ or g, ε and δ as they are stored; in the place of ε the direct part, if there is one (see `_split`)."""
    epsilon = None
    if cost.direct:
        epsilon = _DIRECT + _text(cost.direct)
    elif cost.epsilon is not None:
        epsilon = _text(cost.epsilon)
    if accounting == ZCDP or cost.gdp is None:
        return _text(cost.rho), epsilon, _text(cost.delta)
    return _GAUSSIAN + _text(cost.gdp), epsilon, _text(cost.delta)


def _split(epsilon: str | None) -> tuple[str | None, str | None]:
    """The pure ε and the direct ε of a stored cost: what has a direct part isn't pure, so that one column holds either.

    Programs that know no direct parts refuse to read it, and so can't forget them.
    """
    if epsilon is not None and str(epsilon).startswith(_DIRECT):
        return None, str(epsilon).removeprefix(_DIRECT)
    return epsilon, None


def _text(value: Fraction) -> str:
    """Quanta as decimal digits, since SQLite's integers end at 2^63; a cost off the grid goes up."""
    return f"{round_up(value) / QUANTUM}/2^80"


def _quanta(text: str | None) -> int:
    """The whole number of quanta in a stored cost; none for a part that isn't there."""
    if text is None:
        return 0
    quanta, _, grid = str(text).partition("/")
    if grid != "2^80" or not quanta.isdecimal():
        raise InputError(
            f"cost ({text}) in a ledger must read like 302231454903657293676544/2^80; restore a copy.", text
        )
    return int(quanta)
