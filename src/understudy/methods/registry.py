"""Every method by its name: those of this package, found by walking it, and those that other packages offer.

Another package offers a method by an entry point of the group `understudy.methods`, under the method's name. It is
loaded when methods are first looked up, never by `import understudy`; one that can't be loaded, or whose name is taken,
is left out with a reason, and everything else works as before. `auto` chooses among this package's methods alone, so
that what it does never depends on what else is installed.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from understudy import methods
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.sites.federated import federation_of
from understudy.boundary.tables.table import Table
from understudy.errors import MethodError
from understudy.methods.forecast.forecast import ASSUMED_ROWS, Forecast, forecasts
from understudy.methods.method import BINS, NOISE, POLYA, Method, Options, Recipe
from understudy.methods.parts.workload import PAIRS
from understudy.parameters import one_of, suggestion

AUTO, GROUP = "auto", "understudy.methods"
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
MethodName = Literal[
    "auto", "aim", "dirichlet", "dp-arf", "dp-ctgan", "dp-gan", "dp-select", "dualquery", "generative-forest",
    "independent", "marginals", "mst", "mwem", "pate-gan", "polya-tree", "privbayes", "privsyn", "rake",
]  # fmt: skip
"""For editors, which complete it; a test holds it to `METHODS`, which is what counts."""
PATIENCE, ROOM = 900.0, 8_000.0
"""Seconds and megabytes that `auto` thinks a release may take."""
NOT_PRIVATE: set[str] = set()
"""Names of what makes rows without a guarantee, and so never a release; whoever offers such rows adds its name."""


def own_methods() -> dict[str, Method]:
    """The `METHOD` of every module and folder of this package that has one, by name."""
    # Walked and not listed: a new method is a file, and nothing else is edited.
    found = (importlib.import_module(f"{methods.__name__}.{m.name}") for m in pkgutil.iter_modules(methods.__path__))
    declared = [module.METHOD for module in found if hasattr(module, "METHOD")]
    return {m.name: m for m in sorted(declared, key=lambda m: m.name)}


@dataclass(frozen=True)
class Offered:
    """What other packages offer: methods, the reasons why others were left out, and who offers each."""

    methods: dict[str, Method]
    refused: dict[str, str]
    packages: dict[str, tuple[str, str]]
    """Name and version of the package of each method."""

    @classmethod
    def beside(cls, own: MutableMapping[str, Method]) -> Offered:
        offered = cls({}, {}, {})
        # Names are compared before anything is loaded: two packages of one name are both refused, in whatever order.
        points = list(entry_points(group=GROUP))
        for point in points:
            rivals = [p for p in points if p.name == point.name]
            try:
                offered.methods[point.name] = _loaded(point, own, rivals)
                if point.dist is not None:
                    offered.packages[point.name] = point.dist.name, point.dist.version
            # Whatever another package raises as it is imported must not break this one, nor end it.
            except (Exception, SystemExit) as error:
                offered.refused[point.name] = _reason(point, error)
        return offered


def _loaded(point: EntryPoint, own: MutableMapping[str, Method], rivals: Sequence[EntryPoint]) -> Method:
    if point.name in own or point.name in (AUTO, *NOT_PRIVATE):
        raise MethodError("understudy has that name itself", point)
    if len(rivals) > 1:
        raise MethodError(f"{len(rivals)} packages have that name", point)
    if not NAME.fullmatch(point.name):
        raise MethodError("a name must be small letters and digits, with hyphens between words", point)
    method = point.load()
    if not isinstance(method, Method):
        raise MethodError(f"{point.value} is no understudy.methods.method.Method", point)
    if method.name != point.name:
        raise MethodError(f"{point.value} calls itself {method.name!r}", point)
    return method


def _reason(point: EntryPoint, error: BaseException) -> str:
    package = point.dist.name if point.dist is not None else point.value
    said = str(error) if isinstance(error, MethodError) else f"{type(error).__name__}: {error}"
    return f"method {point.name!r} of package {package} can't be used: {said}"


class Registry(MutableMapping[str, Method]):
    """Methods by name, this package's first; those of other packages are looked for when they are first needed."""

    def __init__(self) -> None:
        self.own = own_methods()

    @cached_property
    def offered(self) -> Offered:
        return Offered.beside(self.own)

    def __getitem__(self, name: str) -> Method:
        return self.own[name] if name in self.own else self.offered.methods[name]

    def __iter__(self) -> Iterator[str]:
        yield from (*self.own, *self.offered.methods)

    def __len__(self) -> int:
        return len(self.own) + len(self.offered.methods)

    def __setitem__(self, name: str, method: Method) -> None:
        self.own[name] = method

    def __delitem__(self, name: str) -> None:
        del self.own[name]

    def with_trait(self, trait: str) -> list[Method]:
        """All methods that have it."""
        return [m for m in self.values() if getattr(m.traits, trait)]


