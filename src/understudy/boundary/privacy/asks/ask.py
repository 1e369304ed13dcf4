"""What every ask is: one question to the rows, with its price, its exact answer, its noise and its record.

An ask is a value: asking it twice is two draws at twice the price. The curator takes each through the same steps:

1. `spends` refuses what public facts refuse, and says what the answer costs under the schema's neighbouring relation;
2. `exact` is the answer of the table itself, behind the boundary;
3. `draw` makes noisy arrays of it: the only thing that ever depends on rows and leaves;
4. `questions` and those arrays are the record, one question for each array, from which a release is replayed;
5. `answer` reads the arrays as what the strategy asked for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import deepcopy
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.budget import Spend
from understudy.boundary.privacy.facts import PublicFacts
from understudy.boundary.privacy.mechanisms.randomness import Randomness
from understudy.boundary.privacy.mechanisms.training import Keep, at_once
from understudy.boundary.tables.table import Table

Arrays = list[NDArray[Any]]
Counts = NDArray[np.int64]
Scores = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]
Question = dict[str, Any]
"""Plain values that determine what was asked and at which scale of noise, as JSON keeps them."""
Result = TypeVar("Result", covariant=True)


@dataclass(frozen=True)
class Price:
    """What an ask costs: the spends that are debited, beside the public facts that they follow from."""

    facts: PublicFacts
    spends: tuple[Spend, ...]


@dataclass(frozen=True)
class Description:
    """One line of the documentation's table of asks; `proof` is Markdown, with links from docs/concepts."""

    gives: str
    sensitivity: str
    mechanism: str
    proof: str


class Ask(ABC, Generic[Result]):
    """A question to the rows whose answer is a `Result`."""

    name: ClassVar[str]
    """What the record calls it."""
    description: ClassVar[Description]

    def __post_init__(self) -> None:
        # Copies: what is priced must be what is answered, whoever else holds these lists and arrays.
        for field in fields(self):  # type: ignore[arg-type]
            object.__setattr__(self, field.name, _fixed(getattr(self, field.name)))

    @abstractmethod
    def spends(self, facts: PublicFacts) -> list[Spend]:
        """Refuses what can't be asked, before anything is spent; else what the answer costs."""

    @abstractmethod
    def questions(self, price: Price) -> list[Question]:
        """The form in which it is recorded, one for each array that `draw` makes.

        Releases made before are replayed by comparing these: they must never change.
        """

    @abstractmethod
    def exact(self, table: Table) -> Any:
        """What the table says: private until noise is added."""

    @abstractmethod
    def draw(self, hidden: Any, price: Price, randomness: Randomness, keep: Keep = at_once) -> Arrays:
        """Noisy arrays from the exact answer. `keep` is given each step of an answer that has many (a training)."""

    def fits(self, values: Arrays, price: Price) -> bool:
        """Whether arrays of a record, which may come from anybody, have the form that `draw` gives them."""
        return True

    def answer(self, values: Arrays, price: Price) -> Result:
        """The noisy arrays, fresh or recorded, as what was asked for; where nothing else is said, as they are."""
        as_they_are: Any = values
        result: Result = as_they_are
        return result


def is_whole(values: NDArray[Any], low: int, high: int, shape: tuple[int, ...] | None = None) -> bool:
    """Whether an array holds whole numbers from `low` to `high`: in this shape, or else in one row."""
    fits = values.dtype.kind == "i" and (values.ndim == 1 if shape is None else values.shape == shape)
    return fits and (not values.size or bool(low <= values.min() and values.max() <= high))


def _fixed(value: Any) -> Any:
    if type(value) in (list, tuple):
        return tuple(map(_fixed, value))
    return deepcopy(value) if isinstance(value, dict | np.ndarray) else value
