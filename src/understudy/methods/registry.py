"""Every method by its name: what it promises, what it is good for, where it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from understudy.boundary.privacy.budget import Budget
from understudy.boundary.schema.schema import Schema
from understudy.errors import MethodError
from understudy.methods.aim import Aim
from understudy.methods.dirichlet import Dirichlet
from understudy.methods.dp_arf.dp_arf import DpArf
from understudy.methods.dp_ctgan import dp_ctgan
from understudy.methods.dp_gan import dp_gan
from understudy.methods.dp_select.dp_select import DpSelect
from understudy.methods.forecast.forecast import ASSUMED_ROWS, Forecast, forecasts
from understudy.methods.independent import Independent
from understudy.methods.marginals import Marginals
from understudy.methods.method import BINS, NOISE, POLYA, Options, Recipe
from understudy.methods.mst import Mst
from understudy.methods.mwem import Mwem
from understudy.methods.parts.workload import PAIRS
from understudy.methods.pate_gan import PateGan
from understudy.methods.polya_tree.polya_tree import PolyaTree
from understudy.methods.privbayes.privbayes import PrivBayes
from understudy.methods.rake.rake import Rake
from understudy.parameters import known_name, one_of

AUTO, USUAL_POOL = "auto", "mst"
WITHOUT_PRIVACY = ("arf", "published-dp-arf", "published-dp-select", "published-bnp")
"""Names that are no methods of a release: `understudy.lab.specimens` has them."""
GENERAL = ("rake", "aim", "mst", "independent")
"""The methods that `auto` chooses from: those that need to be told nothing."""
BUYING_BINS = ("mst", "aim", "dp-arf")
"""Methods that can buy the bins of numbers; others group numbers by themselves."""
FAVOURITE, BENEFIT_OF_DOUBT = "rake", 0.75
"""A forecast is that of a typical table, and two of them differ by chance. The method that erred least in nearly all
measured releases (`scripts/bench marginals`) is taken unless another is expected to err less by a quarter."""
MANY_COLUMNS, AMPLE = 16, 1.0
"""Columns and ε from which on dp-arf was the closer of the two, told a target, on the tables that have so many
(`scripts/bench marginals`: mushroom and votes); with fewer it is level with rake, and takes twice the time."""
PATIENCE, ROOM = 900.0, 8_000.0
"""Seconds and megabytes that `auto` thinks a release may take."""


@dataclass(frozen=True)
class Method:
    """A method as a user meets it."""

    name: str
    guarantee: str
    good_for: str
    limits: str
    recipe: Callable[[Options], Recipe]
    weighs: bool = False
    """Whether it can be told which sets of columns matter more."""
    samples: bool = False
    """Whether it can draw from a posterior, and be told how often."""
    selects: bool = False
    """Whether it takes rows out of another method's pool."""


METHODS: dict[str, Method] = {
    m.name: m
    for m in (
        Method(
            "independent",
            "pure ε with delta = 0, else zCDP",
            "one-way counts of every column; the baseline",
            "columns are unrelated to each other",
            lambda options: Independent(),
        ),
        Method(
            "marginals",
            "pure ε with delta = 0, else zCDP",
            "a few joint tables that you can name, or each column with a target",
            "knows only the relations that are named; at most 20 million cells per marginal",
            lambda options: Marginals(options.marginals, options.targets),
        ),
        Method(
            "privbayes",
            "pure ε with delta = 0, else zCDP",
            "relations of two or three columns, also of fine columns at a coarser level",
            "one order of columns; at most two parents each",
            lambda options: PrivBayes(),
        ),
        Method(
            "mwem",
            "pure ε with delta = 0, else zCDP",
            "the classic, as a baseline: pairs chosen where the model is worst, in equal rounds",
            "as many pairs as columns; aim spends the same budget better",
            lambda options: Mwem(options.targets, options.weights, options.workload),
            weighs=True,
        ),
        Method(
            "mst",
            "pure ε with delta = 0, else zCDP",
            "a fast model of the strongest pairs, one tree over all columns",
            "knows one pair per column; relations beyond the tree are inferred",
            lambda options: Mst(options.targets, options.weights, options.workload),
            weighs=True,
        ),
        Method(
            "aim",
            "pure ε with delta = 0, else zCDP",
            "a good general table in seconds: pairs chosen where the model is worst, round by round",
            "a minute for a hundred columns; at most 16 MB of model",
            lambda options: Aim(options.targets, options.weights, options.workload),
            weighs=True,
        ),
        Method(
            "rake",
            "pure ε with delta = 0, else zCDP",
            "the best table: pairs at the resolution that their noise allows, and prediction of a target",
            "half a minute; beyond a hundred columns minutes",
            lambda options: Rake(options.targets, options.weights, options.workload),
            weighs=True,
        ),
        Method(
            "dp-arf",
            "pure ε with delta = 0, else zCDP",
            "relations of many columns at once, and a target that follows from several: leaves of trees beside pairs",
            "about twice the time of rake",
            lambda options: DpArf(options.targets),
        ),
        Method(
            "dp-gan",
            "(ε, δ) by the privacy loss distribution of its training",
            "what networks can do: a generator against a critic that learns by noisy gradients",
            "needs the extra gan, a delta above 0 and minutes; statistics first are better",
            lambda options: dp_gan(options.targets),
        ),
        Method(
            "dp-ctgan",
            "(ε, δ) by the privacy loss distribution of its training",
            "the best of the networks: a generator that is asked for rows with a value",
            "needs the extra gan, a delta above 0 and minutes; statistics first are better",
            lambda options: dp_ctgan(options.targets),
        ),
        Method(
            "pate-gan",
            "zCDP of the votes",
            "the classic of teachers and a student, as a baseline",
            "needs the extra gan, a delta above 0, and many rows for its teachers",
            lambda options: PateGan(),
        ),
        Method(
            "dp-select",
            "that of its pool, and zCDP, or pure ε with delta = 0",
            "a weak generator: rows are selected out of its pool by measured marginals",
            "can't make what its pool lacks",
            lambda options: DpSelect(pool_of(options), targets=options.targets),
            selects=True,
        ),
        Method(
            "polya-tree",
            "pure ε with delta = 0, else zCDP",
            "columns of numbers at full resolution, and one tree of pairs",
            "one pair per column; give numbers many bins in the schema",
            lambda options: PolyaTree(options.by, options.draws),
            samples=True,
        ),
        Method(
            "dirichlet",
            "pure ε, exact, of the draws themselves",
            "small joint domains at a generous ε",
            "at most 20 million cells in the joint domain; large domains show mostly the prior",
            lambda options: Dirichlet(options.draws),
            samples=True,
        ),
    )
}


