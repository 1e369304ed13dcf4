"""Step 3. A run is repeated on the other table with the answers of the first: nothing that is shown may change."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from understudy.boundary.privacy.asks.ask import Arrays, Ask, Price, Question
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.gates import RecordGate
from understudy.boundary.privacy.measurement import RecordedAnswer
from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.boundary.tables.table import Table
from understudy.errors import CheckFailed
from understudy.lab.audits.harness import RunContext, Subject
from understudy.lab.audits.result import AuditCheck

SEED = 11


class PinnedGate(RecordGate):
    """Asks its own table every question, and then answers from the record of another."""

    def __init__(self, table: Table, answers: Sequence[RecordedAnswer], randomness: Randomness) -> None:
        super().__init__(answers, secure=randomness.secure)
        self._table, self._randomness = table, randomness

    def answer(self, ask: Ask[Any], price: Price, questions: Sequence[Question], debit: Callable[[], None]) -> Arrays:
        ask.exact(self._table)  # what counting alone betrays (an error, a log line) is to be seen, too
        return super().answer(ask, price, questions, debit)


def check(subject: Subject, pair: str, first: RunContext, second: RunContext, budget: Budget) -> AuditCheck:
    differences = tainted(subject, first, second, budget)
    found = "all that is shown is the same"
    if differences:
        found = f"these differ: {', '.join(differences)}"
    return AuditCheck.of(f"pair {pair!r}", not differences, f"with the same answers, {found}.")


def tainted(subject: Subject, first: RunContext, second: RunContext, budget: Budget) -> list[str]:
    """What differs between two runs that were given the same answers."""
    curator, _ = first.curator(budget)
    with _heard() as said:
        shown = subject.show(first, curator, SEED)
    again = second.harness.curator(
        second.schema, budget, PinnedGate(second.here, curator.record, second.harness.randomness())
    )
    try:
        with _heard() as said_again:
            repeated = subject.show(second, again, SEED)
    except CheckFailed:  # the record's answers are for other questions than were asked now
        return ["the questions"]
    except Exception as error:  # the first run did not break: what breaks the second is a row
        return [f"whether the run breaks off ({type(error).__name__})"]
    differs = {name: value != repeated.outside.get(name) for name, value in shown.outside.items()}
    differs["the figures"] = shown.numbers != repeated.numbers
    if shown.rows is not None and repeated.rows is not None:
        differs["the synthetic rows"] = not shown.rows.equals(repeated.rows)
    differs["log lines"] = said != said_again
    differs["the number of questions"] = len(again.record) != len(curator.record)
    return [name for name, different in differs.items() if different]


class _Listener(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@contextmanager
def _heard() -> Iterator[list[str]]:
    """The log lines of our own code."""
    logger, listener = logging.getLogger("understudy"), _Listener()
    level = logger.level
    logger.addHandler(listener)
    logger.setLevel(logging.DEBUG)  # whichever level a user chooses, no line may depend on a row
    try:
        yield listener.lines
    finally:
        logger.removeHandler(listener)
        logger.setLevel(level)
