"""A site: the one who holds a part of a federated table, and answers requests about it, or refuses them.

It believes nothing that an aggregator says of prices: it computes them, debits its own ledger before its first answer,
and refuses what would exceed its own limit. What it was not started for (another trust model, another schema) it
refuses before anything is spent.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from understudy.boundary.privacy.asks.checks import check_kinds, check_partition
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.facts import PrivacyUnit
from understudy.boundary.privacy.gates import FEWEST_ROWS, Payer
from understudy.boundary.privacy.ledger.ledger import Ledger
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness, Randomness
from understudy.boundary.privacy.sites.masks import new_key, public_of
from understudy.boundary.privacy.sites.record import SessionRecord
from understudy.boundary.privacy.sites.session import Session, facts_of
from understudy.boundary.schema.column import Categorical
from understudy.boundary.schema.federation import AGGREGATOR, SECURE_SUM, Bill
from understudy.boundary.tables.sites.link import (
    ANSWER,
    BEGIN,
    COUNT,
    FINISH,
    HELLO,
    MEET,
    PREPARE,
    PROTOCOL,
    LocalLink,
    refused,
)
from understudy.boundary.tables.sites.messages import Message, packed
from understudy.boundary.tables.table import Table, source_of
from understudy.errors import InternalError, SiteError, TableError, UnderstudyError, located

THE_AGGREGATOR = "the aggregator"
LONGEST_NUMBER = 64
"""Of a session: hexadecimal digits."""
Reply = tuple[dict[str, Any], Sequence[Any]]


@dataclass(frozen=True)
class SiteSettings:
    """What a steward starts a site with.

    `trusts` are the trust models that the site agrees to; `records` is the folder for what it keeps of sessions, None
    for a site that lives as long as its process. `honest` is how many sites' noise it relies on in a secure sum, at
    most: the aggregator, who says how many there are, could name more than there are. None leaves it to the aggregator.
    """

    name: str
    trusts: tuple[str, ...]
    ledger: Ledger | Path | None = None
    records: Path | None = None
    honest: int | None = None


class Site:
    """Answers requests about one open table; `handle` is all that a transport calls."""

    def __init__(self, table: Table, settings: SiteSettings, *, randomness: Randomness | None = None) -> None:
        self._table, self._settings = table, settings
        self._randomness = randomness or ExactRandomness.system()
        self._sessions: dict[str, Session] = {}
        self._one = threading.Lock()

    @property
    def name(self) -> str:
        return self._settings.name

    def link(self) -> LocalLink:
        """A way to this site for an aggregator in the same process."""
        return LocalLink(self.name, self.handle, self._borrow)

    def _borrow(self, randomness: Randomness) -> None:
        self._randomness = randomness

    def handle(self, request: bytes) -> bytes:
        """The reply to a request, whatever it is; nothing that an aggregator sends ends the site."""
        number: Any = None
        with self._one:
            try:
                message = Message.read(request, THE_AGGREGATOR)
                number = message.header.get("id")
                header, content = self._reply(message)
                return packed({"id": number, **header}, *content)
            except UnderstudyError as error:
                return refused(number, error)
            except Exception as error:
                # By its place in our code, and not by its words: those may quote a cell.
                return refused(number, InternalError(f"it failed with {located(error)}."))

    def _reply(self, message: Message) -> Reply:
        if message.header.get("protocol") != PROTOCOL:
            raise SiteError(f"protocol must be {PROTOCOL}; install the same version of understudy on both sides")
        operations: dict[Any, Callable[[Message], Reply]] = {
            HELLO: self._hello,
            PREPARE: self._prepare,
            BEGIN: self._begin,
            MEET: self._meet,
            COUNT: self._count,
            ANSWER: self._answer,
            FINISH: self._finish,
        }
        operation = operations.get(message.header.get("op"))
        if operation is None:
            raise SiteError("the request names nothing that a site does")
        return operation(message)

    def _hello(self, message: Message) -> Reply:
        return {"name": self.name, "schema": self._table.schema.digest}, ()

    def _prepare(self, message: Message) -> Reply:
        """Refuses here whatever a release could be refused for; reads the table to its end, and debits nothing."""
        bill, session = _bill(message), message.header.get("session")
        self._check(bill)
        table, ledger = self._table, self._settings.ledger
        if not table.has_rows(FEWEST_ROWS):
            raise TableError(f"{table.name} must have at least {FEWEST_ROWS} rows to hide one of them", table.name)
        table.check_readable()
        facts = facts_of(bill, table.schema)
        if ledger is not None and (not isinstance(ledger, Path) or ledger.exists()):
            book = Ledger.at(ledger)
            # A session that goes on was debited already, and needs no more room.
            if not session or book.claimed(session) is None:
                unit = PrivacyUnit.of(table.schema)
                book.demand(facts.whole, facts.counting, table.schema.neighbours, bill.analyst, unit=unit)
        return {}, ()

    def _check(self, bill: Bill) -> None:
        if bill.schema != self._table.schema.digest:
            raise SiteError("it has another schema than the aggregator; give both the same file", bill.schema)
        bill.federation.check(self._table.schema)
        trust = bill.federation.trust
        if trust not in self._settings.trusts:
            agreed = ", ".join(self._settings.trusts)
            raise SiteError(
                f"it agreed to trust {agreed}, and not to {trust}; start it with --trust {trust}, or ask it otherwise",
                trust,
            )

        most = self._settings.honest
        if trust == SECURE_SUM and most is not None and bill.federation.honest > most:
            raise SiteError(
                f"it counts on the noise of {most} sites, and not of {bill.federation.honest}; start it with --honest "
                f"{bill.federation.honest}, or ask with fewer",
                bill.federation.honest,
            )

    def _begin(self, message: Message) -> Reply:
        bill, number = _bill(message), _number(message)
        self._check(bill)
        session = self._found(number)
        if session is None:
            session = self._made(number, bill)
        if session.record.bill != bill:
            raise SiteError("the session was begun with another bill; begin anew", number)
        session.pay()
        key = {}
        if bill.federation.trust == SECURE_SUM:
            key = {"key": public_of(session.record.key)}
        return {"secure": session.secure, **key}, ()

    def _found(self, number: str) -> Session | None:
        """The session, in memory or on the disk."""
        if number in self._sessions:
            return self._sessions[number]
        folder = self._folder(number)
        record = None if folder is None else SessionRecord.read(folder, self._table.schema)
        return None if record is None else self._opened(number, record)

    def _made(self, number: str, bill: Bill) -> Session:
        ledger = self._settings.ledger
        known = ledger is not None and not (isinstance(ledger, Path) and not ledger.exists())
        if known and ledger is not None and Ledger.at(ledger).claimed(number) is not None:
            raise SiteError("the session is finished, or its record is gone; begin anew", number)
        key = new_key() if bill.federation.trust == SECURE_SUM else ""
        record = SessionRecord(bill, key, self._snapshot(), self._folder(number))
        record.begin()
        return self._opened(number, record)

    def _opened(self, number: str, record: SessionRecord) -> Session:
        payer = Payer(
            Budget(record.bill.epsilon, record.bill.delta, record.bill.accounting),
            self._settings.ledger,
            record.bill.purpose,
            record.bill.analyst,
        )
        session = Session(number, self._table, name=self.name, record=record, payer=payer, randomness=self._randomness)
        self._sessions[number] = session
        return session

    def _open(self, message: Message) -> Session:
        """A session that was begun, and paid for, and whose rows are still those that it began with."""
        number = _number(message)
        session = self._found(number)
        if session is None:
            raise SiteError("the session was not begun here, or is finished; begin anew", number)
        self._check(session.record.bill)  # it may have been started again for less, or with another schema
        session.pay()  # once: after a restart it finds its debit in the ledger
        if session.record.snapshot != self._snapshot():
            raise TableError(
                "its file changed since the release began, and a release has one state; begin anew", number
            )
        return session

    def _meet(self, message: Message) -> Reply:
        keys = message.header.get("keys")
        if not isinstance(keys, dict) or not all(isinstance(k, str) for k in keys.values()):
            raise SiteError("the request has no keys", keys)
        self._open(message).meet(keys)
        return {}, ()

    def _count(self, message: Message) -> Reply:
        session = self._open(message)
        if session.record.bill.federation.trust != AGGREGATOR:
            raise SiteError("exact counts leave a site only where the aggregator is trusted with them")
        content = message.content(self._table.schema)
        match message.header.get("question"):
            case "count_by":
                domain, sets = content
                return {}, session.table.count_by(domain, [tuple(s) for s in sets])
            case "count_cells":
                domain, partitions = content
                for partition in partitions:
                    check_partition(domain, partition)
                return {}, session.table.count_cells(domain, partitions)
            case "count_tally":
                domain, tally = content
                check_kinds(*tally.summands, *filter(None, [tally.where]))
                return {}, session.table.count_tally(domain, tally)
            case "count_values":
                (column,) = content
                # Those that are declared private alone: what else stands in a column is part of its rows.
                if column not in [c.name for c in self._table.schema.private if isinstance(c, Categorical)]:
                    raise SiteError("the values of a column leave a site only where its schema calls them private")
                values, counts = session.table.count_values(column)
                return {}, (list(values), counts)
            case "count_rows":
                return {}, (np.array(session.table.count_rows()),)
        raise SiteError("the request names nothing that a table counts")

    def _answer(self, message: Message) -> Reply:
        session, place = self._open(message), message.header.get("place")
        if session.record.bill.federation.trust == AGGREGATOR or type(place) is not int or place < 1:
            raise SiteError("the request names no place of a session that draws noise at its sites", place)
        (ask,) = message.content(self._table.schema)
        return {}, session.answer(place, ask)

    def _finish(self, message: Message) -> Reply:
        number = _number(message)
        session = self._found(number)
        if session is not None:
            session.finish()
            del self._sessions[number]
        return {}, ()

    def _folder(self, number: str) -> Path | None:
        records = self._settings.records
        return None if records is None else records / number

    def _snapshot(self) -> str:
        """What would show that the file is another one; rows in memory and servers have none."""
        source = source_of(self._table)
        if source is None or "://" in source:
            return ""
        found = Path(source.partition("::")[0]).stat()
        return f"{found.st_size} {found.st_mtime_ns} {found.st_ino}"


def _bill(message: Message) -> Bill:
    try:
        return Bill.from_dict(message.header["bill"])
    except (KeyError, TypeError):
        raise SiteError("the request has no bill", None) from None


def _number(message: Message) -> str:
    """The session's number; digits only, since it names a folder."""
    number = message.header.get("session")
    whole = isinstance(number, str) and 16 <= len(number) <= LONGEST_NUMBER
    if not whole or not set(str(number)) <= set("0123456789abcdef"):
        raise SiteError("the request has no number of a session", None)
    return str(number)
