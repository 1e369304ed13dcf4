"""Gates: where a curator's answers come from, be it rows, a record or a journal. Only a gate holds a table.

A release with a journal goes on after an interruption without paying or drawing anything twice (`JournalGate`).
The order of every answer: draw, write to the journal and sync, claim in the ledger by the record's SHA-256, and only
then hand it to the method. From that order:

*Each question has one noise.* What a release shows is a function of the answers that were handed out, of public facts
and of a seed. An answer is handed out only after its place was claimed; a place is claimed once, by one digest; and a
run that goes on hands out the record of that digest, or refuses. So whatever is shown depends on one draw per question,
however often the release was interrupted and however many copies of its journal there are: the whole is the mechanism
that the one debit paid for. A draw that was not claimed is thrown away unseen, and the one in its stead is independent
of it. What decides whether it is thrown away must not depend on the draw: between drawing and claiming it is written as
it is, in a length that its shape gives, and not compressed, which would fill a disk by value. (The one answer whose
length is drawn are the keys of a private column: on a disk that is full to the last bytes, more of them may fail.)

*It is paid once.* The digest of the journal's head is claimed in the transaction of the debit, so that the ledger knows
which debit a journal belongs to; and the head says what was asked for, at which budget.

Privacy needs no more than that. That a resumed release also equals, bit for bit, the uninterrupted one with these
answers is the property that `understudy replay` checks.

A training is one answer of many noisy sums, each of which is drawn, written, claimed and then handed out as an answer
is. Its accountant speaks of all sums, for critics that are chosen by looking at earlier ones (`subsampling`).
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks import kind_of
from understudy.boundary.privacy.asks.ask import Arrays, Ask, Price, Question
from understudy.boundary.privacy.asks.counts import NoisyCounts
from understudy.boundary.privacy.budget import Budget, Cost
from understudy.boundary.privacy.facts import PrivacyUnit, PublicFacts
from understudy.boundary.privacy.journal import ANSWER, STEP, Journal, digest_of
from understudy.boundary.privacy.ledger import known_rows, state
from understudy.boundary.privacy.ledger.ledger import Ledger, Receipt, demand_text
from understudy.boundary.privacy.measurement import RecordedAnswer
from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.boundary.schema.federation import Bill
from understudy.boundary.tables.cache import CachedTable
from understudy.boundary.tables.sites.federated import FederatedRelease, release_of
from understudy.boundary.tables.table import Table, checked_codes, source_of, version_of
from understudy.errors import CheckFailed, InternalError, TableError

FEWEST_ROWS = 2
"""A table of fewer rows is refused unread. That tables have at least this many is a public promise of every claim."""


class Gate(ABC):
    """Where answers come from: rows, or a record."""

    @property
    @abstractmethod
    def secure(self) -> bool:
        """Whether the noise comes from a source on which a claim may rest."""

    @abstractmethod
    def answer(self, ask: Ask[Any], price: Price, questions: Sequence[Question], debit: Callable[[], None]) -> Arrays:
        """One array for each question; `debit` is called once, before anything is drawn or handed out."""

    @property
    def receipt(self) -> Receipt | None:
        """Which debit of which ledger paid, once one did."""
        return None

    def demand_codes(self) -> None:  # noqa: B027 - a gate without rows has nothing to refuse
        """Refuses a table that hands out counts only."""

    def finish(self) -> None:  # noqa: B027 - most gates keep nothing
        """The last answer was given."""


@dataclass(frozen=True)
class Payer:
    """Which ledger is debited, and what it is told; without a ledger, nothing is debited.

    A ledger given by its path is made only when it is first debited, so that a refused request leaves no file.
    """

    budget: Budget
    ledger: Ledger | Path | None = None
    purpose: str = ""
    analyst: str = ""

    def __post_init__(self) -> None:
        demand_text("analyst", self.analyst)


class RowGate(Gate):
    """Answers from rows. The whole budget of the curator is debited from the ledger before the first draw."""

    def __init__(self, table: Table, payer: Payer, randomness: Randomness) -> None:
        if not table.has_rows(FEWEST_ROWS):
            raise TableError(f"{table.name} must have at least {FEWEST_ROWS} rows to hide one of them", table.name)
        self._table, self._payer, self._randomness = table, payer, randomness
        self._sites, self._place = release_of(table), 0
        if self._sites is not None and self._sites.federation.sites_draw:
            self._sites.lend(randomness)
        self._paid = False
        self._receipt: Receipt | None = None

    @property
    def secure(self) -> bool:
        return self._randomness.secure and (self._sites is None or self._sites.secure)

    def answer(self, ask: Ask[Any], price: Price, questions: Sequence[Question], debit: Callable[[], None]) -> Arrays:
        self._place += 1
        if self._sites is not None:
            return self._of_sites(self._sites, ask, price, debit)
        # Counted first, so that a table that can't be read costs nothing. Debited on the disk before the draw, so that
        # a crash may lose an answer that was paid, and never shows one that wasn't.
        hidden = ask.exact(self._table)
        self._pay(price.facts.whole)
        debit()
        return ask.draw(hidden, price, self._randomness, self.keep)

    def _of_sites(self, sites: FederatedRelease, ask: Ask[Any], price: Price, debit: Callable[[], None]) -> Arrays:
        """From a federated table, whose sites have ledgers of their own: nothing is counted before all were debited."""
        self._pay_with(sites, price.facts)
        debit()
        if not sites.federation.sites_draw:
            return ask.draw(ask.exact(self._table), price, self._randomness, self.keep)
        if not isinstance(ask, NoisyCounts):
            raise InternalError(f"a {type(ask).__name__} is no noisy sum.", ask)
        return ask.summed(sites.answers(ask, self._place, ask.shapes(price)), price)

    def _pay_with(self, sites: FederatedRelease, facts: PublicFacts) -> None:
        """Every site is asked first whether it could; then this ledger is debited, and then each of theirs."""
        if self._paid:
            return
        bill = Bill(
            sites.federation, facts.schema.digest, facts.counting.epsilon, facts.counting.delta,
            facts.counting.accounting, keys=facts.keys, purpose=self._payer.purpose, analyst=self._payer.analyst,
        )  # fmt: skip
        sites.prepare(bill, self._session())
        self._pay(facts.whole)
        sites.begin(bill, self._session() or secrets.token_hex(32))

    def _session(self) -> str:
        """The number by which sites know this release if it goes on; none for one that can't."""
        return ""

    def finish(self) -> None:
        if self._sites is not None:
            self._sites.finish()

    @property
    def receipt(self) -> Receipt | None:
        return self._receipt

    def keep(self, draw: Callable[[], NDArray[np.int64]]) -> NDArray[np.int64]:
        """The noisy sums of one step of an answer; a gate with a journal keeps them before anybody sees them."""
        return draw()

    def demand_codes(self) -> None:
        checked_codes(_uncached(self._table))

    def _pay(self, whole: Cost) -> None:
        """One entry for the whole budget, on disk before any draw: concurrent curators can't run dry half-way."""
        if self._paid:
            return
        self._table.check_readable()
        if self._payer.ledger is not None:
            self._debit_once(self._payer.ledger, whole)
        self._paid = True

    def _debit_once(self, where: Ledger | Path, whole: Cost) -> None:
        rows = known_rows.rows_of(source_of(_uncached(self._table)))
        if isinstance(where, Path):
            known_rows.demand_unknown(rows, where)
        ledger = Ledger.at(where, create=True)
        # Before the debit: a warning may be an error to whoever asks.
        known_rows.warn(rows, ledger.identity())
        self._debit(ledger, whole)
        known_rows.remember(rows, ledger.identity())

    def _debit(self, ledger: Ledger, whole: Cost) -> None:
        self._receipt = ledger.receipt(self._write_down(ledger, whole))

    def _write_down(self, ledger: Ledger, whole: Cost, journal: str = "") -> int:
        schema, payer = self._table.schema, self._payer
        told = {"purpose": payer.purpose, "analyst": payer.analyst, "journal": journal}
        return ledger.debit(whole, payer.budget, schema.neighbours, **told, unit=PrivacyUnit.of(schema))


