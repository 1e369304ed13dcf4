"""The ledger of one data set: an SQLite file in which every release is written down before its noise is drawn.

    limits    the (ε, δ) that all releases together may reach; the newest row counts
    shares    how much of the limit an analyst may use up; the newest row of a name counts
    debits    one row per release: its cost, what was asked, by whom, what for, and whom it protects
    answers   the replies to questions already paid for
    claims    which answers of a release were drawn, by the digests of its journal's records (see `claims`)
    units     which unit the debits had that were written before units were recorded, as the steward states it
    identity  a random number, made with the ledger

Limits and debits carry the neighbouring relation and the unit of privacy. A sum of claims is a claim only where both
are the same, so a row with others is refused.

Rows are only ever added: triggers abort UPDATE, DELETE and REPLACE. Every operation opens the file afresh, so that a
ledger survives threads, forks and a file that is moved away, and every write is one transaction that is on the disk
before the call returns (BEGIN IMMEDIATE, rollback journal, synchronous = EXTRA).
"""

from __future__ import annotations

import operator
import os
import secrets
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any

from understudy.boundary.privacy.accountant import QUANTUM, round_up
from understudy.boundary.privacy.budget import Budget, Cost, claim, total
from understudy.boundary.privacy.ledger import claims
from understudy.boundary.privacy.ledger.allowance import (
    fits,
    limit_left,
    refusal,
    share_fits,
    share_left,
    share_refusal,
    share_used,
)
from understudy.boundary.privacy.ledger.appending import make
from understudy.boundary.privacy.unit import PrivacyUnit
from understudy.errors import BudgetExhausted, InputError

__all__ = ["NEIGHBOURS", "Account", "Entry", "Ledger", "Limit", "Receipt", "Share", "Standing", "UnitStatement"]

NEIGHBOURS = ("add-remove", "replace-one")

_APPLICATION_ID = 0x55445354  # "UDST": how `file` and we tell a ledger from any other SQLite file
_FIRST_VERSION, _SHARED_VERSION, _VERSION = 1, 2, 3
"""Shares came second, units third. An older ledger is read as it is and brought to the newest version with the first
limit, share or debit that is written to it, in the same transaction. From then on it is closed to older programs, which
would ignore units.
"""
_BUSY_SECONDS = 60.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.03

_DIRECT = "+"
"""Marks the ε of trainings, which a claim adds to that of everything else (see `budget.Cost`)."""

_TABLES = """
CREATE TABLE limits (
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, neighbours TEXT NOT NULL,
    unit TEXT);
CREATE TABLE debits (
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, purpose TEXT NOT NULL, analyst TEXT NOT NULL, neighbours TEXT NOT NULL,
    rho TEXT NOT NULL, epsilon TEXT, delta TEXT NOT NULL, asked_epsilon REAL NOT NULL, asked_delta REAL NOT NULL,
    unit TEXT);
CREATE TABLE answers (
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, question TEXT NOT NULL UNIQUE, answer BLOB NOT NULL);
"""

_SHARES = """
CREATE TABLE shares (id INTEGER PRIMARY KEY, time TEXT NOT NULL, analyst TEXT NOT NULL, share REAL NOT NULL);
"""

_UNITS = """
CREATE TABLE units (id INTEGER PRIMARY KEY, time TEXT NOT NULL, debits INTEGER NOT NULL, unit TEXT NOT NULL);
CREATE TABLE identity (id INTEGER PRIMARY KEY, time TEXT NOT NULL, value TEXT NOT NULL);
"""
_UNIT_COLUMNS = ("ALTER TABLE limits ADD COLUMN unit TEXT", "ALTER TABLE debits ADD COLUMN unit TEXT")
"""For ledgers from before. Null stands for "not recorded"; no row is rewritten."""

_CLASHES = {
    "limits": "id = NEW.id",
    "debits": "id = NEW.id",
    "answers": "id = NEW.id OR question = NEW.question",
}
_SHARE_CLASHES = {"shares": "id = NEW.id"}
_UNIT_CLASHES = {"units": "id = NEW.id", "identity": "1"}
"""Whatever is put beside an identity would replace it."""
_LONGEST_NAME = 200

