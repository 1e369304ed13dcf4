"""The page on selection: rows out of a pool against the pool, honest and as printed, and what each parameter does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from understudy.lab.evaluation.evaluation import NOTICE
from understudy.lab.specimens import published_select
from understudy.lab.studies.layout import NOTHING, SELECTION, TextTable
from understudy.lab.studies.study import Summary, summarize
from understudy.methods import dp_select
from understudy.pages.curves import Dot, Reference, Series, curves, dots
from understudy.pages.figure import Figure
from understudy.pages.page import fill

POOL, SELECT, PUBLISHED = "pool", dp_select.METHOD.name, published_select.SPECIMEN.name
METHODS = (POOL, SELECT, PUBLISHED)
WIDTH = 420


@dataclass(frozen=True)
class SelectionCase:
    """One way to make rows: a pool alone, or selected from."""

    table: str
    method: str
    pool: str
    epsilon: float
    ratio: float = 1.0
    factor: float = 1.0
    distance: str = ""
    sections: int = 1
    seed: int = 0
    rows: int = 0
    """At most so many rows to learn from; 0 is all."""
    steps: int = 0
    """Of a network's training; 0 is its default."""

    @property
    def of_any_seed(self) -> SelectionCase:
        return replace(self, seed=0)

    @property
    def pool_alone(self) -> SelectionCase:
        """Its pool with the whole budget."""
        return replace(self, method=POOL, ratio=1.0, factor=1.0, distance="", sections=1)


@dataclass(frozen=True)
class SelectionTrial:
    """What the rows of a case are worth."""

    case: SelectionCase
    seconds: float
    tv1: float
    tv2: float
    auc: float
    accuracy: float
    balanced: float

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> SelectionTrial:
        return cls(**facts | {"case": SelectionCase(**facts["case"])})

    @property
    def summary_line(self) -> str:
        case = self.case
        what = case.pool
        if case.method != POOL:
            what = f"{case.method} over {case.pool}"
        return (
            f"{case.table}, ε = {case.epsilon:g}, seed {case.seed}: {what}, pairs {self.tv2:.4f} apart, "
            f"AUC {self.auc:.4f}, {self.seconds:.0f} s"
        )


@dataclass(frozen=True)
class Sweep:
    """One parameter of one method: the case for each of its values."""

    table: str
    method: str
    parameter: str
    cases: Mapping[str, SelectionCase]

    @property
    def epsilon(self) -> float:
        return next(iter(self.cases.values())).epsilon


@dataclass(frozen=True)
class Quantity:
    """A figure of a trial, and how it is written."""

    title: str
    short: str
    of: Callable[[SelectionTrial], float]
    scale: float = 1.0
    digits: int = 4

    def written(self, found: Summary | None) -> str:
        if found is None:
            return NOTHING
        return found.written(lambda value: f"{self.scale * value:.{self.digits}f}")


PAIRS = Quantity("Total variation of pairs", "TV of pairs", lambda t: t.tv2)
SINGLE = Quantity("Total variation of single columns", "TV of columns", lambda t: t.tv1)
AUC = Quantity("AUC of gradient boosting", "AUC", lambda t: t.auc)
ACCURACY = Quantity("Accuracy of a tree of depth 10, in %", "accuracy, %", lambda t: t.accuracy, 100, 2)
BALANCED = Quantity("Balanced accuracy of that tree, in %", "balanced, %", lambda t: t.balanced, 100, 2)
SECONDS = Quantity("Seconds of one core", "seconds", lambda t: t.seconds, 1, 1)
QUANTITIES = (PAIRS, AUC, ACCURACY, BALANCED, SINGLE, SECONDS)


