"""The measured releases, averaged over seeds: one cell for each table, method and ε, with the facts of its table."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from marginals.case import DELTA, OURS
from marginals.environment import ROOT
from numpy.typing import NDArray
from rake.growing import NAMES as GROWING
from rake.growing import shape_of
from rake.hostile import TABLES as HOSTILE
from rake.table import load as table_of

from understudy.datasets import names
from understudy.privacy.budget import Budget
from understudy.synthesizers.forecast import facts_of
from understudy.synthesizers.registry import METHODS

RESULTS = ROOT / "benchmarks" / "results"


@dataclass(frozen=True)
class Cell:
    """One method on one table at one ε; the figures that were measured, by name."""

    table: str
    method: str
    epsilon: float
    figures: dict[str, float]

    @property
    def facts(self) -> NDArray[np.float64]:
        return _facts(self.table, self.epsilon)

    @property
    def real(self) -> bool:
        """Whether the table is one of the shared ones, and not made to be hostile or to grow."""
        return self.table not in HOSTILE and self.table not in GROWING


def load() -> list[Cell]:
    found: dict[tuple[str, str, float], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for entry in _entries():
        if "failed" in entry or entry["method"] not in METHODS or entry.get("variant"):
            continue
        figures = found[entry["table"], entry["method"], entry["epsilon"]]
        # CPU time: releases were measured side by side, and seconds would tell of their neighbours. Only processes that
        # made one release know their peak, and only theirs is the time of a first release.
        seconds = entry["cpu"] if "peak_mb" in entry else None
        for name, value in (("error", _error(entry)), ("seconds", seconds), ("megabytes", entry.get("peak_mb"))):
            if value is not None:
                figures[name].append(float(value))
    return [Cell(*key, {k: float(np.mean(v)) for k, v in figures.items()}) for key, figures in sorted(found.items())]


def _entries() -> list[dict[str, Any]]:
    # Tables by name, and two studies may call different tables alike: of this one only those that come with schemas.
    ours = [
        e for e in json.loads((RESULTS / "marginals.json").read_text()) if e["tool"] == OURS and e["table"] in names()
    ]
    files = (RESULTS / f"rake-{name}.json" for name in ("hostile", "growth"))
    return ours + [e for f in files if f.exists() for e in json.loads(f.read_text())]


def _error(entry: dict[str, Any]) -> float | None:
    return entry["scores"]["tv2"] if "scores" in entry else entry.get("tv2")


@lru_cache
def _facts(table: str, epsilon: float) -> NDArray[np.float64]:
    return facts_of(table_of(table).schema, Budget(epsilon, DELTA), _rows(table))


def _rows(table: str) -> int:
    if table in GROWING:
        return shape_of(table)[0]
    source = table_of(table).source
    if isinstance(source, pa.Table):
        return source.num_rows
    with source.open() as lines:
        return sum(1 for _ in lines) - 1
