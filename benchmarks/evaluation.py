"""How long `evaluate` takes on Adult, and which measures take most of it: `scripts/bench evaluation [--runs N]`."""

from __future__ import annotations

import argparse
import os
import resource
import time

from places import DATA

MOST_SHOWN = 8


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench evaluation", description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for run in range(runs):
        _run(run)


def _run(run: int) -> None:
    begun, cpu = time.perf_counter(), time.process_time()
    import understudy as us
    from understudy.datasets import demo

    marks: list[tuple[str, float]] = []
    found = us.evaluate(
        DATA / "adult.train.csv",
        demo() / "synthetic.csv",
        holdout=DATA / "adult.test.csv",
        target="income",
        groups=["sex", "race"],
        schema=demo() / "schema.toml",
        progress=lambda step: marks.append((step, time.perf_counter())),
    )
    page = found.to_html()
    end = time.perf_counter()
    took = {name: later - at for (name, at), (_, later) in zip(marks, [*marks[1:], ("", end)], strict=True)}
    undefined = [name for name, figure in found.figures.items() if figure.value is None]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"run {run + 1}: {end - begun:.1f} s, {time.process_time() - cpu:.1f} s of CPU, {peak} MB at most; "
        f"{len(found.figures)} measures, not defined: {', '.join(undefined)}; report {len(page) / 1e6:.2f} MB"
    )
    slowest = sorted(took.items(), key=lambda pair: -pair[1])[:MOST_SHOWN]
    print("  " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in slowest))


if __name__ == "__main__":
    main()
