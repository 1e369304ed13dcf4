"""Looking at rows goes through the encoder of releases: code by code, on every kind of table, both count the same."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from helpers.builders import BUILDERS
from understudy.boundary.schema.domain import Domain
from understudy.boundary.tables.rows import Rows
from understudy.lab.intake.looking import NOTHING, STRAY, Looks

LABELS = [f"place {i}" for i in range(50)]  # so many that an engine looks them up in a joined list
SCHEMA = us.Schema.loads(f"""
missing_values = ["?", "-9"]
[columns.age]
type = "integer"
min = 0
max = 90
bins = 7
[columns.cut]
type = "integer"
min = 0
max = 100
cuts = [10, 50]
[columns.pay]
type = "number"
min = -5
max = 50
[columns.text]
type = "number"
min = 0
max = 9
missing = true
[columns.job]
type = "categorical"
values = ["a", "b"]
[columns.ward]
type = "categorical"
values = ["a", "b"]
other = "elsewhere"
missing = true
[columns.place]
type = "ordinal"
values = {LABELS}
[columns.code]
type = "categorical"
values = [1, 7]
[columns.flag]
type = "boolean"
[columns.since]
type = "datetime"
min = 2020-01-01
max = 2020-12-31
""")
ROWS: dict[str, list[Any]] = {
    "age": [0, 90, 91, -1, 45, None, -9, 44],
    "cut": [9, 10, 50, 101, -1, 49, None, 100],
    "pay": [-5.0, 50.0, 50.1, -5.1, 0.25, None, -9.0, 1e300],
    "text": ["1", " 2 ", "1,5", "nine", "9.0", "9.1", None, "?"],
    "job": ["a", "A", "b ", "c", None, "a", "?", "b"],
    "ward": ["a", "A", "b ", "c", None, "a", "elsewhere", "b"],
    "place": [*LABELS[:5], "nowhere", None, "Place 1"],
    "code": [1, 7, 8, None, 1, 1, -9, 7],
    "flag": ["yes", "No", "perhaps", None, "1", "0", "TRUE", "f"],
    "since": [dt.date(2019, 12, 31), dt.date(2020, 1, 1), dt.date(2020, 12, 31), dt.date(2021, 1, 1), None,
              dt.date(2020, 6, 1), dt.date(2020, 6, 2), dt.date(2020, 6, 3)],
}  # fmt: skip


def test_tables_that_nobody_can_look_at_say_so(tmp_path: Path) -> None:
    table = us.open(BUILDERS["sqlite"](pa.table(ROWS), tmp_path / "rows"), SCHEMA)
    with pytest.raises(us.TableError, match="a sqlite table, can't be looked at; export them to a file first"):
        us.check(table)


@pytest.mark.parametrize("kind", [kind for kind in BUILDERS if kind != "sqlite"])
def test_codes_are_those_of_releases_on_every_kind_of_table(kind: str, tmp_path: Path) -> None:
    table = us.open(BUILDERS[kind](pa.table(ROWS), tmp_path / "rows"), SCHEMA)
    domain = Domain.of(SCHEMA)
    looks = Looks.of(Rows.of(table), SCHEMA, domain.codings)
    rows, counts, _ = looks.count([])
    own = looks.codes(domain.names)
    exact = table.count_by(domain, [(name,) for name in domain.names])
    assert rows == len(ROWS["age"])
    for coding, found, wanted in zip(domain.codings, counts, exact, strict=True):
        # What took no place of its own is put where a release puts it.
        codes = np.zeros(coding.size, dtype=np.int64)
        for code, n in own[coding.name].items():
            codes[code] += n
        codes[coding.stray_code] += found.stray
        codes[coding.null_code] += found.nothing
        assert codes.tolist() == wanted.tolist(), coding.name
        assert sum(own[coding.name].values()) + found.stray + found.nothing == rows
        assert 0 <= found.missing <= found.nothing and STRAY != NOTHING


def test_what_is_clamped_is_what_lies_outside_the_bounds() -> None:
    table = us.open(pa.table(ROWS), SCHEMA)
    looks = Looks.of(Rows.of(table), SCHEMA, Domain.of(SCHEMA).codings)
    counts = dict(zip(Domain.of(SCHEMA).names, looks.count([])[1], strict=True))
    assert [(counts[n].below, counts[n].above) for n in ("age", "cut", "pay", "since")] == [(1, 1)] * 2 + [
        (1, 2),
        (1, 1),
    ]
    assert (counts["text"].missing, counts["text"].unreadable, counts["text"].above) == (2, 2, 1)
    assert [counts[n].stray for n in ("job", "ward", "place", "code", "flag")] == [2, 2, 2, 1, 1]
    strange = looks.strange(["text", "job"])
    assert strange == {"text": [("1,5", 1), ("nine", 1)], "job": [("A", 1), ("c", 1)]}
