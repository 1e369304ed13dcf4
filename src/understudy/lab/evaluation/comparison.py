"""The tables that are compared: the real one, the synthetic one, and perhaps real rows that were held out."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from understudy.boundary.schema.column import Column, Datetime
from understudy.boundary.schema.schema import DRAFT, Schema
from understudy.boundary.tables.draft import draft_schema
from understudy.boundary.tables.rows import Rows
from understudy.errors import InputError
from understudy.lab.evaluation.measure import GROUPS, HOLDOUT, SCHEMA, TARGET
from understudy.lab.evaluation.sample import RowSample, Variable, encode, is_on_line

REAL, SYNTHETIC, HELD_OUT = "real", "synthetic", "hold-out"


@dataclass(frozen=True)
class Comparison:
    """Everything that a measure may look at."""

    variables: tuple[Variable, ...]
    real: RowSample
    synthetic: RowSample
    holdout: RowSample | None
    schema: Schema
    target: str | None = None
    groups: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """Columns that are not in all tables, or that are identifiers."""
    seed: int = 0
    """Of random queries, splits and the like."""

    @classmethod
    def of(
        cls,
        real: Any,
        synthetic: Any,
        *,
        holdout: Any = None,
        schema: Schema | str | Path | None = None,
        target: str | None = None,
        groups: Sequence[str] = (),
        seed: int = 0,
    ) -> Comparison:
        """Reads the tables. Without a schema one is drafted from the real rows, to tell numbers from categories."""
        given = schema if isinstance(schema, Schema | None) else Schema.load(schema)
        given = getattr(real, "schema", None) if given is None and hasattr(real, "count_by") else given
        tables = {REAL: Rows.of(real, "the real table"), SYNTHETIC: Rows.of(synthetic, "the synthetic table")}
        if holdout is not None:
            tables[HELD_OUT] = Rows.of(holdout, "the hold-out")
        schema = given or draft_schema(real)
        columns = [_datable(c) for c in schema.modelled if all(c.name in t.columns for t in tables.values())]
        _check_columns(columns, tables, target, groups)
        read = {name: rows.read(columns, schema.missing_texts) for name, rows in tables.items()}
        for name, table in read.items():
            if not table.num_rows:
                raise InputError(f"the {name} table has no rows, so there is nothing to compare", name)
        variables, samples = encode(read, columns)
        samples = {role: dataclasses.replace(s, name=tables[role].name) for role, s in samples.items()}
        named = {c.name for c in columns}
        every = dict.fromkeys(c for t in tables.values() for c in t.columns)
        return cls(
            tuple(variables),
            samples[REAL],
            samples[SYNTHETIC],
            samples.get(HELD_OUT),
            schema,
            target,
            tuple(groups),
            tuple(c for c in every if c not in named),
            seed,
        )

    def has(self, need: str) -> bool:
        return {
            HOLDOUT: self.holdout is not None,
            TARGET: self.target is not None,
            SCHEMA: not self.drafted,
            GROUPS: bool(self.groups),
        }[need]

    @property
    def drafted(self) -> bool:
        """Whether the schema comes from the real rows, because none was given."""
        return self.schema.status == DRAFT

    def __getitem__(self, name: str) -> Variable:
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Variable]:
        return {v.name: v for v in self.variables}

    @property
    def on_line(self) -> tuple[Variable, ...]:
        return tuple(v for v in self.variables if v.on_line)

    @property
    def listed(self) -> tuple[Variable, ...]:
        return tuple(v for v in self.variables if not v.on_line)

    @property
    def test(self) -> RowSample:
        """Real rows to test a classifier on: the hold-out."""
        assert self.holdout is not None
        return self.holdout


def _datable(column: Column) -> Column:
    """A date whose bounds are private is counted from 1970 on."""
    if isinstance(column, Datetime) and column.minimum is None:
        from datetime import datetime

        return dataclasses.replace(column, minimum=datetime(1970, 1, 1), maximum=None)
    return column


def _check_columns(
    columns: Sequence[Column], tables: dict[str, Rows], target: str | None, groups: Sequence[str]
) -> None:
    names = [c.name for c in columns]
    if not columns:
        raise InputError(
            f"{tables[SYNTHETIC].name} has no column in common with {tables[REAL].name}; give tables of the same kind",
            tables,
        )
    for role, name in (*((("target", target),) if target else ()), *(("group", g) for g in groups)):
        if name not in names:
            listing = ", ".join(names[:8])
            raise InputError(f"the {role} {name!r} is not a column of all tables; they share {listing}", name)
    odd = next((g for g in groups if is_on_line(columns[names.index(g)])), None)
    if odd:
        raise InputError(f"the group {odd!r} is a number; name a column of categories", odd)
