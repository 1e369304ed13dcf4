"""The ledger of one data set: an SQLite file in which every release is written down before its noise is drawn.

    limits    the (ε, δ) that all releases together may reach; the newest row counts
    divisions what a limit keeps for failures and for trainings; one row for each limit (see `division`)
    shares    how much of the limit an analyst may use up; the newest row of a name counts
    debits    one row per release: its cost, what was asked, by whom, what for, and whom it protects
    answers   the replies to questions already paid for
    claims    which answers of a release were drawn, by the digests of its journal's records (see `claims`)
    units     which unit the debits had that were written before units were recorded, as the steward states it
    identity  a random number, made with the ledger
    chain     a running digest over all of these rows (see `chain`)
    restorations  which lost entries a backup makes up for (see `backup`)

Limits and debits carry the neighbouring relation and the unit of privacy. A sum of claims is a claim only where both
are the same, so a row with others is refused.

Rows are only ever added, and every write is on the disk before the call returns (`database`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from understudy.boundary.privacy.budget import Budget, Cost, claim, total
from understudy.boundary.privacy.facts import PrivacyUnit
from understudy.boundary.privacy.ledger import allowance, claims
from understudy.boundary.privacy.ledger import entries as stored
from understudy.boundary.privacy.ledger.database import LedgerDatabase, append, identity_of
from understudy.boundary.privacy.ledger.division import Division
from understudy.boundary.privacy.ledger.entries import Account, Entry, Limit, Receipt, Share, Standing, UnitStatement
from understudy.boundary.tables.table import Table, source_of
from understudy.errors import BudgetExhausted, InputError

__all__ = ["NEIGHBOURS", "Account", "Entry", "Ledger", "Limit", "Receipt", "Share", "Standing", "UnitStatement"]

NEIGHBOURS = ("add-remove", "replace-one")

_LONGEST_NAME = 200
ENDING = ".ledger.sqlite"


class Ledger:
    """The append-only record of one data set.

    >>> from fractions import Fraction
    >>> from understudy.boundary.privacy.budget import pure_cost
    >>> ledger = Ledger.memory()
    >>> ledger.set_limit(Budget(1.0, 0.0), "add-remove")
    >>> ledger.debit(pure_cost(Fraction(1, 2)), Budget(0.5, 0.0), "add-remove", "count of smokers", unit=PrivacyUnit())
    1
    >>> ledger.standing().epsilon
    0.5
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._database = LedgerDatabase(path)

    @classmethod
    def open(cls, path: Path, create: bool = True) -> Ledger:
        """The ledger in this file, made if there is none; an existing one is only read."""
        ledger = cls(Path(path))
        ledger._database.prepare(create)
        return ledger

    @classmethod
    def at(cls, ledger: Ledger | Path, create: bool = False) -> Ledger:
        """The ledger itself, or the one in this file."""
        return cls.open(ledger, create) if isinstance(ledger, Path) else ledger

    @classmethod
    def memory(cls) -> Ledger:
        """A ledger that is forgotten with this process, for tests and for trying things out."""
        ledger = cls(None)
        ledger._database.initialise()
        return ledger

    def close(self) -> None:
        """Forgets an in-memory ledger; a file needs no closing."""
        self._database.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def limit(self) -> Budget | None:
        """The limit in force, if any."""
        with self._database.reading() as database:
            newest = stored.newest_limit(database)
        return newest.budget if newest else None

    def limits(self) -> list[Limit]:
        """Every limit ever set, oldest first."""
        with self._database.reading() as database:
            return stored.limits_of(database)

    def set_limit(
        self,
        budget: Budget,
        neighbours: str,
        unit: PrivacyUnit | None = None,
        *,
        failure_delta: float | None = None,
        training_epsilon: float | None = None,
    ) -> None:
        """Sets the limit from now on; refused when it is below what is already spent.

        Without a `unit` it is the one of the earlier rows, or of the first debit. The two parts of the division that
        are named here are kept for failures and for trainings; where neither is, the first debit settles both, or what
        is spent where there are debits.
        """
        _demand_relation(neighbours)
        with self._database.writing() as database:
            self._demand_unmixed(neighbours, stored.relations_of(database))
            if unit is not None:
                self._demand_units_known(database)
                self._demand_unit(unit, stored.debit_units_of(database))
            spent = total(stored.totals_of(database).values())
            limit = replace(budget, accounting=spent.accounting)
            division = Division.stated(limit, failure_delta, training_epsilon)
            if spent != Cost.zero():
                division = self._dividing(limit, division, spent)
            stated = unit or stored.held_unit(database)
            asked = {"epsilon": budget.epsilon, "delta": budget.delta, "neighbours": neighbours}
            row = append(database, "limits", **asked, unit=stated and stated.to_text())
            if division is not None:
                stored.divide(database, row, division)

    def _dividing(self, limit: Budget, stated: Division | None, spent: Cost) -> Division | None:
        """The division of a limit that is set when answers are known: as stated, or by what is spent."""
        following = None if limit.pure else Division.following(limit, spent)
        if not allowance.fits(limit, following, spent):
            raise InputError(
                f"limit ({limit}) must be at least what is already spent, epsilon "
                f"{claim(spent, limit.delta, limit.accounting):.6g} at that delta, in ledger {self}.",
                limit,
            )
        if stated is not None and not stated.covers(limit, spent):
            raise InputError(f"{stated.shortage(spent)} in ledger {self}; divide the limit otherwise.", stated)
        return stated or following

    def state_unit(self, unit: PrivacyUnit) -> int:
        """States which unit the debits had that were written before units were recorded; returns how many.

        It is a fact that only the steward knows: it is added to the ledger, once, and changes no row.
        """
        with self._database.writing() as database:
            unknown, last = stored.unknown_units_of(database)
            if not unknown:
                raise InputError(f"ledger ({self}) has no debit whose unit isn't recorded; there is nothing to state.")
            self._demand_unit(unit, stored.debit_units_of(database))
            append(database, "units", debits=last, unit=unit.to_text())
        return unknown

    def identity(self) -> str | None:
        """A random number that tells this ledger from others; none before an old ledger's next debit."""
        with self._database.reading() as database:
            return identity_of(database)

    def receipt(self, entry: int) -> Receipt:
        """What a certificate says of a debit, with the limit that is in force now."""
        with self._database.reading() as database:
            limit, identity = stored.newest_limit(database), identity_of(database)
        name = self.path.name if self.path else str(self)
        return Receipt(name, identity or "", entry, limit.budget if limit else None)

    def set_share(self, analyst: str, share: float) -> None:
        """Sets what an analyst may use up of the limit, from now on; once anybody has a share, all need one."""
        nameless = not isinstance(analyst, str) or not analyst.strip() or not analyst.isprintable()
        if nameless or len(analyst) > _LONGEST_NAME:
            raise InputError(f"analyst ({analyst!r}) must be a name of 1 to {_LONGEST_NAME} characters.", analyst)
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise InputError(f"share ({share}) of {analyst} must be a number from 0 to 1, as in 0.25.", share)
        with self._database.writing() as database:
            if stored.newest_limit(database) is None:
                raise InputError(f"ledger ({self}) must have a limit before anybody gets a share of it.", analyst)
            append(database, "shares", analyst=analyst, share=float(share))

    def shares(self) -> list[Share]:
        """Every share ever set, oldest first."""
        with self._database.reading() as database:
            return stored.shares_of(database)

    def accounts(self) -> list[Account]:
        """Everybody who asked or has a share, by name."""
        with self._database.reading() as database:
            limit, shares = stored.newest_limit(database), stored.newest_shares(database)
            spent = stored.totals_of(database)
            counts = dict(database.execute("SELECT analyst, count(*) FROM debits GROUP BY analyst").fetchall())
            asked = database.execute("SELECT max(asked_delta) FROM debits").fetchone()[0]
        budget = limit.budget if limit else None
        delta = budget.delta if budget else asked or 0.0
        everything = total(spent.values())
        left = allowance.limit_left(limit.budget, stored.division_of(limit, everything), everything) if limit else None
        accounts = []
        for name in sorted({*spent, *shares}):
            own, share, used, rest = spent.get(name, Cost.zero()), shares.get(name), None, left
            if budget and share is not None and left is not None:
                used = allowance.share_used(budget, share, own)
                rest = min(left, allowance.share_left(budget, share, own))
            entries, epsilon = counts.get(name, 0), claim(own, delta, own.accounting)
            accounts.append(Account(name, share, entries=entries, spent=own, used=used, epsilon=epsilon, left=rest))
        return accounts

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
        demand_text("purpose", purpose)
        asked: dict[str, Any] = {"purpose": purpose, "analyst": analyst, "neighbours": neighbours}
        asked |= {"asked_epsilon": budget.epsilon, "asked_delta": budget.delta, "unit": unit.to_text()}
        with self._database.writing() as database:
            division = self._admitted(database, cost, budget, neighbours, analyst, unit=unit)
            rho, epsilon, delta = stored.texts_of(cost, stored.accounting_of(database))
            limit = stored.newest_limit(database)
            # Under the lock of the only writer, in the transaction of the debit: of two first debits one settles it.
            if limit is not None and division is not None and limit.division is None:
                stored.divide(database, limit.id, division)
            entry = append(database, "debits", **asked, rho=rho, epsilon=epsilon, delta=delta)
            if journal:
                claims.put(database, entry, claims.HEAD, journal)
            return entry

    def demand(self, cost: Cost, budget: Budget, neighbours: str, analyst: str = "", *, unit: PrivacyUnit) -> None:
        """Refuses whatever `debit` would refuse now; writes nothing."""
        with self._database.reading() as database:
            self._admitted(database, cost, budget, neighbours, analyst, unit=unit)

    def _admitted(
        self, database: sqlite3.Connection, cost: Cost, budget: Budget, neighbours: str, analyst: str,
        *, unit: PrivacyUnit,
    ) -> Division | None:  # fmt: skip
        """Refuses a debit, or says how the limit is divided once it is made."""
        _demand_relation(neighbours)
        demand_text("analyst", analyst)
        accounting = stored.accounting_of(database)
        limit, shares = stored.newest_limit(database), stored.newest_shares(database)
        spent = stored.totals_of(database)
        if (limit or spent) and cost.by(accounting) is None:
            raise BudgetExhausted(
                f"a release that counts by zCDP can't be added to ledger {self}, which adds up by Gaussian "
                "differential privacy; make it anew.",
                cost,
            )
        self._demand_unmixed(neighbours, stored.relations_of(database) | ({limit.neighbours} if limit else set()))
        self._demand_units_known(database)
        held = stored.held_unit(database)
        self._demand_unit(unit, [held] if held else [])
        everything = total(spent.values())
        # A share only narrows: the limit below holds for all together, whatever the shares add up to.
        if limit and shares:
            self._demand_share(limit.budget, shares, spent.get(analyst, Cost.zero()), cost, budget, analyst)
        return self._demand_room(limit, cost, budget, everything) if limit else None

    def _demand_room(self, limit: Limit, cost: Cost, asked: Budget, spent: Cost) -> Division | None:
        """Refuses what the limit has no room for; else how it is divided from the first debit on."""
        if cost == Cost.zero():  # has room wherever it comes, and settles nothing: what costs is still to come
            return None
        first = spent == Cost.zero()
        division = stored.division_of(limit, cost if first else spent)
        if not allowance.fits(limit.budget, division, spent + cost):
            raise BudgetExhausted(
                allowance.refusal(cost, asked, limit.budget, division=division, spent=spent, ledger=str(self)), cost
            )
        return division

    def claim(self, entry: int, place: int, digest: str) -> None:
        """Claims the next place of a release's journal, on the disk; of two who try, the second is refused."""
        with self._database.writing() as database:
            claims.put(database, entry, place, digest)

    def claimed(self, journal: str) -> claims.Claimed | None:
        """What was drawn so far for the release whose journal has this head."""
        with self._database.reading() as database:
            return claims.find(database, journal)

    def unfinished(self) -> bool:
        """Whether some release with a journal was debited and has not come to its end."""
        with self._database.reading() as database:
            return claims.unfinished(database)

    def spent(self) -> Cost:
        """The composed cost of all releases."""
        return total(entry.cost for entry in self.entries())

    def entries(self) -> list[Entry]:
        """Every release, oldest first."""
        with self._database.reading() as database:
            return stored.entries_of(database)

    def standing(self) -> Standing:
        """What all releases amount to, and what is left."""
        with self._database.reading() as database:
            limit, entries = stored.newest_limit(database), stored.entries_of(database)
            unit = None if stored.unknown_units_of(database)[0] else stored.held_unit(database)
        spent = total(entry.cost for entry in entries)
        budget, left, division = None, None, None
        relation = next((entry.neighbours for entry in entries), None)
        # Without a limit the claim of all is told at the largest δ that anybody asked with.
        delta = max((entry.asked.delta for entry in entries), default=0.0)
        if limit:
            budget, relation, delta = limit.budget, limit.neighbours, limit.budget.delta
            division = stored.division_of(limit, spent)
            left = allowance.limit_left(budget, division, spent)
        epsilon = claim(spent, delta, spent.accounting)
        return Standing(
            budget,
            relation,
            entries=len(entries),
            spent=spent,
            epsilon=epsilon,
            delta=delta,
            left=left,
            unit=unit,
            division=division,
        )

    def export(self) -> list[dict[str, Any]]:
        """Limits, shares, debits and statements of units in order of time, as plain values for JSON."""
        with self._database.reading() as database:
            rows: list[Limit | Share | Entry | UnitStatement] = [*stored.limits_of(database)]
            rows += [*stored.shares_of(database), *stored.entries_of(database), *stored.statements_of(database)]
        return [row.to_dict() for row in sorted(rows, key=lambda row: row.time)]

    def remember(self, question: str, answer: bytes) -> bytes:
        """Keeps the answer to a question and returns the one on record: of two, the first stays."""
        known = self.recall(question)
        if known is not None:
            return known
        with self._database.writing() as database:
            known = stored.answer_of(database, question)  # somebody else may have been faster
            if known is not None:
                return known
            append(database, "answers", question=question, answer=answer)
        return answer

    def recall(self, question: str) -> bytes | None:
        """The answer on record, if this very question was asked before."""
        with self._database.reading() as database:
            return stored.answer_of(database, question)

    def __str__(self) -> str:
        return str(self._database)

    def _demand_unmixed(self, neighbours: str, relations: set[str]) -> None:
        # Claims under different neighbouring relations don't add up: replace-one is up to twice the distance.
        other = relations - {neighbours}
        if other:
            raise InputError(
                f"neighbours ({neighbours}) must be {min(other)}, as in the earlier rows of ledger {self}; "
                "keep to one relation per data set.",
                neighbours,
            )

    def _demand_units_known(self, database: sqlite3.Connection) -> None:
        unknown, _ = stored.unknown_units_of(database)
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
        by_limit = share == 1 or (limit.pure and not cost.pure)  # which refuses it with a better sentence
        if not by_limit and not allowance.share_fits(limit, share, spent + cost):
            whole = f"share ({100 * share:g} % of {limit}) of {analyst} in ledger {self}"
            raise BudgetExhausted(allowance.share_refusal(cost, asked, limit, share, spent, whole), cost)


