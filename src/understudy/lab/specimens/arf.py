"""`arf`: the adversarial random forest on raw rows, with the names and defaults of arfpy 0.1.1. It is not private.

Grow (`Arf`), estimate the density (`forde`), make rows (`forge`); beyond arfpy: missing values, any number of
categories, out-of-bag estimates, rows given some of their columns, and the log-likelihood of other rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.frame import kind_of
from understudy.errors import InputError, MethodError
from understudy.inference.forest.adversarial_forest import FittedForest, Growth, grow
from understudy.inference.forest.density import ForestDensity, complete, forge
from understudy.lab.specimens.points import Floats, Points
from understudy.lab.specimens.specimen_result import Specimen, SpecimenKind
from understudy.methods.params import Params, parameter
from understudy.parameters import whole_number
from understudy.releases.synthetic_table import to_native

TRUNCATED_NORMAL = "truncnorm"


class Arf:
    """An adversarial random forest, grown on the rows of a frame or a file.

    >>> import pyarrow as pa
    >>> rows = pa.table({"x": [float(i % 7) for i in range(60)], "y": ["ab"[i % 2] for i in range(60)]})
    >>> model = Arf(rows, num_trees=5, verbose=False, seed=1)
    >>> density = model.forde()
    >>> model.forge(3).num_rows
    3
    """

    def __init__(
        self,
        x: Any,
        num_trees: int = 30,
        delta: float = 0.0,
        max_iters: int = 10,
        early_stop: bool = True,
        verbose: bool = True,
        min_node_size: int = 5,
        *,
        merge: bool = True,
        schema: Schema | str | Path | None = None,
        seed: int | None = None,
        **forest: Any,
    ) -> None:
        """`merge` is that of `Growth`; `forest` has further arguments of scikit-learn's forest, such as `n_jobs`."""
        growth = Growth(
            num_trees,
            delta,
            max_iters=max_iters,
            early_stop=early_stop,
            min_node_size=min_node_size,
            merge=merge,
            forest=forest,
        )
        # Rows go back in the kind of frame that came in; a file has none, and its rows come as an Arrow table.
        self._kind = None
        if not isinstance(x, str | Path):
            self._kind = kind_of(x)
        self._rng = np.random.Generator(np.random.PCG64(seed))
        self.points = Points.of(x, schema)
        self.grown: FittedForest = grow(self.points.values, growth, self._rng, print if verbose else None)
        self.density: ForestDensity | None = None

    @property
    def accuracy(self) -> tuple[float, ...]:
        """How well the rows of each round were told from real ones."""
        return self.grown.accuracy

    def forde(
        self, dist: str = TRUNCATED_NORMAL, oob: bool = False, alpha: float = 0.0, *, finite_bounds: bool = False
    ) -> ForestDensity:
        """Estimates the density in each leaf.

        With `oob` a tree learns only from rows that it was grown without. `alpha` is added to the count of each
        category in a leaf's box. With `finite_bounds` no number leaves the range of those that were seen.
        """
        self.density = estimate(self.points, self.grown, dist, oob, alpha, finite_bounds)
        return self.density

    def forge(self, n: int | None = None, *, given: Mapping[str, Any] | None = None) -> Any:
        """`n` rows in the kind of frame that came in; or, for each row of the columns `given`, one that keeps them."""
        if given is None:
            made = forge(self._fitted(), _checked_rows(n), self._rng)
        else:
            kept = self.points.given(given if n is None else _repeated(given, n))
            made = complete(self._fitted(), kept, self.points.steps, self._rng)
        return to_native(self.points.table(made), self._kind or "pyarrow")

    def log_likelihood(self, rows: Any) -> Floats:
        """log P of each row of another table; numbers as they are after rounding to the decimals of their column.

        Where `alpha` is 0, a row with a category that no leaf of its own has seen is impossible: −∞.
        """
        values = self.points.read(rows)
        return self._fitted().log_likelihood(values, self.grown.locate(values), self.points.steps)

    def _fitted(self) -> ForestDensity:
        if self.density is None:
            raise MethodError("there is no density yet; call forde() first", self)
        return self.density