_DEBIT_COLUMNS = "time, purpose, analyst, neighbours, rho, epsilon, delta, asked_epsilon, asked_delta"


@dataclass(frozen=True)
class Limit:
    """One row of `limits`: from `time` on, all releases together may reach `budget`."""

    id: int
    time: str
    budget: Budget
    neighbours: str
    unit: PrivacyUnit | None = None
    """None where it was not said: then it is that of the debits."""


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


@dataclass(frozen=True)
class UnitStatement:
    """One row of `units`: the first `debits` debits, whose units were not recorded, had this one."""

    id: int
    time: str
    debits: int
    unit: PrivacyUnit


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
    `left` is the largest ε that a single further release at the limit's δ could still have; None without a limit.
    """

    limit: Budget | None
    neighbours: str | None
    entries: int
    spent: Cost
    epsilon: float
    delta: float
    left: float | None
    unit: PrivacyUnit | None = None


@dataclass(frozen=True)
class Share:
    """One row of `shares`: from `time` on, `analyst` may use up this share of the limit's ρ, or ε if it is pure."""

    id: int
    time: str
    analyst: str
    share: float


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


class Ledger:
    """The append-only record of one data set.

    >>> ledger = Ledger.memory()
    >>> ledger.set_limit(Budget(1.0, 0.0), "add-remove")
    >>> half = Cost(Fraction(1, 8), Fraction(1, 2), Fraction(0))
    >>> ledger.debit(half, Budget(0.5, 0.0), "add-remove", "count of smokers", unit=PrivacyUnit())
    1
    >>> ledger.standing().epsilon
    0.5
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._memory = None if path else _connection(":memory:")

    @classmethod
    def open(cls, path: Path, create: bool = True) -> Ledger:
        """The ledger in this file, made if there is none; an existing one is only read."""
        ledger = cls(Path(path))
        if create:
            ledger._make_file()
        with ledger._reading() as database:
            empty = _pragma(database, "page_count") == 0
        if empty and create:
            ledger._initialise()
        with ledger._reading() as database:
            ledger._demand_ours(database)
        return ledger

    @classmethod
    def at(cls, ledger: Ledger | Path, create: bool = False) -> Ledger:
        """The ledger itself, or the one in this file."""
        return cls.open(ledger, create) if isinstance(ledger, Path) else ledger

    @classmethod
    def memory(cls) -> Ledger:
        """A ledger that is forgotten with this process, for tests and for trying things out."""
        ledger = cls(None)
        ledger._initialise()
        return ledger

    def close(self) -> None:
        """Forgets an in-memory ledger; a file needs no closing."""
        if self._memory is not None:
            self._memory.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def limit(self) -> Budget | None:
        """The limit in force, if any."""
        with self._reading() as database:
            newest = _newest_limit(database)
        return newest.budget if newest else None

    def limits(self) -> list[Limit]:
        """Every limit ever set, oldest first."""
        with self._reading() as database:
            return _limits(database)

    def set_limit(self, budget: Budget, neighbours: str, unit: PrivacyUnit | None = None) -> None:
        """Sets the limit from now on; refused when it is below what is already spent.

        Without a `unit` it is the one of the earlier rows, or of the first debit.
        """
        _demand_relation(neighbours)
        with self._writing() as database:
            _migrate(database)
            self._demand_unmixed(neighbours, _relations(database))
            if unit is not None:
                self._demand_units_known(database)
                self._demand_unit(unit, _debit_units(database))
            self._demand_above(budget, total(_totals(database).values()))
            stated = unit or _held_unit(database)
            database.execute(
                "INSERT INTO limits (time, epsilon, delta, neighbours, unit) VALUES (?, ?, ?, ?, ?)",
                (_now(), budget.epsilon, budget.delta, neighbours, stated and stated.to_text()),
            )

    def state_unit(self, unit: PrivacyUnit) -> int:
        """States which unit the debits had that were written before units were recorded; returns how many.

        It is a fact that only the steward knows: it is added to the ledger, once, and changes no row.
        """
        with self._writing() as database:
            _migrate(database)
            unknown, last = _unknown_units(database)
            if not unknown:
                raise InputError(f"ledger ({self}) has no debit whose unit isn't recorded; there is nothing to state.")
            self._demand_unit(unit, _debit_units(database))
            values = (_now(), last, unit.to_text())
            database.execute("INSERT INTO units (time, debits, unit) VALUES (?, ?, ?)", values)
        return unknown

    def identity(self) -> str | None:
        """A random number that tells this ledger from others; none before an old ledger's next debit."""
        with self._reading() as database:
            return _identity(database)

    def receipt(self, entry: int) -> Receipt:
        """What a certificate says of a debit, with the limit that is in force now."""
        with self._reading() as database:
            limit, identity = _newest_limit(database), _identity(database)
        name = self.path.name if self.path else str(self)
        return Receipt(name, identity or "", entry, limit.budget if limit else None)

    def set_share(self, analyst: str, share: float) -> None:
        """Sets what an analyst may use up of the limit, from now on; once anybody has a share, all need one."""
        _demand_name(analyst)
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise InputError(f"share ({share}) of {analyst} must be a number from 0 to 1, as in 0.25.", share)
        with self._writing() as database:
            if _newest_limit(database) is None:
                raise InputError(f"ledger ({self}) must have a limit before anybody gets a share of it.", analyst)
            _migrate(database)
            database.execute(
                "INSERT INTO shares (time, analyst, share) VALUES (?, ?, ?)", (_now(), analyst, float(share))
            )

    def shares(self) -> list[Share]:
        """Every share ever set, oldest first."""
        with self._reading() as database:
            return _shares(database)

    def accounts(self) -> list[Account]:
        """Everybody who asked or has a share, by name."""
        with self._reading() as database:
            limit, spent, shares = _newest_limit(database), _totals(database), _newest_shares(database)
            counts = dict(database.execute("SELECT analyst, count(*) FROM debits GROUP BY analyst").fetchall())
            asked = database.execute("SELECT max(asked_delta) FROM debits").fetchone()[0]
        budget = limit.budget if limit else None
        delta = budget.delta if budget else asked or 0.0
        everything = total(spent.values())
        return [
            _account(
                name, shares.get(name), counts.get(name, 0), spent.get(name, Cost.zero()), everything, budget, delta
            )
            for name in sorted({*spent, *shares})
        ]

    def debit(
        self,
        cost: Cost,
        budget: Budget,
        neighbours: str,
        purpose: str,
        analyst: str = "",
        *,
        unit: PrivacyUnit,
        journal: str = "",
    ) -> int:
        """Writes a release down, on the disk, and returns its number; a refusal changes nothing at all.

        Read, composed and written under one lock, so that processes can't overspend together. The digest of a journal's
        head is claimed with the debit: both are there, or neither.
        """
        _demand_relation(neighbours)
        values = (_now(), purpose, analyst, neighbours, *_texts(cost), budget.epsilon, budget.delta, unit.to_text())
        with self._writing() as database:
            _migrate(database)
            limit, spent, shares = _newest_limit(database), _totals(database), _newest_shares(database)
            self._demand_unmixed(neighbours, _relations(database) | ({limit.neighbours} if limit else set()))
            self._demand_same_unit(database, unit)
            everything = total(spent.values())
            if limit and shares:
                self._demand_share(limit.budget, shares, spent.get(analyst, Cost.zero()), cost, budget, analyst)
            if limit and not fits(limit.budget, everything + cost):
                raise BudgetExhausted(refusal(cost, budget, limit.budget, everything, str(self)), cost)
            marks = ", ".join("?" * len(values))
            written = database.execute(f"INSERT INTO debits ({_DEBIT_COLUMNS}, unit) VALUES ({marks})", values)
            entry = int(written.lastrowid or 0)
            if journal:
                claims.put(database, entry, claims.HEAD, journal)
            return entry

    def claim(self, entry: int, place: int, digest: str) -> None:
        """Claims the next place of a release's journal, on the disk; of two who try, the second is refused."""
        with self._writing() as database:
            claims.put(database, entry, place, digest)

    def claimed(self, journal: str) -> claims.Claimed | None:
        """What was drawn so far for the release whose journal has this head."""
        with self._reading() as database:
            return claims.find(database, journal)

    def spent(self) -> Cost:
        """The composed cost of all releases."""
        return total(entry.cost for entry in self.entries())

    def entries(self) -> list[Entry]:
        """Every release, oldest first."""
        with self._reading() as database:
            return _entries(database)

    def standing(self) -> Standing:
        """What all releases amount to, and what is left."""
        with self._reading() as database:
            limit, entries = _newest_limit(database), _entries(database)
            unit = None if _unknown_units(database)[0] else _held_unit(database)
        spent = total(entry.cost for entry in entries)
        delta = limit.budget.delta if limit else max((entry.asked.delta for entry in entries), default=0.0)
        relation = limit.neighbours if limit else next((entry.neighbours for entry in entries), None)
        left = limit_left(limit.budget, spent) if limit else None
        return Standing(
            limit.budget if limit else None, relation, len(entries), spent, claim(spent, delta), delta, left, unit
        )

    def export(self) -> list[dict[str, Any]]:
        """Limits, shares, debits and statements of units in order of time, as plain values for JSON."""
        with self._reading() as database:
            rows = [_limit_record(limit) for limit in _limits(database)]
            rows += [_share_record(share) for share in _shares(database)]
            rows += [_entry_record(entry) for entry in _entries(database)]
            rows += [_statement_record(statement) for statement in _statements(database)]
        return sorted(rows, key=lambda row: str(row["time"]))

    def remember(self, question: str, answer: bytes) -> bytes:
        """Keeps the answer to a question and returns the one on record: of two, the first stays."""
        known = self.recall(question)
        if known is not None:
            return known
        with self._writing() as database:
            known = _answer(database, question)  # somebody else may have been faster
            if known is not None:
                return known
            database.execute(
                "INSERT INTO answers (time, question, answer) VALUES (?, ?, ?)", (_now(), question, answer)
            )
        return answer

    def recall(self, question: str) -> bytes | None:
        """The answer on record, if this very question was asked before."""
        with self._reading() as database:
            return _answer(database, question)

    def __str__(self) -> str:
        return str(self.path) if self.path else "in memory"

    def _make_file(self) -> None:
        """An empty file only its owner can read; a crash here leaves one that the next opening fills."""
        assert self.path is not None
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            return
        except OSError as error:
            raise InputError(
                f"ledger ({self}) can't be created ({error.strerror}); name one in a folder that can be written to "
                "(--ledger, ledger= in Python).",
                self.path,
            ) from error

    def _initialise(self) -> None:
        """The schema in one transaction; of two processes that create the same ledger, the second finds it done."""
        with self._writing() as database:
            if not _is_blank(database):
                return
            make(database, _TABLES + _SHARES + _UNITS, _CLASHES | _SHARE_CLASHES | _UNIT_CLASHES)
            _identify(database)
            database.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            database.execute(f"PRAGMA user_version = {_VERSION}")

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """A connection for one operation, with SQLite's complaints told as one sentence."""
        try:
            if self._memory is not None:
                yield self._memory
                return
            assert self.path is not None
            with closing(_connection(f"{self.path.absolute().as_uri()}?mode=rw")) as database:
                yield database
        except sqlite3.Error as error:
            raise InputError(self._complaint(error), self.path) from error

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent view; the rollback at the end makes sure that nothing was written."""
        with self._opened() as database, _transaction(database, "BEGIN DEFERRED", "ROLLBACK"):
            yield database

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """The only writer among all processes, and everything on the disk at the end, or nothing."""
        with self._opened() as database, _transaction(database, "BEGIN IMMEDIATE", "COMMIT"):
            yield database

    def _complaint(self, error: sqlite3.Error) -> str:
        code = getattr(error, "sqlite_errorname", "")
        for prefix, sentence in _COMPLAINTS.items():
            if code.startswith(prefix):
                return f"ledger ({self}) {sentence}"
        return f"ledger ({self}) can't be used ({error}); give the path of a ledger that Understudy made."

    def _demand_ours(self, database: sqlite3.Connection) -> None:
        """Refuses SQLite files of other programs, and ledgers of a later version."""
        if _pragma(database, "application_id") != _APPLICATION_ID:
            raise InputError(f"ledger ({self}) {_COMPLAINTS['SQLITE_NOTADB']}", self.path)
        version = _pragma(database, "user_version")
        if not _FIRST_VERSION <= version <= _VERSION:
            raise InputError(
                f"ledger ({self}) has version {version}, which must be from {_FIRST_VERSION} to {_VERSION}; "
                "use the Understudy that made it.",
                self.path,
            )

    def _demand_unmixed(self, neighbours: str, relations: set[str]) -> None:
        # Claims under different neighbouring relations don't add up: replace-one is up to twice the distance.
        other = relations - {neighbours}
        if other:
            raise InputError(
                f"neighbours ({neighbours}) must be {min(other)}, as in the earlier rows of ledger {self}; "
                "keep to one relation per data set.",
                neighbours,
            )

    def _demand_same_unit(self, database: sqlite3.Connection, unit: PrivacyUnit) -> None:
        """Refuses a debit of another unit; where nothing is debited yet, of another than the limit's."""
        self._demand_units_known(database)
        held = _held_unit(database)
        self._demand_unit(unit, [held] if held else [])

    def _demand_units_known(self, database: sqlite3.Connection) -> None:
        unknown, _ = _unknown_units(database)
        if unknown:
            raise InputError(
                f"ledger ({self}) holds {unknown} debit{'' if unknown == 1 else 's'} from before units were recorded, "
                "and whether a row or a person was protected must be stated first; if it was the unit of the schema, "
                "say so once with `understudy budget unit DATA`, or in Python with Ledger.state_unit.",
                self.path,
            )

    def _demand_unit(self, unit: PrivacyUnit, held: Iterable[PrivacyUnit]) -> None:
        # Why the column alone decides, and not the cap, is said at `PrivacyUnit.identity`.
        other = next((earlier for earlier in held if earlier.identity != unit.identity), None)
        if other is not None:
            raise InputError(
                f"unit ({unit.who}) must be {other.who}, as in the earlier rows of ledger {self}, since claims about "
                "different units don't add up; use the same [unit] in the schema, or, for rows that share no person "
                "with those, a ledger of their own (--ledger, ledger= in Python).",
                unit,
            )

    def _demand_above(self, budget: Budget, spent: Cost) -> None:
        if not fits(budget, spent):
            raise InputError(
                f"limit ({budget}) must be at least what is already spent, epsilon {claim(spent, budget.delta):.6g} "
                f"at that delta, in ledger {self}.",
                budget,
            )

    def _demand_share(
        self, limit: Budget, shares: dict[str, float], spent: Cost, cost: Cost, asked: Budget, analyst: str
    ) -> None:
        share = shares.get(analyst)
        if share is None:
            known = ", ".join(sorted(shares))
            who = f"analyst ({analyst})" if analyst else "analyst (nobody is named)"
            raise BudgetExhausted(
                f"{who} must be one of those who have a share in ledger {self}: {known}; ask for one.", analyst
            )
        impure = limit.pure and not cost.pure  # refused by the limit itself, with a better sentence
        if not impure and not share_fits(limit, share, spent + cost):
            whole = f"share ({100 * share:g} % of {limit}) of {analyst} in ledger {self}"
            raise BudgetExhausted(share_refusal(cost, asked, limit, share, spent, whole), cost)