METHODS = Registry()


@dataclass(frozen=True)
class Choice:
    """A method with the sentence that says why it was chosen."""

    method: Method
    reason: str

    @property
    def package(self) -> dict[str, str]:
        """Name and version of the package that offers the method, where that is not this one."""
        if self.method.name in METHODS.own:
            return {}
        return dict([METHODS.offered.packages[self.method.name]])


def find_method(name: str, beside: Sequence[str] = ()) -> Method:
    """The method of this name, or a refusal that says which there are, and what may be named beside them."""
    if name in NOT_PRIVATE:
        raise MethodError(
            f"method {name} has no privacy guarantee, so it makes no release; understudy.specimen makes its rows, "
            "and so does synth with --no-privacy",
            name,
        )
    if name not in METHODS and name in METHODS.offered.refused:
        raise MethodError(METHODS.offered.refused[name], name)
    if name not in METHODS:
        raise MethodError(f"method {name!r} is not known; {suggestion(name, [*METHODS, *beside])}", name)
    return METHODS[name]


def build_recipe(method: Method, options: Options) -> Recipe:
    """The recipe of a method; one that selects takes the pool that is named, told the same."""
    recipe: Any = method.recipe(options)
    if method.traits.selects and options.pool:
        recipe = recipe.over(METHODS[options.pool].recipe(replace(options, own={})))
    return recipe


def choose(name: str, options: Options, schema: Schema, budget: Budget) -> Choice:
    """The named method; `auto` chooses by its forecasts, which know public facts alone."""
    if name == AUTO:
        choice = _auto(options, schema, budget)
    else:
        choice = Choice(find_method(name, [AUTO]), "it was asked for")
    _check_options(choice.method, options)
    return choice


def _check_options(method: Method, options: Options) -> None:
    """Refuses what a method would ignore."""
    traits = method.traits
    if not traits.weighs and (options.weights or options.workload != PAIRS):
        raise MethodError(
            f"method {method.name} can't weigh sets of columns; leave weights and workload out, or use "
            f"{_names('weighs')}",
            options,
        )
    if not traits.samples and (options.by != NOISE or options.draws is not None):
        raise MethodError(
            f"method {method.name} does not draw from a posterior; leave by and draws out, or use {_names('samples')}",
            options,
        )
    if options.prior is not None and not traits.takes_prior:
        raise MethodError(
            f"method {method.name} takes no prior; leave prior out, or use {_names('takes_prior')}", options
        )
    if options.pool:
        if not traits.selects:
            raise MethodError(
                f"method {method.name} selects from no pool; leave pool ({options.pool}) out, or use "
                f"{_names('selects')}",
                options.pool,
            )
        # A pool of a method that itself selects would have to be told which pool.
        one_of("pool", options.pool, [m.name for m in METHODS.values() if not m.traits.selects], error=MethodError)
    if options.numeric not in (BINS, POLYA):
        raise MethodError(f"numeric ({options.numeric!r}) must be {BINS} or {POLYA}", options)
    if options.numeric == POLYA and not traits.buys_bins:
        raise MethodError(
            f"method {method.name} can't buy the bins of numbers; leave numeric out, or use {_names('buys_bins')}",
            options,
        )