@dataclass(frozen=True)
class SelectionResults:
    """All trials of a page."""

    trials: Sequence[SelectionTrial]

    def summary(self, case: SelectionCase, quantity: Quantity) -> Summary | None:
        """Over all seeds; none where there is no trial."""
        wanted = case.of_any_seed
        return summarize([quantity.of(t) for t in self.trials if t.case.of_any_seed == wanted])

    def gain(self, case: SelectionCase) -> Summary | None:
        """The document's acc-diff: accuracy of the case less that of its pool alone, seed by seed."""
        wanted, alone = case.of_any_seed, case.pool_alone.of_any_seed
        of_pool = {t.case.seed: t.accuracy for t in self.trials if t.case.of_any_seed == alone}
        ours = [t for t in self.trials if t.case.of_any_seed == wanted and t.case.seed in of_pool]
        return summarize([t.accuracy - of_pool[t.case.seed] for t in ours])

    def compared(self, table: str) -> list[SelectionCase]:
        """The cases of the comparison: of each method, pool and ε the first, which comes before all sweeps."""
        first: dict[tuple[str, str, float], SelectionCase] = {}
        # A sweep varies a case of the comparison, so its cases share their method, pool and ε.
        for case in (t.case.of_any_seed for t in self.trials if t.case.table == table):
            first.setdefault((case.method, case.pool, case.epsilon), case)
        return list(first.values())


@dataclass(frozen=True)
class SelectionChapter:
    """One table of rows."""

    name: str
    verdict: str
    grids: tuple[TextTable, ...]
    figures: tuple[Figure, ...]
    swept: tuple[tuple[str, tuple[Figure, ...], TextTable], ...]


def render(trials: Sequence[SelectionTrial], sweeps: Sequence[Sweep], swept: str) -> str:
    """One self-contained page; same input, same bytes."""
    results = SelectionResults(trials)
    tables = dict.fromkeys(t.case.table for t in trials)
    chapters = [_chapter(results, table, [s for s in sweeps if s.table == table]) for table in tables]
    seeds = len({t.case.seed for t in trials})
    return fill("selection.html.j2", notice=NOTICE, chapters=chapters, seeds=seeds, swept=swept)


def _chapter(results: SelectionResults, table: str, sweeps: Sequence[Sweep]) -> SelectionChapter:
    cases = results.compared(table)
    return SelectionChapter(
        table,
        verdict(results, cases),
        tuple(_grid(results, cases, q) for q in QUANTITIES),
        tuple(_curves(results, cases, table)),
        tuple(_swept(results, sweeps)),
    )


def verdict(results: SelectionResults, cases: Sequence[SelectionCase]) -> str:
    """How often honest selection has a smaller mean error than its pool with the whole budget, and a larger AUC."""
    pools = {(c.pool, c.epsilon): c for c in cases if c.method == POOL}
    selected = [c for c in cases if c.method == SELECT and (c.pool, c.epsilon) in pools]
    # By means alone, whatever their intervals, which stand in the tables: this counts, and tests nothing.
    wins = {q.title: sum(_better(results, c, pools[c.pool, c.epsilon], q) for c in selected) for q in (PAIRS, AUC)}
    said = ", and ".join(f"{title} in {n} of {len(selected)}" for title, n in wins.items())
    return f"Selected rows are better than their pool with all of the budget in {said} combinations of pool and ε."


def _better(results: SelectionResults, case: SelectionCase, pool: SelectionCase, quantity: Quantity) -> bool:
    ours, theirs = results.summary(case, quantity), results.summary(pool, quantity)
    assert ours and theirs
    if quantity is PAIRS:  # an error, where less is better
        return ours.mean < theirs.mean
    return ours.mean > theirs.mean


def _grid(results: SelectionResults, cases: Sequence[SelectionCase], quantity: Quantity) -> TextTable:
    epsilons = sorted({c.epsilon for c in cases})
    by = {(c.pool, c.method, c.epsilon): c for c in cases}
    rows = []
    for pool in dict.fromkeys(c.pool for c in cases):
        for method in METHODS:
            found = [by.get((pool, method, e)) for e in epsilons]
            name = f"{method} over {pool}"
            if method == POOL:
                name = f"{pool} alone"
            said = [NOTHING if c is None else quantity.written(results.summary(c, quantity)) for c in found]
            rows.append((name, *said))
    # The printed figures are those of Adult.
    if quantity is ACCURACY and any(c.table == "adult" for c in cases):
        rows += [_printed(name, epsilons) for name in ("DP-GAN", "DP-Select")]
    return TextTable(quantity.title, ("rows", *(f"ε = {e:g}" for e in epsilons)), tuple(rows))