def _demand_relation(neighbours: str) -> None:
    if neighbours not in NEIGHBOURS:
        raise InputError(f"neighbours ({neighbours}) must be one of {', '.join(NEIGHBOURS)}.", neighbours)


def demand_text(name: str, text: str) -> None:
    """Refuses what can't be written down."""
    # An argument of the command line that is no UTF-8 arrives in half characters, which no database keeps.
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise InputError(f"{name} ({text!a}) must be text; type it in UTF-8.", text)


Debited = Ledger | str | Path | Literal[False] | None
"""What `ledger=` takes: a ledger, its path, False to debit none, or None for the one beside the data."""


def is_server(data: str) -> bool:
    """Whether the data are a table on a server."""
    return "://" in data


def ledger_beside(data: str) -> Path:
    """It carries the whole name of the data file, so that `a.csv` and `a.parquet` have one each.

    >>> ledger_beside("town/people.csv").as_posix(), ledger_beside("town.duckdb::people").as_posix()
    ('town/people.csv.ledger.sqlite', 'town.duckdb.people.ledger.sqlite')
    """
    where, _, inside = data.partition("::")
    path = Path(where)
    named = _beside(path, inside)
    # A link has the ledger of what it leads to, and DuckDB's names know no upper and lower case: one table, one ledger.
    if path.is_symlink():
        path = path.resolve()
    known = _beside(path, inside.lower())
    if named.exists() and not known.exists():
        return named
    return known


def _beside(path: Path, inside: str) -> Path:
    return path.with_name(".".join(filter(None, [path.name, inside])) + ENDING)


def ledger_for(table: Table, ledger: Debited) -> Ledger | Path | None:
    """The ledger that pays for what is asked of a table; None where none does: `ledger=False`, or a frame in memory."""
    if ledger is False:
        return None
    if isinstance(ledger, bool):
        raise InputError("ledger (True) must be a ledger, its path, False for none, or None for the default.", ledger)
    if ledger is not None:
        return Path(ledger) if isinstance(ledger, str) else ledger
    source = source_of(table)
    if source is None:
        return None
    if is_server(source):
        raise InputError(
            "a table on a server has no folder for a ledger; name one with ledger=, or debit none with ledger=False.",
            table.name,
        )
    return ledger_beside(source)
