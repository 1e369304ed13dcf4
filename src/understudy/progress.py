"""How far a long computation is, for whoever watches: which part has begun, how much of it is done, and the ε so far.

It is no part of a result. Nothing that is computed or recorded depends on being watched, and its figures are public:
numbers of steps, and what the answers so far cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from understudy.pages.formatting import upward


@dataclass(frozen=True)
class Advance:
    """So much of a part is done: this many steps (votes, rounds, runs, questions), and the ε that they cost.

    >>> print(Advance("step", 35, 100, epsilon=1.1191, budget=2.0))
    step 35 of 100, ε 1.12 of 2
    >>> print(Advance("question", 14, epsilon=0.25, budget=1.0))
    question 14, ε 0.25 of 1
    >>> print(Advance("run", 1200, 14000))
    run 1,200 of 14,000
    """

    unit: str
    done: int
    total: int = 0
    """How many steps there will be, or 0 where nobody knows."""
    epsilon: float = 0.0
    """The ε of all answers so far. The ledger was debited for the whole budget before the first of them, so this tells
    what has been learned of the rows, and not what may be had back."""
    budget: float = 0.0
    """The ε of the whole budget, or 0 where nothing is spent."""
    early: bool = False
    """Whether steps that can be counted are still to come: ε, most of which goes early on, would promise too much."""

    @property
    def counted(self) -> bool:
        """Whether it is known how many steps there will be, and some are still to come."""
        return self.done < self.total

    @property
    def share(self) -> float:
        """How much is done: of the steps, or else of ε."""
        if self.early:
            return 0.0
        if self.total:
            return self.done / self.total
        # Without a budget nothing is done; and a bar may not pass its end, however the quotient was rounded.
        return min(1.0, self.epsilon / (self.budget or math.inf))

    def __str__(self) -> str:
        words = f"{self.unit} {self.done:,}"
        if self.total:
            words += f" of {self.total:,}"
        if self.budget:
            words += f", ε {upward(self.epsilon, 3)} of {upward(self.budget, 3)}"
        return words


class Progress:
    """Who is told how far something is. This one keeps silent; a subclass shows what it is told."""

    detailed = True
    """Whether it is told the ε after every question: to compose all answers each time takes a while."""

    def __call__(self, part: str, /) -> None:
        """A part begins."""

    def advance(self, now: Advance, /) -> None:
        """The part that began last is so far."""

    def caution(self, sentence: str, /) -> None:
        """Something that the user should know before anything is spent."""


Listener = Progress | Callable[[str], None]
"""What `progress=` takes: a `Progress`, or a function of the name of each part as it begins."""


def listening(given: Listener | None) -> Progress:
    """Whoever was given, as a `Progress`; a silent one if nobody was."""
    if isinstance(given, Progress):
        return given
    return _Function(given or (lambda part: None))


class _Function(Progress):
    """A plain function: it is told the parts and how many of their steps are done, but not every question's ε."""

    detailed = False

    def __init__(self, tell: Callable[[str], Any]) -> None:
        self._tell, self._part = tell, ""

    def __call__(self, part: str, /) -> None:
        self._part = part
        self._tell(part)

    def advance(self, now: Advance, /) -> None:
        # What spends tells after every question: too often for a function that may well print a line each time.
        if not now.budget:
            self._tell(f"{self._part}: {now}")
