"""Adversarial forests (Merchant 2024, §5): real rows, ARF, its published private form and honest methods.

`scripts/bench documents [--seeds N] [--methods M …] [--seeds-of-adult N] [--tables T …] [--jobs N] [--no-pictures]`

As `understudy study forests` does it; the short form goes to benchmarks/results/adversarial-forests.md, the page and
all trials stay in `.bench`. A run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import dataclasses

from places import DATA, ROOT, TABLES

from understudy.datasets import schema
from understudy.lab.studies.documents import forests
from understudy.lab.studies.method_comparison import TrialAdvance

OUT = ROOT / ".bench" / "adversarial-forests"


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench documents", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seeds-of-adult", type=int, help="fewer, of the largest table")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rows", type=int, help="at most so many rows of each table")
    parser.add_argument("--methods", nargs="+", metavar="METHOD", default=list(forests.HONEST), help="private ones")
    parser.add_argument("--tables", nargs="+", choices=forests.TARGETS, default=list(forests.TARGETS))
    parser.add_argument("--no-pictures", action="store_true")
    asked = parser.parse_args()
    plan = forests.ForestsPlan(
        tuple(asked.methods), seeds=asked.seeds, jobs=asked.jobs, rows=asked.rows, pictures=not asked.no_pictures
    )
    chapters = []
    for name in asked.tables:
        own = plan
        if name == "adult" and asked.seeds_of_adult is not None:
            own = dataclasses.replace(plan, seeds=asked.seeds_of_adult)
        chapters += forests.study(DATA, {name: schema(name)}, OUT, own, _told, print)
    forests.write(chapters, OUT, plan)
    (TABLES / forests.TABLES).write_text((OUT / forests.TABLES).read_text())
    print(f"written to {TABLES.relative_to(ROOT)}/{forests.TABLES}; the page is {OUT.relative_to(ROOT)}/{forests.PAGE}")


def _told(step: TrialAdvance) -> None:
    print(f"{step.done} of {step.total}", flush=True)


if __name__ == "__main__":
    main()
