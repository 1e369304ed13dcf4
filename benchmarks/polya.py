"""Polya trees on five real columns against histograms, PrivTree and private quantiles, and their speed.

Every method gets the same pure ε, with neighbours that add or remove one row, and gives a distribution over the fine
codes of the column. Shown is the Wasserstein-1 distance to the rows, in thousandths of the column's range, as the mean
over ten seeds. By noise and by sampling run through the curator, as in a release. `--page FILE` writes the page of
`understudy study nonparametric` with that table in it.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import itertools
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from places import DATA

import understudy as us
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.boundary.schema.domain import Domain
from understudy.inference.noisy_table import project_to_simplex
from understudy.inference.polya.polya_prior import PolyaPrior as Tree
from understudy.lab.studies.documents.nonparametric import study
from understudy.lab.studies.documents.nonparametric_page import render
from understudy.lab.studies.layout import TextTable
from understudy.methods.polya_tree import PolyaTree

EPSILONS = (0.1, 1.0)
SEEDS = 10
EQUAL_BINS = 64
QUANTILE_LEVELS = 4

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Case:
    """A column with its public range and its fine codes."""

    name: str
    file: str
    column: str
    low: int
    high: int
    codes: int

    @property
    def schema(self) -> us.Schema:
        head = f'[columns.x]\ntype = "integer"\nmin = {self.low}\nmax = {self.high}\n'
        return us.Schema.loads(head + f"bins = {self.codes}")

    def table(self) -> us.Table:
        with (DATA / self.file).open() as lines:
            values = [round(float(row[self.column])) for row in csv.DictReader(lines)]
        return us.open(pa.table({"x": values}), self.schema)


CASES = (
    Case("charges", "insurance.csv", "charges", 0, 65_535, 65_536),
    Case("age", "adult.train.csv", "age", 17, 90, 74),
    Case("hours", "adult.train.csv", "hours-per-week", 1, 99, 99),
    Case("fnlwgt", "adult.train.csv", "fnlwgt", 0, 1_499_999, 62_500),
    Case("elevation", "covertype.csv", "elevation", 1_800, 3_899, 2_100),
)


def by_recipe(recipe: PolyaTree) -> Callable[[Case, us.Table, Integers, float, int], Floats]:
    def run(case: Case, table: us.Table, counts: Integers, epsilon: float, seed: int) -> Floats:
        curator = Curator.on(table, Budget(epsilon, 0.0), randomness=ExactRandomness.seeded(seed))
        domain = Domain.of(case.schema)
        model = recipe.calibrate(domain, curator.remaining()).fit(curator, np.random.Generator(np.random.PCG64(seed)))
        return model.weights["x"]  # type: ignore[union-attr]

    return run


def laplace(epsilon: float, size: int, rng: np.random.Generator) -> Floats:
    """Discrete Laplace noise for counts of sensitivity 1."""
    success = -math.expm1(-epsilon)
    return (rng.geometric(success, size) - rng.geometric(success, size)).astype(np.float64)


def spread_over(bins: Integers, counts: Floats) -> Floats:
    """Noisy counts of bins as a distribution over codes, uniform inside each bin."""
    known = project_to_simplex(counts, max(1.0, float(counts.sum())))
    return (known / np.maximum(np.bincount(bins, minlength=counts.size), 1))[bins]


def equal_width(case: Case, table: us.Table, counts: Integers, epsilon: float, seed: int) -> Floats:
    rng = np.random.Generator(np.random.PCG64(seed))
    bins = np.arange(counts.size) * min(EQUAL_BINS, counts.size) // counts.size
    exact = np.bincount(bins, counts)
    return spread_over(bins, exact + laplace(epsilon, exact.size, rng))


def priv_tree(case: Case, table: us.Table, counts: Integers, epsilon: float, seed: int) -> Floats:
    """Zhang, Xiao & Xie 2016 with fanout 2 and θ = 0: half of ε for the tree, half for its leaves."""
    rng = np.random.Generator(np.random.PCG64(seed))
    scale = 3 / (epsilon / 2)
    decay = scale * math.log(2)
    sums = np.concatenate([[0], np.cumsum(counts)])
    low, high, leaves, depth = np.array([0]), np.array([counts.size]), list[NDArray[np.int64]](), 0
    while low.size:
        biased = np.maximum(sums[high] - sums[low] - depth * decay, -decay) + rng.laplace(0, scale, low.size)
        splits = (biased > 0) & (high - low > 1)
        leaves.append(low[~splits])
        low, high, depth = low[splits], high[splits], depth + 1
        middle = (low + high) // 2
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    starts = np.sort(np.concatenate(leaves))
    bins = np.searchsorted(starts, np.arange(counts.size), side="right") - 1
    return spread_over(bins, np.bincount(bins, counts) + laplace(epsilon / 2, starts.size, rng))


def quantiles(case: Case, table: us.Table, counts: Integers, epsilon: float, seed: int) -> Floats:
    """Sixteen bins cut at medians of medians by the exponential mechanism with half of ε; counts with the rest."""
    rng = np.random.Generator(np.random.PCG64(seed))
    sums = np.concatenate([[0], np.cumsum(counts)])
    cuts = [0, counts.size]
    for _ in range(QUANTILE_LEVELS):
        found = [_median(sums, a, b, epsilon / 2 / QUANTILE_LEVELS, rng) for a, b in itertools.pairwise(cuts)]
        cuts = sorted({*cuts, *found})
    bins = np.searchsorted(cuts, np.arange(counts.size), side="right") - 1
    exact = np.bincount(bins, counts)
    return spread_over(bins, exact + laplace(epsilon / 2, exact.size, rng))


def _median(sums: Integers, low: int, high: int, epsilon: float, rng: np.random.Generator) -> int:
    """A cut between two codes that has about as many rows of the piece below as above it; its score moves by ½."""
    places = np.arange(low + 1, high)
    if not places.size:
        return low
    score = -np.abs(sums[places] - (sums[low] + sums[high]) / 2)
    return int(places[np.argmax(epsilon * score + rng.gumbel(size=places.size))])


RIVALS: dict[str, Callable[[Case, us.Table, Integers, float, int], Floats]] = {
    "by noise": by_recipe(PolyaTree()),
    "by sampling": by_recipe(PolyaTree(by="sampling")),
    f"equal width ({EQUAL_BINS})": equal_width,
    "PrivTree": priv_tree,
    f"quantiles ({2**QUANTILE_LEVELS})": quantiles,
}


def distance(counts: Integers, estimate: Floats) -> float:
    """Wasserstein-1 between rows and estimate, as a part of the column's range."""
    gap = np.cumsum(counts / counts.sum() - estimate / estimate.sum())
    return float(np.abs(gap).sum() / counts.size)


