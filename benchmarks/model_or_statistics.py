"""Model-first against statistics-first: networks and counts on Adult, with attacks and figures by group.

`scripts/bench model_or_statistics [--seeds N] [--jobs N] [--report]`

Writes model-or-statistics.md to benchmarks/results; the page and all trials stay in `.bench`. A run that was stopped
goes on where it was; `--report` makes the table out of the seeds that are complete.
"""

from __future__ import annotations

import argparse
import json

from places import DATA, ROOT, TABLES

from understudy.datasets import schema
from understudy.lab.studies.documents import model_or_statistics as document

NAME = "model-or-statistics"
OUT = ROOT / ".bench" / NAME
TITLE = "# Model-first against statistics-first on Adult"


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench model_or_statistics", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=document.SEEDS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--report", action="store_true", help="measure nothing: only seeds that are complete")
    asked = parser.parse_args()
    seeds = _complete() if asked.report else asked.seeds
    plan = document.StudyPlan(seeds=seeds, jobs=asked.jobs)
    found = document.study(DATA, schema(document.TABLE), OUT, plan, lambda s: print(f"{s.done}/{s.total}", flush=True))
    document.write(found, OUT)
    facts = (
        f"{found.rows:,} rows to learn from, {found.holdout_rows:,} held out; target {found.target}; groups by "
        f"{' and '.join(document.GROUPS)}; seeds: {seeds}. {' and '.join(document.GRADIENTS)} learn for {plan.steps} "
        "steps, half of their default; every other method has its default options."
    )
    body = document.markdown(found)
    (TABLES / f"{NAME}.md").write_text(f"{TITLE}\n\n{facts} By `scripts/bench model_or_statistics`.\n\n{body}")
    print(f"written to {TABLES.relative_to(ROOT)}/{NAME}.md; the page is {OUT.relative_to(ROOT)}/{document.PAGE}")


def _complete() -> int:
    """How many seeds have a trial of every method at every ε."""
    lines = (OUT / "trials.jsonl").read_text().splitlines()[1:]
    done = {(t["method"], t["epsilon"], t["seed"]) for t in map(json.loads, lines)}
    wanted = [(m, e) for m in document.METHODS for e in document.EPSILONS]
    return next(s for s in range(document.SEEDS + 1) if not all((m, e, s) in done for m, e in wanted))


if __name__ == "__main__":
    main()