_COMPLAINTS = {
    "SQLITE_BUSY": f"stayed locked by another process for {_BUSY_SECONDS:g} s; try again when that one has finished.",
    "SQLITE_NOTADB": "isn't a ledger but some other file; give the path of a ledger that Understudy made.",
    "SQLITE_READONLY": "can't be written to; give yourself the right to write, or choose another path.",
    "SQLITE_CANTOPEN": "can't be opened; check that the path is an existing file that you may read and write.",
    "SQLITE_FULL": "can't be written to, since the disk is full, and nothing was debited; make room and try again.",
    "SQLITE_IOERR": "can't be read or written; look at the disk, then at the ledger's history, before you try again.",
    "SQLITE_CORRUPT": "is damaged; restore it from a copy, since what it recorded can't be taken back.",
}


def _connection(name: str) -> sqlite3.Connection:
    database = sqlite3.connect(name, timeout=_BUSY_SECONDS, isolation_level=None, uri=True)
    # EXTRA also syncs the directory once the journal is gone, so that no power cut can bring it back and undo a debit.
    database.execute("PRAGMA synchronous = EXTRA")
    return database


@contextmanager
def _transaction(database: sqlite3.Connection, begin: str, end: str) -> Iterator[None]:
    if begin == "BEGIN IMMEDIATE":
        database.execute("PRAGMA journal_mode = DELETE")
        _queue_up(database, begin)
    else:
        database.execute(begin)
    try:
        yield
        database.execute(end)
    finally:
        if database.in_transaction:
            database.execute("ROLLBACK")


