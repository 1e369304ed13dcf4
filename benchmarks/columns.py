"""What a table of very many columns costs: `synth` on 200, 1,000 and 3,000 boolean columns, with few rows and many.

Each release is the whole command in a process of its own, with the method `independent`, whose model costs next to
nothing: what is left is what reading, counting, reporting and writing cost.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from places import TABLES

COLUMNS = (200, 1_000, 3_000)
ROWS = (20, 10_000)
WORDS = np.array(["false", "true"])


def write_table(folder: Path, columns: int, rows: int) -> Path:
    """A CSV of random booleans and the confirmed schema beside it."""
    names = [f"c{i}" for i in range(columns)]
    bits = np.random.default_rng(columns).integers(0, 2, (rows, columns))
    path = folder / "wide.csv"
    lines = [",".join(names), *(",".join(row) for row in WORDS[bits])]
    path.write_text("\n".join(lines) + "\n")
    schema = 'status = "confirmed"\n' + "".join(f'[columns.{n}]\ntype = "boolean"\n' for n in names)
    path.with_suffix(".toml").write_text(schema)
    return path


def measure(columns: int, rows: int) -> tuple[float, float, int]:
    """Seconds on the wall, seconds of the processors and MB at the most of one release."""
    with tempfile.TemporaryDirectory(prefix="columns-") as place:
        folder = Path(place)
        data = write_table(folder, columns, rows)
        command = [sys.executable, "-m", "understudy", "synth", str(data), "--epsilon", "1", "--method", "independent"]
        command += ["--out", str(folder / "release"), "--quiet"]
        state = os.environ | {"XDG_STATE_HOME": str(folder / "state")}
        start = time.monotonic()
        child = subprocess.Popen(command, env=state, stdout=subprocess.DEVNULL)
        _, status, use = os.wait4(child.pid, 0)
        seconds = time.monotonic() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(f"{columns:,} columns × {rows:,} rows ended with exit code {child.returncode}")
        return seconds, use.ru_utime + use.ru_stime, use.ru_maxrss // 1024


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench columns", description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the table to benchmarks/results/columns.md")
    asked = parser.parse_args()
    lines = ["| rows | columns | s | CPU s | CPU ms a column | MB |", "|---|---|---|---|---|---|"]
    for rows in ROWS:
        for columns in COLUMNS:
            seconds, cpu, peak = measure(columns, rows)
            each = 1_000 * cpu / columns
            lines.append(f"| {rows:,} | {columns:,} | {seconds:.1f} | {cpu:.1f} | {each:.1f} | {peak:,} |")
            print(lines[-1], flush=True)
    if asked.write:
        (TABLES / "columns.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