def estimate(
    points: Points, grown: FittedForest, dist: str, oob: bool, alpha: float, finite_bounds: bool = False
) -> ForestDensity:
    """The density of the rows that the forest was grown on."""
    if dist != TRUNCATED_NORMAL:
        raise MethodError(f"dist ({dist!r}) must be {TRUNCATED_NORMAL!r}", dist)
    if not 0 <= alpha < np.inf:
        raise InputError(f"alpha ({alpha}) must be a number of at least 0", alpha)
    leaves = grown.leaves
    if finite_bounds:
        leaves = leaves.clipped(*_ranges(points))
    density = ForestDensity.fit(leaves, points.values, points.sizes, counted_leaf(grown, oob), alpha=alpha)
    # Where there are numbers, a leaf of one row has no deviation to learn, and no weight.
    if not density.coverage.any():
        raise InputError(f"{len(points.values)} rows are too few: no leaf holds two of them to learn from", points)
    return density


def counted_leaf(grown: FittedForest, oob: bool) -> NDArray[np.intp]:
    """The leaf of each row in each tree; out of bag, -1 where the tree was grown with that row."""
    if oob:
        return np.where(grown.unseen, grown.leaf, -1)
    return grown.leaf


def specimen(
    rows: Any, schema: Schema | None = None, *, n: int | None = None, seed: int | None = None, oob: bool = False,
    alpha: float = 0.0, finite_bounds: bool = False, growth: Growth | None = None,
) -> Specimen:  # fmt: skip
    """Rows from an adversarial random forest on raw rows: without a guarantee, and never a release."""
    growth, points = growth or Growth(), Points.of(rows, schema)
    rng = np.random.Generator(np.random.PCG64(seed))
    grown = grow(points.values, growth, rng)
    density = estimate(points, grown, TRUNCATED_NORMAL, oob, alpha, finite_bounds)
    made = forge(density, len(points.values) if n is None else _checked_rows(n), rng)
    parameters = dataclasses.asdict(growth) | {"oob": oob, "alpha": alpha, "finite_bounds": finite_bounds, "seed": seed}
    return Specimen(SPECIMEN.name, points.table(made), parameters)


def _ranges(points: Points) -> tuple[Floats, Floats]:
    """The lowest and highest number of each column; half a step beyond, so that all of a value's rounding is inside."""
    # A missing number is neither the lowest nor the highest, and a column of nothing else is left unbounded.
    known = np.where(np.isnan(points.values), np.inf, points.values)
    low = known.min(axis=0) - points.steps / 2
    high = np.where(np.isinf(known), -np.inf, known).max(axis=0) + points.steps / 2
    listed = np.array(points.sizes) > 0
    return np.where(listed, -np.inf, low), np.where(listed, np.inf, high)


def _checked_rows(n: int | None) -> int:
    return whole_number("n", int(n) if isinstance(n, np.integer) else n, 1)


def _repeated(given: Mapping[str, Any], n: int) -> dict[str, Any]:
    """Single values, for `n` rows."""
    lists = [name for name, value in given.items() if np.ndim(value)]
    if lists:
        raise InputError(f"give n or a list of values for {lists[0]!r}, not both", lists)
    return {name: [value] * _checked_rows(n) for name, value in given.items()}


@dataclass(frozen=True)
class ForestParams(Params):
    """The options of an adversarial forest on raw rows, by the names of arfpy."""

    num_trees: int = parameter(30, "trees of the forest", low=1, high=10_000)
    delta: float = parameter(0.0, "how far above one half out-of-bag accuracy may end", low=0.0, high=0.5)
    max_iters: int = parameter(10, "rounds of growing at most", low=0, high=1_000)
    early_stop: bool = parameter(True, "end when a round is told apart better than the one before")
    min_node_size: int = parameter(5, "the fewest rows in a leaf", low=1, high=1_000_000)
    oob: bool = parameter(False, "whether a tree learns only from rows that it was grown without")
    alpha: float = parameter(0.0, "added to the count of each category in a leaf", low=0.0, high=1e9)


@dataclass(frozen=True)
class ArfParams(ForestParams):
    """The options of `arf`: those of arfpy, and what it lacks."""

    merge: bool = parameter(True, "whether two small leaves of one parent become one, where arfpy drops both")
    finite_bounds: bool = parameter(False, "whether no number leaves the range of those that were seen")


def _make(rows: Any, schema: Schema | None, epsilon: float, stated: dict[str, Any]) -> Specimen:
    grown = {f.name for f in dataclasses.fields(Growth)}
    growth = Growth(**{name: value for name, value in stated.items() if name in grown})
    return specimen(rows, schema, growth=growth, **{n: v for n, v in stated.items() if n not in grown})


SPECIMEN = SpecimenKind(
    name="arf",
    good_for="tables that are public anyway: an adversarial random forest",
    limits="no privacy whatsoever",
    make=_make,
    params=ArfParams,
    claims=False,
)
