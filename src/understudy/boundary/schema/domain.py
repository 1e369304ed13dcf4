"""The finite public domain of a table: for each modelled column, which codes there are and what they stand for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import TypeAlias

import numpy as np

from understudy.boundary.schema.column import (
    DEFAULT_BINS,
    SINGLE_VALUE_BINS,
    Boolean,
    Categorical,
    Column,
    Datetime,
    Integer,
    Label,
    Line,
    Number,
    Special,
)
from understudy.boundary.schema.schema import Schema
from understudy.errors import InternalError, SchemaError

LARGEST_WIDTH = 1e307

ColumnSet: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Coding:
    """The codes 0 … size−1 of one column: of its bins or labels, of its special values, and last of a missing value
    where the column has them.

    `labels` names the codes of a column of values; `edges` bounds the bins of a column on a line, bin i being
    edges[i] ≤ x < edges[i+1] (the last bin of a number includes its upper edge). A datetime's line is counted
    in whole units of its resolution since its `start`.
    """

    column: Column
    labels: tuple[Label | bool, ...] | None = None
    edges: tuple[float, ...] | None = None

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def levels(self) -> int:
        """How many codes stand for labels, or for bins of a line: for values neither special nor missing."""
        if self.labels is not None:
            return len(self.labels)
        return len(self.edges or ()) - 1

    @property
    def special(self) -> tuple[Special, ...]:
        """The values that have the codes behind those of the bins."""
        return self.column.special if isinstance(self.column, Line) else ()

    @property
    def apart(self) -> int:
        """How many codes lie behind the levels, on no line: those of special values and of a missing one."""
        return len(self.special) + self.column.missing

    @property
    def size(self) -> int:
        return self.levels + self.apart

    @cached_property
    def special_codes(self) -> dict[Special, int]:
        """The code of each special value: a number by its value, a text by itself."""
        return {v if isinstance(v, str) else float(v): self.levels + i for i, v in enumerate(self.special)}

    @cached_property
    def spellings(self) -> dict[str, int]:
        """The code of every text that means a label of a column of texts."""
        assert isinstance(self.column, Categorical) and self.labels is not None
        codes = {label: code for code, label in enumerate(self.labels)}
        return {text: codes[label] for text, label in self.column.spellings.items()}

    @property
    def null_code(self) -> int:
        """The code of a missing (or unreadable) value: its own, else `other`, else the first."""
        if self.column.missing:
            return self.size - 1
        # The domain is public: it has no code for what the schema rules out, so the value takes another's place.
        return self._other_code(default=0)

    @property
    def stray_code(self) -> int:
        """The code of a label that is not declared: `other`, else missing, else the first."""
        # `tables.sums_sql._label` has this rule and that of `null_code` once more, in SQL: they must change together.
        return self._other_code(default=self.size - 1 if self.column.missing else 0)

    def _other_code(self, default: int) -> int:
        if isinstance(self.column, Categorical) and self.labels is not None and self.column.other is not None:
            return self.labels.index(self.column.other)
        return default


@dataclass(frozen=True)
class EvenCoding(Coding):
    """Thousands of bins of one width, found by a division: a value within a rounding error of an edge may be on either
    side of it. Good enough for ranks, where a comparison with every edge would be slow.
    """

    def __post_init__(self) -> None:
        # How far a value is from the first edge must be a number on every engine, whatever the value is.
        if self.edges is not None and not self.edges[-1] - self.edges[0] <= LARGEST_WIDTH:
            raise SchemaError(
                f"column {self.name!r}: its bounds are more than {LARGEST_WIDTH:g} apart; declare closer ones", self
            )


@dataclass(frozen=True)
class Domain:
    """The codings of all modelled columns of a schema in which nothing is private any more.

    >>> schema = Schema((Integer("age", minimum=0, maximum=99), Boolean("smoker", missing=True)))
    >>> Domain.of(schema).shape(("age", "smoker"))
    (100, 3)
    """

    schema: Schema
    codings: tuple[Coding, ...]
    _by_name: Mapping[str, Coding] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {c.name: c for c in self.codings})

    @classmethod
    def of(cls, schema: Schema) -> Domain:
        return cls(schema, tuple(coding_of(c) for c in schema.modelled))

    def __getitem__(self, name: str) -> Coding:
        try:
            return self._by_name[name]
        except KeyError:
            column = self.schema[name]  # raises the better sentence where the column is unknown
            if isinstance(column, Line) and column.rebuilt_from:
                source = column.rebuilt_from
                raise SchemaError(
                    f"column {name!r} is rebuilt from {source!r} and not modelled itself; ask about {source!r}", name
                ) from None
            raise SchemaError(f"column {name!r} is an identifier, which is never modelled", name) from None

    def __iter__(self) -> Iterator[Coding]:
        return iter(self.codings)

    @cached_property
    def names(self) -> ColumnSet:
        return tuple(c.name for c in self.codings)

    def size(self, name: str) -> int:
        return self[name].size

    def shape(self, columns: Sequence[str]) -> tuple[int, ...]:
        return tuple(self[c].size for c in columns)

    def cells(self, columns: Sequence[str]) -> int:
        return math.prod(self.shape(columns))


def coding_of(column: Column) -> Coding:
    """The codes of a column of which nothing is private."""
    if column.private:
        raise InternalError(f"column {column.name!r} is still private and has no codes yet", column)
    match column:
        case Boolean():
            return Coding(column, labels=(False, True))
        case Categorical():
            return Coding(column, labels=column.labels)
        case Integer():
            return Coding(column, edges=_integer_edges(column))
        case Datetime():
            return Coding(column, edges=_whole_edges(units_between(column, column.maximum) + 1, column.bins))
        case Number():
            return Coding(column, edges=_number_edges(column))
    raise InternalError(f"column {column.name!r} of type {column.type!r} has no codes", column)


def _integer_edges(column: Integer) -> tuple[float, ...]:
    assert column.minimum is not None and column.maximum is not None
    if column.cuts is not None:
        return (column.minimum, *column.cuts, column.maximum + 1)
    if column.step is not None and column.step > 1:
        # Bins of as many multiples each: an edge is the first multiple of the bin on its right.
        first, last = -(-column.minimum // column.step), column.maximum // column.step
        inner = _whole_edges(max(last - first, 0) + 1, column.bins)[1:-1]
        return (column.minimum, *((first + e) * column.step for e in inner), column.maximum + 1)
    span = column.maximum - column.minimum + 1
    return tuple(column.minimum + e for e in _whole_edges(span, column.bins))


def _whole_edges(span: int, bins: int | None) -> tuple[int, ...]:
    """Edges of bins of one whole width over 0 … span−1; the last bin may be shorter."""
    if bins is None:
        bins = span if span <= SINGLE_VALUE_BINS else DEFAULT_BINS
    # Rounded up: bins of one whole width, so that an engine finds a bin by a division.
    width = -(-span // min(bins, span))
    return (*range(0, span, width), span)


def _number_edges(column: Number) -> tuple[float, ...]:
    low, high = column.minimum, column.maximum
    assert low is not None and high is not None
    if column.cuts is not None:
        return (float(low), *map(float, column.cuts), float(high))
    bins = column.bins or DEFAULT_BINS
    # In this order of operations: any other may round an edge to the next double, and move values to another code.
    edges = [low + (high - low) * (i / bins) for i in range(bins)]
    # Doubles may be too coarse for so many edges: two equal ones would make a bin that no value is in.
    if sorted(set(edges)) != edges or edges[-1] >= high:
        raise SchemaError(f"column {column.name!r}: bins ({bins}) are too narrow between {low} and {high}", column)
    return (*map(float, edges), float(high))


def code_type(size: int) -> np.dtype[np.unsignedinteger]:
    """The narrowest type that holds the codes of a domain of this size."""
    if size <= 1 << 8:
        return np.dtype(np.uint8)
    if size <= 1 << 16:
        return np.dtype(np.uint16)
    # Enough for any column: MAX_LABELS and MAX_BINS are 100,000.
    return np.dtype(np.uint32)


def units_between(column: Datetime, moment: datetime | None) -> int:
    """Whole units of the column's resolution from its `start` to `moment`."""
    assert moment is not None
    return (moment - column.start) // timedelta(seconds=column.unit_seconds)