def quality(seeds: int) -> TextTable:
    heads, rows = ("column", "rows", "epsilon", *RIVALS), list[tuple[str, ...]]()
    title = f"Wasserstein-1 in thousandths of the range, mean of {seeds} seeds, pure epsilon"
    print(f"{title}; the best in bold\n")
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for case in CASES:
        table = case.table()
        (counts,) = table.count_by(Domain.of(case.schema), [("x",)])
        for epsilon in EPSILONS:
            means = [
                1000 * statistics.mean(distance(counts, run(case, table, counts, epsilon, s)) for s in range(seeds))
                for run in RIVALS.values()
            ]
            shown = [f"**{m:.3g}**" if m == min(means) else f"{m:.3g}" for m in means]
            rows.append((case.name, f"{counts.sum():,}", f"{epsilon:g}", *shown))
            print("| " + " | ".join(rows[-1]) + " |", flush=True)
    plain = tuple(tuple(cell.replace("*", "") for cell in row) for row in rows)
    return TextTable(title, heads, plain, "Lower is better. Every method has the same pure ε.")


def sampling_sizes(seeds: int) -> None:
    """Of draws by sampling: as many as there are rows, or fewer."""
    print("\nBy sampling, Wasserstein-1 as above, by the number m of draws\n")
    print("| column | epsilon | m = n | m = n/10 | m = n/100 | default |")
    print("|---|---|---|---|---|---|")
    for case in CASES:
        table = case.table()
        (counts,) = table.count_by(Domain.of(case.schema), [("x",)])
        for epsilon in EPSILONS:
            sizes = [max(1, int(counts.sum()) // part) for part in (1, 10, 100)]
            runs = [by_recipe(PolyaTree(by="sampling", draws=m)) for m in (*sizes, None)]
            means = [
                1000 * statistics.mean(distance(counts, r(case, table, counts, epsilon, s)) for s in range(seeds))
                for r in runs
            ]
            print(f"| {case.name} | {epsilon:g} | " + " | ".join(f"{m:.3g}" for m in means) + " |", flush=True)


def speed(repeats: int = 5) -> None:
    rng = np.random.Generator(np.random.PCG64(1))
    values = rng.beta(2, 2, 1_000_000)
    print(f"\nA million values, then a million draws; seconds, median of {repeats}\n")
    print("| depth | posterior | draws | both |")
    print("|---|---|---|---|")
    for depth in (16, 20):
        tree, taken = Tree(1.0, depth), list[tuple[float, float]]()
        for _ in range(repeats):
            start = time.perf_counter()
            posterior = tree.posterior(values)
            middle = time.perf_counter()
            posterior.draw(1_000_000, rng)
            taken.append((middle - start, time.perf_counter() - middle))
        first, second = (statistics.median(part) for part in zip(*taken, strict=True))
        print(f"| {depth} | {first:.3f} | {second:.3f} | {first + second:.3f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--only-speed", action="store_true")
    parser.add_argument("--page", type=Path, help="also write the page of the study, with the real columns")
    asked = parser.parse_args()
    if not asked.only_speed:
        columns = quality(asked.seeds)
        if asked.page:
            asked.page.write_text(render(dataclasses.replace(study(), columns=columns)))
        sampling_sizes(min(asked.seeds, 5))
    speed()


if __name__ == "__main__":
    main()
