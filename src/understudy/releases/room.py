"""How many rows there is memory for: asked before anything is paid, since to draw rows comes after the noise.

Rows are drawn and written in memory. What this process may have is what the machine has left, and what limits of the
process (`ulimit -v`) and of its control group leave it. Where a system tells nothing, nothing is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from understudy.boundary.schema.schema import Schema
from understudy.errors import InputError

MOST_ROWS = 200_000_000
"""Of any release."""
MOST_BY_DEFAULT, FEWEST_BY_DEFAULT = 10_000_000, 1_000
"""Of a release that was asked for no number of rows: a noisy total has hardly any bound where epsilon is small."""
BYTES_PER_VALUE = 40
"""Measured at the peak, with 1,000,000 rows of 10 columns: 18 (boolean) to 55 (a date in a format of its own)."""


def needed_memory(schema: Schema, rows: int) -> int:
    # Rows that break a rule are dropped, so that those which obey are copied.
    copies = 2 if schema.rules else 1
    return rows * len(schema.released) * BYTES_PER_VALUE * copies


def check_memory(schema: Schema, rows: int | None) -> None:
    """Refuses more rows than there is memory for."""
    available = available_memory()
    if rows is None or available is None or needed_memory(schema, rows) <= available:
        return
    least = needed_memory(schema, 1)
    raise InputError(
        f"rows ({rows:,}) of {len(schema.released)} columns need about {_gigabytes(needed_memory(schema, rows))} of "
        f"memory, and must be at most {max(available // least, 1):,} for the {_gigabytes(available)} that there is; "
        "ask for fewer",
        rows,
    )


def most_rows(schema: Schema) -> int:
    """At most so many rows where none are asked for: a power of ten, so that it tells little of the machine."""
    most, available = MOST_BY_DEFAULT, available_memory()
    while available is not None and most > FEWEST_BY_DEFAULT and needed_memory(schema, most) > available:
        most //= 10
    return most


def available_memory() -> int | None:
    """The bytes that this process may still have; None where the system doesn't say."""
    return min(_bounds(), default=None)


def _bounds() -> Iterator[int]:
    machine = _table(Path("/proc/meminfo"))
    if "MemAvailable" in machine:
        yield machine["MemAvailable"] + machine.get("SwapFree", 0)
    yield from _process_bounds()
    yield from _group_bounds()


def _process_bounds() -> Iterator[int]:
    try:
        import resource
    except ImportError:  # a system without such limits
        return
    own = _table(Path("/proc/self/status"))
    for limit, used in ((resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData")):
        most, _ = resource.getrlimit(limit)
        if most != resource.RLIM_INFINITY and used in own:
            yield max(most - own[used], 0)


def _group_bounds() -> Iterator[int]:
    """Of the control group of this process and of those that it lies in (version 2), or of all (version 1)."""
    root = Path("/sys/fs/cgroup")
    own = next((line[3:] for line in _lines(Path("/proc/self/cgroup")) if line.startswith("0::/")), "/")
    folder = root / own.strip("/")
    for group in (folder, *folder.parents):
        yield from _group_bound(group / "memory.max", group / "memory.current")
        if group == root:
            break
    yield from _group_bound(root / "memory/memory.limit_in_bytes", root / "memory/memory.usage_in_bytes")


def _group_bound(limit: Path, used: Path) -> Iterator[int]:
    with suppress(IndexError, ValueError):  # no such file, or "max", which is no limit
        most, held = int(_lines(limit)[0]), int(_lines(used)[0])
        # Files that are held in memory count as used, and give way.
        kept = [line for line in _lines(limit.with_name("memory.stat")) if line.startswith("inactive_file ")]
        yield max(most - held + sum(int(line.split()[1]) for line in kept), 0)


def _table(path: Path) -> dict[str, int]:
    """Lines such as `MemAvailable:  8 kB`, in bytes."""
    found = {}
    for line in _lines(path):
        name, _, value = line.partition(":")
        if value.endswith(" kB"):
            found[name] = 1024 * int(value.removesuffix(" kB"))
    return found


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return []


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB"