def _queue_up(database: sqlite3.Connection, begin: str) -> None:
    """Waits for the lock of the only writer, with soon even odds for all who wait.

    SQLite's own waiting looks less and less often, so that among many processes the newest ones go first and the
    oldest may wait in vain.
    """
    database.execute("PRAGMA busy_timeout = 0")
    end, pause = time.monotonic() + _BUSY_SECONDS, _FIRST_PAUSE
    try:
        while not _begun(database, begin, last=time.monotonic() > end):
            time.sleep(pause * (0.5 + secrets.randbelow(1000) / 1000))
            pause = min(2 * pause, _LONGEST_PAUSE)
    finally:
        database.execute(f"PRAGMA busy_timeout = {round(1000 * _BUSY_SECONDS)}")


def _begun(database: sqlite3.Connection, begin: str, last: bool) -> bool:
    try:
        database.execute(begin)
        return True
    except sqlite3.OperationalError as error:
        if last or not getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY"):
            raise
        return False


def _pragma(database: sqlite3.Connection, name: str) -> int:
    return int(database.execute(f"PRAGMA {name}").fetchone()[0])


def _is_blank(database: sqlite3.Connection) -> bool:
    """Whether nobody has put anything into this file yet; asked under the lock, where SQLite has made a first page."""
    unclaimed = _pragma(database, "application_id") == 0
    return unclaimed and database.execute("SELECT 1 FROM sqlite_master").fetchone() is None


