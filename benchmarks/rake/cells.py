"""`cells`: seven tables at three budgets: in how many of the 21 cells does `rake` err least in pairs and in triples?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .case import Case, Grid, Result, Study
from .summary import NOTHING, Results, Sample, markdown

RIVALS = ("dp-arf", "aim", "mst", "independent")
METHODS = ("rake", *RIVALS)
TARGETED = ("adult_coded",)
"""Where a column is to be predicted, methods that take a target are told it, as in `flagship`."""
GRID = Grid(("adult_coded", "mushroom", "insurance", "nursery", "votes", "covertype", "census"), (0.1, 1.0, 10.0), 10)
FIGURES = {"pairs": "tv2", "triples": "tv3_all"}


def cases(grid: Grid) -> Iterator[Case]:
    for seed, table, epsilon in grid:
        for method in METHODS:
            told = table in TARGETED and method != "independent"
            yield Case(table, method, epsilon, seed, "with target" if told else "")


def render(found: Sequence[Result]) -> str:
    results = Results(found)
    cells = [(t, e) for t in results.names("table") for e in results.of(table=t).epsilons()]
    header = ["table", "ε", "sets", "seeds", *METHODS, "least"]
    rows, won = [], 0
    for table, epsilon in cells:
        here = results.of(table=table, epsilon=epsilon)
        least = [_least(here, figure) for figure in FIGURES.values()]
        won += all(method == METHODS[0] for method in least)
        for (sets, figure), best in zip(FIGURES.items(), least, strict=True):
            samples = [_sample(here, method, figure) for method in METHODS]
            seeds = "/".join(dict.fromkeys(str(len(s.values)) for s in samples))
            rows.append([table, f"{epsilon:g}", sets, seeds, *map(_shown, samples), best])
    note = "Mean total variation ± standard error of the mean."
    said = f"`rake` errs least in both pairs and triples in {won} of {len(cells)} cells."
    return "\n\n".join([f"{results.conditions()} {note}", said, markdown(header, rows)])


def _sample(here: Results, method: str, figure: str) -> Sample:
    return here.of(method=method).sample(figure)


def _least(here: Results, figure: str) -> str:
    means = {m: s.mean for m in METHODS if (s := _sample(here, m, figure)).values}
    return min(means, key=lambda m: means[m]) if means else NOTHING


def _shown(sample: Sample) -> str:
    if len(sample.values) < 2:
        return str(sample)
    return f"{sample.mean:.4f} ± {sample.error:.4f}"


STUDY = Study(GRID, cases, render)
