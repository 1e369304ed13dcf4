"""Rows as a forest sees them: numbers as they are, categories as the codes of those that occur."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import Boolean, Categorical, Column, Datetime, Identifier, Integer, Line, Number
from understudy.boundary.schema.derived import Derived
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.draft import draft_schema
from understudy.boundary.tables.rows import Rows
from understudy.errors import InputError
from understudy.inference.values import Values, made_up
from understudy.releases.synthetic_table import from_values

if TYPE_CHECKING:
    import pyarrow as pa

Floats: TypeAlias = NDArray[np.float64]
Label: TypeAlias = str | int | bool | None


@dataclass(frozen=True, eq=False)
class Points:
    """The rows of a table, and how their columns were read. All of it comes from the rows, and nothing protects it."""

    schema: Schema
    columns: tuple[Column, ...]
    labels: tuple[tuple[Label, ...], ...]
    """Of each column the categories that occur, in the order of the schema; None is a missing one. None for numbers."""
    steps: Floats
    """What each number is a multiple of."""
    values: Floats

    @classmethod
    def of(cls, rows: Any, schema: Schema | str | Path | None = None) -> Points:
        """Reads a frame or a file. Without a schema one is drafted from the rows, to tell numbers from categories."""
        if not isinstance(schema, Schema):
            schema = Schema.load(schema) if schema else draft_schema(rows)
        _check_plain(schema)
        columns = tuple(_dated(c) for c in schema.modelled)
        read = Rows.of(rows, schema=schema).read(columns, schema.missing_texts)
        if not read.num_rows:
            raise InputError("the table has no rows, so there is nothing to learn from", rows)
        found = [_column(read.column(c.name), c) for c in columns]
        values = np.column_stack([v for v, _ in found])
        labels = tuple(names for _, names in found)
        steps = np.array([_step(c, values[:, j]) for j, c in enumerate(columns)])
        return cls(schema, columns, labels, steps, values)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of categories of each column; 0 for a number."""
        return tuple(map(len, self.labels))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns)

    def read(self, rows: Any) -> Floats:
        """Other rows of the same columns; a category that is not known has the code −1."""
        read = Rows.of(rows, schema=self.schema).read(self.columns, self.schema.missing_texts)
        found = zip(self.columns, self.labels, strict=True)
        return np.column_stack([_column(read.column(c.name), c, labels)[0] for c, labels in found])

    def given(self, values: Mapping[str, Any]) -> dict[int, Floats]:
        """Columns that rows are to have, by the place of each; a value may stand for all rows."""
        import pyarrow as pa

        unknown = [name for name in values if name not in self.names]
        if unknown or not values:
            raise InputError(f"given must name columns out of {', '.join(self.names)}", unknown)
        lists = {name: list(v) for name, v in values.items() if np.ndim(v)}
        # A single value stands for as many rows as the longest list has.
        length = max([1, *map(len, lists.values())])
        lists = {name: lists.get(name, [v] * length) for name, v in values.items()}
        part = dataclasses.replace(
            self,
            columns=tuple(self.columns[self.names.index(n)] for n in lists),
            labels=tuple(self.labels[self.names.index(n)] for n in lists),
        )
        read = part.read(pa.table(lists))
        return {self.names.index(name): read[:, j] for j, name in enumerate(lists)}

    def table(self, values: Floats) -> pa.Table:
        """Rows of numbers and codes as a table of the schema's types."""
        found = {c.name: _decoded(values[:, j], c, self.labels[j]) for j, c in enumerate(self.columns)}
        extra = [c for c in self.schema.released if isinstance(c, Identifier)]
        found |= {c.name: made_up(c, len(values)) for c in extra}
        # A forest may make a missing value where the schema declares none, if the rows that it learned from had one.
        absent = {name for name, v in found.items() if v.missing is not None and v.missing.any()}
        columns = [dataclasses.replace(c, missing=True) for c in self.schema if c.name in absent]
        return from_values(found, self.schema.with_columns(columns))