def _limits(database: sqlite3.Connection) -> list[Limit]:
    rows = database.execute(
        f"SELECT id, time, epsilon, delta, neighbours, {_unit_of(database)} FROM limits ORDER BY id"
    )
    return [
        Limit(row, time, Budget(epsilon, delta), relation, _read_unit(unit))
        for row, time, epsilon, delta, relation, unit in rows
    ]


def _newest_limit(database: sqlite3.Connection) -> Limit | None:
    limits = _limits(database)
    return limits[-1] if limits else None


def _migrate(database: sqlite3.Connection) -> None:
    """Brings an older ledger to the newest version: columns and tables are added, and nothing is rewritten.

    Called under the lock of the only writer, in the transaction of what is written next: a refusal undoes it.
    """
    version = _pragma(database, "user_version")
    if version >= _VERSION:
        return
    if version < _SHARED_VERSION:
        make(database, _SHARES, _SHARE_CLASHES)
    for statement in _UNIT_COLUMNS:
        database.execute(statement)
    make(database, _UNITS, _UNIT_CLASHES)
    _identify(database)
    database.execute(f"PRAGMA user_version = {_VERSION}")


def _identify(database: sqlite3.Connection) -> None:
    database.execute("INSERT INTO identity (time, value) VALUES (?, ?)", (_now(), secrets.token_hex(8)))


