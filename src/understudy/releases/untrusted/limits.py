"""How large a release, or the file of a predictor, may be that comes from somebody else.

A folder of a few megabytes can ask its reader for terabytes: by what it unpacks to, by the rows that it says it has, by
the width of a made-up value. So each of these is bounded before it is unpacked, drawn or built.
"""

from __future__ import annotations

import dataclasses
import math
import os
from dataclasses import dataclass

from understudy.errors import CheckFailed, InputError

VARIABLE = "UNDERSTUDY_LIMITS"
"""In the environment: by what number all limits are multiplied, for whoever trusts where a folder comes from."""
LARGEST_FACTOR = 1e6


@dataclass(frozen=True)
class Limits:
    """The most that is read of a file or built from it; the table in docs/concepts/release.md is made of the same."""

    table_bytes: int = 1 << 30
    """Of the file of synthetic rows."""
    report_bytes: int = 1 << 26
    certificate_bytes: int = 1 << 24
    schema_bytes: int = 1 << 22
    archive_bytes: int = 1 << 28
    """Of measurements.npz or prior.npz as it lies on the disk."""
    unpacked_bytes: int = 1 << 29
    """Of the same, unpacked."""
    answers: int = 60_000
    """Arrays in such a file."""
    predictor_bytes: int = 1 << 27
    items: int = 5_000_000
    """Values in JSON, which take far more room in memory than in a file."""
    nesting: int = 32
    """Lists in lists, or in tables, in JSON and TOML."""
    columns: int = 5_000
    facts: int = 60_000
    """About columns: a dozen for each."""
    bins: int = 3_000_000
    """Of all columns: each has an edge, and a place in every count."""
    rules: int = 200_000
    """Characters of all constraints: they are parsed, some hundred thousand a second."""
    values: int = 100_000_000
    """Rows times columns of the synthetic table."""
    drawn_bytes: int = 1 << 32
    """Rows times the longest texts that a row may have."""

    @classmethod
    def here(cls) -> Limits:
        """The defaults, times what the environment says."""
        text = os.environ.get(VARIABLE, "1")
        try:
            factor = float(text)
        except ValueError:
            factor = math.nan
        if not 1 <= factor <= LARGEST_FACTOR:
            raise InputError(f"{VARIABLE} ({text!r}) must be a number from 1 to {LARGEST_FACTOR:,.0f}", text)
        usual = cls()
        # How deep Python can read is its own bound, which no factor raises.
        raised = {f.name: int(getattr(usual, f.name) * factor) for f in dataclasses.fields(cls) if f.name != "nesting"}
        return dataclasses.replace(usual, **raised)

    def check(self, what: str, found: int, name: str, unit: str = "") -> None:
        """Refuses more than the limit of this name; `what` begins the sentence."""
        most = getattr(self, name)
        if found <= most:
            return
        times = math.ceil(found / getattr(Limits(), name))
        if unit == "bytes":
            size, bound = _spoken(found), _spoken(most)
        else:
            size, bound = f"{found:,} {unit}".rstrip(), f"{most:,}"
        remedy = "" if name == "nesting" else f"; if you trust where it comes from, set {VARIABLE}={times}"
        raise CheckFailed(f"{what} {size}, more than the limit of {bound}{remedy}", found)


def _spoken(size: int) -> str:
    """Bytes as a person says them.

    >>> _spoken(300), _spoken(1 << 22), _spoken(6_000_000_000)
    ('300 bytes', '4.0 MiB', '5,722.0 MiB')
    """
    if size < 1 << 20:
        return f"{size:,} bytes"
    return f"{size / (1 << 20):,.1f} MiB"
