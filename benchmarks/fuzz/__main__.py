"""Fuzzers for all that reads what others made: `scripts/bench fuzz [--only NAME] [--scale S] [--seed N] [--jobs J]`.

`--case NAME:SEED:INDEX` runs one case again, in this very process, and prints all that it found. `--write` puts the
table into benchmarks/results/fuzz.md: rows that this run leaves out are those of the last runs that had them.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from fuzz import material
from fuzz.limits import limit_memory
from fuzz.report import render, summary
from fuzz.rows import Row, keep, kept
from fuzz.targets import TARGETS
from fuzz.worker import Tally, run_all, run_case

SEED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """0 where nothing failed, 1 otherwise."""
    asked = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="fuzz-base-") as folder:
        base = material.make(Path(folder) / "base")
        if asked.case:
            return _again(asked.case, base)
        found = {name: _run(name, asked, base) for name in asked.only or TARGETS}
    if asked.write:
        _write(asked.seed)
    print(render(found, asked.seed), end="")
    return int(any(tally.kinds for tally in found.values()))


def _write(seed: int) -> None:
    from places import TABLES

    rows = kept(seed)
    (TABLES / "fuzz.md").write_text(render({name: rows[name] for name in TARGETS if name in rows}, seed))


def _run(name: str, asked: argparse.Namespace, base: Path) -> Tally:
    target, begun, tally = TARGETS[name], _processor(), Tally()
    count = target.cases if target.whole else max(1, round(target.cases * asked.scale))
    for tally in run_all(target, asked.seed, count, base, asked.jobs):
        tally.seconds = _processor() - begun
        if asked.write:  # a run that is stopped has its part in the table
            keep(Row(name, asked.seed), tally)
        if sys.stderr.isatty():
            print(f"\r{name}: {tally.cases:,} of {count:,}", end="", file=sys.stderr, flush=True)
    tally.seconds = _processor() - begun
    print(f"\r{summary(name, tally)}", file=sys.stderr, flush=True)
    if asked.write:
        keep(Row(name, asked.seed), tally)
    return tally


def _processor() -> float:
    """Seconds of the processor that ended workers took: others may use this machine."""
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return use.ru_utime + use.ru_stime


def _again(text: str, base: Path) -> int:
    name, seed, index = text.split(":")
    target = TARGETS[name]
    if target.prepare is not None:
        target.prepare(base)
    limit_memory()
    case = run_case(target, int(seed), int(index), base)
    print(f"{text}: {', '.join(case.outcomes)}")
    for failure in case.failures:
        print(f"  {failure.kind}: {failure.note}")
    return int(bool(case.failures))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/bench fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(TARGETS), metavar="NAME", help=f"of {', '.join(TARGETS)}")
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of cases (default 1)")
    parser.add_argument("--seed", type=int, default=SEED, help="other cases (default 1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes side by side (default: cores)")
    parser.add_argument("--case", metavar="NAME:SEED:INDEX", help="run one case again")
    parser.add_argument("--write", action="store_true", help="write the table to benchmarks/results/fuzz.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())
