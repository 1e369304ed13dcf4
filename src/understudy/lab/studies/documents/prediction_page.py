"""The page on predictors of every size: mean and variance of accuracy over depth, trees and ε, as heat maps."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.pages.axis import Scale, bottom_axis, left_axis
from understudy.pages.curves import Reference, Series, curves
from understudy.pages.figure import SMALL, Figure, Numbers, element, figure, heading, line, text, tip, width_of
from understudy.pages.formatting import counted
from understudy.pages.page import fill
from understudy.pages.palette import var

LOW, HIGH = 0.45, 1.0
"""Of an accuracy, as Hanisch draws it, up to all rows right."""
SIDE, HEAD = 44.0, 44.0
TREE, FOREST = "decision tree, not private", "random forest, not private"
PRIVATE_TREE, PRIVATE_FOREST, GREEDY = "private random tree", "private random forest", "private greedy tree"
MEAN, VARIANCE = "mean", "variance"


@dataclass(frozen=True)
class PredictionOutcome:
    """One size of one predictor on one table, over several splits and draws."""

    table: str
    method: str
    depth: int
    trees: int
    epsilon: float | None
    accuracies: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.accuracies)

    @property
    def variance(self) -> float:
        return statistics.pvariance(self.accuracies)


@dataclass(frozen=True)
class IncomeExample:
    """The billionaire example: a town's income by a noisy mean and by a private median, without and with one."""

    epsilon: float
    residents: int
    mean: tuple[float, float]
    """Exact, of the town without and with the billionaire."""
    median: tuple[float, float]
    noise_of_mean: float
    """The standard deviation that hides a billionaire."""
    noisy_means: tuple[tuple[float, ...], tuple[float, ...]]
    private_medians: tuple[tuple[float, ...], tuple[float, ...]]


@dataclass(frozen=True)
class Id3Result:
    """Accuracies of ID3 on one table, plain and private, over several splits."""

    table: str
    plain: tuple[float, ...]
    private: dict[float, tuple[float, ...]]
    """By ε."""


@dataclass(frozen=True)
class RepeatedCounts:
    """The share of one class out of noisy counts, asked again and again; each answer has the whole ε."""

    table: str
    value: str
    epsilon: float
    exact: float
    shares: tuple[float, ...]


@dataclass(frozen=True)
class PredictionGrid:
    """All that the page shows. `baselines` are the shares of the commonest class."""

    outcomes: tuple[PredictionOutcome, ...]
    baselines: dict[str, float]
    rows: dict[str, int]
    repeats: int
    town: IncomeExample
    id3: tuple[Id3Result, ...] = ()
    counts: tuple[RepeatedCounts, ...] = ()

    @property
    def tables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(o.table for o in self.outcomes))

    def of(self, table: str, method: str) -> list[PredictionOutcome]:
        return [o for o in self.outcomes if o.table == table and o.method == method]

    def best(self, table: str, method: str) -> PredictionOutcome:
        return max(self.of(table, method), key=lambda o: o.mean)


def render(grid: PredictionGrid) -> str:
    """One self-contained page; same input, same bytes."""
    sections = [
        (table, best_rows(grid, table), single_figures(grid, table), pictures(grid, table)) for table in grid.tables
    ]
    return fill(
        "prediction-grid.html.j2", grid=grid, sections=sections, town=town_rows(grid.town), id3=id3_rows(grid),
        id3_epsilon=f"{PRINTED_ID3_EPSILON:g}", id3_figures=[_over_inverse(r, grid.baselines) for r in grid.id3],
    )  # fmt: skip


def best_rows(grid: PredictionGrid, table: str) -> list[tuple[str, ...]]:
    """The best size of each predictor, and how right it is."""
    found: list[tuple[str, ...]] = []
    for method in dict.fromkeys(o.method for o in grid.outcomes if o.table == table):
        # Chosen by the rows that it is then judged by, so a little too good: for every method alike.
        best = grid.best(table, method)
        size = f"depth {best.depth}, {counted(best.trees, 'tree')}"
        found.append((method, size, _epsilon(best.epsilon), f"{best.mean:.2%}", f"{best.variance:.2e}"))
    return found


def pictures(grid: PredictionGrid, table: str) -> list[Figure]:
    """Mean and variance by depth and trees, or by depth and ε; of private forests, for each ε."""
    drawn = []
    for method, across in ((FOREST, "trees"), (PRIVATE_TREE, "ε"), (GREEDY, "ε")):
        outcomes = grid.of(table, method)
        drawn += [heat(outcomes, across, quantity, f"{table}: {method}") for quantity in (MEAN, VARIANCE) if outcomes]
    for epsilon in sorted({o.epsilon for o in grid.of(table, PRIVATE_FOREST) if o.epsilon is not None}):
        outcomes = [o for o in grid.of(table, PRIVATE_FOREST) if o.epsilon == epsilon]
        title = f"{table}: {PRIVATE_FOREST}, ε = {epsilon:g}"
        drawn += [heat(outcomes, "trees", quantity, title) for quantity in (MEAN, VARIANCE)]
    return drawn


