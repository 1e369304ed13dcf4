"""How far a release is, for whoever watches: how much of a long part is done, and the ε so far.

It is no part of a release. No recipe is another one for being watched, no question that is recorded knows of it, and
its figures are public: numbers of steps, and what the answers so far cost. The ledger is debited for the whole release
before its first answer, so the ε so far tells what has been learned of the rows, and not what may be had back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast, runtime_checkable

from understudy.boundary.privacy.curator import Curator
from understudy.methods.method import Recipe

ASKS = frozenset(
    ("measure", "partition", "draws", "total", "select", "quantile", "keys", "tally", "ranks", "train", "consult")
)
"""The questions of a curator."""
QUESTION = "question"


@dataclass(frozen=True)
class Standing:
    """So many steps (votes, rounds, questions) are done, of so many where that is known, and ε so far of all.

    >>> print(Standing("step", 35, 100, 1.1191, 2.0))
    step 35 of 100, ε 1.12 of 2
    >>> print(Standing("question", 14, 0, 0.25, 1.0))
    question 14, ε 0.25 of 1
    """

    unit: str
    done: int
    steps: int
    """Or 0, where nobody knows."""
    epsilon: float
    asked: float

    @property
    def counted(self) -> bool:
        """Whether it is known how many steps there will be, and some are still to come."""
        return self.done < self.steps

    @property
    def share(self) -> float:
        """How much is done: of the steps, or else of ε."""
        return self.done / self.steps if self.steps else min(1.0, self.epsilon / self.asked)

    def __str__(self) -> str:
        from understudy.releases.report import upward

        of = f" of {self.steps:,}" if self.steps else ""
        return f"{self.unit} {self.done:,}{of}, ε {upward(self.epsilon, 3)} of {upward(self.asked, 3)}"


@runtime_checkable
class Watcher(Protocol):
    """Progress that is also told how far a part is. A plain function is told the names of parts alone."""

    def __call__(self, step: str, /) -> None: ...

    def stand(self, now: Standing, /) -> None: ...


def watched(recipe: Recipe, curator: Curator, stand: Callable[[Standing], None]) -> tuple[Recipe, Curator]:
    """The same recipe and the same curator, which tell how far they are."""
    observed = Observed(curator, stand)
    if reporting := getattr(recipe, "reporting", None):
        recipe = reporting(observed.tell)
    return recipe, cast(Curator, observed)


class Observed:
    """A curator that tells after every answer what all answers so far amount to.

    It is no boundary: the curator behind it meters every ask, and answers it.
    """

    def __init__(self, curator: Curator, stand: Callable[[Standing], None]) -> None:
        self._curator, self._stand = curator, stand
        self._last = Standing(QUESTION, 0, 0, 0.0, curator.budget.epsilon)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._curator, name)
        return self._answering(found) if name in ASKS else found

    def tell(self, unit: str, done: int, steps: int, epsilon: float) -> None:
        """Takes the report of a recipe that counts its steps."""
        self._last = Standing(unit, done, steps, epsilon, self._curator.budget.epsilon)
        self._stand(self._last)

    def _answering(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*arguments: Any, **named: Any) -> Any:
            answer = ask(*arguments, **named)
            self._answered()
            return answer

        return asked

    def _answered(self) -> None:
        """Between steps that are counted, a question moves ε alone."""
        epsilon = self._curator.guarantee[0]
        if self._last.counted:
            self._last = replace(self._last, epsilon=epsilon)
        else:
            self._last = Standing(QUESTION, len(self._curator.spends), 0, epsilon, self._curator.budget.epsilon)
        self._stand(self._last)