def _identity(database: sqlite3.Connection) -> str | None:
    if _pragma(database, "user_version") < _VERSION:
        return None
    row = database.execute("SELECT value FROM identity").fetchone()
    return None if row is None else str(row[0])


def _unit_of(database: sqlite3.Connection) -> str:
    """The column of units, or null for all rows of a ledger that has none yet."""
    return "unit" if _pragma(database, "user_version") >= _VERSION else "NULL"


def _read_unit(text: str | None) -> PrivacyUnit | None:
    try:
        return None if text is None else PrivacyUnit.from_text(text)
    except (ValueError, KeyError, TypeError):
        raise InputError(f"unit ({text}) in a ledger can't be read; restore a copy.", text) from None


def _debit_units(database: sqlite3.Connection) -> list[PrivacyUnit]:
    """Every unit that a debit has, recorded or stated; without reading the debits one by one, which may be many."""
    if _pragma(database, "user_version") < _VERSION:
        return []
    recorded = database.execute("SELECT unit FROM debits WHERE unit IS NOT NULL GROUP BY unit ORDER BY max(id) DESC")
    return [unit for (text,) in recorded if (unit := _read_unit(text))] + [s.unit for s in _statements(database)]


def _unknown_units(database: sqlite3.Connection) -> tuple[int, int]:
    """How many debits have a unit that nobody recorded or stated, and the last of them."""
    stated = max((s.debits for s in _statements(database)), default=0)
    where = f"{_unit_of(database)} IS NULL AND id > ?"
    count, last = database.execute(f"SELECT count(*), max(id) FROM debits WHERE {where}", (stated,)).fetchone()
    return int(count), int(last or 0)