PRINTED_ID3_EPSILON = 0.5
PRINTED_ID3 = {"nursery": 0.46, "votes": 0.40, "mushroom": 0.56}
"""Of private ID3 at that ε, as figure 5 shows it."""
SMALL_EPSILON = 0.01
"""At which the document tries up to a hundred trees."""
CURVE_WIDTH = 520


def id3_rows(grid: PredictionGrid) -> list[tuple[str, ...]]:
    """Figure 5: ID3, always the commonest class, and private ID3, as printed and ours."""
    rows: list[tuple[str, ...]] = []
    for found in grid.id3:
        private = found.private.get(PRINTED_ID3_EPSILON, ())
        ours = f"{statistics.fmean(private):.3f}" if private else "–"
        printed = PRINTED_ID3.get(found.table)
        said = "–" if printed is None else f"{printed:.2f}"
        plain = f"{statistics.fmean(found.plain):.3f}"
        rows.append((found.table, plain, f"{grid.baselines[found.table]:.3f}", ours, said))
    return rows


def _over_inverse(found: Id3Result, baselines: dict[str, float]) -> Figure:
    """Figure 6: private ID3 over 1/ε, to the right with ever more noise."""
    points = {1 / e: accuracies for e, accuracies in found.private.items()}
    return curves(
        [Series("private ID3", tuple(_spread(x, values) for x, values in sorted(points.items())))],
        title=f"{found.table}: private ID3", across="1/ε", up="mean accuracy; the band runs from worst to best",
        reference=Reference("commonest class", baselines[found.table]), width=CURVE_WIDTH,
    )  # fmt: skip


def single_figures(grid: PredictionGrid, table: str) -> list[Figure]:
    """Figures 9, 10, 12, 16 and 17 of the document: a repeated count, and depth and trees each by itself."""
    drawn = [repeated(counts) for counts in grid.counts if counts.table == table]
    reference = Reference("commonest class", grid.baselines[table])
    plain = grid.of(table, TREE)
    if plain:
        points = tuple(_spread(o.depth, o.accuracies) for o in plain)
        drawn.append(_curve(f"{table}: {TREE}", "depth", [Series("tree", points)], reference))
    for across in ("depth", "trees"):
        if forests := grid.of(table, FOREST):
            drawn.append(_curve(f"{table}: {FOREST}", across, [_over(forests, across, "forest")], reference))
    private = grid.of(table, PRIVATE_FOREST)
    epsilons = sorted({o.epsilon for o in private if o.epsilon is not None})
    for across in ("depth", "trees"):
        series = [_over([o for o in private if o.epsilon == e], across, f"ε = {e:g}") for e in epsilons]
        if series:
            drawn.append(_curve(f"{table}: {PRIVATE_FOREST}", across, series, reference))
    few = [o for o in private if o.epsilon == SMALL_EPSILON]
    if few:
        depths = sorted({o.depth for o in few})
        series = [_over([o for o in few if o.depth == d], "trees", f"depth {d}") for d in depths]
        drawn.append(_curve(f"{table}: {PRIVATE_FOREST}, ε = {SMALL_EPSILON:g}", "trees", series, reference))
    return drawn


def _curve(title: str, across: str, series: Sequence[Series], reference: Reference) -> Figure:
    return curves(
        series, title=f"{title}, by {across}", across=across, up="mean accuracy", reference=reference,
        width=CURVE_WIDTH, logarithmic=across == "trees",
    )  # fmt: skip


def _over(outcomes: Sequence[PredictionOutcome], across: str, name: str) -> Series:
    """The mean over everything else: over all numbers of trees, or over all depths."""
    by: dict[int, list[float]] = {}
    for outcome in outcomes:
        by.setdefault(getattr(outcome, across), []).append(outcome.mean)
    places = sorted(by)
    return Series.line(name, places, [statistics.fmean(by[x]) for x in places])


def _spread(x: float, values: Sequence[float]) -> tuple[float, float, float, float]:
    return (float(x), statistics.fmean(values), min(values), max(values))


BARS = 31


