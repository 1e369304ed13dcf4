"""The tables by name, as files: `python -m flagship.tables NAME FOLDER` writes one.

A folder has the rows with their schema, which our methods read; the same rows as codes with the sizes of the columns,
which the other tools and the judges' scorer read; and the facts about the table that the parent needs. It is made in a
process of its own, so that the parent, whose size a child's peak memory would start from, stays small.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from marginals.coded import SHARED, Codes, ordered_columns, schema_of_codes, write_rows
from pyarrow import csv as arrow_csv
from rake import hostile, survey, wide

import understudy as us
from understudy.boundary.schema.column import Integer, Number
from understudy.datasets import schema as bundled

from . import census, generated

Source = tuple[pa.Table | Path, us.Schema]


@dataclass(frozen=True)
class Table:
    """Where a table comes from, its target, and what else is measured."""

    source: Callable[[], Source]
    target: str = ""
    """Given to every method that takes one; predicted if there are rows to test."""
    tested: int = 0
    """So many of the last rows are kept to test predictions."""
    test: Path | None = None
    """Test rows that come with the table."""


def _shared(name: str, file: str = "") -> Callable[[], Source]:
    return lambda: (SHARED / (file or f"{name}.csv"), bundled(name))


TEST = 10_000
TABLES = {
    "adult_coded": Table(
        _shared("adult_coded", "adult_coded.train.csv"), "income>50K", test=SHARED / "adult_coded.test.csv"
    ),
    **{name: Table(_shared(name)) for name in ("covertype", "insurance", "mushroom", "nursery", "votes")},
    "tx2019": Table(lambda: (census.TABLE, census.schema())),
    **{f"xor{k}": Table(partial(generated.xor, k, 50_000 + TEST), "target", TEST) for k in (3, 4, 5)},
    "classes": Table(partial(generated.classes, 7_000 + TEST), "target", TEST),
    "binary": Table(hostile.binary),
    "census": Table(hostile.census),
    "wide": Table(hostile.wide),
    "survey": Table(survey.survey),
    **{name: Table(partial(wide.table, columns)) for name, columns in wide.NAMES.items()},
}


def write(name: str, folder: Path) -> None:
    table = TABLES[name]
    rows, schema = table.source()
    domain = us.Domain.of(schema)
    schema.save(folder / "schema.toml")
    train, test = _files(rows, table, folder)
    codes = codes_of(train, schema)
    write_rows(folder / "codes.csv", codes)
    if test is not None:
        write_rows(folder / "test-codes.csv", codes_of(test, schema))
    sizes = {c.name: c.size for c in domain}
    (folder / "domain.json").write_text(json.dumps(sizes))
    schema_of_codes(sizes, ordered_columns(domain)).save(folder / "codes.toml")
    facts = {
        "rows": len(codes[domain.names[0]]),
        "target": table.target,
        "train": str(train),
        "test": str(test or ""),
        "numbers": [c.name for c in domain if isinstance(c.column, Integer | Number)],
        "labels": [c.name for c in domain if c.labels is not None],
    }
    (folder / "facts.json").write_text(json.dumps(facts))


def _files(rows: pa.Table | Path, table: Table, folder: Path) -> tuple[Path, Path | None]:
    if isinstance(rows, Path):
        return rows, table.test
    kept = rows.num_rows - table.tested
    arrow_csv.write_csv(rows.slice(0, kept), folder / "train.csv")
    if not table.tested:
        return folder / "train.csv", None
    arrow_csv.write_csv(rows.slice(kept), folder / "test.csv")
    return folder / "train.csv", folder / "test.csv"


def codes_of(path: Path, schema: us.Schema) -> Codes:
    domain = us.Domain.of(schema)
    table: Any = us.open(path, schema)
    batches = list(table._codes(domain, domain.names))  # the benchmark stands inside the boundary
    return {name: np.concatenate([b[name] for b in batches]) for name in domain.names}


def read_codes(path: Path) -> Codes:
    with path.open() as file:
        names = next(csv.reader(file))
        rows = np.loadtxt(file, delimiter=",", dtype=np.int64, ndmin=2)
    return dict(zip(names, rows.T, strict=True))


if __name__ == "__main__":
    write(sys.argv[1], Path(sys.argv[2]))
