"""Hanisch's evaluation: `python -m predictors.grid FOLDER --out DIR`, from the folder `benchmarks`."""

from __future__ import annotations

import argparse
from pathlib import Path

from understudy.datasets import schema
from understudy.lab.studies.documents.prediction_grid import DEPTHS, EPSILONS, TARGETS, TREES, prediction_grid, save


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tables", nargs="*", default=list(TARGETS), choices=list(TARGETS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--trees", nargs="*", type=int, default=list(TREES))
    parser.add_argument("--depths", nargs="*", type=int, default=list(DEPTHS))
    parser.add_argument("--epsilons", nargs="*", type=float, default=list(EPSILONS))
    asked = parser.parse_args()
    sizes = {"depths": asked.depths, "trees": asked.trees, "epsilons": asked.epsilons, "repeats": asked.repeats}
    schemas = {name: schema(name) for name in asked.tables}
    grid = prediction_grid(asked.folder, schemas, **sizes)
    save(grid, asked.out)
    for table in grid.tables:
        for method in dict.fromkeys(o.method for o in grid.outcomes):
            best = grid.best(table, method)
            print(f"{table}: {method}: {best.mean:.4f} at depth {best.depth}, {best.trees} trees, ε = {best.epsilon}")


if __name__ == "__main__":
    main()
