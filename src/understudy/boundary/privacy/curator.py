"""The curator: the one object through which anything is learned of private rows.

Every ask follows the same order: dry-run the debit, compute the exact answer behind the boundary, debit, draw the
noise, record. A refusal or an unreadable table therefore costs nothing, and no noise is ever drawn unpaid.
A curator that replays gets its answers from a record instead of rows; strategies can't tell the difference, which is
how a release proves that it depends on the rows through its measurements alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from understudy.boundary.privacy.asks import ASKS
from understudy.boundary.privacy.asks.ask import Ask, Price, Result
from understudy.boundary.privacy.budget import Amount, Budget, Cost, Meter, Spend, claim
from understudy.boundary.privacy.budget import total as composed
from understudy.boundary.privacy.facts import PublicFacts
from understudy.boundary.privacy.gates import Gate, JournalGate, Payer, RecordGate, RowGate
from understudy.boundary.privacy.journal import Journal
from understudy.boundary.privacy.ledger.ledger import Ledger, Receipt
from understudy.boundary.privacy.measurement import RecordedAnswer, frozen
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness, Randomness
from understudy.boundary.privacy.mechanisms.subsampling import check_trainable
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.federation import Federation
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.cache import CachedTable
from understudy.boundary.tables.sites.federated import FederatedTable, federation_of
from understudy.boundary.tables.table import Table, snapshot_of
from understudy.errors import BudgetExhausted, InternalError, MethodError


class Curator(Queryable):
    """Metered, noisy answers about one table.

    >>> import pyarrow as pa, understudy as us
    >>> from understudy.boundary.privacy.asks import Marginals
    >>> from understudy.boundary.schema.domain import Domain
    >>> schema = us.Schema.loads('[columns.age]\\ntype = "integer"\\nmin = 0\\nmax = 99')
    >>> curator = Curator.on(us.open(pa.table({"age": [31, 47, 52]}), schema), Budget(1.0, 0.0))
    >>> curator.ask(Marginals(Domain.of(schema), [("age",)], curator.remaining()))[0].counts.shape
    (100,)
    >>> curator.guarantee
    (1.0, 0.0)
    """

    kinds: ClassVar[tuple[type[Ask[Any]], ...]] = ASKS
    """What it answers: these and no subclass of theirs, which might say another price than the one that is proved."""

    def __init__(
        self,
        schema: Schema,
        budget: Budget,
        gate: Gate,
        keys: Sequence[str] | None = None,
        *,
        federation: Federation | None = None,
    ) -> None:
        self._budget, self._gate = budget, gate
        self._facts = PublicFacts(schema, budget, keys=None if keys is None else tuple(keys), federation=federation)
        self._meter = Meter(budget)
        self._record: list[RecordedAnswer] = []
        # Reentrant, so that what asks while it is being answered is refused and does not wait for itself.
        self._asking = threading.RLock()
        self._answering = False

    @classmethod
    def on(
        cls,
        table: Table,
        budget: Budget,
        *,
        ledger: Ledger | Path | None = None,
        purpose: str = "",
        analyst: str = "",
        randomness: Randomness | None = None,
        keys: Sequence[str] | None = None,
        journal: Journal | None = None,
    ) -> Curator:
        """A curator of rows; without a ledger the budget is metered for this curator alone.

        A ledger given by its path is made only when it is first debited, so that a refused request leaves no file.
        `keys` are the columns whose private values will be asked for, which costs a part of δ; by default all that the
        schema has. With a journal, which needs a ledger, it keeps its answers there, or goes on with those.
        """
        federation = federation_of(table)
        table = table.release() if isinstance(table, FederatedTable) else snapshot_of(table)
        cached, payer = CachedTable(table), Payer(budget, ledger, purpose, analyst)
        randomness = randomness or ExactRandomness.system()
        gate = RowGate(cached, payer, randomness)
        if journal is not None:
            gate = JournalGate(cached, payer, randomness, journal)
        return cls(table.schema, budget, gate, keys, federation=federation)

    @classmethod
    def replaying(
        cls,
        schema: Schema,
        budget: Budget,
        answers: Sequence[RecordedAnswer],
        *,
        secure: bool = True,
        keys: Sequence[str] | None = None,
        federation: Federation | None = None,
    ) -> Curator:
        """A curator that has no rows: it hands out recorded answers."""
        return cls(schema, budget, RecordGate(answers, secure), keys, federation=federation)

    @property
    def facts(self) -> PublicFacts:
        return self._facts

    @property
    def budget(self) -> Budget:
        return self._budget

    @property
    def secure(self) -> bool:
        """Whether the noise comes from a source on which a claim may rest."""
        return self._gate.secure

    @property
    def record(self) -> tuple[RecordedAnswer, ...]:
        """Every question with its noisy answer so far: all that anything downstream can know of the rows."""
        return tuple(self._record)

    @property
    def spends(self) -> tuple[Spend, ...]:
        return self._meter.spends

    @property
    def receipt(self) -> Receipt | None:
        """Which debit of which ledger paid for the answers; None where nothing was debited."""
        return self._gate.receipt

    @property
    def guarantee(self) -> tuple[float, float]:
        return self._meter.guarantee()

    def ahead(self) -> Callable[[Spend], float]:
        before = composed(s.cost for s in self.spends)
        return lambda spend: claim(before + spend.cost, self.budget.delta, self.budget.accounting)

    def demand_codes(self) -> None:
        self._gate.demand_codes()

    def reserve(self, epsilon_share: float, delta_share: float) -> Budget:
        """Sets these shares of ε and δ aside for one training, before anything is asked; the rest is for counting."""
        check_trainable(self.budget.pure, self.schema)
        self.demand_codes()
        # The ledger is debited with the first answer, for the division as it is then.
        with self._asking:
            if self._answering or self._record or self._facts.training:
                raise MethodError("the budget must be divided once, and before anything is asked of the rows", self)
            self._facts = self._facts.divided(epsilon_share, delta_share)
            assert self._facts.training is not None
            return self._facts.training

    def remaining(self) -> Amount:
        """What is left of the budget, to be split by shares; never more than a ledger is debited for it."""
        left = self._meter.remaining()
        if self.budget.pure:
            return left
        # The meter knows what was spent, and would let g have the δ that is set aside for keys not asked for yet; the
        # ledger was debited for less.
        room = self._paid(self.facts.whole) - self._paid(self._meter.spent)
        if room <= 0:
            raise BudgetExhausted(f"nothing is left of the budget ({self.budget}); ask for a larger one", self)
        return replace(left, value=min(left.value, room))

    def _paid(self, cost: Cost) -> Fraction:
        """The cost in the currency of the budget; the meter has refused what has none."""
        price = cost.by(self.budget.accounting)
        assert price is not None
        return price

    def ask(self, ask: Ask[Result]) -> Result:
        """The one way in. One question may have several spends: k draws of one selection are k spends.

        Threads are answered one after the other: between the dry run and the debit, nobody else may spend.
        """
        if type(ask) not in self.kinds:
            raise InternalError(f"a {type(ask).__name__} must be one of the asks of the boundary.", type(ask))
        with self._asking:
            if self._answering:
                raise InternalError("nothing can be asked while another ask is being answered.", type(ask))
            self._answering = True
            try:
                # Refuse first, spend later: neither the price nor the question looks at the rows.
                price = self.price(ask)
                questions = ask.questions(price)
                self._check(price.spends)
                values = self._gate.answer(ask, price, questions, lambda: self._meter.debit(price.spends))
                # Frozen, since the strategy is handed the very arrays that the record keeps.
                values = [frozen(np.asarray(v)) for v in values]
                self._record += [RecordedAnswer(q, v) for q, v in zip(questions, values, strict=True)]
                return ask.answer(values, price)
            finally:
                self._answering = False

    def price(self, ask: Ask[Any]) -> Price:
        """What it would cost; neither rows nor answers are looked at."""
        return Price(self.facts, self.facts.settled(ask.spends(self.facts)))

    def finish(self) -> None:
        """The last answer was given; sites of a federated table may forget theirs."""
        self._gate.finish()

    def _check(self, spends: Sequence[Spend]) -> None:
        """The dry run. The ledger is debited once, for the split between g (or ρ) and δ that the schema's private
        columns call for; another split of the same (ε, δ) would be paid by nobody.
        """
        self._meter.check(spends)
        if self.budget.pure:
            return
        cost, whole = composed((self._meter.spent, *(s.cost for s in spends))), self.facts.whole
        # A ledger adds up the ε of trainings as it is: what is left over elsewhere makes no room for it.
        parts = [(self._paid(c), c.delta, c.direct) for c in (cost, whole)]
        if any(asked > most for asked, most in zip(*parts, strict=True)):
            asked, most = ("{:.4g}, {:.4g} and {:.4g}".format(*map(float, part)) for part in parts)
            raise BudgetExhausted(
                f"{self.budget.capacity.currency}, delta and the epsilon of trainings ({asked}) of all asks together "
                f"must be at most the {most} that the budget ({self.budget}) is debited for; ask for less",
                tuple(spends),
            )
