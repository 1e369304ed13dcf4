"""Step 3. A run is repeated on the other table with the answers of the first: nothing that is shown may change."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from understudy.boundary.privacy.asks.ask import Arrays, Ask, Price, Question
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.gates import RecordGate
from understudy.boundary.privacy.measurement import RecordedAnswer
from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.boundary.tables.table import Table
from understudy.errors import CheckFailed
from understudy.lab.audits.harness import RunContext, RunOutput, Subject
from understudy.lab.audits.result import FAILED, PASSED, Check

SEED = 11


class PinnedGate(RecordGate):
    """Asks its own table every question, and then answers from the record of another."""

    def __init__(self, table: Table, answers: Sequence[RecordedAnswer], randomness: Randomness) -> None:
        super().__init__(answers, secure=randomness.secure)
        self._table, self._randomness = table, randomness

    def answer(self, ask: Ask[Any], price: Price, questions: Sequence[Question], debit: Callable[[], None]) -> Arrays:
        ask.exact(self._table)
        return super().answer(ask, price, questions, debit)


def check(subject: Subject, pair: str, first: RunContext, second: RunContext, budget: Budget) -> Check:
    differences = tainted(subject, first, second, budget)
    name = f"pair {pair!r}"
    if differences:
        return Check(name, FAILED, f"with the same answers, these differ: {', '.join(differences)}.")
    return Check(name, PASSED, "with the same answers, all that is shown is the same.")


def tainted(subject: Subject, first: RunContext, second: RunContext, budget: Budget) -> list[str]:
    """What differs between two runs that were given the same answers."""
    curator, _ = first.curator(budget)
    with _heard() as said:
        shown = subject.show(first, curator, SEED)
    again = second.pinned(budget, PinnedGate(second.here, curator.record, second.harness.randomness()))
    try:
        with _heard() as said_again:
            repeated = subject.show(second, again, SEED)
    except CheckFailed:
        return ["the questions"]
    except Exception as error:  # the first run did not break: what breaks the second is a row
        return [f"whether the run breaks off ({type(error).__name__})"]
    return _differences(shown, repeated) + (["log lines"] if said != said_again else []) + _missing(again, curator)


def _differences(first: RunOutput, second: RunOutput) -> list[str]:
    found = [name for name in first.outside if first.outside[name] != second.outside.get(name)]
    same = first.rows is None or second.rows is None or first.rows.equals(second.rows)
    found += [] if first.numbers == second.numbers else ["the figures"]
    return found + ([] if same else ["the synthetic rows"])


def _missing(again: Curator, first: Curator) -> list[str]:
    return [] if len(again.record) == len(first.record) else ["the number of questions"]


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
    logger.setLevel(logging.DEBUG)
    try:
        yield listener.lines
    finally:
        logger.removeHandler(listener)
        logger.setLevel(level)
