"""Going on with an interrupted release, without paying or drawing anything twice.

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
is. Its accountant speaks of all sums, for critics that are chosen by looking at earlier ones (`privacy.subsampling`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks.ask import Arrays, Ask, Price, Question
from understudy.boundary.privacy.budget import Budget, Cost
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.gates import Payer, RowGate
from understudy.boundary.privacy.journal import ANSWER, STEP, Journal, digest_of
from understudy.boundary.privacy.ledger.claims import FINISHED
from understudy.boundary.privacy.ledger.ledger import Ledger, Receipt
from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.boundary.tables.cache import CachedTable
from understudy.boundary.tables.table import Table
from understudy.errors import InputError, InternalError, UnderstudyError


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
        debit()
        return recorded

    def keep(self, draw: Callable[[], NDArray[np.int64]]) -> NDArray[np.int64]:
        """One step of a training: as it was drawn before, or drawn now and kept."""
        recorded = self._journal.step(self._asked)
        return self._kept(STEP, [draw()])[0] if recorded is None else recorded

    def _debit(self, ledger: Ledger, whole: Cost) -> None:
        """Debits a release that is new. The head is on the disk before, so that no debit is without its journal."""
        self._book = ledger
        if self._journal.paid:
            return
        try:
            self._journal.create()
            self._journal.entry = self._write_down(ledger, whole, self._journal.digest)
        except UnderstudyError:
            self._journal.discard()
            raise

    @property
    def receipt(self) -> Receipt | None:
        """Of the journal's debit: a release whose answers all stand in the journal is paid, and pays no more."""
        if self._journal.entry is None or self._payer.ledger is None:
            return None
        return Ledger.at(self._payer.ledger).receipt(self._journal.entry)

    def _kept(self, kind: str, values: Arrays) -> Arrays:
        if self._book is None or self._journal.entry is None:
            raise InternalError("an answer was drawn before it was paid for.", self._journal.path)
        digest = self._journal.append(kind, self._asked, values)
        self._book.claim(self._journal.entry, self._journal.place, digest)
        self._journal.advance()
        return values


def journalled(
    table: Table,
    budget: Budget,
    ledger: Ledger | Path,
    journal: Journal,
    *,
    purpose: str,
    analyst: str,
    randomness: Randomness,
) -> Curator:
    """A curator of rows that keeps a journal, or goes on with one."""
    gate = JournalGate(CachedTable(table), Payer(budget, ledger, purpose, analyst), randomness, journal)
    return Curator(table.schema, budget, gate)


def resumed(path: Path, ledger: Ledger | Path) -> Journal:
    """The journal of an interrupted release, as far as the ledger knows it; reads, and changes nothing."""
    journal = Journal.open(path)
    try:
        _trust(journal, Ledger.at(ledger))
    except BaseException:
        journal.close()
        raise
    return journal


def finish(journal: Journal, ledger: Ledger | Path) -> None:
    """Closes a release for good, once it is where it should be: the ledger says so, and the journal is deleted."""
    if journal.entry is not None:
        Ledger.at(ledger).claim(journal.entry, FINISHED, journal.digest)
        journal.delete()


def _trust(journal: Journal, ledger: Ledger) -> None:
    claimed = ledger.claimed(journal.digest)
    if claimed is None and journal.found:
        raise InputError(
            f"ledger ({ledger}) knows nothing of journal {str(journal.path)!r}; give the ledger that was debited",
            journal.path,
        )
    if claimed is not None and claimed.finished:
        raise InputError(
            f"the release of journal {str(journal.path)!r} is finished, and can't be resumed; delete the journal",
            journal.path,
        )
    if claimed is not None:
        journal.take(claimed.digests)
        journal.entry = claimed.entry