def _uncached(table: Table) -> Table:
    return table.uncached if isinstance(table, CachedTable) else table


class RecordGate(Gate):
    """Answers from a record, in the order in which they were given; a different question is a failed check."""

    def __init__(self, answers: Sequence[RecordedAnswer], secure: bool) -> None:
        self._answers = list(answers)
        self._next = 0
        self._secure = secure

    @property
    def secure(self) -> bool:
        return self._secure

    @property
    def exhausted(self) -> bool:
        return self._next == len(self._answers)

    def answer(self, ask: Ask[Any], price: Price, questions: Sequence[Question], debit: Callable[[], None]) -> Arrays:
        debit()
        values = [self._take(q) for q in questions]
        # Strategies index and reshape what they get, and trust that it is what they asked for.
        if not ask.fits(values, price):
            raise CheckFailed(f"answer {self._next} of the record has not the form of a {ask.name}", ask.name)
        return values

    def _take(self, question: Question) -> NDArray[Any]:
        if self.exhausted:
            raise CheckFailed(f"the record ends before question {self._next + 1}: {kind_of(question).name}", question)
        recorded = self._answers[self._next]
        # The whole question, with its scale: a record of other noise, or of other columns, answers nothing.
        if recorded.question != question:
            raise CheckFailed(f"question {self._next + 1} of the record is not the one that the method asks", question)
        self._next += 1
        return recorded.value


