"""What a comparison of methods found: one trial for each method, ε and seed, and what they say together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.boundary.privacy.budget import Budget
from understudy.errors import InputError
from understudy.files import write_atomically
from understudy.lab.attacks.attack_measures import ATTACK_MEASURES
from understudy.lab.evaluation.evaluation import MEASURES
from understudy.lab.evaluation.measure import LOWER, Measure, MeasureResult
from understudy.lab.specimens.all_specimens import SPECIMENS
from understudy.methods.registry import METHODS, find_method
from understudy.pages.page import Rendered, Report, report_writer
from understudy.parameters import whole_number

TRIAL_MEASURES: tuple[Measure, ...] = (*MEASURES, *ATTACK_MEASURES)
"""All that a trial may be measured by, attacks last."""
WITHOUT_GUARANTEE = "without a guarantee"
"""The family of specimens: they are shown beside the methods, and never win."""

# `js`, `hellinger` and `ks`, say, see what `tv1` and `wasserstein-1` see.
RANKED = (
    "tv1", "tv2", "tv3", "query-error", "wasserstein-1", "association", "pca-overlap", "propensity-auc", "tstr-auc",
    "tstr-r2",
)  # fmt: skip
"""What a ranking goes by: one measure of each kind, so that none counts twice."""


@dataclass(frozen=True)
class Trial:
    """One release and what its rows are worth; or why there is none."""

    method: str
    epsilon: float
    seed: int
    seconds: float
    megabytes: float
    figures: dict[str, MeasureResult]
    failed: str = ""

    @property
    def key(self) -> tuple[str, float, int]:
        return (self.method, self.epsilon, self.seed)


@dataclass(frozen=True)
class Summary:
    """A measure over the seeds of one method at one ε: the mean, and a 95 % interval for it."""

    mean: float
    low: float
    high: float
    seeds: int

    def written(self, figure: Callable[[float], str]) -> str:
        """The mean, and half of the interval's width where several seeds give it one."""
        if self.seeds == 1:
            return figure(self.mean)
        return f"{figure(self.mean)} ± {figure((self.high - self.low) / 2)}"


@dataclass(frozen=True)
class MethodRank:
    """A method among all at one ε: its mean rank over the measures, 1 being best, and its best and worst."""

    method: str
    mean: float
    best: float
    worst: float


@dataclass(frozen=True)
class Study(Rendered):
    """Methods at several budgets with several seeds. It is internal: it was computed from real rows."""

    table: str
    rows: int
    holdout_rows: int
    delta: float
    target: str | None
    trials: tuple[Trial, ...]
    baseline: dict[str, MeasureResult]
    """The figures of the real training rows in place of synthetic ones: what no release can beat by more than luck."""
    families: dict[str, str]
    """Of every method: model-first, statistics-first, or without a guarantee."""

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(t.method for t in self.trials))

    @property
    def epsilons(self) -> tuple[float, ...]:
        return tuple(sorted({t.epsilon for t in self.trials}))

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Those that some trial has a figure of."""
        known = {name for t in self.trials for name, f in t.figures.items() if f.value is not None}
        return tuple(m for m in TRIAL_MEASURES if m.name in known)

    @property
    def guaranteed(self) -> tuple[str, ...]:
        """The methods that a steward may choose among: all but specimens."""
        return tuple(m for m in self.methods if self.families.get(m) != WITHOUT_GUARANTEE)

    def of(self, method: str, epsilon: float) -> tuple[Trial, ...]:
        return tuple(t for t in self.trials if (t.method, t.epsilon) == (method, epsilon) and not t.failed)

    def failures(self) -> Iterator[Trial]:
        return (t for t in self.trials if t.failed)

    def summary(self, method: str, epsilon: float, measure: str) -> Summary | None:
        """None where no seed gave a figure."""
        # Seeds vary the noise, the sampling and what measures draw; all trials share one split of the rows
        # (`evaluation.holdout`). So an interval says nothing of how the figure would be on other rows.
        found = [t.figures[measure].value for t in self.of(method, epsilon) if measure in t.figures]
        return summarize([v for v in found if v is not None])

    def ranking(self, epsilon: float) -> list[MethodRank]:
        """Best first; only methods that have a figure of every measure that some method has one of."""
        wanted = [m for m in self.measures if m.name in RANKED]
        found = {
            m.name: {k: s.mean for k in self.guaranteed if (s := self.summary(k, epsilon, m.name))} for m in wanted
        }
        # A method without some figure would be ranked by the others alone, which may be what it is good at.
        complete = [k for k in self.guaranteed if wanted and all(k in found[m.name] for m in wanted if found[m.name])]
        ranks: dict[str, list[float]] = {k: [] for k in complete}
        for measure in wanted:
            sign = _sign(measure)
            signed = {k: sign * found[measure.name][k] for k in complete if k in found[measure.name]}
            for method, value in signed.items():
                below, equal = (sum(v < value for v in signed.values()), sum(v == value for v in signed.values()))
                # Equals share the mean of the ranks that they take up together.
                ranks[method].append(below + (equal + 1) / 2)
        # Mean ranks, as Demšar (2006) compares classifiers over data sets. Here they are over measures of one table,
        # which hang together, so that his tests would find differences too easily.
        known = [MethodRank(k, math.fsum(r) / len(r), min(r), max(r)) for k, r in ranks.items() if r]
        return sorted(known, key=lambda r: r.mean)

    def best(self, epsilon: float, measure: Measure, family: str | None = None) -> tuple[str, Summary] | None:
        """The method with the best mean, of one family or of all that have a guarantee."""
        methods = [m for m in self.guaranteed if family in (None, self.families[m])]
        found = [(m, s) for m in methods if (s := self.summary(m, epsilon, measure.name))]
        sign = _sign(measure)
        return min(found, key=lambda pair: sign * pair[1].mean, default=None)

    def cost(self, method: str, epsilon: float, what: str) -> Summary | None:
        """Of `seconds` or `megabytes`."""
        return summarize([float(getattr(t, what)) for t in self.of(method, epsilon)])

    def to_html(self, layout: str | None = None) -> str:
        """The report as one page that needs nothing else; a `layout` adds the tables of a published work."""
        from understudy.lab.studies.report import render

        return render(self, layout)

    def save(self, path: str | Path, layout: str | None = None) -> None:
        """Writes the report, whose name must end in .html."""
        path = Path(path)
        content = report_writer(path, {".html": lambda: self.to_html(layout)})()
        write_atomically(path, content.encode(), private=True)

    def _report(self) -> Report:
        from understudy.lab.studies import report

        return report


def _sign(measure: Measure) -> float:
    """By which figures are multiplied, so that less is better."""
    return 1.0 if measure.direction == LOWER else -1.0


def summarize(values: Sequence[float]) -> Summary | None:
    """Mean and 95 % interval of the mean by Student's t; of a single value the interval is that value."""
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return Summary(mean, mean, mean, 1)
    from scipy.stats import t

    # Of the mean, with n − 1. By Student's t, since a study has few seeds: of three, the normal law's interval would
    # be less than half as wide.
    spread = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1) / len(values))
    half = float(t.ppf(0.975, len(values) - 1)) * spread
    return Summary(mean, mean - half, mean + half, len(values))


