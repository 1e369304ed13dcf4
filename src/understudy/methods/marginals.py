"""`marginals`: a fixed list of marginals that the user names, made consistent, then drawn from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy.boundary.privacy.asks import Marginals
from understudy.boundary.privacy.asks.checks import check_cells
from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.errors import MethodError
from understudy.inference.marginal_model import MarginalModel
from understudy.methods.forecast.spending import Public, Spending, spend_equally
from understudy.methods.method import Method, Options, Traits, Variant
from understudy.methods.parts.one_ways import FIRST_SHARE, error_weights, public_rows


@dataclass(frozen=True)
class MarginalSets:
    """The recipe: the named sets; each column together with each target; and any column left, alone."""

    sets: tuple[ColumnSet, ...] = ()
    targets: ColumnSet = ()

    def calibrate(self, domain: Domain, amount: Amount) -> CalibratedMarginals:
        sets = self._all_sets(domain)
        for columns in sets:
            self._check(domain, columns)
        return CalibratedMarginals(domain, amount, sets)

    def _all_sets(self, domain: Domain) -> tuple[ColumnSet, ...]:
        named = list(self.sets)
        for target in self.targets:
            domain[target]  # refuses an unknown target
            pairs = [(name, target) for name in domain.names if name != target]
            named += [p for p in pairs if not any(set(p) <= set(s) for s in named)]
        if not named:
            raise MethodError(
                "method marginals needs marginals or a target; name some, as in --marginal age,income", self
            )
        covered = {c for s in named for c in s}
        return (*named, *((name,) for name in domain.names if name not in covered))

    def _check(self, domain: Domain, columns: ColumnSet) -> None:
        if not columns or len(set(columns)) < len(columns):
            raise MethodError(f"marginal ({', '.join(columns)}) must name one or more columns, each once", columns)
        check_cells(columns, domain.cells(columns))
        if self.sets.count(columns) > 1:
            raise MethodError(f"marginal ({', '.join(columns)}) is named twice; name it once", columns)


@dataclass(frozen=True)
class CalibratedMarginals:
    domain: Domain
    amount: Amount
    sets: tuple[ColumnSet, ...]

    def fit(self, curator: Queryable, rng: np.random.Generator) -> MarginalModel:
        weights = error_weights([self.domain.cells(s) for s in self.sets], self.amount.pure)
        # Each set with a part of its own: a row is in one cell of every set, so that their costs add up.
        rows = public_rows(curator)
        measured = curator.ask(Marginals(self.domain, self.sets, self.amount, weights))
        return MarginalModel.fit(self.domain, rows + measured)


def spending(public: Public) -> Spending:
    """As with one target: a pair of each other column with it."""
    return spend_equally(public, public.amount.part(FIRST_SHARE), public.amount, len(public.domain.names) - 1)


METHOD = Method(
    name="marginals",
    guarantee="pure ε with delta = 0, else Gaussian differential privacy",
    good_for="a few joint tables that you can name, or each column with a target",
    limits="knows only the relations that are named; at most 20 million cells per marginal",
    build=lambda options, params: MarginalSets(options.marginals, options.targets),
    traits=Traits(takes_marginals=True, sums_only=True),
    spending=spending,
    variants=(Variant(options=lambda names: Options(marginals=(tuple(names[:2]),))),),
)
