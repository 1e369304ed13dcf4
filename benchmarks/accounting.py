"""The noise of the same measurements by Gaussian differential privacy and by zCDP, at the same ε and δ.

Every method runs on Adult, coded, once by each accounting and with the same seeds. Told is what Gaussian differential
privacy makes of each quantity, over what zCDP does:

    columns   the noise of single columns
    joints    the noise of joint counts. How many there are may follow the answers: it is that of average cost
    choice    the ε of a selection, which costs π/2 times as much in g as in ρ: below 1 is less sharp
    error     the mean total variation of all pairs from the real ones: less noise and worse choices together
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from places import DATA

import understudy as us
from understudy.boundary.privacy.budget import GDP, ZCDP, Budget, Spend
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.boundary.schema.domain import Domain
from understudy.datasets import schema as bundled
from understudy.methods.method import Options
from understudy.methods.registry import METHODS, build_recipe

MEASURED = {
    "independent": Options(),
    "marginals": Options(targets=("income>50K",)),
    "mst": Options(),
    "aim": Options(),
    "rake": Options(),
}
EPSILONS, DELTA = (0.1, 1.0, 10.0), 1e-6
FILE = DATA / "adult_coded.train.csv"
Codes = dict[str, np.ndarray]


@dataclass(frozen=True)
class Run:
    """What one run measured with, and how far its pairs are off; 0 for what it had none of."""

    columns: float
    joints: float
    choice: float
    error: float


def run(method: str, rows: Codes, budget: Budget, seed: int) -> Run:
    table = us.open(FILE, bundled("adult_coded"))
    domain = Domain.of(table.schema)
    curator = Curator.on(table, budget, randomness=ExactRandomness.seeded(seed))
    recipe = build_recipe(METHODS[method], MEASURED[method])
    model = recipe.calibrate(domain, curator.remaining()).fit(curator, np.random.default_rng(seed))
    counted = [s for s in curator.spends if s.mechanism == budget.capacity.mechanism]
    single = [s for s in counted if s.asked in {f"counts by {name}" for name in domain.names}]
    made = model.sample(len(next(iter(rows.values()))), np.random.default_rng(seed))
    return Run(
        noise(single),
        noise([s for s in counted if s not in single]),
        statistics.mean([s.scale for s in curator.spends if s.mechanism == "exponential"] or [0.0]),
        pair_error(made, rows, domain),
    )


def noise(spends: Sequence[Spend]) -> float:
    """σ of a spend of average cost: costs are as 1/σ²."""
    return statistics.mean(s.scale**-2 for s in spends) ** -0.5 if spends else 0.0


def pair_error(made: Codes, real: Codes, domain: Domain) -> float:
    errors = []
    for pair in itertools.combinations(domain.names, 2):
        shape, size = domain.shape(pair), domain.cells(pair)
        shares = [
            np.bincount(np.ravel_multi_index(tuple(rows[c] for c in pair), shape), minlength=size) / len(rows[pair[0]])
            for rows in (made, real)
        ]
        errors.append(np.abs(shares[0] - shares[1]).sum() / 2)
    return float(np.mean(errors))


def ratio(of: Callable[[Run], float], ours: Sequence[Run], theirs: Sequence[Run]) -> str:
    below = sum(map(of, theirs))
    return f"{sum(map(of, ours)) / below:.3f}" if below else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--methods", nargs="+", default=list(MEASURED), choices=MEASURED)
    asked = parser.parse_args()
    names = FILE.open().readline().strip().split(",")
    codes = np.loadtxt(FILE, delimiter=",", skiprows=1, dtype=np.int64)
    rows = {name.strip('"'): codes[:, i] for i, name in enumerate(names)}
    print(f"adult_coded, delta {DELTA:g}, {asked.seeds} seeds: Gaussian differential privacy over zCDP\n")
    print("| method | ε | columns | joints | choice | error | error by zCDP |")
    print("|---|---|---|---|---|---|---|")
    for method, epsilon in itertools.product(asked.methods, EPSILONS):
        ours, theirs = (
            [run(method, rows, Budget(epsilon, DELTA, accounting), seed) for seed in range(asked.seeds)]
            for accounting in (GDP, ZCDP)
        )
        told = [ratio(lambda r, n=name: getattr(r, n), ours, theirs) for name in Run.__annotations__]
        mean = statistics.mean(r.error for r in theirs)
        print(f"| {method} | {epsilon:g} | {' | '.join(told)} | {mean:.4f} |", flush=True)


if __name__ == "__main__":
    main()