def pool_of(options: Options) -> Recipe:
    """The recipe of the pool, told the same as what selects from it."""
    return METHODS[options.pool or USUAL_POOL].recipe(options)


@dataclass(frozen=True)
class Choice:
    """A method with the sentence that says why it was chosen."""

    method: Method
    reason: str


def choose(name: str, options: Options, schema: Schema, budget: Budget) -> Choice:
    """The named method; `auto` chooses by its forecasts, which know public facts alone."""
    choice = _auto(options, schema, budget) if name == AUTO else _named(name)
    method = choice.method
    if not method.weighs and (options.weights or options.workload != PAIRS):
        raise MethodError(
            f"method {method.name} can't weigh sets of columns; leave weights and workload out, or use "
            f"{' or '.join(m.name for m in METHODS.values() if m.weighs)}",
            options,
        )
    if not method.samples and (options.by != NOISE or options.draws is not None):
        raise MethodError(
            f"method {method.name} does not draw from a posterior; leave by and draws out, or use "
            f"{' or '.join(m.name for m in METHODS.values() if m.samples)}",
            options,
        )
    if options.pool:
        _check_pool(method, options.pool)
    if options.numeric != BINS:
        _check_numeric(method, options.numeric)
    return choice


def _check_pool(method: Method, pool: str) -> None:
    if not method.selects:
        raise MethodError(f"method {method.name} selects from no pool; leave pool ({pool}) out, or use dp-select", pool)
    known = [m.name for m in METHODS.values() if not m.selects]
    one_of("pool", pool, known, error=MethodError)


def _check_numeric(method: Method, numeric: str) -> None:
    if numeric != POLYA:
        raise MethodError(f"numeric ({numeric!r}) must be {BINS} or {POLYA}", numeric)
    if method.name not in BUYING_BINS:
        raise MethodError(
            f"method {method.name} can't buy the bins of numbers; leave numeric out, or use {' or '.join(BUYING_BINS)}",
            numeric,
        )


def _named(name: str) -> Choice:
    if name in WITHOUT_PRIVACY:
        raise MethodError(
            f"method {name} has no privacy guarantee, so it makes no release; understudy.specimen makes its rows, "
            "and so does synth with --no-privacy",
            name,
        )
    known_name("method", name, [*METHODS, AUTO], error=MethodError)
    return Choice(METHODS[name], "it was asked for")


def _auto(options: Options, schema: Schema, budget: Budget) -> Choice:
    if options.marginals:
        return Choice(METHODS["marginals"], "marginals were named")
    if len(schema.modelled) <= 1:
        return Choice(METHODS["independent"], "there is one column, so there are no relations to keep")
    columns = len(schema.modelled)
    if options.targets and columns >= MANY_COLUMNS and budget.epsilon >= AMPLE and not _weighed(options):
        return Choice(
            METHODS["dp-arf"],
            f"a target was named among {columns} columns, and with an epsilon of at least {AMPLE:g} the leaves of "
            "trees keep more than pairs do of what so many columns have in common",
        )
    return recommended(forecasts(schema, budget, ASSUMED_ROWS, GENERAL), ASSUMED_ROWS)


def _weighed(options: Options) -> bool:
    """Whether some sets of columns were said to matter more, which dp-arf can't be told."""
    return bool(options.weights) or options.workload != PAIRS


def recommended(expected: Sequence[Forecast], rows: int) -> Choice:
    """The least expected error, `rake` favoured in doubt, among those that are neither slow nor large."""
    general = [f for f in expected if f.method in GENERAL]
    feasible = [f for f in general if f.seconds <= PATIENCE and f.megabytes <= ROOM]
    best = min(feasible or general, key=lambda f: _doubted(f) if feasible else f.seconds)
    least = best.error <= min(f.error for f in feasible or general)
    reason = (
        "is expected to err least" if least else "errs least on most tables, and no other is expected to do much better"
    )
    why = reason if feasible else "is the fastest, and none is fast"
    error = f"pairs of columns by about {100 * best.error:.2g} % with {rows:,} rows"
    return Choice(
        METHODS[best.method],
        f"of the general methods it {why} ({error}), in about {spoken_seconds(best.seconds)}",
    )


def _doubted(forecast: Forecast) -> float:
    return forecast.error * (BENEFIT_OF_DOUBT if forecast.method == FAVOURITE else 1.0)


def spoken_seconds(seconds: float) -> str:
    """To two digits, as a person would say it."""
    rounded = float(f"{max(seconds, 0.1):.2g}")
    return f"{rounded:g} s" if rounded < 120 else f"{float(f'{rounded / 60:.2g}'):g} min"
