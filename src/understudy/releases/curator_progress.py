"""A curator and a recipe that tell how far they are (`understudy.progress`).

No recipe is another one for being watched, and no question that is recorded knows of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from understudy.boundary.privacy.asks.ask import Ask, Result
from understudy.boundary.privacy.queryable import Queryable, Wrapper
from understudy.methods.method import Recipe
from understudy.progress import Advance

QUESTION = "question"


def watched(recipe: Recipe, curator: Queryable, advance: Callable[[Advance], None]) -> tuple[Recipe, Queryable]:
    """The same recipe and the same curator, which tell how far they are."""
    observed = ReportingCurator(curator, advance)
    if reporting := getattr(recipe, "reporting", None):
        recipe = reporting(observed.tell)
    return recipe, observed


class ReportingCurator(Wrapper):
    """A curator that tells after every answer what all answers so far amount to."""

    def __init__(self, curator: Queryable, advance: Callable[[Advance], None]) -> None:
        super().__init__(curator)
        self._advance = advance
        self._last = Advance(QUESTION, 0, budget=curator.budget.epsilon)

    def ask(self, ask: Ask[Result]) -> Result:
        answer = super().ask(ask)
        self._answered()
        return answer

    def tell(self, unit: str, done: int, steps: int, epsilon: float) -> None:
        """Takes the report of a recipe that counts its steps."""
        self._last = Advance(unit, done, steps, epsilon, self.budget.epsilon)
        self._advance(self._last)

    def _answered(self) -> None:
        """Between steps that are counted, a question moves ε alone."""
        epsilon = self.guarantee[0]
        if self._last.counted:
            self._last = replace(self._last, epsilon=epsilon)
        else:
            self._last = Advance(QUESTION, len(self.spends), 0, epsilon, self.budget.epsilon)
        self._advance(self._last)
