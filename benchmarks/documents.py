"""The tables of seed 000 §5 for our methods, beside its printed figures: `scripts/bench documents [--seeds N] ...`.

Runs `compare` on the insurance, healthcare and Adult tables at the document's three budgets, with the measures that its
tables need, and writes benchmarks/results/seed-000.md. A run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import understudy as us
from understudy.datasets import schema
from understudy.reports.layout import QUANTITIES, Grid, lay_out

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"
RESULTS = ROOT / "benchmarks" / "results" / "seed-000.md"
TARGETS = {"insurance": "smoker", "healthcare": "Medical Condition", "adult": "income"}
FILES = {"adult": "adult.train.csv"}
EPSILONS = (0.1, 0.5, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench documents", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--methods", nargs="+", metavar="METHOD", help="default: all")
    asked = parser.parse_args()
    parts = [
        "# The tables of seed 000 §5, for our methods",
        f"Seeds: {asked.seeds}, of which the figures are means; by `scripts/bench documents`.",
    ]
    for name, target in TARGETS.items():
        study = us.compare(
            SHARED / FILES.get(name, f"{name}.csv"),
            schema(name),
            methods=asked.methods,
            epsilons=EPSILONS,
            seeds=asked.seeds,
            target=target,
            measures=[measure for measure, _ in QUANTITIES.values()],
            out=ROOT / ".bench" / f"seed-000-{name}",
            jobs=asked.jobs,
            progress=lambda step, name=name: print(f"{name}: {step.done} of {step.total}", flush=True),  # type: ignore[misc]
        )
        parts += [f"## {name}", *(_markdown(grid) for grid in lay_out(study, "seed-000"))]
    RESULTS.write_text("\n\n".join(parts) + "\n")
    print(f"written to {RESULTS.relative_to(ROOT)}")


def _markdown(grid: Grid) -> str:
    lines = [grid.heads, ["---"] * len(grid.heads), *grid.rows]
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    return f"### {grid.title}\n\n{table}" + (f"\n\n{grid.note}" if grid.note else "")


if __name__ == "__main__":
    main()