def repeated(found: RepeatedCounts, width: float = CURVE_WIDTH) -> Figure:
    """How the answers of one question spread: a bar for each range of shares, the exact share as a line."""
    # Shares of noisy counts lie near the exact one, on either side of it.
    reach = max(abs(s - found.exact) for s in found.shares) * 1.0001 or 0.01
    edges = np.linspace(found.exact - reach, found.exact + reach, BARS + 1)
    counts, _ = np.histogram(found.shares, edges)
    bottom, left = 230.0, 52.0
    x, y = Scale(edges[0], edges[-1], left, width - 16), Scale.over((0.0, float(counts.max())), bottom, 46)
    title = f"{found.table}: the share of “{found.value}”, asked {len(found.shares):,} times"
    marks = [heading(title, width), text(0, 34, "answers", size=SMALL, quiet=True)]
    marks += [*left_axis(y, x.start, x.end), *bottom_axis(x, bottom)]
    for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
        box = {
            "x": x(low) + 0.5,
            "y": y(float(count)),
            "width": x(high) - x(low) - 1,
            "height": bottom - y(float(count)),
        }
        marks.append(tip(element("rect", **box, fill=var("accent"), fill_opacity=0.75), f"{count:,} answers"))
    marks.append(line(x(found.exact), 46, x(found.exact), bottom, "currentColor", width=1.2, dash="3 3"))
    said = f"share by two noisy counts, each at ε = {found.epsilon:g}; the line is the exact share"
    marks.append(text((x.start + x.end) / 2, bottom + 30, said, size=SMALL, anchor="middle", quiet=True))
    table = tuple((f"{(a + b) / 2:.4f}", f"{n:,}") for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True))
    return figure(marks, width, bottom + 38, title, f"How often each {said}.", Numbers(("share", "answers"), table))


def heat(outcomes: Sequence[PredictionOutcome], across: str, quantity: str, title: str) -> Figure:
    """A cell for each depth (from below to above) and each number of trees, or ε; darker is more."""
    columns = sorted({_across(o, across) for o in outcomes})
    depths = sorted({o.depth for o in outcomes}, reverse=True)
    values = {(o.depth, _across(o, across)): getattr(o, quantity) for o in outcomes}
    low, high = LOW, HIGH
    if quantity == VARIANCE:
        # At least a little: all variances may be 0, and a colour is a share of the range.
        low, high = 0.0, max([1e-4, *values.values()])
    room = 34.0
    width = max(room + SIDE * len(columns) + 6, width_of(title, 13.5))
    height = HEAD + SIDE * 0.62 * len(depths) + 40
    marks = [text(0, 14, title, size=13.5, bold=True), text(0, 31, f"{quantity} of accuracy", quiet=True)]
    for i, depth in enumerate(depths):
        y = HEAD + SIDE * 0.62 * i
        marks.append(text(room - 6, y + 18, str(depth), size=SMALL, anchor="end"))
        marks += [_cell(room + SIDE * j, y, values.get((depth, c)), low, high, quantity) for j, c in enumerate(columns)]
    foot = HEAD + SIDE * 0.62 * len(depths) + 15
    names = [text(room + SIDE * (j + 0.5), foot, f"{c:g}", size=SMALL, anchor="middle") for j, c in enumerate(columns)]
    axis = text(room + SIDE * len(columns) / 2, foot + 17, f"{across} (depth upwards)", size=SMALL, anchor="middle")
    numbers = tuple((str(d), f"{c:g}", f"{v:.6f}") for (d, c), v in sorted(values.items()))
    least, most = min(values.values()), max(values.values())
    said = f"{quantity.capitalize()} of accuracy by depth and {across}, from {least:.4f} to {most:.4f}."
    table = Numbers(("depth", across, quantity), numbers)
    return figure([*marks, *names, axis], width, height, f"{title}, {quantity}", said, table)


def _across(outcome: PredictionOutcome, across: str) -> float:
    if across == "trees":
        return float(outcome.trees)
    return float(outcome.epsilon or 0.0)


def _cell(x: float, y: float, value: float | None, low: float, high: float, quantity: str) -> str:
    box = {"x": x + 0.5, "y": y + 0.5, "width": SIDE - 1, "height": SIDE * 0.62 - 1}
    if value is None:
        return element("rect", **box, fill=var("track"), fill_opacity=0.3)
    strength = min(max((value - low) / (high - low), 0.0), 1.0)
    ink = var("card") if strength > 0.6 else "currentColor"
    words, unit = f"{100 * value:.0f}", "%"
    if quantity == VARIANCE:
        words, unit = f"{1e3 * value:.1f}", " thousandths"
    ground = element("rect", **box, fill=var("track"), fill_opacity=0.4)
    colour = element("rect", **box, fill=var("accent"), fill_opacity=round(strength, 3))
    shown = text(x + SIDE / 2, y + 18, words, size=SMALL, anchor="middle", fill=ink)
    return tip(ground + colour + shown, f"{words}{unit}")


def town_rows(town: IncomeExample) -> list[tuple[str, ...]]:
    """What the two towns look like, in money."""
    rows: list[tuple[str, ...]] = []
    for place, name in enumerate(("without the billionaire", "with the billionaire")):
        means, medians = town.noisy_means[place], town.private_medians[place]
        mean, median = f"{town.mean[place]:,.0f}", f"{town.median[place]:,.0f}"
        rows.append((name, mean, _range(means), median, _range(medians)))
    return rows


def _range(values: Sequence[float]) -> str:
    """Where nine of ten answers lie."""
    ordered = sorted(values)
    cut = len(ordered) // 20
    return f"{ordered[cut]:,.0f} to {ordered[-1 - cut]:,.0f}"


def _epsilon(epsilon: float | None) -> str:
    return "–" if epsilon is None else f"{epsilon:g}"
