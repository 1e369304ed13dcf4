"""`dirichlet`: draws of whole rows from a Dirichlet–multinomial on the public domain, with the exact ε of the draws.

Every cell of the joint domain has the same number of pseudo-counts, as few as ε allows. It suits small domains: a prior
mass that grows with the number of cells hides the rows of large ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from understudy.boundary.privacy.asks import Draws
from understudy.boundary.privacy.asks.checks import check_cells
from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.mechanisms.posterior import check_draws, least_concentration, polya_prior
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.partition import Grid
from understudy.inference.graphical.graphical_model import GraphicalModel, JunctionTree
from understudy.inference.model import Model
from understudy.methods.method import Method, Traits, Variant
from understudy.methods.polya_tree import at_least, noisy_rows

SAMPLING_ERROR, PRIOR_ERROR = 0.4, 0.7
"""Total variation: of one draw per cell from its law, and of the uniform law from that of a typical table."""


@dataclass(frozen=True)
class Dirichlet:
    """The recipe: how many draws are made (by default a number that errs little)."""

    draws: int | None = None

    def calibrate(self, domain: Domain, amount: Amount) -> CalibratedDirichlet:
        check_cells(domain.names, domain.cells(domain.names))
        return CalibratedDirichlet(domain, amount, None if self.draws is None else check_draws(self.draws))


@dataclass(frozen=True)
class CalibratedDirichlet:
    domain: Domain
    amount: Amount
    draws: int | None

    def fit(self, curator: Queryable, rng: np.random.Generator) -> Model:
        rows, rest = noisy_rows(curator, self.amount)
        total = max(1.0, float(rows.counts[0]))
        # Group privacy: a person with several rows divides what one row may cost.
        epsilon = rest.pure_epsilon() / curator.schema.rows_per_unit
        names, shape = self.domain.names, self.domain.shape(self.domain.names)
        draws = self.draws or good_draws(at_least(rows), math.prod(shape), epsilon)
        # A Polya tree of one level with all cells below it is a flat Dirichlet; its α is the least that ε allows.
        prior = polya_prior(least_concentration(epsilon, draws, 1), 1)
        grid = Grid(names, tuple(tuple(range(size)) for size in shape))
        (counts,) = curator.ask(Draws(self.domain, [grid], [prior], draws))
        sizes = dict(zip(names, shape, strict=True))
        table = np.asarray(counts.reshape(shape) * (total / draws), dtype=np.float64)
        return GraphicalModel(sizes, JunctionTree((names,), ()), [table], [])


def good_draws(rows: float, cells: int, epsilon: Fraction) -> int:
    """How many draws err least, with m/(e^ε − 1) pseudo-counts per cell: few err by chance, many by their prior.

    The error a·√(K/m) + b·K·α/n, a total variation distance, is least where its derivative is 0.
    """
    prior = PRIOR_ERROR * cells / math.expm1(min(float(epsilon), 50.0)) / rows
    return max(1, round(min(rows, (SAMPLING_ERROR / 2 * math.sqrt(cells) / prior) ** (2 / 3))))


METHOD = Method(
    name="dirichlet",
    guarantee="pure ε, exact, of the draws themselves",
    good_for="small joint domains at a generous ε",
    limits="at most 20 million cells in the joint domain; large domains show mostly the prior",
    build=lambda options, params: Dirichlet(options.draws),
    traits=Traits(samples=True),
    variants=(Variant(immune=("index-blocks",)),),  # its draws cost the same where one row takes the place of another
)