def _printed(name: str, epsilons: Sequence[float]) -> tuple[str, ...]:
    known = [SELECTION.get(e, {}).get(name) for e in epsilons]
    return (f"in the document: {name}", *(NOTHING if v is None else f"{100 * v:.2f}" for v in known))


def _curves(results: SelectionResults, cases: Sequence[SelectionCase], table: str) -> Iterator[Figure]:
    for pool in dict.fromkeys(c.pool for c in cases):
        for quantity in (PAIRS, AUC, ACCURACY):
            series = []
            for method in METHODS:
                own = (c for c in cases if (c.pool, c.method) == (pool, method))
                found = ((c.epsilon, results.summary(c, quantity)) for c in own)
                scale = quantity.scale
                # All of these are shares; Student's interval of a few seeds would leave them.
                points = ((e, scale * s.mean, scale * max(s.low, 0.0), scale * min(s.high, 1.0)) for e, s in found if s)
                series.append(Series(_name(method), tuple(points)))
            title = f"{table}, pool {pool}: {quantity.short}"
            yield curves(series, title=title, across="ε", up=quantity.title, width=WIDTH)
        if gained := _gains(results, [c for c in cases if c.pool == pool and c.method != POOL]):
            title, up = f"{table}, pool {pool}: acc-diff", "accuracy less that of the pool alone, in points"
            yield curves(gained, title=title, across="ε", up=up, reference=Reference("pool alone", 0.0), width=WIDTH)


def _gains(results: SelectionResults, cases: Sequence[SelectionCase]) -> list[Series]:
    found: dict[str, list[tuple[float, float, float, float]]] = {}
    for case in cases:
        if (s := results.gain(case)) is not None:
            found.setdefault(case.method, []).append((case.epsilon, 100 * s.mean, 100 * s.low, 100 * s.high))
    if not found:
        return []
    # The pool first, without points: each method keeps its colour of the other pictures.
    return [Series(_name(method), tuple(found.get(method, ()))) for method in METHODS]


def _name(method: str) -> str:
    return {POOL: "pool alone", SELECT: SELECT, PUBLISHED: "as printed"}[method]


def _swept(results: SelectionResults, sweeps: Sequence[Sweep]) -> Iterator[tuple[str, tuple[Figure, ...], TextTable]]:
    for parameter in dict.fromkeys(s.parameter for s in sweeps):
        some = [s for s in sweeps if s.parameter == parameter]
        yield parameter, tuple(_dots(results, s) for s in some), _sweep_grid(results, parameter, some)


def _dots(results: SelectionResults, sweep: Sweep) -> Figure:
    """acc-diff as the document has it; for sections their running time stands in the table below."""
    title = f"{_name(sweep.method)}: {sweep.parameter}, ε = {sweep.epsilon:g}"
    gained = {value: results.gain(case) for value, case in sweep.cases.items()}
    if any(gained.values()):
        shown = [Dot(value, 100 * s.mean, 100 * s.low, 100 * s.high) for value, s in gained.items() if s]
        across, reference = "acc-diff: accuracy less that of the pool alone, in points", Reference("pool alone", 0.0)
        return dots(shown, title=title, across=across, reference=reference, width=WIDTH)
    found = {value: results.summary(case, ACCURACY) for value, case in sweep.cases.items()}
    shown = [Dot(value, s.mean, s.low, s.high) for value, s in found.items() if s]
    return dots(shown, title=title, across="accuracy of a tree of depth 10", width=WIDTH)


def _sweep_grid(results: SelectionResults, parameter: str, sweeps: Sequence[Sweep]) -> TextTable:
    rows = [
        (
            _name(s.method),
            f"{s.epsilon:g}",
            value,
            *(q.written(results.summary(case, q)) for q in QUANTITIES),
            NOTHING if (gain := results.gain(case)) is None else gain.written(lambda v: f"{100 * v:.2f}"),
        )
        for s in sweeps
        for value, case in s.cases.items()
        if results.summary(case, PAIRS) is not None  # a study that was stopped has some of them
    ]
    heads = ("rows", "ε", parameter, *(q.short for q in QUANTITIES), "acc-diff, points")
    return TextTable(f"All figures by {parameter}", heads, tuple(rows))
