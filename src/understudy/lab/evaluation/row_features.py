"""Rows as a matrix for scikit-learn, laid out and scaled by one table and the same for all.

Numbers are standardised; where one is missing it stands at the mean, and a column beside it says so. Categories are
indicators for linear models and codes for trees.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from understudy.lab.evaluation.comparison import RowSample, Variable

if TYPE_CHECKING:
    from understudy.lab.evaluation.comparison import Comparison

T = TypeVar("T")
Floats = NDArray[np.float64]

FAR = 100.0
"""Standard deviations from the mean: what lies further, even infinitely far, is put there."""
LARGEST = 1e150
"""Of unscaled numbers, so that the square of every distance is a number."""
MOST_INDICATORS, WIDEST = 50, 1_000
"""Indicators of one column, and of all columns together: the rarest values share the last one."""
MOST_CLASSES = 12
"""The rarest classes of a target with more are one class."""


@dataclass(frozen=True)
class Standardisation:
    """Where the finite numbers of a column lie; of a constant one the spread is 1."""

    centre: float = 0.0
    spread: float = 1.0
    low: float = 0.0
    high: float = 0.0

    @classmethod
    def of(cls, values: Floats) -> Standardisation:
        finite = values[np.isfinite(values)]
        if not len(finite):
            return cls()
        low, high = float(finite.min()), float(finite.max())
        if low == high:  # by its ends, since the deviation of a constant may come out as a rounding error
            return cls(low, 1.0, low, high)
        largest = max(-low, high)
        within = finite / largest  # the squares of very large numbers are not numbers
        return cls(float(within.mean()) * largest, float(within.std()) * largest or 1.0, low, high)

    def standardise(self, values: Floats) -> Floats:
        with np.errstate(over="ignore"):
            scaled = np.clip((values - self.centre) / self.spread, -FAR, FAR)
        return np.where(np.isnan(values), 0.0, scaled)  # at the mean; an indicator beside it says that it is missing

    def complete(self, values: Floats) -> Floats:
        """In their own unit: the mean for what is missing, the ends of the known range for what is infinite."""
        known = np.where(np.isposinf(values), self.high, np.where(np.isneginf(values), self.low, values))
        return np.clip(np.where(np.isnan(values), self.centre, known), -LARGEST, LARGEST)


@dataclass(frozen=True)
class Features:
    """How rows become a matrix."""

    variables: tuple[Variable, ...]
    scales: dict[str, Standardisation]
    """Of the columns on a line."""
    places: dict[str, NDArray[np.int64]]
    """Of the other columns: which indicator every code has."""

    @classmethod
    def fit(cls, variables: Sequence[Variable], table: RowSample) -> Features:
        listed = [v for v in variables if not v.on_line]
        # Linear models solve a system as wide as the matrix: a few long lists must not make it huge.
        most = max(2, min(MOST_INDICATORS, WIDEST // max(1, len(listed))))
        return cls(
            tuple(variables),
            {v.name: Standardisation.of(table.values[v.name]) for v in variables if v.on_line},
            {v.name: commonest_first(table.codes[v.name], v.size, most) for v in listed},
        )

    def ordinal(self, table: RowSample) -> NDArray[np.float32]:
        """For trees: one column for each, and one for each in which numbers are missing."""
        columns: list[NDArray[np.generic]] = []
        for v in self.variables:
            if v.on_line:
                columns += self._numbers(v, table, scaled=True)
            else:
                columns.append(table.codes[v.name])
        return np.column_stack(columns).astype(np.float32)  # the type of scikit-learn's trees

    def one_hot(self, table: RowSample, scaled: bool = True) -> Floats:
        """For linear models and distances: an indicator for every value of a category."""
        blocks: list[Floats] = []
        for v in self.variables:
            if v.on_line:
                blocks += [column[:, np.newaxis] for column in self._numbers(v, table, scaled)]
            else:
                blocks.append(self._indicators(v, table))
        return np.concatenate(blocks, axis=1)

    def _numbers(self, variable: Variable, table: RowSample, scaled: bool) -> list[Floats]:
        values, scale = table.values[variable.name], self.scales[variable.name]
        columns = [scale.standardise(values) if scaled else scale.complete(values)]
        if variable.missing:
            columns.append(np.isnan(values).astype(np.float64))
        return columns

    def _indicators(self, variable: Variable, table: RowSample) -> Floats:
        places = self.places[variable.name]
        block = np.zeros((table.rows, int(places.max()) + 1))
        block[np.arange(table.rows), places[table.codes[variable.name]]] = 1.0
        return block


def commonest_first(codes: NDArray[np.int64], size: int, most: int) -> NDArray[np.int64]:
    """A place for every code: its own, or where there are more than `most`, the last one for all but the commonest."""
    if size <= most:
        return np.arange(size)
    order = np.argsort(-np.bincount(codes, minlength=size), kind="stable")  # ties in the order of the schema
    places = np.empty(size, dtype=np.int64)
    places[order] = np.minimum(np.arange(size), most - 1)
    return places


def draw(table: RowSample, most: int, seed: int) -> RowSample:
    """At most so many rows, in their order. Tables of the same length lose the same ones."""
    if table.rows <= most:
        return table
    rng = np.random.Generator(np.random.PCG64(seed))
    return table.take(np.sort(rng.choice(table.rows, most, replace=False)))


def join(first: RowSample, second: RowSample) -> RowSample:
    """The rows of both."""
    codes = {name: np.concatenate([c, second.codes[name]]) for name, c in first.codes.items()}
    values = {name: np.concatenate([v, second.values[name]]) for name, v in first.values.items()}
    return RowSample(f"{first.name} and {second.name}", first.rows + second.rows, codes, values)


@dataclass(frozen=True)
class Target:
    """The column to predict: classes, or numbers in standard deviations of the real ones."""

    variable: Variable
    classes: NDArray[np.int64]
    """Of every code of a category but that of missing values."""
    rarer: int
    """The class that is less frequent in the real table, where there are two."""
    scale: Standardisation

    @classmethod
    def of(cls, comparison: Comparison) -> Target:
        assert comparison.target is not None
        variable, real = comparison[comparison.target], comparison.real
        if variable.on_line:
            return cls(variable, np.zeros(0, dtype=np.int64), 0, Standardisation.of(real.values[variable.name]))
        codes = real.codes[variable.name]
        codes, size = codes[codes < len(variable.labels)], len(variable.labels)
        classes = commonest_first(codes, size, MOST_CLASSES)
        # Of two classes F1 is about the rarer one, as where few are ill; which one that is, the real table says.
        counts = np.bincount(classes[codes], minlength=int(classes.max()) + 1)
        return cls(variable, classes, int(counts.argmin()), Standardisation())

    @property
    def name(self) -> str:
        return self.variable.name

    @property
    def count(self) -> int:
        """Of classes."""
        return int(self.classes.max()) + 1

    @property
    def pooled(self) -> bool:
        return len(self.classes) > MOST_CLASSES

    def known(self, table: RowSample) -> RowSample:
        """The rows in which the target is not missing (nor infinite)."""
        if self.variable.on_line:
            known = np.isfinite(table.values[self.name])
        else:
            known = table.codes[self.name] < len(self.classes)
        if known.all():
            return table
        return table.take(known)

    def read(self, table: RowSample) -> NDArray[Any]:
        """Of rows where it is known."""
        if self.variable.on_line:
            return self.scale.standardise(table.values[self.name])
        return self.classes[table.codes[self.name]]

    def unlearnable(self, table: RowSample) -> str:
        """Why no model can learn it from this table; empty if one can."""
        if not table.rows:
            return f"no row of {table.name} has a value of {self.name!r}"
        if not self.variable.on_line and len(np.unique(self.read(table))) == 1:
            return f"{table.name} has a single class of {self.name!r}, so that a model has nothing to tell apart"
        return ""


@contextmanager
def quietly() -> Iterator[None]:
    """Lets a model that did not converge, or that saw few rows of a class, be judged by what it predicts."""
    from scipy.linalg import LinAlgWarning
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        # A synthetic table may be as odd as it likes: that a model finds it hard is a result, and no news for the user.
        for category in (ConvergenceWarning, LinAlgWarning, UserWarning):
            warnings.simplefilter("ignore", category)
        yield


class SharedResult(Generic[T]):
    """A result that several measures need: computed once for each comparison, and forgotten with it."""

    def __init__(self, compute: Callable[[Comparison], T]) -> None:
        self._compute = compute
        self._known: dict[int, T] = {}

    def __call__(self, comparison: Comparison) -> T:
        # By identity: a comparison holds arrays, and so has no hash. The entry goes when the comparison does, before
        # its id can be given to another.
        key = id(comparison)
        if key not in self._known:
            self._known[key] = self._compute(comparison)
            weakref.finalize(comparison, self._known.pop, key, None).atexit = False
        return self._known[key]

    def __len__(self) -> int:
        return len(self._known)
