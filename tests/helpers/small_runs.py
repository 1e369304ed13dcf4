"""Small tables for whole runs of a method, and curators that pretend to have many rows."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from helpers.randomness import SeededRandomness
from helpers.tables import CodeTable
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.cache import CachedTable

ADD_REMOVE, REPLACE_ONE = "add-remove", "replace-one"
MIXED = """
[columns.a]
type = "boolean"
[columns.b]
type = "integer"
min = 0
max = 2
[columns.c]
type = "categorical"
values = ["x", "y"]
missing = true
"""
BINARY = "".join(f'[columns.{name}]\ntype = "boolean"\n' for name in "abcd")
Row = tuple[int, ...]
Rows = tuple[Row, ...]


@cache
def domain_of(columns: str, relation: str) -> Domain:
    return Domain.of(Schema.loads(f'neighbours = "{relation}"\n' + columns))


def sizes_of(columns: str) -> list[int]:
    return [coding.size for coding in domain_of(columns, ADD_REMOVE)]


@cache
def table_of(columns: str, relation: str, rows: Rows) -> CachedTable:
    """Codes, counted as those of every table are: by sets of columns, then summed up by group."""
    domain = domain_of(columns, relation)
    codes = dict(zip(domain.names, np.array(rows, dtype=np.uint8).T, strict=True))
    return CachedTable(CodeTable(domain.schema, (["rows"], np.array([len(rows)])), codes=codes))


class ManyRows(SeededRandomness):
    """A history that is possible like any other: forty times the noise too many in the first cell of every histogram.

    Tables of three columns are candidates only where there seem to be rows enough to fill them.
    """

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        noise = super().noise(mechanism, scale, size)
        noise[0] += round(40 * max(1.0, scale))
        return noise
