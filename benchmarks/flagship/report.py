"""The tables of results, mean ± standard error over the seeds, and the files that they are written to."""

from __future__ import annotations

import re
from collections.abc import Sequence

from places import ROOT, TABLES
from rake.summary import NOTHING, Results, Sample, markdown
from results_cache import Result

from .case import TOOLS as OTHERS
from .wanted import check

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
NOTE = """Made by `scripts/bench flagship --publish`: mean ± standard error over the seeds, δ = 1e-6, real noise.

TV1 to TV3 are the mean total variation of single columns, pairs and triples (of some, with more than 40 columns). AUC
and accuracy are of boosting, trained on the release and tested on real rows that it never saw. NIST is its k-marginal
score. Correlations: mean absolute error of those of two numbers. Charges: Wasserstein distance. Absent: declared values
that should have five rows or more and have none. Seconds and memory are of the whole command for our methods, and of
fitting and sampling for others. Day: of the last measurement; rows of earlier days were published with earlier
code, and are kept. `name@commit` is an earlier version of ours, `!numpy` is without compiled loops, and `mbi-aim` is
our AIM with mbi's estimator."""
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
README_METHODS = ("rake", "dp-arf", "aim", "mst", "independent")
ARCHIVED = (
    ("Private-GSD (archived by NIST)", "–", "867"),
    ("without privacy: CART (archived)", "941", "941"),
    ("without privacy: a 40 % sample (archived)", "935", "935"),
)
"""Scores of tx2019 in NIST's public archive, at ε = 1 and at ε = 10."""


def render(results: Sequence[Result], whole: bool = False) -> str:
    found = Results(results)
    blocks = [_block(found.of(table=table), table) for table in found.names("table")]
    return "\n\n".join([*blocks, f"### What was wanted\n\n{check(found, whole)}"])


def _block(results: Results, table: str) -> str:
    figures = {f: shape for f, shape in FIGURES.items() if results.having(f)}
    rows = []
    for epsilon in results.epsilons():
        here = results.of(epsilon=epsilon)
        rows += [_row(here.of(method=method), epsilon, method, figures) for method in here.names("method")]
    return f"### {table}\n\n" + markdown(["ε", "method", "seeds", "day", *(name for name, _ in figures.values())], rows)


def _row(results: Results, epsilon: float, method: str, figures: dict[str, tuple[str, int]]) -> list[str]:
    failed, done = results.having("failed"), results.having("tv1")
    if done and "kept" in done[0]:
        kept = done[0]["kept"]
        named = ("seeds", "day", *(name for name, _ in figures.values()))
        return [f"{epsilon:g}", f"`{method}`", *(kept.get(name, NOTHING) for name in named)]
    if not done:
        reason = str(failed[0]["failed"])[:60].replace("\n", " ")
        return [f"{epsilon:g}", f"`{method}`", reason, *[NOTHING] * (len(figures) + 1)]
    finished = Results(done)
    day = max(r["date"][:10] for r in done)
    cells = [shown(finished.sample(figure), digits) for figure, (_, digits) in figures.items()]
    return [f"{epsilon:g}", f"`{method}`", f"{len(done)}" + (f", {len(failed)} failed" if failed else ""), day, *cells]


def earlier_rows(page: str, results: Sequence[Result]) -> list[Result]:
    """Rows of the page for which nothing was measured anew, each as one result with its means.

    Raw results stay on the machine that made them, and other tools take hours: what was published stays, with its day.
    """
    known = {(r["table"], float(r["epsilon"]), r["method"]) for r in results}
    figures = {name: figure for figure, (name, _) in FIGURES.items()}
    rows: list[Result] = []
    table, header = "", list[str]()
    for line in page.splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        if line.startswith("### "):
            table, header = line[4:], []
        elif line.startswith("| ε |"):
            header = cells
        elif header and line.startswith("| ") and not line.startswith("| ---"):
            named = dict(zip(header, cells, strict=True))
            epsilon, method = float(named.pop("ε")), named.pop("method").strip("`")
            if (table, epsilon, method) not in known:
                means = {figures[n]: _mean_of(c) for n, c in named.items() if n in figures and c != NOTHING}
                rows.append({"table": table, "epsilon": epsilon, "method": method, "kept": named, **means})
    return rows


def _mean_of(cell: str) -> float:
    return float(cell.partition(" ± ")[0].replace(",", ""))


def shown(sample: Sample, digits: int) -> str:
    if not sample.values:
        return NOTHING
    mean = f"{sample.mean:,.{digits}f}"
    return mean if len(sample.values) < 2 else f"{mean} ± {sample.error:,.{digits}f}"


def publish(results: Sequence[Result]) -> None:
    """Everything goes to the page of results, and what a newcomer asks first to the README."""
    page = TABLES / "flagship.md"
    published = page.read_text() if page.exists() else ""
    conditions = _conditions(results, published)
    results = [*results, *earlier_rows(published, results)]
    page.write_text(f"{NOTE}\n\n{conditions}\n\n{render(results, whole=True)}\n")
    readme = ROOT / "README.md"
    before, _, rest = readme.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    readme.write_text(f"{before}{BEGIN}\n\n{_measured(Results(results))}\n\n{END}{after}")


def _conditions(results: Sequence[Result], published: str) -> str:
    """Rivals have versions, also those whose rows are kept, and we have the code."""
    found = {r["method"].partition("-")[0]: r["version"] for r in results if "version" in r}
    kept = dict(re.findall(rf"\b({'|'.join(OTHERS)}) (\d[\d.]*\d)", published))
    versions = sorted(f"{tool} {version}" for tool, version in (kept | found).items())
    codes = sorted({r["code"] for r in results if "code" in r})
    days, loads = sorted(r["date"][:10] for r in results), [r["load"] for r in results]
    when = " to ".join(dict.fromkeys((days[0], days[-1])))
    return (
        f"Measured last: {len(results):,} releases; code {', '.join(codes)}; {', '.join(versions)}; {when}; "
        f"load at start {min(loads):.1f} to {max(loads):.1f}."
    )


def _measured(results: Results) -> str:
    """Adult and NIST's excerpt at ε = 1 and 10, ours and others'."""
    adult, census = results.of(table="adult_coded"), results.of(table="tx2019")
    rivals = [m for m in [*adult.names("method"), *census.names("method")] if m.partition("-")[0] in OTHERS]
    rows = []
    for method in [*README_METHODS, *dict.fromkeys(sorted(rivals))]:
        one = adult.of(epsilon=1.0, method=method)
        figures = [
            one.sample("tv2"),
            one.sample("tv3"),
            one.sample("gbm_auc"),
            one.sample("cpu"),  # other work on the machine does not count
            one.sample("peak_mb"),
        ]
        scores = [census.of(epsilon=e, method=method).sample("nist") for e in (1.0, 10.0)]
        if any(s.values for s in [*figures, *scores]):
            digits = (4, 4, 3, 0, 0, 0, 0)
            rows.append([f"`{method}`", *(_plain(s, d) for s, d in zip([*figures, *scores], digits, strict=True))])
    rows += [[name, *[NOTHING] * 5, *scores] for name, *scores in ARCHIVED]
    header = ["method", "TV2", "TV3", "AUC", "CPU s", "MB", "NIST, ε = 1", "NIST, ε = 10"]
    return markdown(header, rows)


def _plain(sample: Sample, digits: int) -> str:
    return f"{sample.mean:,.{digits}f}" if sample.values else NOTHING
