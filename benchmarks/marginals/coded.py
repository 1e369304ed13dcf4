"""Writes a table as integer codes, with its domain and a schema of the codes: `python -m marginals.coded NAME FOLDER`.

Adult has a coded form of its own in the shared data. The other tables are coded by their bundled schema, and split in
four parts to train and one to test where no test rows come with them. `tiny` and `wide` are generated.
Runs in a process of its own, so that the parent, whose size a child's peak memory would start from, stays small.
"""

from __future__ import annotations

import csv
import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import understudy as us
from understudy.boundary.schema.column import Categorical, Integer
from understudy.datasets import schema as bundled
from understudy.datasets import schema_path

from .environment import ROOT

SHARED = ROOT.parent / "shared" / "data"
GENERATED = {"tiny": (500, (2, 3, 5, 8)), "wide": (100_000, tuple(2 + i % 15 for i in range(100)))}
TARGETS = {
    "adult_coded": "income>50K",
    "adult": "income",
    "covertype": "cover_type",
    "insurance": "smoker",
    "healthcare": "Test Results",
    "mushroom": "class",
    "nursery": "classification",
    "votes": "Class",
    "tiny": "c0",
    "wide": "c0",
}
Codes = dict[str, np.ndarray]


@dataclass(frozen=True)
class Coded:
    """Codes of training and test rows, the size of each column, and which columns lie on a line."""

    train: Codes
    test: Codes
    sizes: dict[str, int]
    ordered: frozenset[str]

    def write(self, folder: Path) -> None:
        write_rows(folder / "train.csv", self.train)
        write_rows(folder / "test.csv", self.test)
        (folder / "domain.json").write_text(json.dumps(self.sizes))
        schema_of_codes(self.sizes, self.ordered).save(folder / "schema.toml")


def schema_of_codes(sizes: dict[str, int], ordered: frozenset[str]) -> us.Schema:
    def column(name: str) -> Integer | Categorical:
        if name in ordered and sizes[name] > 1:
            return Integer(name, minimum=0, maximum=sizes[name] - 1, bins=sizes[name])
        return Categorical(name, values=tuple(range(sizes[name])))

    return us.Schema(tuple(column(name) for name in sizes))


def write(name: str, folder: Path) -> None:
    """The four files of a table, and the facts about it that the parent needs."""
    if name == "adult_coded":
        _copy_adult(folder)
    else:
        (_generated(name) if name in GENERATED else _encoded(name)).write(folder)
    sizes = json.loads((folder / "domain.json").read_text())
    facts = {"rows": _row_count(folder / "train.csv"), "target": TARGETS[name], "binary": sizes[TARGETS[name]] == 2}
    (folder / "facts.json").write_text(json.dumps(facts))


def _copy_adult(folder: Path) -> None:
    for name in ("train.csv", "test.csv", "domain.json"):
        shutil.copyfile(SHARED / f"adult_coded.{name}", folder / name)
    shutil.copyfile(schema_path("adult_coded"), folder / "schema.toml")


def _encoded(name: str) -> Coded:
    schema = bundled(name)
    domain = us.Domain.of(schema)
    if name == "adult":
        train, test = (_codes(SHARED / f"adult.{part}.csv", schema, domain) for part in ("train", "test"))
    else:
        train, test = _split(_codes(SHARED / f"{name}.csv", schema, domain))
    return Coded(train, test, {c.name: c.size for c in domain}, ordered_columns(domain))


def ordered_columns(domain: us.Domain) -> frozenset[str]:
    """A missing value's code has no place on the line, so a column that has one is a list of labels."""
    return frozenset(c.name for c in domain if c.edges is not None and not c.column.missing)


def _codes(path: Path, schema: us.Schema, domain: us.Domain) -> Codes:
    table: Any = us.open(path, schema)
    batches = list(table._codes(domain, domain.names))  # the benchmark stands inside the boundary
    return {name: np.concatenate([b[name] for b in batches]) for name in domain.names}


def _split(codes: Codes) -> tuple[Codes, Codes]:
    rows = len(next(iter(codes.values())))
    order = np.random.default_rng(0).permutation(rows)
    cut = rows * 4 // 5
    train, test = ({n: c[part] for n, c in codes.items()} for part in (order[:cut], order[cut:]))
    return train, test


def _generated(name: str) -> Coded:
    """Columns in a chain: each repeats the one before it (cut to its size) half of the time."""
    rows, sizes = GENERATED[name]
    rng, codes = np.random.default_rng(0), {}
    before = np.zeros(rows * 5 // 4, dtype=np.int64)
    for i, size in enumerate(sizes):
        fresh = np.minimum(rng.geometric(2 / (size + 2), len(before)) - 1, size - 1)
        before = codes[f"c{i}"] = np.where(rng.random(len(before)) < 0.5, before % size, fresh)
    train, test = _split(codes)
    return Coded(train, test, {f"c{i}": size for i, size in enumerate(sizes)}, frozenset())


def write_rows(path: Path, codes: Codes) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(codes)
        writer.writerows(zip(*(column.tolist() for column in codes.values()), strict=True))


def _row_count(path: Path) -> int:
    with path.open() as file:
        return sum(1 for _ in file) - 1


if __name__ == "__main__":
    write(sys.argv[1], Path(sys.argv[2]))
