"""A query whose names have been looked up: what is asked, with types, in one form however it was written.

A condition whose arithmetic could overflow or underflow is refused, from the schema's bounds alone, here and again by
the boundary (`schema.magnitude`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from understudy.boundary.schema.column import Categorical, Column, Datetime, Integer, Number
from understudy.boundary.schema.domain import ColumnSet
from understudy.boundary.schema.expression import Predicate, parse
from understudy.boundary.schema.magnitude import check_range
from understudy.boundary.schema.schema import Schema
from understudy.errors import InputError
from understudy.inference.declared import check_declared
from understudy.queries.grammar import ALLOWED, SelectItem, SelectStatement, quoted, read

COUNT, PERSONS, SUM, AVERAGE, QUANTILE = "count", "persons", "sum", "avg", "quantile"
ANY_TABLE = "data"
"""A name that stands for the table that was opened, whichever it is."""


@dataclass(frozen=True)
class Aggregate:
    """One figure per group; `name` is its heading."""

    kind: str
    name: str
    column: str | None = None
    probability: float | None = None

    @property
    def sql(self) -> str:
        if self.kind == PERSONS:
            return f"count(DISTINCT {quoted(str(self.column))})"
        if self.kind == QUANTILE:
            return f"quantile({quoted(str(self.column))}, {self.probability!r})"
        if self.column is None:
            return f"{self.kind}(*)"
        return f"{self.kind}({quoted(self.column)})"


@dataclass(frozen=True)
class AggregateQuery:
    """What is asked of the rows. Two texts that mean the same have the same `sql`, by which ledgers know them."""

    keys: ColumnSet
    aggregates: tuple[Aggregate, ...]
    where: Predicate | None

    @classmethod
    def of(cls, sql: str, schema: Schema, tables: Collection[str] = ()) -> AggregateQuery:
        """Reads a query and checks every name against the schema; `tables` are the names that FROM may have.

        >>> schema = Schema.loads('[columns.age]\\ntype = "integer"\\nmin = 0\\nmax = 99')
        >>> AggregateQuery.of("select  avg(age) from data where age>40", schema).sql
        'SELECT avg("age") FROM data WHERE "age" > 40'
        """
        statement = read(sql)
        if statement.table not in (ANY_TABLE, *tables):
            known = " or ".join(dict.fromkeys((*tables, ANY_TABLE)))
            raise InputError(f"table {statement.table!r} of the query must be {known}, which was opened", statement)
        _check_columns(statement, schema)
        where = None
        if statement.where is not None:
            where = parse(statement.where, schema.kinds)
            check_declared(where, schema)
            _check_condition(where, schema)
        return cls(statement.group, tuple(_aggregate(i, schema, statement) for i in statement.items), where)

    @property
    def sql(self) -> str:
        """The question in its one form."""
        keys = [quoted(k) for k in self.keys]
        parts = [f"SELECT {', '.join([*keys, *(a.sql for a in self.aggregates)])} FROM {ANY_TABLE}"]
        if self.where is not None:
            parts.append(f"WHERE {self.where.sql().sql()}")
        if keys:
            parts.append(f"GROUP BY {', '.join(keys)}")
        return " ".join(parts)

    @property
    def headings(self) -> tuple[str, ...]:
        return (*self.keys, *(a.name for a in self.aggregates))


def _check_columns(statement: SelectStatement, schema: Schema) -> None:
    if not statement.items:
        raise InputError(f"the query has no aggregate, and no row may be shown; {ALLOWED}", statement)
    if set(statement.columns) != set(statement.group) or len(statement.columns) != len(set(statement.columns)):
        raise InputError(
            f"the columns of SELECT ({', '.join(statement.columns) or 'none'}) must be those of GROUP BY "
            f"({', '.join(statement.group) or 'none'}), each once",
            statement,
        )
    if statement.columns != statement.group:
        raise InputError("the columns of GROUP BY must stand in the order of SELECT", statement)
    for name in statement.columns:
        _check_key(_modelled(schema, name))
    headings = [*statement.columns, *(_heading(i) for i in statement.items)]
    twice = next((h for h in headings if headings.count(h) > 1), None)
    if twice is not None:
        raise InputError(f"{twice!r} stands twice in the query; ask for it once, or name it with AS", statement)


def _modelled(schema: Schema, name: str) -> Column:
    """The column, unless it is rebuilt from another one, which alone has been counted."""
    column = schema[name]
    source = getattr(column, "rebuilt_from", None)
    if source:
        raise InputError(
            f"column {name!r} is rebuilt from {source!r} and not modelled itself; ask about {source!r}", name
        )
    return column


def _check_key(column: Column) -> None:
    if not column.modelled:
        raise InputError(f"column {column.name!r} is an identifier, by which nothing may be grouped", column)
    if column.private and not isinstance(column, Categorical):
        raise InputError(
            f"column {column.name!r} can't be grouped by, since its bounds are private; declare them", column
        )


def _heading(item: SelectItem) -> str:
    if item.name is not None:
        return item.name
    if item.function == QUANTILE and item.share == 0.5:
        return f"median({item.column})"
    if item.function == QUANTILE:
        return f"quantile({item.column}, {item.share:g})"
    if item.distinct:
        return f"{item.function}(distinct {item.column})"
    return f"{item.function}({item.column or '*'})"


def _aggregate(item: SelectItem, schema: Schema, statement: SelectStatement) -> Aggregate:
    if item.column is None:
        return Aggregate(COUNT, _heading(item))
    if item.distinct:
        if schema.unit is None:
            raise InputError(
                f"count(distinct {item.column}) needs a unit in the schema; without one each row is a person, "
                "so use count(*)",
                item.column,
            )
        if item.column != schema.unit.column:
            raise InputError(
                f"count(distinct {item.column}) must name the unit's column, {schema.unit.column}", item.column
            )
        return Aggregate(PERSONS, _heading(item), item.column)
    _check_measured(item, _modelled(schema, item.column), statement)
    return Aggregate(item.function, _heading(item), item.column, item.share)


def _check_measured(item: SelectItem, column: Column, statement: SelectStatement) -> None:
    numbers: tuple[type[Column], ...] = (Integer, Number)
    if item.function == QUANTILE:
        # A date has a rank but no sum: a quantile only compares values.
        numbers = (*numbers, Datetime)
    if not isinstance(column, numbers):
        kinds = " or ".join(k.type for k in numbers)
        raise InputError(f"{item.function}({column.name}) needs a column of type {kinds}, not {column.type}", column)
    if column.private:
        raise InputError(
            f"{item.function}({column.name}) needs public bounds to clamp by; declare min and max in the schema", column
        )
    # The bins of a quantile are one more axis of the groups, and no column can be two of them.
    if item.function == QUANTILE and column.name in statement.group:
        raise InputError(f"{item.function}({column.name}) can't be grouped by {column.name} itself", column)


def _check_condition(condition: Predicate, schema: Schema) -> None:
    """Refuses a column whose bounds are private, and arithmetic that may leave the range of doubles."""
    for name in sorted(condition.columns):
        if schema[name].private and not isinstance(schema[name], Categorical):
            raise InputError(f"column {name!r} can't stand in WHERE, since its bounds are private; declare them", name)
    check_range(condition, schema)