def _held_unit(database: sqlite3.Connection) -> PrivacyUnit | None:
    """The unit of the debits, or where there are none, of the limit."""
    limit, known = _newest_limit(database), _debit_units(database)
    if known:
        return known[0]
    return limit.unit if limit else None


def _statements(database: sqlite3.Connection) -> list[UnitStatement]:
    if _pragma(database, "user_version") < _VERSION:
        return []
    rows = database.execute("SELECT id, time, debits, unit FROM units ORDER BY id")
    return [UnitStatement(row, time, debits, PrivacyUnit.from_text(unit)) for row, time, debits, unit in rows]


def _shares(database: sqlite3.Connection) -> list[Share]:
    if _pragma(database, "user_version") < _SHARED_VERSION:
        return []
    return [Share(*row) for row in database.execute("SELECT id, time, analyst, share FROM shares ORDER BY id")]


def _newest_shares(database: sqlite3.Connection) -> dict[str, float]:
    return {share.analyst: share.share for share in _shares(database)}


def _relations(database: sqlite3.Connection) -> set[str]:
    return {relation for (relation,) in database.execute("SELECT DISTINCT neighbours FROM debits")}


def _totals(database: sqlite3.Connection) -> dict[str, Cost]:
    """The composed cost of each analyst. Added up as whole quanta: a ledger may have many thousands of rows."""
    sums: dict[str, list[int]] = {}
    impure: set[str] = set()
    for analyst, rho, epsilon, delta in database.execute("SELECT analyst, rho, epsilon, delta FROM debits"):
        pure, direct = _split(epsilon)
        found = map(_quanta, (rho, pure, delta, direct))
        sums[analyst] = list(map(operator.add, sums.get(analyst, (0, 0, 0, 0)), found))
        if pure is None:
            impure.add(analyst)
    return {
        name: Cost(rho * QUANTUM, None if name in impure else epsilon * QUANTUM, delta * QUANTUM, direct * QUANTUM)
        for name, (rho, epsilon, delta, direct) in sums.items()
    }


