"""What selecting costs: `PYTHONPATH=src:benchmarks .venv/bin/python -m selection.speed`.

50,000 rows out of 500,000, by every distance and by entropy; and one candidate, as pools and tables grow. Made-up rows:
15 columns of 2 to 60 values, and 40 pairs that are wanted.
"""

from __future__ import annotations

import itertools
import resource
import time
from collections.abc import Callable

import numpy as np

from understudy.inference.noisy_table import NoisyTable
from understudy.inference.particles.particles import LogFactor, Particles, cells_of
from understudy.inference.row_selection import DISTANCES, Goal, PooledModel, choose, proposals

SIZES = {f"c{i}": n for i, n in enumerate((2, 2, 5, 5, 6, 7, 8, 9, 12, 15, 16, 18, 20, 42, 60))}
PAIRS = tuple(itertools.combinations(SIZES, 2))[::2][:40]


def main() -> None:
    print("| rows | of a pool of | by | seconds of one core | µs for each candidate | peak MB |")
    print("| ---: | ---: | --- | ---: | ---: | ---: |")
    for pool, rows in ((50_000, 5_000), (500_000, 50_000), (1_000_000, 50_000)):
        for by in (*DISTANCES, "entropy"):
            seconds = _timed(_entropy(pool, rows) if by == "entropy" else _chosen(pool, rows, by))
            each = "" if by == "entropy" else f"{1e6 * seconds / pool:.2f}"
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            print(f"| {rows:,} | {pool:,} | {by} | {seconds:.1f} | {each} | {peak:,} |", flush=True)


def _chosen(pool: int, rows: int, distance: str) -> Callable[[], object]:
    rng = np.random.default_rng(0)
    goal, proposed = _goal(pool, rng), proposals(pool, rows, 1, rng)
    return lambda: choose(goal, proposed, distance)


def _codes(pool: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {c: np.minimum(rng.geometric(3 / (n + 2), pool) - 1, n - 1).astype(np.int32) for c, n in SIZES.items()}


def _goal(pool: int, rng: np.random.Generator) -> Goal:
    codes = _codes(pool, rng)
    cells = [cells_of(codes, p, [np.arange(SIZES[c]) for c in p]) for p in PAIRS]
    sizes = [SIZES[a] * SIZES[b] for a, b in PAIRS]
    return Goal.of(cells, [rng.gamma(1.0, 1.0, n) for n in sizes], [1.0] * len(PAIRS))


def _entropy(pool: int, rows: int) -> Callable[[], object]:
    """Raking to 40 pairs, twelve passes; then the rows."""
    rng = np.random.default_rng(0)
    particles = Particles(SIZES, float(rows), _codes(pool, rng), np.full(pool, rows / pool))
    for pair in PAIRS:
        shape = tuple(SIZES[c] for c in pair)
        counts = rng.gamma(4.0, 1.0, shape)
        groups = tuple(np.arange(n) for n in shape)
        particles.add(LogFactor.evidence(NoisyTable(pair, counts * (rows / counts.sum()), 100.0, groups)))

    def run() -> object:
        particles.rake(12)
        return PooledModel(particles, None).sample(rows, rng)  # type: ignore[arg-type]

    return run


def _timed(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


if __name__ == "__main__":
    main()
