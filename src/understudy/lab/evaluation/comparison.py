"""The tables that are compared, as the measures see them: the real one, the synthetic one, and perhaps a hold-out.

Every column is there as numbers or as codes, the same codes in all tables. A column on a line (numbers, dates) keeps
its values and is also cut into cells; any other column has codes alone. The cells are those of the values themselves
where there are few of them, else bins that hold about equally many real rows.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import (
    Boolean,
    Categorical,
    Column,
    Datetime,
    Identifier,
    Integer,
    Line,
    Number,
)
from understudy.boundary.schema.derived import Derived
from understudy.boundary.schema.schema import DRAFT, Schema
from understudy.boundary.schema.spelling import special_name
from understudy.boundary.tables.draft import draft_schema
from understudy.boundary.tables.rows import Rows
from understudy.boundary.tables.table import is_table
from understudy.errors import InputError
from understudy.lab.evaluation.measure import GROUPS, HOLDOUT, SCHEMA, TARGET

if TYPE_CHECKING:
    import pyarrow as pa

MOST_VALUES, BINS = 64, 32
"""Distinct numbers up to which each has a cell of its own, and how many cells more of them are cut into."""
MISSING = "missing"


@dataclass(frozen=True)
class Variable:
    """A column that is compared. A missing value has the code after all others."""

    column: Column
    labels: tuple[str, ...]
    """What each code stands for."""
    edges: NDArray[np.float64] | None = None
    """Of a column on a line: code i holds edges[i-1] ≤ x < edges[i], without bounds at both ends."""
    missing: bool = False
    """Whether a value is missing in any of the tables."""

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def on_line(self) -> bool:
        return self.edges is not None

    @property
    def is_date(self) -> bool:
        return isinstance(self.column, Datetime)

    @property
    def size(self) -> int:
        return len(self.labels) + self.missing

    @property
    def all_labels(self) -> tuple[str, ...]:
        return (*self.labels, MISSING) if self.missing else self.labels


@dataclass(frozen=True)
class RowSample:
    """The rows of one table."""

    name: str
    rows: int
    codes: Mapping[str, NDArray[np.int64]]
    """Of every column."""
    values: Mapping[str, NDArray[np.float64]]
    """Of the columns on a line: NaN where missing; may be infinite."""

    def counts(self, variables: Sequence[Variable]) -> NDArray[np.int64]:
        """The contingency table of some columns."""
        shape = tuple(v.size for v in variables)
        # One pass over the rows for any number of columns; callers see to it that the table of counts fits.
        flat = np.ravel_multi_index(tuple(self.codes[v.name] for v in variables), shape)
        return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)

    def present(self, name: str) -> NDArray[np.float64]:
        """The values of a column on a line that are not missing."""
        values = self.values[name]
        return values[~np.isnan(values)]

    def take(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> RowSample:
        """Some of the rows."""
        codes = {name: c[rows] for name, c in self.codes.items()}
        count = len(next(iter(codes.values())))
        return RowSample(self.name, count, codes, {name: v[rows] for name, v in self.values.items()})


def is_on_line(column: Column) -> bool:
    return isinstance(column, Integer | Number | Datetime)


def encode(tables: Mapping[str, pa.Table], columns: Sequence[Column]) -> tuple[list[Variable], dict[str, RowSample]]:
    """The tables in common codes; cells of numbers are cut by the first of them, which is the real one."""
    variables: list[Variable] = []
    codes: dict[str, dict[str, NDArray[np.int64]]] = {name: {} for name in tables}
    values: dict[str, dict[str, NDArray[np.float64]]] = {name: {} for name in tables}
    for column in columns:
        if is_on_line(column):
            found = {name: _numbers(table, column.name) for name, table in tables.items()}
            variable = _cut(column, list(found.values()))
            for name, numbers in found.items():
                values[name][column.name] = numbers
                codes[name][column.name] = _codes(variable, numbers)
        else:
            texts = {name: _texts(table, column) for name, table in tables.items()}
            variable, coded = _listed(column, texts)
            for name in tables:
                codes[name][column.name] = coded[name]
        variables.append(variable)
    samples = {name: RowSample(name, t.num_rows, codes[name], values[name]) for name, t in tables.items()}
    return variables, samples


def _numbers(table: pa.Table, name: str) -> NDArray[np.float64]:
    import pyarrow as pa

    column = table.column(name).cast(pa.float64())
    return np.array(column.to_numpy(), dtype=np.float64)


def _cut(column: Column, tables: Sequence[NDArray[np.float64]]) -> Variable:
    missing = any(bool(np.isnan(t).any()) for t in tables)
    distinct = np.unique(np.concatenate([np.unique(t[~np.isnan(t)]) for t in tables]))
    # The values of all tables decide: a synthetic value that no real row has must not share a cell with a real one.
    if len(distinct) <= MOST_VALUES:
        labels = tuple(value_text(column, v) for v in distinct) or ("none",)
        return Variable(column, labels, distinct[1:], missing)
    # By the real table alone, which comes first: cells that moved with the synthetic rows would make two releases of
    # one table incomparable.
    edges = _equal_edges(tables[0][np.isfinite(tables[0])])
    if not len(edges):
        # No real value is finite: one cut between the others still leaves cells to compare.
        edges = distinct[np.isfinite(distinct)][1:2]
    return Variable(column, tuple(_bin_labels(column, edges)), edges, missing)


def _equal_edges(real: NDArray[np.float64]) -> NDArray[np.float64]:
    """Between bins of about equally many real rows; a value that fills a bin by itself has one of its own."""
    values, counts = np.unique(real, return_counts=True)
    # Such as the many zeros of a capital gain: in a bin of others they would hide how those are distributed.
    heavy = values[counts >= max(2, len(real) / BINS)]
    light = real[~np.isin(real, heavy)]
    cuts = light
    if len(light):
        bins = max(2, BINS - len(heavy))
        cuts = np.quantile(light, np.linspace(0, 1, bins + 1)[1:-1], method="lower")
    # A heavy value v has the bin [v, next float after v), which holds nothing else.
    return np.unique(np.concatenate([cuts, heavy, np.nextafter(heavy, np.inf)]))


def _bin_labels(column: Column, edges: NDArray[np.float64]) -> Iterator[str]:
    yield f"below {value_text(column, edges[0])}"
    single = False
    for low, high in itertools.pairwise(edges):
        after, single = single, bool(high == np.nextafter(low, np.inf))
        if single:
            yield value_text(column, low)
        elif after:
            yield f"above {value_text(column, low)} to {value_text(column, high)}"
        else:
            yield f"from {value_text(column, low)} to {value_text(column, high)}"
    if single:
        yield f"above {value_text(column, edges[-1])}"
    else:
        yield f"{value_text(column, edges[-1])} and more"


def value_text(column: Column, value: float) -> str:
    """A value as people write it."""
    if isinstance(column, Datetime) and np.isfinite(value):
        moment = np.datetime64(column.start if column.minimum else "1970-01-01", "s")
        moment = moment + np.timedelta64(round(value * column.unit_seconds), "s")
        if column.resolution == "day":
            moment = moment.astype("datetime64[D]")
        return str(moment)
    if abs(value) < 1e-300:  # the next number after zero, which ends the bin of zeros
        value = 0.0
    if 1e-4 < abs(value) < 1e15 or value == 0:
        return f"{value:,.8g}"
    return f"{value:.4g}"


def _codes(variable: Variable, values: NDArray[np.float64]) -> NDArray[np.int64]:
    assert variable.edges is not None
    codes = np.searchsorted(variable.edges, values, side="right")  # NaN sorts last, and is replaced below
    return np.where(np.isnan(values), len(variable.labels), codes)


def _texts(table: pa.Table, column: Column) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    values = table.column(column.name)
    if isinstance(column, Boolean):
        known = pc.is_in(values, pa.array([*Boolean.TRUE, *Boolean.FALSE]))
        truth = pc.if_else(pc.is_in(values, pa.array(Boolean.TRUE)), "true", "false")
        values = pc.if_else(known, truth, values)  # what is neither stays as it is, and shows as undeclared
    elif isinstance(column, Categorical) and column.numeric:
        # 1 and 1.0 are one category, so a whole number is written without a fraction.
        values = values.cast(pa.float64())
        values = pc.if_else(pc.equal(values, pc.floor(values)), values.cast(pa.int64(), safe=False).cast(pa.string()),
                            values.cast(pa.string()))  # fmt: skip
    return values.cast(pa.string()).combine_chunks().dictionary_encode()


def _listed(column: Column, texts: Mapping[str, pa.Array]) -> tuple[Variable, dict[str, NDArray[np.int64]]]:
    """Labels in the order of the schema, then those that it does not know, by name."""
    # The labels of all tables, so that a synthetic value that no real row has gets a code too.
    seen = {str(v) for t in texts.values() for v in t.dictionary.to_pylist()}
    declared = [str(v) for v in _declared(column) if str(v) in seen]
    # Never empty: a column without any value still has a code, so that no array has a side of length 0.
    labels = tuple(dict.fromkeys([*declared, *sorted(seen)])) or ("none",)
    place = {label: i for i, label in enumerate(labels)}
    missing = any(t.null_count for t in texts.values())
    variable = Variable(column, labels, missing=missing)
    coded = {}
    for name, t in texts.items():
        table = np.array([*(place[str(v)] for v in t.dictionary.to_pylist()), len(labels)], dtype=np.int64)
        indices = np.array(t.indices.fill_null(len(t.dictionary)).to_numpy(zero_copy_only=False), dtype=np.int64)
        coded[name] = table[indices]
    return variable, coded


def _declared(column: Column) -> Sequence[object]:
    if isinstance(column, Boolean):
        return ("false", "true")
    if isinstance(column, Categorical) and column.values is not None:
        return column.labels
    return ()


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
        if given is None and is_table(real):
            given = real.schema
        schema = given or draft_schema(real)
        tables = {
            REAL: Rows.of(real, "the real table", schema),
            SYNTHETIC: Rows.of(synthetic, "the synthetic table", schema),
        }
        if holdout is not None:
            tables[HELD_OUT] = Rows.of(holdout, "the hold-out", schema)
        columns = [_datable(c) for c in schema if all(_is_in(c, t) for t in tables.values())]
        _check_columns(columns, tables, target, groups)
        read = {name: rows.read(columns, schema.missing_texts) for name, rows in tables.items()}
        read = {name: _with_special(table, columns) for name, table in read.items()}
        columns = [x for c in columns for x in (c, *_beside(c))]
        for name, table in read.items():
            if not table.num_rows:
                raise InputError(f"the {name} table has no rows, so there is nothing to compare", name)
        # The real table is the first of `read`: `encode` cuts numbers by the first one.
        variables, samples = encode(read, columns)
        samples = {role: dataclasses.replace(s, name=tables[role].name) for role, s in samples.items()}
        named = {c.name for c in columns}
        every = dict.fromkeys(c for t in tables.values() for c in t.columns)
        return cls(
            tuple(variables),
            samples[REAL],
            synthetic=samples[SYNTHETIC],
            holdout=samples.get(HELD_OUT),
            schema=schema,
            target=target,
            groups=tuple(groups),
            left_out=tuple(c for c in every if c not in named),
            seed=seed,
        )

    def one_against_rest(self, value: str) -> Comparison:
        """The same tables with a target of two classes: this value of it, and any other."""
        assert self.target is not None
        variable = self[self.target]
        check_positive(variable.column, value)
        # A declared value that no table holds is a class without rows.
        place = variable.labels.index(value) if value in variable.labels else -1
        two = dataclasses.replace(variable, labels=(f"not {value}", value))

        def merged(sample: RowSample) -> RowSample:
            codes = sample.codes[variable.name]
            known = np.where(codes == len(variable.labels), 2, (codes == place).astype(np.int64))
            return dataclasses.replace(sample, codes={**sample.codes, variable.name: known})

        return dataclasses.replace(
            self,
            variables=tuple(two if v is variable else v for v in self.variables),
            real=merged(self.real),
            synthetic=merged(self.synthetic),
            holdout=None if self.holdout is None else merged(self.holdout),
        )

    def has(self, need: str) -> bool:
        return {
            HOLDOUT: self.holdout is not None,
            TARGET: self.target is not None,
            # A draft declares what the real rows show, so checking them against it would say nothing.
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
    def both(self) -> tuple[RowSample, RowSample]:
        """The real rows, and the synthetic ones."""
        return self.real, self.synthetic

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


def check_positive(column: Column, value: str) -> None:
    """Refuses what is no declared value of the target: whether a row holds it would be told by the answer."""
    declared = [str(v) for v in _declared(column)]
    if not declared:
        raise InputError(f"{column.name!r} has no declared values to be one against the rest; declare them", column)
    if value not in declared:
        listing = ", ".join(declared[:8])
        raise InputError(f"{value!r} is no declared value of {column.name!r}; they are {listing}", value)


def _is_in(column: Column, rows: Rows) -> bool:
    """Whether a table has a column, or all that it is derived from."""
    if isinstance(column, Identifier):
        return False
    if isinstance(column, Derived) and not column.in_table:
        return all(s.name in rows.columns for s in column.sources)
    return column.name in rows.columns


PLAIN = "a value"
"""What stands beside a number or a date that is not special."""


def _beside(column: Column) -> list[Column]:
    """The special values of a column as a category of its own, so that no distance or moment takes them for numbers."""
    if not isinstance(column, Line) or not column.special:
        return []
    return [Categorical(special_name(column.name), column.missing, (*column.special_texts, PLAIN))]


def _with_special(table: pa.Table, columns: Sequence[Column]) -> pa.Table:
    import pyarrow.compute as pc

    for name in (b.name for c in columns for b in _beside(c)):
        special, numbers = table.column(name), table.column(name.removeprefix(special_name("")))
        plain = pc.if_else(pc.is_valid(numbers), PLAIN, None)
        table = table.set_column(table.column_names.index(name), name, pc.coalesce(special, plain))
    return table


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
    wanted = [("group", group) for group in groups]
    if target:
        wanted.insert(0, ("target", target))
    for role, name in wanted:
        if name not in names:
            listing = ", ".join(names[:8])
            raise InputError(f"the {role} {name!r} is not a column of all tables; they share {listing}", name)
    odd = next((g for g in groups if is_on_line(columns[names.index(g)])), None)
    if odd:
        raise InputError(f"the group {odd!r} is a number; name a column of categories", odd)
