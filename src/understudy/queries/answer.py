"""The answer to a metered query: a table of figures with intervals, and what it cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from understudy.boundary.privacy.ledger.ledger import Receipt
from understudy.queries.estimates import Figure
from understudy.releases.certificate import DRAFT_REASON, SEEDED_REASON

Key = str | int | bool | None


@dataclass(frozen=True)
class Group:
    """One row of an answer: its keys (None stands for a missing value) and its figures."""

    keys: tuple[Key, ...]
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Answer:
    """Figures of one query. `recorded` says that it was asked before, and cost nothing this time.

    `guarantee` is the (ε, δ) that was paid when it was first asked; None for noise that a seed made repeatable, and
    where the schema is a draft that nobody confirmed. `ledger` says which debit paid, if one did this time.
    """

    sql: str
    keys: tuple[str, ...]
    names: tuple[str, ...]
    groups: tuple[Group, ...]
    confidence: float
    epsilon: float
    delta: float
    recorded: bool
    secure: bool
    draft: bool = False
    ledger: Receipt | None = field(default=None, compare=False)

    @property
    def void(self) -> str | None:
        """Why nothing is guaranteed, in words."""
        if not self.secure:
            return SEEDED_REASON
        return DRAFT_REASON if self.draft else None

    @property
    def guarantee(self) -> tuple[float, float] | None:
        return None if self.void else (self.epsilon, self.delta)

    @property
    def figure(self) -> Figure:
        """The first figure of the first group: all there is, of a query for one number."""
        return self.groups[0].figures[0]

    @property
    def value(self) -> float | int | datetime:
        return self.figure.value

    def __iter__(self) -> Iterator[Group]:
        return iter(self.groups)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; dates as ISO texts."""
        return {
            "query": self.sql,
            "confidence": self.confidence,
            "guarantee": None if self.void else {"epsilon": self.epsilon, "delta": self.delta},
            "no_guarantee_because": self.void,
            "recorded": self.recorded,
            "ledger": None if self.ledger is None else self.ledger.to_dict(),
            "rows": [self._row(group) for group in self.groups],
        }

    def _row(self, group: Group) -> dict[str, Any]:
        figures = {
            name: {"value": _plain(f.value), "low": _plain(f.low), "high": _plain(f.high)}
            for name, f in zip(self.names, group.figures, strict=True)
        }
        return dict(zip(self.keys, group.keys, strict=True)) | figures


def _plain(value: Any) -> Any:
    return value.isoformat(sep=" ") if isinstance(value, datetime) else value
