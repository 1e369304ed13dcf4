"""The tables of results: mean ± standard error over the seeds."""

from __future__ import annotations

from collections.abc import Sequence

from rake.summary import NOTHING, Results, Sample, markdown
from results_cache import Result

FIGURES = {
    "tv1": ("TV1", 4),
    "tv2": ("TV2", 4),
    "tv3": ("TV3", 4),
    "gbm_auc": ("AUC", 4),
    "accuracy": ("accuracy", 3),
    "nist": ("NIST", 1),
    "correlation": ("correlations", 4),
    "wasserstein": ("charges", 0),
    "absent": ("absent", 1),
    "seconds": ("s", 1),
    "cpu": ("CPU s", 1),
    "peak_mb": ("MB", 0),
}


def shown(sample: Sample, digits: int) -> str:
    if not sample.values:
        return NOTHING
    mean = f"{sample.mean:,.{digits}f}"
    return mean if len(sample.values) < 2 else f"{mean} ± {sample.error:,.{digits}f}"


def render(results: Sequence[Result]) -> str:
    found = Results(results)
    return "\n\n".join(_block(found.of(table=table), table) for table in found.names("table"))


def _block(results: Results, table: str) -> str:
    figures = {f: shape for f, shape in FIGURES.items() if results.having(f)}
    rows = []
    for epsilon in results.epsilons():
        here = results.of(epsilon=epsilon)
        rows += [_row(here.of(method=method), epsilon, method, figures) for method in here.names("method")]
    return f"### {table}\n\n" + markdown(["ε", "method", "seeds", *(name for name, _ in figures.values())], rows)


def _row(results: Results, epsilon: float, method: str, figures: dict[str, tuple[str, int]]) -> list[str]:
    failed, done = results.having("failed"), len(results.having("tv1"))
    count = f"{done}" + (f", {len(failed)} failed" if failed else "")
    cells = [shown(results.sample(figure), digits) for figure, (_, digits) in figures.items()]
    return [f"{epsilon:g}", f"`{method}`", count, *cells]


def publish(results: Sequence[Result]) -> None:
    raise SystemExit("not written yet")
