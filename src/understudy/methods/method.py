"""A method is one object, `Method`: all that any other room asks of it, so that a new method is one file.

And the protocol of every method: recipe → calibrated → fit on a curator → model → sample.
A *recipe* holds public parameters. *Calibrating* it to a domain and an amount of budget settles every set of columns
and every share before anything is spent, so that impossible wishes are refused first. *Fitting* asks the curator.
Everything after the curator's answers must be a function of them and of `rng`: the same run on recorded answers
rebuilds the same model (`understudy replay`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.inference.model import Model
from understudy.methods.forecast.spending import Public, Spending, spend_on_columns
from understudy.methods.params import Params
from understudy.methods.parts.prior import Prior
from understudy.methods.parts.workload import PAIRS, Stated, stated_targets

NOISE, SAMPLING = "noise", "sampling"
"""Where the privacy of a method comes from: noise on its counts, or draws from a posterior."""

BINS, POLYA = "bins", "polya"
"""Where numbers get their bins from, if no schema has them: of one width, or from noisy counts of halves."""

STATISTICS_FIRST, MODEL_FIRST = "statistics-first", "model-first"
"""Families: rows drawn from noisy counts, whatever model is fitted to them; or a network that learns by noisy gradients
or votes."""


class Calibrated(Protocol):
    """A recipe settled for one domain and one amount of budget."""

    def fit(self, curator: Queryable, rng: np.random.Generator) -> Model: ...


class Recipe(Protocol):
    """The public parameters of a method."""

    def calibrate(self, domain: Domain, amount: Amount) -> Calibrated:
        """Settles what will be asked, or refuses with the reason; reads nothing and spends nothing."""
        ...


@dataclass(frozen=True)
class Options:
    """What a user may say about a method, whichever it is; a method takes what concerns it."""

    targets: ColumnSet = ()
    marginals: tuple[ColumnSet, ...] = ()
    weights: Stated = ()
    workload: str = PAIRS
    by: str = NOISE
    draws: int | None = None
    pool: str = ""
    """The method that makes the pool out of which rows are selected."""
    numeric: str = BINS
    own: Mapping[str, Any] = field(default_factory=dict)
    """By the names of the method's own `Params`; once the method is chosen, those alone that are not its defaults."""
    prior: Prior | None = None
    """What is known before, from an earlier release or a public table; who replays a release gives it anew."""

    def to_dict(self) -> dict[str, Any]:
        """As certificates have it: several targets are a list, one is its name, and none is null."""
        target: Any = list(self.targets) or None
        if len(self.targets) == 1:
            target = self.targets[0]
        plain: dict[str, Any] = {
            "target": target,
            "marginals": [list(m) for m in self.marginals],
            "weights": [[list(columns), weight] for columns, weight in self.weights],
            "workload": self.workload,
        }
        # What follows only where it was asked for: most methods know no such thing, and older certificates lack it.
        if (self.by, self.draws) != (NOISE, None):
            plain |= {"by": self.by, "draws": self.draws}
        further = {"pool": (self.pool, ""), "numeric": (self.numeric, BINS), "options": (dict(self.own), {})}
        if self.prior is not None:
            plain["prior"] = self.prior.to_dict()
        return plain | {name: value for name, (value, usual) in further.items() if value != usual}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Options:
        return cls(
            targets=stated_targets(data.get("target")),
            marginals=tuple(tuple(m) for m in data.get("marginals", ())),
            weights=tuple((tuple(columns), float(weight)) for columns, weight in data.get("weights", ())),
            workload=data.get("workload", PAIRS),
            by=data.get("by", NOISE),
            draws=data.get("draws"),
            pool=data.get("pool", ""),
            numeric=data.get("numeric", BINS),
            own=data.get("options", {}),
        )


@dataclass(frozen=True)
class Traits:
    """What other rooms go by when they treat methods differently; nobody asks for a method's name."""

    family: str = STATISTICS_FIRST
    trains: bool = False
    """Whether it trains a network on rows: too slow for thousands of runs, so that the auditor looks from inside."""
    pure: bool = True
    """Whether it can give pure ε; one that can't refuses a delta of 0."""
    extra: str = ""
    """The extra of the package that it needs to be installed."""
    weighs: bool = False
    """Whether it can be told which sets of columns matter more."""
    takes_prior: bool = False
    """Whether it can start from an earlier release or a public table."""
    samples: bool = False
    """Whether it can draw from a posterior, and be told how often."""
    selects: bool = False
    """Whether it takes rows out of another method's pool."""
    buys_bins: bool = False
    """Whether it can buy the bins of numbers; others group numbers by themselves."""
    sums_only: bool = False
    """Whether all that it asks are sums of counts, which sites can make noisy each for itself."""
    takes_marginals: bool = False
    """Whether `auto` takes it where marginals are named."""
    keeps_relations: bool = True
    general: bool = False
    """Whether `auto` may choose it by its forecast: it needs to be told nothing."""
    doubt: float = 1.0
    """What `auto` multiplies its forecast by: below 1 where it errs less than a forecast of a typical table says."""


@dataclass(frozen=True)
class Variant:
    """A way to run a method that the auditor looks at by itself; most methods have one."""

    ending: str = ""
    """What its name has beside the method's."""
    options: Callable[[Sequence[str]], Options] = lambda names: Options()
    """What it must be told on a table of these columns."""
    mutants: tuple[str, ...] = ()
    """The mistakes that it can make beside those that every method can: the auditor must catch them in it."""
    immune: tuple[str, ...] = ()
    """Mistakes that every other method can make, and that change nothing here."""
    selects_wide: bool = False
    """Whether it picks several sets in one selection of wide tables alone."""


CHOOSES = ("monotone-constant",)
"""The mistake of whatever makes private choices."""
CHOOSES_SEVERAL = (*CHOOSES, "late-admission")
"""The mistakes of whatever picks several candidates, by a rule, in one selection."""


@dataclass(frozen=True)
class Method:
    """A method as a user meets it, and as every other room does.

    A package of its own offers one by the entry point `understudy.methods`, under the method's name.
    """

    name: str
    guarantee: str
    good_for: str
    limits: str
    build: Callable[[Options, Any], Recipe]
    """From what the user says and the method's own `params` to a recipe."""
    params: type[Params] = Params
    traits: Traits = Traits()
    spending: Callable[[Public], Spending] = spend_on_columns
    """What it buys of a table of two columns or more, by its own rules: `plan` forecasts its error by that."""
    coefficients: Mapping[str, Sequence[float]] | None = None
    """Of its forecast, where `methods.forecast` has none; a method without any has no forecast."""
    variants: tuple[Variant, ...] = (Variant(),)

    def recipe(self, options: Options) -> Recipe:
        return self.build(options, self.params.of(self.name, options.own))

    def expected_spending(self, public: Public) -> Spending:
        if len(public.domain.names) == 1:
            return spend_on_columns(public)
        return self.spending(public)
