"""How long `import understudy` and `understudy --help` take, in fresh processes."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

REPEATS = 7
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import understudy": [sys.executable, "-c", "import understudy"],
    "understudy --help": [str(Path(sys.executable).with_name("understudy")), "--help"],
}


def seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(REPEATS):
        for name, command in COMMANDS.items():
            taken[name].append(seconds(command))
    print(f"{'what':<20} {'median s':>9} {'worst s':>9}   ({REPEATS} fresh processes each)")
    for name, times in taken.items():
        print(f"{name:<20} {statistics.median(times):>9.3f} {max(times):>9.3f}")


if __name__ == "__main__":
    main()
