"""Bins that are bought against bins of one width, inside `mst`: Wasserstein-1 of numeric columns, by ε.

For columns whose bins the schema leaves to the method: what the bundled schemas declare about bins is taken away first.
Shown are thousandths of the column's public range, as the mean over five seeds, and the mean over columns.
"""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

import numpy as np
import pyarrow.csv as pacsv
from places import DATA
from scipy.stats import wasserstein_distance

import understudy as us
from understudy.boundary.schema.column import Integer, Number
from understudy.datasets import schema
from understudy.inference.discovery import discover
from understudy.methods.parts.bought_bins import unsettled, with_bought_bins
from understudy.releases import synthesis

FILES = {"insurance": "insurance.csv", "adult": "adult.train.csv", "covertype": "covertype.csv"}
MOST_ROWS = 40_000
EPSILONS, DELTA, SEEDS = (0.1, 1.0), 1e-6, 5


def rows_of(name: str) -> Any:
    rows = pacsv.read_csv(DATA / FILES[name])
    order = np.random.default_rng(0).permutation(rows.num_rows)[:MOST_ROWS]
    return rows.take(order) if rows.num_rows > MOST_ROWS else rows


def without_bins(name: str) -> us.Schema:
    whole = schema(name)
    numeric = [c for c in whole if isinstance(c, Integer | Number)]
    return whole.with_columns([dataclasses.replace(c, bins=None, cuts=None) for c in numeric])


def distances(rows: Any, public: us.Schema, epsilon: float, bought: bool) -> list[float]:
    """Of one release; the hook is where private parts of a schema are bought as well."""
    synthesis.discover = (lambda s, c: with_bought_bins(discover(s, c), c)) if bought else discover
    made = us.synthesize(us.open(rows, public), method="mst", epsilon=epsilon, delta=DELTA).table
    pairs = [(c, rows.column(c.name).to_numpy(), made.column(c.name).to_numpy()) for c in unsettled(public)]
    return [1000 * wasserstein_distance(real, drawn) / (c.maximum - c.minimum) for c, real, drawn in pairs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="*", default=list(FILES), choices=list(FILES))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    asked = parser.parse_args()
    print("| table | column | ε | one width (64) | bought | better |\n|---|---|---|---|---|---|", flush=True)
    for name in asked.tables:
        rows, public = rows_of(name), without_bins(name)
        columns = [c.name for c in unsettled(public)]
        for epsilon in EPSILONS:
            found = [
                np.array([distances(rows, public, epsilon, bought) for _ in range(asked.seeds)]).mean(axis=0)
                for bought in (False, True)
            ]
            both = [*zip(columns, *found, strict=True), ("mean of all", found[0].mean(), found[1].mean())]
            for column, fixed, bought in both:
                better = "bought" if bought < fixed else "one width"
                print(f"| {name} | {column} | {epsilon:g} | {fixed:.2f} | {bought:.2f} | {better} |", flush=True)


if __name__ == "__main__":
    main()