def _entries(database: sqlite3.Connection) -> list[Entry]:
    """Every debit; one whose unit was not recorded has the one that was stated of it, if any was."""
    columns = f"id, {_DEBIT_COLUMNS}, {_unit_of(database)}"
    stated = {s.debits: s.unit for s in _statements(database)}
    return [_entry(row, stated) for row in database.execute(f"SELECT {columns} FROM debits ORDER BY id")]


def _entry(row: tuple[Any, ...], stated: dict[int, PrivacyUnit]) -> Entry:
    number, time, purpose, analyst, neighbours, rho, epsilon, delta, asked_epsilon, asked_delta, unit = row
    told = _read_unit(unit) or next((said for last, said in stated.items() if number <= last), None)
    pure, direct = _split(epsilon)
    cost = Cost(_fraction(rho), None if pure is None else _fraction(pure), _fraction(delta), _quanta(direct) * QUANTUM)
    return Entry(number, time, purpose, analyst, neighbours, cost, Budget(asked_epsilon, asked_delta), told)


def _answer(database: sqlite3.Connection, question: str) -> bytes | None:
    row = database.execute("SELECT answer FROM answers WHERE question = ?", (question,)).fetchone()
    return bytes(row[0]) if row else None


def _texts(cost: Cost) -> tuple[str, str | None, str]:
    epsilon = None if cost.epsilon is None else _text(cost.epsilon)
    return _text(cost.rho), _DIRECT + _text(cost.direct) if cost.direct else epsilon, _text(cost.delta)


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


def _fraction(text: str) -> Fraction:
    return _quanta(text) * QUANTUM


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


def _limit_record(limit: Limit) -> dict[str, Any]:
    return {
        "kind": "limit",
        "id": limit.id,
        "time": limit.time,
        "neighbours": limit.neighbours,
        "unit": limit.unit and limit.unit.to_dict(),
        "epsilon": limit.budget.epsilon,
        "delta": limit.budget.delta,
    }


def _share_record(share: Share) -> dict[str, Any]:
    return {"kind": "share", "id": share.id, "time": share.time, "analyst": share.analyst, "share": share.share}


def _statement_record(statement: UnitStatement) -> dict[str, Any]:
    unit = statement.unit.to_dict()
    return {"kind": "unit", "id": statement.id, "time": statement.time, "debits": statement.debits, "unit": unit}


def _entry_record(entry: Entry) -> dict[str, Any]:
    rho, epsilon, delta = _texts(entry.cost)
    return {
        "kind": "debit",
        "id": entry.id,
        "time": entry.time,
        "neighbours": entry.neighbours,
        "unit": entry.unit and entry.unit.to_dict(),
        "epsilon": entry.asked.epsilon,
        "delta": entry.asked.delta,
        "purpose": entry.purpose,
        "analyst": entry.analyst,
        "cost": {"rho": rho, "epsilon": epsilon, "delta": delta},
    }


def _account(
    name: str,
    share: float | None,
    entries: int,
    spent: Cost,
    everything: Cost,
    limit: Budget | None,
    delta: float,
) -> Account:
    reached = claim(spent, delta)
    if limit is None:
        return Account(name, share, entries, spent, None, reached, None)
    left = limit_left(limit, everything)
    if share is None:
        return Account(name, None, entries, spent, None, reached, left)
    own = min(left, share_left(limit, share, spent))
    return Account(name, share, entries, spent, share_used(limit, share, spent), reached, own)


def _demand_name(analyst: str) -> None:
    if not isinstance(analyst, str) or not analyst.strip() or not analyst.isprintable() or len(analyst) > _LONGEST_NAME:
        raise InputError(f"analyst ({analyst!r}) must be a name of 1 to {_LONGEST_NAME} characters.", analyst)


def _demand_relation(neighbours: str) -> None:
    if neighbours not in NEIGHBOURS:
        raise InputError(f"neighbours ({neighbours}) must be one of {', '.join(NEIGHBOURS)}.", neighbours)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
