"""One release as a site sees it: paid for once from the site's own ledger, before anything is answered.

Where sites draw, the session has a curator of its own, which prices every ask by itself, meters it, and draws the noise
here. So what a site gives away rests on its own ledger, its own arithmetic and its own random bits alone; the
aggregator's part of the guarantee is that of the masks, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from understudy.boundary.privacy.asks.ask import Arrays, Ask, Price, Question
from understudy.boundary.privacy.budget import Budget, Cost
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.facts import PublicFacts
from understudy.boundary.privacy.gates import Payer, RowGate
from understudy.boundary.privacy.journal import digest_of
from understudy.boundary.privacy.ledger.claims import FINISHED, Overtaken
from understudy.boundary.privacy.ledger.ledger import Ledger
from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.boundary.privacy.mechanisms.shared_noise import drawn_parts
from understudy.boundary.privacy.sites.masks import Masks
from understudy.boundary.privacy.sites.record import Kept, SessionRecord
from understudy.boundary.schema.domain import Coding, coding_of
from understudy.boundary.schema.federation import SECURE_SUM, Bill
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.cache import CachedTable
from understudy.boundary.tables.table import Table
from understudy.errors import SiteError


def facts_of(bill: Bill, schema: Schema) -> PublicFacts:
    """From what the bill says and the site's own schema: the aggregator's word for a price is never taken."""
    budget = Budget(bill.epsilon, bill.delta, bill.accounting)
    return PublicFacts(schema, budget, keys=bill.keys, federation=bill.federation)


class SiteGate(RowGate):
    """Answers from the site's rows, paid for once for a session, each kept before it is sent."""

    def __init__(
        self, table: Table, payer: Payer, randomness: Randomness, *, session: str, record: SessionRecord
    ) -> None:
        super().__init__(table, payer, randomness)
        self._number, self._record = session, record
        self.place = 0
        """Of the next ask in the release, as the aggregator counts them."""
        self._book: Ledger | None = None
        self._settled = False
        """Whether the ledger knows every answer that is kept, and no other: else none leaves the site."""

    def pay(self, whole: Cost) -> None:
        """Before anything is counted."""
        self._pay(whole)
        if not self._settled:
            self._claim()

    def _debit(self, ledger: Ledger, whole: Cost) -> None:
        """Idempotent: the ledger knows the sessions that it was debited for."""
        self._book = ledger
        claimed = ledger.claimed(self._number)
        entry = claimed.entry if claimed else self._write_down(ledger, whole, self._number)
        self._receipt = ledger.receipt(entry)

    def answer(self, ask: Ask[Any], price: Price, questions: Sequence[Question], debit: Callable[[], None]) -> Arrays:
        asked = digest_of(questions)
        kept = self._record.answers.get(self.place)
        if kept is None and any(place > self.place for place in self._record.answers):
            raise SiteError(f"question {self.place} of a session comes after later ones; begin anew", self.place)
        if kept is not None and kept.asked != asked:
            raise SiteError(f"question {self.place} of a session was another one before; begin anew", self.place)
        debit()
        if kept is not None:
            return kept.arrays
        hidden = ask.exact(self._table)
        if price.facts.federation is not None and price.facts.federation.trust == SECURE_SUM:
            drawn = drawn_parts(hidden, price.spends, self._randomness)
        else:
            drawn = ask.draw(hidden, price, self._randomness, self.keep)
        arrays = [np.asarray(array) for array in drawn]  # one number alone has become a scalar of numpy's
        kept_arrays = self._record.keep(self.place, Kept(ask, asked, arrays), price.facts.schema)
        self._claim()
        return kept_arrays

    def _claim(self) -> None:
        """Each answer in the ledger before it is sent, so that one whose record is lost is never drawn a second time.

        As for journals (`gates`); only that several processes of a site may know the same answer.
        """
        self._settled = self._book is None
        if self._book is None or self._receipt is None:
            return
        for last in (False, True):
            claimed, known = self._claimed(self._book), self._record.digests()
            try:
                if known[: len(claimed)] == claimed:
                    for number, digest in enumerate(known[len(claimed) :], len(claimed) + 1):
                        self._book.claim(self._receipt.entry, number, digest)
                    self._settled = True
                    return
            except Overtaken:  # by another process, which may have had the same answer from the same record
                if last:
                    raise
            self._record.catch_up(self._table.schema)
        raise SiteError("an answer that was given is no longer in the site's record; begin anew", self._number)

    def _claimed(self, ledger: Ledger) -> tuple[str, ...]:
        found = ledger.claimed(self._number)
        return () if found is None else found.digests


