"""The measured releases, averaged over seeds: one cell for each table, method and ε, with the facts of its table."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from marginals.case import DELTA, OURS
from places import RAW
from rake.growing import NAMES as GROWING
from rake.growing import shape_of
from rake.hostile import TABLES as HOSTILE
from rake.table import load as table_of

import understudy as us
from understudy.boundary.privacy.budget import Budget
from understudy.datasets import names
from understudy.lab.specimens.published_select import DELTA_POWER
from understudy.methods.forecast.spending import Public, Spending
from understudy.methods.registry import METHODS

from . import known

WITH_TEST_ROWS = ("adult", "adult_coded")
"""Of other tables `scripts/bench marginals` keeps a fifth, and the study of selection a sixth, to test with."""
USUAL_SELECTION = {"method": "dp-select", "pool": "mst", "ratio": 0.3, "factor": 10.0, "distance": "entropy"}


class Key(NamedTuple):
    """What names a cell; the share of its rows that a table was learned from is a fact of it."""

    table: str
    method: str
    epsilon: float
    delta: float
    share: float


@dataclass(frozen=True)
class Cell:
    """One method on one table at one ε; the figures that were measured, by name."""

    key: Key
    figures: dict[str, float]

    @property
    def table(self) -> str:
        return self.key.table

    @property
    def method(self) -> str:
        return self.key.method

    @property
    def facts(self) -> Public:
        return _facts(self.table, self.key.epsilon, self.key.delta, self.key.share)

    @property
    def bought(self) -> Spending:
        return _bought(self.key)

    @property
    def real(self) -> bool:
        """Whether the table is neither made to be hostile nor made to grow."""
        return self.table not in HOSTILE and self.table not in GROWING

    @property
    def shared(self) -> bool:
        return self.table in names()


def load() -> list[Cell]:
    found: dict[Key, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for key, figures in _all():
        for name, value in figures.items():
            if value is not None:
                found[key][name].append(float(value))
    return [Cell(key, {k: float(np.mean(v)) for k, v in figures.items()}) for key, figures in sorted(found.items())]


def _all() -> Iterator[tuple[Key, dict[str, Any]]]:
    yield from _marginals()
    yield from _flagship()
    yield from _hostile_and_growing()
    yield from _selection()
    yield from _networks()
    for e in known.results().results.values():
        if "failed" not in e:
            # A frame that lies in memory is no file: its release is of no use for time and memory.
            figures = {"error": e["tv2"]} if e["table"] in known.NAMES else _figures(e, e["tv2"])
            yield Key(e["table"], e["method"], e["epsilon"], e.get("delta", DELTA), 1.0), figures


def _marginals() -> Iterator[tuple[Key, dict[str, Any]]]:
    """`dp-arf` was measured with a target, which is what it is chosen for."""
    for e in [*_read("marginals.json"), *_read("forests-dp-arf.json")]:
        method = e["method"].replace("dp-arf+target", "dp-arf")
        ours = e.get("tool", OURS) == OURS and e["table"] in names() and method in METHODS and not e.get("variant")
        if ours and "scores" in e and ("tool" in e or method == "dp-arf"):
            share = 1.0 if e["table"] in WITH_TEST_ROWS else 0.8
            yield Key(e["table"], method, e["epsilon"], DELTA, share), _figures(e, e["scores"]["tv2"])


def _flagship() -> Iterator[tuple[Key, dict[str, Any]]]:
    for e in _read("flagship.json"):
        if "failed" not in e and e["method"] in METHODS and e["table"] in names():
            yield Key(e["table"], e["method"], e["epsilon"], DELTA, 1.0), _figures(e, e["tv2"])


def _hostile_and_growing() -> Iterator[tuple[Key, dict[str, Any]]]:
    for e in [*_read("rake-hostile.json"), *_read("rake-growth.json")]:
        if "failed" not in e and not e.get("variant"):
            yield Key(e["table"], e["method"], e["epsilon"], DELTA, 1.0), _figures(e, e.get("tv2"))


def _figures(entry: dict[str, Any], error: float | None) -> dict[str, Any]:
    # CPU time: releases were measured side by side, and seconds would tell of their neighbours. Only processes that
    # made one release know their peak, and only theirs is the time of a first release.
    peak = entry.get("peak_mb")
    return {"error": error, "seconds": entry["cpu"] if peak else None, "megabytes": peak}


def _selection() -> Iterator[tuple[Key, dict[str, Any]]]:
    for e in _lines("selection.jsonl"):
        if USUAL_SELECTION.items() <= e["case"].items():
            table = e["case"]["table"]
            share = 1.0 if table in WITH_TEST_ROWS else 5 / 6
            delta = float((share * rows_of(table)) ** -DELTA_POWER)
            figures = {"error": e["tv2"], "seconds": e["seconds"]}
            yield Key(table, "dp-select", e["case"]["epsilon"], delta, share), figures


def _networks() -> Iterator[tuple[Key, dict[str, Any]]]:
    for e in _lines("networks.jsonl"):
        if e["method"] in METHODS and "error" not in e:
            figures = {"error": e["pairs"], "seconds": e["seconds"], "megabytes": e["megabytes"]}
            yield Key(e["table"], e["method"], e["epsilon"], float(rows_of(e["table"]) ** -DELTA_POWER), 1.0), figures


def _read(name: str) -> list[dict[str, Any]]:
    path = RAW / name
    found: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    return found


def _lines(name: str) -> list[dict[str, Any]]:
    path = RAW / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@lru_cache
def _facts(table: str, epsilon: float, delta: float, share: float) -> Public:
    return Public.of(source_of(table)[1], Budget(epsilon, delta), round(share * rows_of(table)))


@lru_cache
def _bought(key: Key) -> Spending:
    return METHODS[key.method].expected_spending(_facts(key.table, key.epsilon, key.delta, key.share))


def source_of(table: str) -> tuple[Any, us.Schema]:
    if table in known.NAMES:
        return known.load(table)
    found = table_of(table)
    return found.source, found.schema


@lru_cache
def rows_of(table: str) -> int:
    if table in GROWING:
        return shape_of(table)[0]
    source = source_of(table)[0]
    if isinstance(source, pa.Table):
        return source.num_rows
    with source.open() as lines:
        return sum(1 for _ in lines) - 1
