"""The tables by name: those of the shared data, the hostile ones, and those that grow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
from marginals.coded import SHARED, TARGETS

import understudy as us
from understudy.datasets import names
from understudy.datasets import schema as bundled

from . import growing, hostile, survey, wide

NAMES = (*hostile.TABLES, "survey", *wide.NAMES, *growing.NAMES, *names())
FILES = {name: f"{name}.train.csv" for name in ("adult", "adult_coded")}


@dataclass(frozen=True)
class Sample:
    """A table as it is opened: a frame or a path, its schema, and the column that triples are scored with."""

    source: pa.Table | Path
    schema: us.Schema
    target: str | None = None
    scored: bool = True


@lru_cache
def load(name: str) -> Sample:
    if name in hostile.TABLES:
        return Sample(*hostile.TABLES[name](), target=hostile.TARGETS.get(name))
    if name == "survey":
        return Sample(*survey.survey(), target=survey.TARGET)
    if name in wide.NAMES:
        return Sample(*wide.table(wide.NAMES[name]))
    if name in growing.NAMES:
        return Sample(growing.path_of(name), growing.schema_of(name), scored=False)
    return Sample(SHARED / FILES.get(name, f"{name}.csv"), bundled(name), TARGETS[name])