MOST_SEEDS = 1000


@dataclass(frozen=True)
class Case:
    """What one child process is to do."""

    method: str
    epsilon: float
    seed: int

    @property
    def key(self) -> tuple[str, float, int]:
        return (self.method, self.epsilon, self.seed)

    def failed(self, reason: str, seconds: float = 0.0, megabytes: float = 0.0) -> Trial:
        """The trial of a case that gave no rows, or rows that nothing can be said about."""
        return Trial(
            self.method, self.epsilon, seed=self.seed, seconds=seconds, megabytes=megabytes, figures={}, failed=reason
        )


BASELINE = Case("real rows", 0.0, 0)
"""The training rows in place of synthetic ones; no method has this name, and no release this ε."""


def cases(methods: Sequence[str] | None, epsilons: Sequence[float], seeds: int, delta: float) -> tuple[Case, ...]:
    """Every method at every ε, once for each seed; a study that is cut short has the first seeds of all of them.

    >>> [case.key for case in cases(["mst"], [1, 3], 2, 1e-6)]
    [('mst', 1.0, 0), ('mst', 3.0, 0), ('mst', 1.0, 1), ('mst', 3.0, 1)]
    """
    # By default no specimen: what has no guarantee takes part only where somebody names it.
    names = tuple(dict.fromkeys(METHODS if methods is None else methods))
    _check(names, epsilons, seeds, delta)
    budgets = dict.fromkeys(float(e) for e in epsilons)
    return tuple(Case(m, e, s) for s, e, m in itertools.product(range(seeds), budgets, names))


def _check(methods: Sequence[str], epsilons: Sequence[float], seeds: int, delta: float) -> None:
    if not methods or not epsilons:
        raise InputError("a study needs at least one method and one epsilon", methods)
    for name in methods:
        if name not in SPECIMENS:
            find_method(name, beside=tuple(SPECIMENS))
    for epsilon in epsilons:
        Budget(epsilon, delta)  # which refuses what is no budget, before anything is run
    whole_number("seeds", seeds, 1, MOST_SEEDS)


def measures_of(names: Sequence[str] | None, attacks: bool) -> tuple[str, ...]:
    """The names of what trials are measured by, in order; with `attacks` those of all attacks too."""
    known = tuple(m.name for m in TRIAL_MEASURES)
    if names is not None and not names:
        raise InputError(f"a study needs at least one measure; the measures are {', '.join(known)}", names)
    strange = next((n for n in names or () if n not in known), None)
    if strange is not None:
        raise InputError(f"measure {strange!r} is not known; the measures are {', '.join(known)}", strange)
    wanted = {m.name for m in MEASURES} if names is None else set(names)
    if attacks:
        wanted |= {m.name for m in ATTACK_MEASURES}
    return tuple(name for name in known if name in wanted)


Stated = tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]
"""Options by method, then by name; sorted, so that equal wishes are equal."""


def stated_options(options: Mapping[str, Mapping[str, object]], methods: Iterable[str]) -> Stated:
    """The options of each method, read by the method's own rules; refuses those of a method that takes no part."""
    taking_part, found = set(methods), []
    for name, own in sorted(options.items()):
        if name not in taking_part:
            listing = ", ".join(sorted(taking_part))
            raise InputError(f"there are options for {name!r}, which takes no part; the methods are {listing}", name)
        kind = SPECIMENS[name] if name in SPECIMENS else METHODS[name]
        found.append((name, tuple(sorted(kind.params.of(name, own).changed().items()))))
    return tuple((name, own) for name, own in found if own)