class JournalGate(RowGate):
    """Answers from a journal as far as it goes, and from rows after that; each new answer is kept before it is seen."""

    def __init__(self, table: Table, payer: Payer, randomness: Randomness, journal: Journal) -> None:
        super().__init__(table, payer, randomness)
        self._journal, self._asked = journal, ""
        self._book: Ledger | None = None

    def answer(self, ask: Ask[Any], price: Price, questions: Sequence[Question], debit: Callable[[], None]) -> Arrays:
        self._asked = digest_of(questions)
        recorded = self._journal.answer(self._asked)
        if recorded is None:
            return self._kept(ANSWER, super().answer(ask, price, questions, debit))
        self._place += 1
        debit()
        return recorded

    def _session(self) -> str:
        return self._journal.digest if self._journal.paid else ""

    def keep(self, draw: Callable[[], NDArray[np.int64]]) -> NDArray[np.int64]:
        """One step of a training: as it was drawn before, or drawn now and kept."""
        recorded = self._journal.step(self._asked)
        if recorded is not None:
            return recorded
        return self._kept(STEP, [draw()])[0]

    def _debit(self, ledger: Ledger, whole: Cost) -> None:
        """Debits a release that is new. The head is on the disk before, so that no debit is without its journal."""
        self._book = ledger
        # Under a key of this machine's, since it follows from the rows (`ledger.known_rows`).
        version = version_of(_uncached(self._table))
        rows = version and state.keyed(version)
        if self._journal.paid:
            self._demand_the_same(rows)
            return
        self._journal.rows = rows or ""
        try:
            self._journal.create()
            self._journal.entry = self._write_down(ledger, whole, self._journal.digest)
        except (Exception, KeyboardInterrupt):
            # The ledger knows whether it was debited: a stop may come after its commit and before its answer.
            if not self._journal.recall(ledger):
                self._journal.discard()
            raise

    def _demand_the_same(self, rows: str | None) -> None:
        """Refuses to ask the rest of a release of rows that are not those it began with, where that can be told."""
        if self._journal.rows and rows and rows != self._journal.rows:
            raise TableError(
                f"{self._table.name} has changed since this release began, and one release must be of one state of it; "
                f"put it back as it was, or delete journal {str(self._journal.path)!r} and begin anew",
                self._table.name,
            )

    @property
    def receipt(self) -> Receipt | None:
        """Of the journal's debit: a release whose answers all stand in the journal is paid, and pays no more."""
        if self._journal.entry is None or self._payer.ledger is None:
            return None
        return Ledger.at(self._payer.ledger).receipt(self._journal.entry)

    def _kept(self, kind: str, values: Arrays) -> Arrays:
        if self._book is None or self._journal.entry is None:
            raise InternalError("an answer was drawn before it was paid for.", self._journal.path)
        # Written before it is claimed: a claim without its record could never be resumed.
        digest = self._journal.append(kind, self._asked, values)
        self._book.claim(self._journal.entry, self._journal.place, digest)
        self._journal.advance()
        return values
