"""Mutants before and beside the noise: each does again what an outside review once found in this package.

They are made of what the package is made of, and don't depend on how it does these things today.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from understudy.boundary.privacy.asks import ASKS, Ask, Select, Tally
from understudy.boundary.privacy.asks.ask import Arrays, Price, Question, Result
from understudy.boundary.privacy.budget import Amount, Spend
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.facts import PrivacyUnit, PublicFacts
from understudy.boundary.privacy.ledger.ledger import Ledger
from understudy.boundary.privacy.mechanisms.exponential import Admission
from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.boundary.privacy.mechanisms.training import Keep, at_once
from understudy.boundary.schema.column import Categorical, Column, Datetime
from understudy.boundary.schema.grouped_sums import RowCount, Summand
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.cache import CachedTable
from understudy.boundary.tables.frame import FrameTable
from understudy.boundary.tables.sql import DUCKDB_FUNCTIONS
from understudy.boundary.tables.table import Table
from understudy.errors import TableError
from understudy.lab.audits.harness import WithGuarantee, opened

# --- how rows are read


def by_storage(frame: Any, schema: Schema) -> Table:
    """Reads a column of pandas by how it is stored: typed ones as an engine prints them, others as Python does."""
    import pyarrow as pa

    if isinstance(frame, pa.Table | str):
        return opened(frame, schema)
    return opened(pa.table({name: _as_stored(frame[name], schema[name]) for name in frame.columns}), schema)


def _as_stored(series: Any, column: Column) -> Any:
    """As texts, which are read alike whatever they were made of: what the two ways of reading once came to."""
    import pyarrow as pa

    if isinstance(column, Datetime) and series.dtype.kind == "f":
        raise TableError(f"column {column.name!r} holds DOUBLE values, which can't be read as datetime", column)
    said = _said_by_engine
    if series.dtype == object:
        said = _said_by_python
    texts = [said(value, column) if known else None for value, known in zip(series, series.notna(), strict=True)]
    return pa.array(texts, type=pa.string())


def _said_by_python(value: Any, column: Column) -> str | None:
    """A truth value is True, which is no number; the offset of a date is lost."""
    if isinstance(value, bool):
        return str(value) if _is_listed(column) else None
    if hasattr(value, "tzinfo"):
        return str(value.replace(tzinfo=None))
    return str(value)


def _said_by_engine(value: Any, column: Column) -> str | None:
    """A truth value is 1 or 0, or a word that no list has (true); dates are in UTC."""
    if isinstance(value, bool | np.bool_):
        return f"({value})" if _is_listed(column) else str(int(value))
    if hasattr(value, "tz_convert") and value.tzinfo is not None:
        return str(value.tz_convert("UTC").tz_localize(None))
    return str(value)


def _is_listed(column: Column) -> bool:
    return isinstance(column, Categorical) and not column.numeric


# --- who is a person


def by_raw_id(frame: Any, schema: Schema) -> Table:
    """The first rows of each id as it is written; those without one are one person together."""
    if schema.unit is None or isinstance(frame, str):
        return opened(frame, schema)
    turns: dict[Any, int] = {}
    kept = []
    for place, person in enumerate(_values(frame, schema.unit.column)):
        if person != person:  # NaN, which is how pandas writes that there is none
            person = None
        turns[person] = turns.get(person, 0) + 1
        if turns[person] <= schema.unit.max_rows:
            kept.append(place)
    return _Capped(opened(frame.take(kept), dataclasses.replace(schema, unit=None)), schema)


def _values(frame: Any, column: str) -> list[Any]:
    if hasattr(frame[column], "to_pylist"):  # of Arrow, or of pandas
        return list(frame[column].to_pylist())
    return list(frame[column].tolist())


class _Capped:
    """Rows that were capped already, under a schema that says that they will be."""

    def __init__(self, table: Table, schema: Schema) -> None:
        self._table, self.schema = table, schema

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)


# --- asks


class BrokenAsk(Ask[Result]):
    """An ask of which the price or the noise is spoilt; all else is what the honest one says."""

    def __init__(
        self,
        honest: Ask[Result],
        price: Callable[[Sequence[Spend]], list[Spend]] = list,
        spoil: Callable[[Randomness], Randomness] = lambda honest: honest,
    ) -> None:
        self._honest, self._declared, self._spoil = honest, price, spoil
        self._true: Price | None = None

    def spends(self, facts: PublicFacts) -> list[Spend]:
        # The curator debits what is declared here; questions, noise and answer go on by the true price.
        self._true = Price(facts, tuple(self._honest.spends(facts)))
        return self._declared(self._true.spends)

    @property
    def _price(self) -> Price:
        assert self._true is not None
        return self._true

    def questions(self, price: Price) -> list[Question]:
        return self._honest.questions(self._price)

    def exact(self, table: Table) -> Any:
        return self._honest.exact(table)

    def draw(self, hidden: Any, price: Price, randomness: Randomness, keep: Keep = at_once) -> Arrays:
        return self._honest.draw(hidden, self._price, self._spoil(randomness), keep)

    def answer(self, values: Arrays, price: Price) -> Result:
        return self._honest.answer(values, self._price)


class RowsAreNobodys(PublicFacts):
    """Takes the number of rows for public under replace-one, also where the rows are people's."""

    @property
    def public_rows(self) -> bool:
        return self.replaced


