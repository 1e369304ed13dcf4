"""The schema: everything about a table that is public, and nothing else.

A method may use whatever stands here without paying for it. What is not here is bought or unknown.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from understudy.boundary.schema.column import Categorical, Column, Identifier, spelled_with_point
from understudy.boundary.schema.expression import Constraint, Kind
from understudy.errors import InputError, SchemaError
from understudy.parameters import one_of, whole_number

ADD_REMOVE = "add-remove"
REPLACE_ONE = "replace-one"
NEIGHBOURS = (ADD_REMOVE, REPLACE_ONE)

DECLARED = "declared"
DRAFT = "draft"
CONFIRMED = "confirmed"
STATUSES = (DECLARED, DRAFT, CONFIRMED)


@dataclass(frozen=True)
class Unit:
    """What one person contributes: at most `max_rows` rows that carry the same value in `column`."""

    column: str
    max_rows: int = 1

    def __post_init__(self) -> None:
        whole_number("unit: max_rows", self.max_rows, 1, error=SchemaError, subject=self)


@dataclass(frozen=True)
class Rule:
    """A constraint as it is written: `if` may be empty, `then` must hold wherever it is true."""

    then: str
    condition: str | None = None


@dataclass(frozen=True)
class Schema:
    """The public facts of one table, in the order of its columns.

    >>> from understudy.boundary.schema.column import Integer
    >>> Schema((Integer("age", minimum=0, maximum=99),)).names
    ('age',)
    """

    columns: tuple[Column, ...]
    neighbours: str = ADD_REMOVE
    unit: Unit | None = None
    rules: tuple[Rule, ...] = ()
    missing_values: tuple[str, ...] = ()
    status: str = DECLARED
    _by_name: Mapping[str, Column] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {c.name: c for c in self.columns})
        self._check()

    def _check(self) -> None:
        if not self.columns:
            raise SchemaError("a schema needs at least one column under [columns]", self)
        if len(self._by_name) < len(self.columns):
            names = [c.name for c in self.columns]
            twice = next(n for n in names if names.count(n) > 1)
            raise SchemaError(f"column {twice!r} is declared twice", self)
        if not self.modelled:
            raise SchemaError("every column is an identifier, so there is nothing to model; declare another type", self)
        one_of("neighbours", self.neighbours, NEIGHBOURS, error=SchemaError, subject=self)
        one_of("status", self.status, STATUSES, error=SchemaError, subject=self)
        self._check_missing_values()
        self._check_unit()
        self.constraints  # noqa: B018 - parsing them is the check

    def check_confirmed(self, accepted: bool, how: str = "--accept-draft-as-public") -> None:
        """Refuses a draft that nobody `accepted`: it was made from the rows, so it is not public knowledge."""
        if self.status == DRAFT and not accepted:
            raise InputError(
                'the schema is a draft made from the data; check it, then set status = "confirmed" '
                f"(or accept it as public with {how})",
                self,
            )

    def _check_missing_values(self) -> None:
        for column in self.columns:
            labels = column.labels if isinstance(column, Categorical) and column.values is not None else ()
            both = next((v for v in labels if str(v) in self.missing_texts), None)
            if both is not None:
                raise SchemaError(
                    f"column {column.name!r}: value {both!r} is also among missing_values; keep it in one place", column
                )

    def _check_unit(self) -> None:
        if self.unit is None:
            return
        if self.unit.column not in self._by_name:
            raise SchemaError(f"unit: column {self.unit.column!r} is not among the columns of the schema", self.unit)
        if self.neighbours == REPLACE_ONE and self.unit.max_rows > 1:
            # Every sensitivity under replace-one is that of one row put in place of another.
            raise SchemaError(
                f'unit: max_rows ({self.unit.max_rows}) must be 1 with neighbours = "replace-one"; use "add-remove"',
                self.unit,
            )

    def __getitem__(self, name: str) -> Column:
        try:
            return self._by_name[name]
        except KeyError:
            raise SchemaError(f"column {name!r} is not in the schema; it has {_listing(self.names)}", name) from None

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns)

    @property
    def modelled(self) -> tuple[Column, ...]:
        """The columns that a method looks at: all but the identifiers."""
        return tuple(c for c in self.columns if c.modelled)

    @property
    def private(self) -> tuple[Column, ...]:
        """The columns of which something must be bought first."""
        return tuple(c for c in self.columns if c.private)

    @property
    def released(self) -> tuple[Column, ...]:
        """The columns of a synthetic table: all but the identifiers that are dropped."""
        return tuple(c for c in self.columns if not (isinstance(c, Identifier) and c.made_up is None))

    @cached_property
    def missing_texts(self) -> tuple[str, ...]:
        """Every text that means a missing value: `missing_values`, and whole numbers among them with a point."""
        pointed = (text for value in self.missing_values for text in spelled_with_point(value))
        return tuple(dict.fromkeys((*self.missing_values, *pointed)))

    @property
    def public_rows(self) -> bool:
        """Whether no neighbour changes the number of rows that count, so that it may be known.

        Replacing a row by another leaves it as it is. Replacing a person does not where the rows of a person are found
        by an id: one who has none has no row that counts.
        """
        return self.neighbours == REPLACE_ONE and self.unit is None

    @property
    def rows_per_unit(self) -> int:
        return self.unit.max_rows if self.unit else 1

    @property
    def kinds(self) -> dict[str, Kind]:
        return {c.name: c.kind for c in self.modelled}

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        return tuple(Constraint.parse(rule.condition, rule.then, self.kinds) for rule in self.rules)

    def with_columns(self, columns: Iterable[Column]) -> Schema:
        """The same schema with some columns put in place of those of the same name (say, with bought bounds)."""
        new = {c.name: c for c in columns}
        return dataclasses.replace(self, columns=tuple(new.get(c.name, c) for c in self.columns))

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Reads a schema from a TOML file."""
        from understudy.boundary.schema.toml import load

        return load(Path(path))

    @classmethod
    def loads(cls, text: str) -> Schema:
        """Reads a schema from TOML text."""
        from understudy.boundary.schema.toml import loads

        return loads(text)

    def dumps(self) -> str:
        """The schema as TOML text."""
        from understudy.boundary.schema.toml import dumps

        return dumps(self)

    def save(self, path: str | Path) -> None:
        """Writes the schema as TOML, whole or not at all."""
        from understudy.files import write_atomically

        write_atomically(Path(path), self.dumps().encode())


def _listing(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(names[:most])
    if len(names) <= most:
        return shown
    return f"{shown} and {len(names) - most} more"
