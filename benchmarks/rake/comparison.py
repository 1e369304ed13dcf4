"""`hostile`: our methods on tables that were made to break them: is `rake` anywhere worse than simpler ones?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .case import Case, Grid, Result, Study
from .hostile import TABLES
from .summary import NOTHING, Results, markdown

METHODS = ("rake", "independent", "mst", "aim")
RIVALS = METHODS[1:]
GRID = Grid((*TABLES, "adult_coded"), (0.1, 1.0, 10.0), 50)


def cases(grid: Grid) -> Iterator[Case]:
    for seed, table, epsilon in grid:
        yield from (Case(table, method, epsilon, seed) for method in METHODS)


def render(found: Sequence[Result]) -> str:
    results = Results(found)
    header = ["table", "ε", "seeds", *METHODS, *(f"than {m}" for m in RIVALS), "failed", "invalid", "warned", "cpu s"]
    rows = [_row(results, table, e) for table in results.names("table") for e in results.of(table=table).epsilons()]
    troubles = [*_troubles(results, "failed"), *_troubles(results, "invalid"), *_troubles(results, "warned")]
    note = "2-way total variation, mean ± standard deviation; the last four columns are of rake."
    return "\n\n".join([f"{results.conditions()} {note}", markdown(header, rows), *troubles])


def _row(results: Results, table: str, epsilon: float) -> list[str]:
    here = {m: results.of(table=table, epsilon=epsilon, method=m) for m in METHODS}
    errors = {m: r.sample("tv2") for m, r in here.items()}
    ours, rake = errors["rake"], here["rake"]
    cpu = rake.sample("cpu")
    return [
        table,
        f"{epsilon:g}",
        str(len(ours.values)),
        *map(str, errors.values()),
        *(ours.against(errors[m]) for m in RIVALS),
        *(str(len(rake.having(field))) for field in ("failed", "invalid", "warned")),
        f"{cpu.mean:.1f}" if cpu.values else NOTHING,
    ]


def _troubles(results: Results, field: str) -> Iterator[str]:
    """Everything that went wrong, with the case that shows it again; the same words once."""
    seen: dict[tuple[str, str], Result] = {}
    for result in results.having(field):
        seen.setdefault((result["method"], str(result[field])), result)
    for (method, said), r in seen.items():
        yield f"- {method} on {r['table']}, ε = {r['epsilon']:g}, seed {r['seed']}, {field}: {said}"


STUDY = Study(GRID, cases, render)
