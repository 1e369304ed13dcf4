"""Model-first against statistics-first: networks and counts on Adult, with attacks and figures by group.

`scripts/bench model_or_statistics [--seeds N] [--jobs N] [--report]`

Writes model-or-statistics.md to benchmarks/results; the page and all trials stay in `.bench`. A run that was stopped
goes on where it was; `--report` makes the table out of the seeds that are complete.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

from places import DATA, ROOT, TABLES

from understudy.datasets import schema
from understudy.lab.studies.documents import model_or_statistics as document
from understudy.lab.studies.method_comparison import TrialAdvance
from understudy.lab.studies.study import Study

NAME = "model-or-statistics"
OUT = ROOT / ".bench" / NAME
TITLE = "# Model-first against statistics-first on Adult"


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench model_or_statistics", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=document.SEEDS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--report", action="store_true", help="measure nothing: only seeds that are complete")
    asked = parser.parse_args()
    plan = document.StudyPlan(seeds=asked.seeds, jobs=asked.jobs)
    seeds = dict.fromkeys(document.EPSILONS, asked.seeds)
    if asked.report:
        seeds = {epsilon: n for epsilon in document.EPSILONS if (n := _complete(epsilon))}
    found = _study(plan, seeds)
    document.write(found, OUT)
    spoken = ", ".join(f"{n} at ε = {epsilon:g}" for epsilon, n in seeds.items())
    if len(set(seeds.values())) == 1:
        spoken = f"{next(iter(seeds.values()))} at every ε"
    facts = (
        f"{found.rows:,} rows to learn from, {found.holdout_rows:,} held out; target {found.target}; groups by "
        f"{' and '.join(document.GROUPS)}; seeds: {spoken}. {' and '.join(document.GRADIENTS)} learn for {plan.steps} "
        "steps, half of their default; every other method has its default options."
    )
    body = document.markdown(found)
    (TABLES / f"{NAME}.md").write_text(f"{TITLE}\n\n{facts} By `scripts/bench model_or_statistics`.\n\n{body}")
    print(f"written to {TABLES.relative_to(ROOT)}/{NAME}.md; the page is {OUT.relative_to(ROOT)}/{document.PAGE}")


def _study(plan: document.StudyPlan, seeds: dict[float, int]) -> Study:
    """All ε together, each with its seeds; at once where these are the same, so that a stopped run has whole seeds."""
    if len(set(seeds.values())) == 1:
        return document.study(DATA, schema(document.TABLE), OUT, replace(plan, epsilons=tuple(seeds)), _told)
    plans = [replace(plan, epsilons=(epsilon,), seeds=n) for epsilon, n in seeds.items()]
    found = [document.study(DATA, schema(document.TABLE), OUT, p, _told) for p in plans]
    return replace(found[0], trials=tuple(t for some in found for t in some.trials))


def _told(step: TrialAdvance) -> None:
    print(f"{step.done}/{step.total}", flush=True)


def _complete(epsilon: float) -> int:
    """How many seeds have a trial of every method at this ε."""
    lines = (OUT / "trials.jsonl").read_text().splitlines()[1:]
    done = {(t["method"], t["epsilon"], t["seed"]) for t in map(json.loads, lines)}
    return next(s for s in range(len(done) + 1) if not all((m, epsilon, s) in done for m in document.METHODS))


if __name__ == "__main__":
    main()
