"""Seconds per million discrete Gaussians, ours and OpenDP's, in one process: `python benchmarks/noise.py`.

Both samplers are exact and read the operating system's randomness. OpenDP is measured on fewer draws and scaled up;
it gets a list of integers and gives one back, which is the way to call it from Python.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import opendp.prelude as dp

from understudy.boundary.privacy.mechanisms.noise import SystemEntropy, discrete_gaussian

MILLION = 1_000_000
OPENDP_DRAWS = 20_000
REPEATS = 5
SIGMAS = (3.0, 10.0, 50.0, 500.0)


def median_seconds(job: Callable[[], object]) -> float:
    job()  # one run to warm up
    return statistics.median(timed(job) for _ in range(REPEATS))


def timed(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def ours(sigma: float) -> float:
    return median_seconds(lambda: discrete_gaussian(sigma, MILLION, SystemEntropy()))


def theirs(sigma: float) -> float:
    mechanism = dp.m.make_gaussian(dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64"), sigma)
    zeros = [0] * OPENDP_DRAWS
    return median_seconds(lambda: mechanism(zeros)) * MILLION / OPENDP_DRAWS


def main() -> None:
    dp.enable_features("contrib")
    print(f"seconds per million discrete Gaussians, median of {REPEATS}")
    print(f"OpenDP: measured on {OPENDP_DRAWS:,} draws, scaled by {MILLION // OPENDP_DRAWS}")
    print(f"{'sigma':>8} {'ours':>8} {'OpenDP':>8} {'ratio':>8}")
    for sigma in SIGMAS:
        mine, other = ours(sigma), theirs(sigma)
        print(f"{sigma:8g} {mine:8.3f} {other:8.2f} {other / mine:7.0f}x")


if __name__ == "__main__":
    main()