def check_sites(choice: Choice, table: Table) -> None:
    """Refuses a method that asks for more than its sites give, before anything is spent."""
    federation = federation_of(table)
    if federation is not None and federation.sites_draw and not choice.method.traits.sums_only:
        raise MethodError(
            f"method {choice.method.name} asks for more than noisy sums, which are all that sites give under trust "
            f"{federation.trust}; use {_names('sums_only')}, or trust the aggregator",
            choice.method.name,
        )


def _names(trait: str) -> str:
    return " or ".join(m.name for m in METHODS.with_trait(trait))


def general_methods() -> list[Method]:
    """Those that `auto` chooses from by their forecasts."""
    return [m for m in METHODS.own.values() if m.traits.general]


def _auto(options: Options, schema: Schema, budget: Budget) -> Choice:
    if options.own:
        raise MethodError(
            f"option {next(iter(options.own))!r} is a method's own, and auto may choose any; name the method too",
            options,
        )
    # By traits, never by names, and by public facts alone: which method is chosen is part of what is released.
    own, columns = METHODS.own.values(), len(schema.modelled)
    if options.marginals:
        return Choice(next(m for m in own if m.traits.takes_marginals), "marginals were named")
    if options.prior is not None:
        return Choice(next(m for m in own if m.traits.takes_prior), "a prior was given, and it is the one to take one")
    if columns <= 1:
        unrelated = next(m for m in general_methods() if not m.traits.keeps_relations)
        return Choice(unrelated, "there is one column, so there are no relations to keep")
    return recommended(forecasts(schema, budget, ASSUMED_ROWS, general_methods()), ASSUMED_ROWS)


def recommended(expected: Sequence[Forecast], rows: int) -> Choice:
    """The least expected error, doubted where a method says so, among those that are neither slow nor large."""
    general = [f for f in expected if METHODS[f.method].traits.general]
    feasible = [f for f in general if f.seconds <= PATIENCE and f.megabytes <= ROOM]
    if feasible:
        best = min(feasible, key=lambda f: f.error * METHODS[f.method].traits.doubt)
        why = "errs least on most tables, and no other is expected to do much better"
        if best.error <= min(f.error for f in feasible):
            why = "is expected to err least"
    else:
        best, why = min(general, key=lambda f: f.seconds), "is the fastest, and none is fast"
    # No figure of the error: this one is of a table of so many rows, and one with another number has another.
    return Choice(METHODS[best.method], f"of the general methods it {why}, judged at {rows:,} rows")


def spoken_seconds(seconds: float) -> str:
    """To two digits, as a person would say it."""
    rounded = float(f"{max(seconds, 0.1):.2g}")
    return f"{rounded:g} s" if rounded < 120 else f"{float(f'{rounded / 60:.2g}'):g} min"


def table_of_methods() -> str:
    """This package's methods as the Markdown table of docs/concepts/methods.md (`scripts/write-methods`)."""
    lines = ["| method | guarantee | good for | limits |", "|---|---|---|---|"]
    lines += [f"| `{m.name}` | {m.guarantee} | {m.good_for} | {m.limits} |" for m in METHODS.own.values()]
    return "\n".join(lines) + "\n"


def table_of_options() -> str:
    """Their options, likewise."""
    lines = ["| option | method | default | must be | what it is |", "|---|---|---|---|---|"]
    for method in METHODS.own.values():
        for name, default, bound, help in method.params.rows():
            lines.append(f"| `{name}` | `{method.name}` | {default} | {bound} | {help} |")
    return "\n".join(lines) + "\n"
