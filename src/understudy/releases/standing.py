"""A curator and a recipe that tell how far they are (`understudy.progress`).

No recipe is another one for being watched, and no question that is recorded knows of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from understudy.boundary.privacy.curator import Curator
from understudy.methods.method import Recipe
from understudy.progress import Advance

ASKS = frozenset(
    ("measure", "partition", "draws", "total", "select", "quantile", "keys", "tally", "ranks", "train", "consult")
)
"""The questions of a curator."""
QUESTION = "question"


def watched(recipe: Recipe, curator: Curator, stand: Callable[[Advance], None]) -> tuple[Recipe, Curator]:
    """The same recipe and the same curator, which tell how far they are."""
    observed = Observed(curator, stand)
    if reporting := getattr(recipe, "reporting", None):
        recipe = reporting(observed.tell)
    return recipe, cast(Curator, observed)


class Observed:
    """A curator that tells after every answer what all answers so far amount to.

    It is no boundary: the curator behind it meters every ask, and answers it.
    """

    def __init__(self, curator: Curator, stand: Callable[[Advance], None]) -> None:
        self._curator, self._stand = curator, stand
        self._last = Advance(QUESTION, 0, budget=curator.budget.epsilon)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._curator, name)
        return self._answering(found) if name in ASKS else found

    def tell(self, unit: str, done: int, steps: int, epsilon: float) -> None:
        """Takes the report of a recipe that counts its steps."""
        self._last = Advance(unit, done, steps, epsilon, self._curator.budget.epsilon)
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
            self._last = Advance(QUESTION, len(self._curator.spends), 0, epsilon, self._curator.budget.epsilon)
        self._stand(self._last)
