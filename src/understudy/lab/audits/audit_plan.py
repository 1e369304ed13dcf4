"""What is audited, and how: all that is settled before the first run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.boundary.privacy.budget import Budget
from understudy.boundary.schema.schema import ADD_REMOVE
from understudy.lab.audits.games import foreign
from understudy.lab.audits.pairs import Pair, pairs, switch_pair
from understudy.lab.audits.subjects import SPECIMENS, subject_of, trained
from understudy.releases.certificate import versions

# How rarely a correct method is called a violation, over the whole audit: 1 − LEVEL is the verdict's 95 %.
LEVEL = 0.05
# Pairs whose difference can be seen in rows. Where nothing else is looked at, runs are better spent on few pairs.
SHOWN = ("equal rows", "unique category", "numeric outlier")


@dataclass(frozen=True)
class AuditEffort:
    """Runs of each game, and the seconds that all games together may take.

    When time is up, fewer runs were made. That depends on the clock alone, so that what they prove stands.
    """

    name: str
    main: int
    """White-box runs of the worst pair."""
    white: int
    """White-box runs of every other pair."""
    black: int
    """Black-box runs of each pair."""
    seconds: float
    learners: int
    """Runs of each table of each pair in which every exchange is put to both tables."""


# A quick audit may take two minutes, most of them for games (docs/decisions/0010-auditor.md).
SETTINGS = {
    s.name: s
    for s in (
        AuditEffort("quick", main=44_000, white=300, black=160, seconds=85.0, learners=1),
        AuditEffort("full", main=120_000, white=6_000, black=4_000, seconds=3_600.0, learners=10),
    )
}


@dataclass(frozen=True)
class AuditPlan:
    """A method by its name, or a function of somebody else's, with its claim."""

    method: str | None
    function: str | None
    mutant: str | None
    budget: Budget
    setting: AuditEffort
    level: float
    python: str
    neighbours: str = ADD_REMOVE
    postgres: str | None = None
    """The address of a server on which tables may be made."""
    sites: str | None = None
    """A trust model under which the method is run over several sites, too."""

    @property
    def name(self) -> str:
        if self.mutant:
            return f"{self.method} with mutant {self.mutant}"
        return self.method or self.function or ""

    @property
    def kind(self) -> str:
        if self.function:
            return "callable"
        if self.mutant:
            return "mutant"
        if self.method in SPECIMENS:
            return "specimen"
        return subject_of(self.method or "", self.budget).kind

    @property
    def trains(self) -> bool:
        """Whether it trains, which takes too long for games."""
        return self.method in trained()

    @property
    def opaque(self) -> bool:
        """Whether only its rows can be looked at."""
        return self.function is not None or self.method in SPECIMENS

    def pairs(self) -> list[Pair]:
        """Those that games are played on."""
        if self.trains:
            return []
        if self.opaque:
            shown = [p for p in pairs(self.neighbours, keys=False) if p.name in SHOWN]
            if self.function:
                shown.append(switch_pair(self.neighbours))
            return shown
        return pairs(self.neighbours, keys=not self.budget.pure)  # keys are released above a threshold, which costs a δ

    def setup(self, looked: Sequence[Pair]) -> dict[str, Any]:
        """What the children must know."""
        facts = {"epsilon": self.budget.epsilon, "delta": self.budget.delta, "neighbours": self.neighbours}
        if self.function is None:
            return facts | {"subject": self.method, "mutant": self.mutant}
        tables = {p.name: [t.to_pydict() for t in p.tables] for p in looked}
        return facts | {"function": self.function, "pairs": tables}

    def question(self) -> dict[str, Any]:
        """What rounds that are kept belong to."""
        # The version is part of it: another version may draw otherwise, and its runs must not be pooled with these.
        # So is how runs are tied: those of before, each with a coin of its own, can't be read as twos.
        how = {"setting": self.setting.name, "version": versions()["understudy"], "white box": "by twos"}
        return self.setup([]) | how

    def command(self) -> list[str] | None:
        """How a child is started: another Python runs one file of ours, alone."""
        if self.function is None:
            return None
        return [self.python, str(Path(foreign.__file__))]