def _check_plain(schema: Schema) -> None:
    """The printed methods know numbers and categories, and nothing that stands beside a number or in place of one."""
    odd = next((c for c in schema if isinstance(c, Derived) or (isinstance(c, Line) and c.special)), None)
    if odd is not None:
        raise InputError(
            f"column {odd.name!r} is derived or has special values, which specimens don't know; list special values "
            "under missing_values and leave derived columns out, or choose a private method",
            odd,
        )


def _dated(column: Column) -> Column:
    """A date without a lower bound is counted from 1970 on."""
    if isinstance(column, Datetime) and column.minimum is None:
        from datetime import datetime

        return dataclasses.replace(column, minimum=datetime(1970, 1, 1), maximum=None)
    return column


def _column(
    values: pa.ChunkedArray, column: Column, labels: Sequence[Label] | None = None
) -> tuple[Floats, tuple[Label, ...]]:
    import pyarrow as pa

    if isinstance(column, Integer | Number | Datetime):
        numbers = np.array(values.cast(pa.float64()).to_numpy(), dtype=np.float64)
        if np.isinf(numbers).any():
            raise InputError(f"column {column.name!r} holds infinite numbers; a forest needs finite ones", column)
        return numbers, ()
    # Each distinct value is read once. One place more, at the end, is for cells that are null.
    coded = values.combine_chunks().dictionary_encode()
    meant = [*(_label(v, column) for v in coded.dictionary.to_pylist()), None]
    seen = np.array(coded.indices.fill_null(len(meant) - 1).to_numpy(zero_copy_only=False), dtype=np.int64)
    if labels is None:
        labels = _ordered({meant[i] for i in np.unique(seen)}, column)
    # With its type: True and 1 are equal, and would be one key.
    place = {(type(label), label): i for i, label in enumerate(labels)}
    codes = np.array([place.get((type(label), label), -1) for label in meant], dtype=np.float64)
    return codes[seen], tuple(labels)


def _label(value: Any, column: Column) -> Label:
    """What was read, as a value of the column; None where it can't be one."""
    if isinstance(column, Boolean):
        if value in Boolean.TRUE:
            return True
        if value in Boolean.FALSE:
            return False
        return None
    if isinstance(column, Categorical) and column.numeric:
        if np.isfinite(value) and value == int(value):
            return int(value)
        return None
    return str(value)


def _ordered(labels: set[Label], column: Column) -> tuple[Label, ...]:
    """In the order of the schema, then by name; a missing value last."""
    declared: Sequence[Label] = (False, True)
    if isinstance(column, Categorical) and column.values is not None:
        declared = column.labels
    place = {label: i for i, label in enumerate(declared)}
    return tuple(sorted(labels, key=lambda v: (v is None, place.get(v, len(place)), str(v))))


def _step(column: Column, values: Floats) -> float:
    """What the schema says, else the smallest distance between two numbers that occur."""
    if not isinstance(column, Number):
        return 1.0
    if column.decimals is not None:
        return 10.0**-column.decimals
    gaps = np.diff(np.unique(values[~np.isnan(values)]))
    if not len(gaps):
        return 1.0
    return float(gaps.min())


def _decoded(values: Floats, column: Column, labels: Sequence[Label]) -> Values:
    if labels:
        meant = np.array([*labels, None], dtype=object)[values.astype(np.int64)]
        missing = np.array([label is None for label in labels])[values.astype(np.int64)]
        return Values(meant, missing)
    missing = np.isnan(values)
    known = np.where(missing, 0.0, values)
    if isinstance(column, Number):
        if column.decimals is not None:
            known = np.round(known, column.decimals)
        return Values(known, missing)
    whole = np.rint(known).astype(np.int64)
    if isinstance(column, Datetime):
        return Values(np.datetime64(column.start, "s") + whole * np.timedelta64(column.unit_seconds, "s"), missing)
    return Values(whole, missing)
