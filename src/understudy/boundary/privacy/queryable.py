"""What strategies see of a curator, as a protocol: it may be wrapped without anything pretending to be one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Protocol

from understudy.boundary.privacy.asks.ask import Ask, Result
from understudy.boundary.privacy.budget import Amount, Budget, Spend
from understudy.boundary.privacy.facts import PublicFacts
from understudy.boundary.schema.schema import Schema


class BudgetView(Protocol):
    """What a plan of spending looks at: what is left, and how far one unit moves a count."""

    @abstractmethod
    def remaining(self) -> Amount:
        """What is left of the budget, to be split by shares."""

    @abstractmethod
    def count_sensitivity(self, amount: Amount) -> float:
        """The sensitivity of any histogram in the norm of the noise that this amount buys: L1 if pure, else L2."""


class Queryable(BudgetView, Protocol):
    """A source of metered, noisy answers. Methods, predictors and queries are written against it."""

    @property
    @abstractmethod
    def facts(self) -> PublicFacts:
        """Whom the answers protect, and how the budget is divided."""

    @property
    @abstractmethod
    def budget(self) -> Budget: ...

    @property
    @abstractmethod
    def spends(self) -> tuple[Spend, ...]:
        """Everything paid so far, in order."""

    @property
    @abstractmethod
    def guarantee(self) -> tuple[float, float]:
        """The (ε, δ) that the spends so far amount to."""

    @abstractmethod
    def ask(self, ask: Ask[Result]) -> Result:
        """The noisy answer, paid for before it is drawn."""

    @abstractmethod
    def reserve(self, epsilon_share: float, delta_share: float) -> Budget:
        """Sets these shares of ε and δ aside for one training, before anything is asked; the rest is for counting."""

    @abstractmethod
    def demand_codes(self) -> None:
        """Refuses a table that hands out counts only; a method that trains calls it before anything is spent."""

    @abstractmethod
    def ahead(self) -> Callable[[Spend], float]:
        """From one spend on top of those so far, to the ε of a release that ended with it; for progress."""

    @property
    def schema(self) -> Schema:
        return self.facts.schema

    @property
    def public_rows(self) -> bool:
        """Whether the row count is public: no neighbour changes it."""
        return self.facts.public_rows

    @property
    def replaced(self) -> bool:
        """Whether neighbours differ by one unit put in place of another, and not by one more or less."""
        return self.facts.replaced

    def count_sensitivity(self, amount: Amount) -> float:
        return self.facts.count_sensitivity(amount)


class Wrapper(Queryable):
    """Hands everything on to the queryable behind it, which meters and answers; a subclass changes what it must.

    It is no boundary: whatever it does, the curator behind it is debited for every answer.
    """

    def __init__(self, wrapped: Queryable) -> None:
        self._wrapped = wrapped

    @property
    def facts(self) -> PublicFacts:
        return self._wrapped.facts

    @property
    def budget(self) -> Budget:
        return self._wrapped.budget

    @property
    def spends(self) -> tuple[Spend, ...]:
        return self._wrapped.spends

    @property
    def guarantee(self) -> tuple[float, float]:
        return self._wrapped.guarantee

    def ask(self, ask: Ask[Result]) -> Result:
        return self._wrapped.ask(ask)

    def remaining(self) -> Amount:
        return self._wrapped.remaining()

    def reserve(self, epsilon_share: float, delta_share: float) -> Budget:
        return self._wrapped.reserve(epsilon_share, delta_share)

    def demand_codes(self) -> None:
        self._wrapped.demand_codes()

    def ahead(self) -> Callable[[Spend], float]:
        return self._wrapped.ahead()