class FreeTally(Tally):
    """Gives the number of all rows away where it is taken for public."""

    def spend(self, facts: PublicFacts, summand: Summand, amount: Amount) -> Spend:
        paid = super().spend(facts, summand, amount)
        total = summand == RowCount() and self.sums.where is None and not self.sums.by
        if total and facts.public_rows:
            return Spend("public", paid.asked, 0.0, 0.0)
        return paid


class FreeTotal(Curator):
    """Hands out the exact number of rows under replace-one, whoever the rows belong to."""

    kinds = (*ASKS, FreeTally)

    @property
    def facts(self) -> PublicFacts:
        known = super().facts
        return RowsAreNobodys(known.schema, known.counting, known.training, known.keys)

    def ask(self, ask: Ask[Result]) -> Result:
        free: Ask[Any] = ask
        if isinstance(ask, Tally):
            free = FreeTally(ask.domain, ask.sums, ask.amount, ask.weights)
        answer: Result = super().ask(free)
        return answer


# --- selections


class LateSelect(Select):
    """Does not check that what its rule admits only shrinks."""

    def picked(self, order: list[int]) -> list[int]:
        assert self.rule is not None
        rule, picked = self.rule, list[int]()
        for candidate in order:
            if len(picked) < self.k and rule.admits(candidate):
                picked.append(candidate)
                rule = rule.after(candidate)
        return picked


class LateAdmission(Curator):
    """Walks one order with a rule that comes back to what it passed over, and pays for as many draws as it picks."""

    kinds = (*ASKS, LateSelect)

    def ask(self, ask: Ask[Result]) -> Result:
        late: Ask[Any] = ask
        if isinstance(ask, Select) and ask.rule is not None and ask.k > 1:
            late = LateSelect(ask.domain, ask.candidates, ask.amount, ask.k, Hesitant(ask.rule))
        answer: Result = super().ask(late)
        return answer


@dataclass(frozen=True)
class Hesitant:
    """Refuses every second candidate until something was picked."""

    rule: Admission
    begun: bool = False

    def admits(self, candidate: int) -> bool:
        return (self.begun or candidate % 2 == 0) and self.rule.admits(candidate)

    def after(self, picked: int) -> Hesitant:
        return Hesitant(self.rule.after(picked), True)


# --- ledgers and claims


class UnitBlind(Ledger):
    """Debits every release as one about rows."""

    def debit(self, *what: Any, **more: Any) -> int:
        return super().debit(*what, **(more | {"unit": PrivacyUnit()}))


def as_if_confirmed(claim: WithGuarantee) -> Any:
    """Whatever noise nobody can repeat guarantees what was paid, whoever wrote the schema."""
    if not claim.secure:
        return None
    return claim.epsilon, claim.delta


# --- files


def left_in_files(frame: Any, schema: Schema) -> Table:
    """Writes the rows down beside the others' temporary files, and forgets them."""
    table = CachedTable(opened(frame, schema))
    handle, name = tempfile.mkstemp(prefix="understudy-mutant-", suffix=".tmp")
    with os.fdopen(handle, "w") as file:
        file.write(repr([_values(frame, c) for c in schema.names]))
    Path(name).chmod(0o644)  # mkstemp would hide it from others
    weakref.finalize(table, lambda: Path(name).unlink(missing_ok=True))
    return table


def spilled_beside(frame: Any, schema: Schema) -> Table:
    """Lets the engine put what has no room in memory where the program was started, as it does by itself."""
    import duckdb

    table = opened(frame, schema)
    if isinstance(table, CachedTable) and isinstance(table.uncached, FrameTable):
        inner, connection = table.uncached, duckdb.connect()
        connection.execute(DUCKDB_FUNCTIONS)
        connection.register("frame", inner._rows)
        inner.__dict__["_connection"] = connection  # where `cached_property` would look first
    return table