class Session:
    """A release at a site; made for a record that is new, or goes on with one that has answers."""

    def __init__(
        self, number: str, table: Table, *, name: str, record: SessionRecord, payer: Payer, randomness: Randomness
    ) -> None:
        self.record, self._payer, self._name, self._number = record, payer, name, number
        self.table = CachedTable(table)
        facts = facts_of(record.bill, table.schema)
        self._gate = SiteGate(self.table, payer, randomness, session=number, record=record)
        self._whole, self.secure = facts.whole, randomness.secure
        self._curator = Curator(
            table.schema, facts.counting, self._gate, record.bill.keys, federation=record.bill.federation
        )
        self._codings = {c.name: coding_of(c) for c in table.schema.modelled if not c.private}
        self._metered: set[int] = set()
        # What was answered before a restart is asked again: the meter counts it, and the record answers it.
        for place, kept in sorted(record.answers.items()):
            self._ask(place, kept.ask)

    def pay(self) -> None:
        self._gate.pay(self._whole)

    def answer(self, place: int, ask: Ask[Any]) -> Arrays:
        """The noisy arrays; masked, where the sites share the noise."""
        arrays = self._ask(place, ask)
        if self.record.bill.federation.trust != SECURE_SUM:
            return arrays
        return self._masks.hide(place, arrays)

    def meet(self, keys: Mapping[str, str]) -> None:
        """The public keys of all sites, once for the session."""
        if len(keys) != self.record.bill.federation.sites or self.record.keys not in ({}, keys):
            raise SiteError("the keys of a session must be those of all its sites, and stay the same", self._number)
        Masks.agreed(self._name, self.record.key, keys, self._number)
        self.record.meet(keys)

    @cached_property
    def _masks(self) -> Masks:
        if not self.record.keys:
            raise SiteError("the keys of the other sites are not there yet; begin the session", self._number)
        return Masks.agreed(self._name, self.record.key, self.record.keys, self._number)

    def _check_domain(self, ask: Ask[Any]) -> None:
        """Refuses other codes than those of the site's own schema.

        In a coding that has no code for some value, a row with that value would show, unpaid, as an error.
        """
        domain = getattr(ask, "domain", None)
        odd = next((c.name for c in domain or () if type(c) is not Coding or c != self._codings.get(c.name)), None)
        if odd is not None:
            raise SiteError(f"a question of a session counts {odd!r} by other codes than its schema has", odd)

    def _ask(self, place: int, ask: Ask[Any]) -> Arrays:
        self._check_domain(ask)
        kept = self.record.answers.get(place)
        if kept is not None and place in self._metered:
            if kept.asked != digest_of(ask.questions(self._curator.price(ask))):
                raise SiteError(f"question {place} of a session was another one before; begin anew", place)
            return kept.arrays
        self._gate.place = place
        self._curator.ask(ask)
        self._metered.add(place)
        return self.record.answers[place].arrays

    def finish(self) -> None:
        """Closes it for good: the ledger refuses the session's number from now on."""
        if self._payer.ledger is not None and self._gate.receipt is not None:
            Ledger.at(self._payer.ledger).claim(self._gate.receipt.entry, FINISHED, "")
        self.record.remove()
