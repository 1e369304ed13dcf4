"""The page on predictors of every size: mean and variance of accuracy over depth, trees and ε, as heat maps."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from understudy.pages.figure import SMALL, Figure, Numbers, element, figure, text, tip, width_of
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
class PredictionGrid:
    """All that the page shows. `baselines` are the shares of the commonest class."""

    outcomes: tuple[PredictionOutcome, ...]
    baselines: dict[str, float]
    rows: dict[str, int]
    repeats: int
    town: IncomeExample

    @property
    def tables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(o.table for o in self.outcomes))

    def of(self, table: str, method: str) -> list[PredictionOutcome]:
        return [o for o in self.outcomes if o.table == table and o.method == method]

    def best(self, table: str, method: str) -> PredictionOutcome:
        return max(self.of(table, method), key=lambda o: o.mean)


def render(grid: PredictionGrid) -> str:
    """One self-contained page; same input, same bytes."""
    sections = [(table, best_rows(grid, table), pictures(grid, table)) for table in grid.tables]
    return fill("prediction-grid.html.j2", grid=grid, sections=sections, town=town_rows(grid.town))


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
