"""`polya-tree`: columns of numbers at full resolution, through trees that halve them again and again.

By noise (the default): noisy counts of the nodes of a few levels, made consistent, shrunk as a Polya tree shrinks them;
pairs of columns are then measured over groups of equal mass along one tree, as `mst` does. By sampling: draws from the
posterior of each column, whose privacy is that of the draws themselves; columns are unrelated to each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks import Draws
from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.mechanisms.posterior import Prior, check_draws, least_concentration, polya_prior
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.domain import Coding, Domain
from understudy.boundary.schema.partition import Grid, Partition
from understudy.errors import MethodError
from understudy.inference.network import IndependentModel
from understudy.inference.polya.dyadic import Dyadic, depth_of
from understudy.methods.method import CHOOSES_SEVERAL, NOISE, SAMPLING, Method, Options, Traits, Variant
from understudy.methods.params import Params, parameter
from understudy.methods.polya_tree.halving import CalibratedNoise, at_least, is_line, noisy_rows

Floats = NDArray[np.float64]

EXTRA_LEVELS = 3
"""Of a tree to sample from, where codes are no power of two: each code then has 8 leaves at least."""
DEEPEST = 20
SAMPLING_ERROR, PRIOR_ERROR = 0.3, 0.1
"""Wasserstein-1 distances on a unit line: of one draw from its law, and of a base measure from a typical column."""


@dataclass(frozen=True)
class PolyaParams(Params):
    """The options of `polya-tree`."""

    exponent: float = parameter(2.0, "by sampling: pseudo-counts grow as this power of the level", low=0.0, high=4.0)


@dataclass(frozen=True)
class PolyaTree:
    """The recipe. By sampling, `draws` says how many (a good number by default), with pseudo-counts c·j^exponent."""

    by: str = NOISE
    draws: int | None = None
    exponent: float = PolyaParams.exponent

    def calibrate(self, domain: Domain, amount: Amount) -> CalibratedNoise | CalibratedSampling:
        if self.by not in (NOISE, SAMPLING):
            raise MethodError(f"by ({self.by!r}) of method polya-tree must be {NOISE!r} or {SAMPLING!r}", self)
        if self.by == NOISE:
            if self.draws is not None:
                raise MethodError("draws are limited by sampling only; leave draws out, or use by='sampling'", self)
            if self.exponent != PolyaParams.exponent:
                raise MethodError("exponent is for sampling only; leave it out, or use by='sampling'", self)
            return CalibratedNoise(domain, amount)
        polya_prior(1.0, 1, self.exponent)
        return CalibratedSampling(
            domain, amount, None if self.draws is None else check_draws(self.draws), self.exponent
        )


@dataclass(frozen=True)
class CalibratedSampling:
    domain: Domain
    amount: Amount
    draws: int | None
    exponent: float

    def fit(self, curator: Queryable, rng: np.random.Generator) -> IndependentModel:
        rows, rest = noisy_rows(curator, self.amount)
        total = max(1.0, float(rows.counts[0]))
        parts = rest.split([1.0] * len(self.domain.names))
        epsilon = parts[0].pure_epsilon() / curator.schema.rows_per_unit
        depths = [sampled_depth(c) for c in self.domain]
        # ε depends on c and m through m/c alone, so that any number of draws shows their ratio
        # (docs/concepts/nonparametric).
        draws = self.draws or good_draws(
            at_least(rows), least_concentration(epsilon, 1000, max(depths), self.exponent) / 1000
        )
        trees = [self._tree(c, depth, epsilon, draws) for c, depth in zip(self.domain, depths, strict=True)]
        counts = curator.ask(Draws(self.domain, [p for p, _ in trees], [prior for _, prior in trees], draws))
        weights = {c.name: by_code(n, c, d) for c, n, d in zip(self.domain, counts, depths, strict=True)}
        return IndependentModel(weights, total)

    def _tree(self, coding: Coding, depth: int, epsilon: Fraction, draws: int) -> tuple[Partition, Prior]:
        """The leaves of a column, and the least prior that keeps its draws within ε."""
        concentration = least_concentration(epsilon, draws, depth, self.exponent)
        prior = polya_prior(concentration, depth, self.exponent)
        if is_line(coding):
            return Dyadic(coding.name, coding.size, depth), prior
        return Grid((coding.name,), (tuple(range(coding.size)),)), prior


def sampled_depth(coding: Coding) -> int:
    """Of the tree of a column to sample from; one level, with all values at once, where they have no order."""
    if not is_line(coding):
        return 1
    exact = coding.size & (coding.size - 1) == 0
    return min(DEEPEST, depth_of(coding.size) + (0 if exact else EXTRA_LEVELS))


def by_code(leaves: NDArray[np.int64], coding: Coding, depth: int) -> Floats:
    """Draws by leaf as draws by code: a leaf belongs to the code that it lies in."""
    if not is_line(coding):
        return leaves.astype(np.float64)
    codes = (np.arange(len(leaves)) * coding.size) >> depth
    return np.asarray(np.bincount(codes, leaves, coding.size), dtype=np.float64)


def good_draws(rows: float, share: float) -> int:
    """How many draws err least, with c = share·draws: few err by chance, many by their prior.

    The error a/√m + b·2c/n, in Wasserstein-1 on a unit line, is least where its derivative is 0.
    """
    return max(1, round(min(rows, (SAMPLING_ERROR * rows / (4 * PRIOR_ERROR * share)) ** (2 / 3))))


METHOD = Method(
    name="polya-tree",
    guarantee="pure ε with delta = 0, else zCDP",
    good_for="columns of numbers at full resolution, and one tree of pairs",
    limits="one pair per column; give numbers many bins in the schema",
    build=lambda options, params: PolyaTree(options.by, options.draws, params.exponent),
    params=PolyaParams,
    traits=Traits(samples=True),
    variants=(
        Variant(mutants=CHOOSES_SEVERAL),
        # Draws from a posterior cost the same where one row takes the place of another.
        Variant("-by-sampling", lambda names: Options(by=SAMPLING), immune=("index-blocks",)),
    ),
)
