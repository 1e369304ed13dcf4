"""The schema: everything about a table that is public, and nothing else.

A method may use whatever stands here without paying for it. What is not here is bought or unknown.
"""

from __future__ import annotations

import dataclasses
import hashlib
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from understudy.boundary.schema.column import (
    COLUMN_TYPES,
    Boolean,
    Categorical,
    Column,
    Datetime,
    Identifier,
    Integer,
    Number,
    Ordinal,
    as_datetime,
    with_points,
)
from understudy.boundary.schema.expression import Constraint, Kind
from understudy.boundary.schema.file_format import FileFormat
from understudy.errors import InputError, SchemaError
from understudy.files import write_atomically
from understudy.parameters import one_of, suggestion, whole_number

# Under the first even the number of rows is private. Under the second the same ε takes more noise: two counts change.
ADD_REMOVE = "add-remove"
REPLACE_ONE = "replace-one"
NEIGHBOURS = (ADD_REMOVE, REPLACE_ONE)

DECLARED = "declared"
DRAFT = "draft"
CONFIRMED = "confirmed"
UNCHANGED = "confirmed unchanged"
"""Confirmed by a person who changed no fact of the draft."""
STATUSES = (DECLARED, DRAFT, CONFIRMED, UNCHANGED)


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
    file: FileFormat | None = None
    """How the CSV file is written, where that is declared."""
    drafted: str | None = field(default=None, compare=False, repr=False)
    """The digest of the facts that were drafted. A release never has it: the facts may have been changed since."""
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False, repr=False)
    """What a draft says about its columns; under "", "unit" and "rules" about the table. Prose begins with a space,
    what may be uncommented does not. They tell counts, so `dumps` leaves them out."""
    _by_name: Mapping[str, Column] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {c.name: c for c in self.columns})
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
        if self.status == CONFIRMED and self.drafted is not None and self.drafted == self.digest:
            object.__setattr__(self, "status", UNCHANGED)
        self._check_missing_values()
        self._check_encoding()
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

    def _check_encoding(self) -> None:
        """A synthetic table is written as the file is, so its encoding must have the characters of every label."""
        if self.file is None or self.file.is_utf8:
            return
        for column in self.columns:
            labels = column.labels if isinstance(column, Categorical) and column.values is not None else ()
            for text in (column.name, *map(str, labels)):
                if not self.file.can_write(text):
                    raise SchemaError(
                        f"column {column.name!r}: {text!r} has characters that encoding {self.file.encoding!r} has not",
                        column,
                    )

    def _check_missing_values(self) -> None:
        for column in self.columns:
            if not isinstance(column, Categorical) or column.values is None:
                continue
            # A row with such a text would be missing on one reading and a label on the other.
            missing = (*self.missing_texts, *column.missing_texts)
            both = next((v for v in column.labels if str(v) in missing), None)
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
        return with_points(self.missing_values)

    def missing_texts_of(self, column: str) -> tuple[str, ...]:
        """Those of the whole table, and those of one column."""
        return (*self.missing_texts, *self[column].missing_texts)

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

    @property
    def digest(self) -> str:
        """Of the facts alone, whoever confirmed them."""
        facts = dataclasses.replace(self, status=DECLARED, drafted=None).dumps()
        return f"sha256:{hashlib.sha256(facts.encode()).hexdigest()}"

    def with_columns(self, columns: Iterable[Column]) -> Schema:
        """The same schema with some columns put in place of those of the same name (say, with bought bounds)."""
        # `replace` makes every check again: a bought bound obeys the rules of a declared one.
        new = {c.name: c for c in columns}
        return dataclasses.replace(self, columns=tuple(new.get(c.name, c) for c in self.columns))

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Reads a schema from a TOML file."""
        path = Path(path)
        try:
            text = path.read_bytes().decode("utf-8")
        except FileNotFoundError:
            raise SchemaError(f"schema file {str(path)!r} does not exist", path) from None
        except UnicodeDecodeError:
            raise SchemaError(f"schema file {str(path)!r} is not UTF-8 text", path) from None
        except OSError as error:
            raise SchemaError(f"schema file {str(path)!r} can't be read: {error.strerror}", path) from None
        try:
            return cls.loads(text)
        except SchemaError as error:
            raise SchemaError(f"{path.name}: {error}", error.subject) from None

    @classmethod
    def loads(cls, text: str) -> Schema:
        """Reads a schema from TOML text."""
        try:
            raw = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise SchemaError(f"the schema is not valid TOML: {error}", text) from None
        _known("the schema", raw, _TOP)
        columns = raw.get("columns")
        if not isinstance(columns, dict):
            raise SchemaError("a schema needs at least one column under [columns]", raw)
        missing = raw.get("missing_values", [])
        if not isinstance(missing, list) or not all(isinstance(v, str) for v in missing):
            raise SchemaError(f"missing_values ({missing!r}) must be a list of strings", missing)
        return cls(
            columns=tuple(_column(name, facts) for name, facts in columns.items()),
            neighbours=raw.get("neighbours", ADD_REMOVE),
            unit=_unit(raw.get("unit")),
            rules=_rules(raw.get("constraints", [])),
            missing_values=tuple(missing),
            status=raw.get("status", DECLARED),
            file=FileFormat.from_dict(raw.get("file")),
            drafted=_drafted(raw.get("draft")),
        )

    def dumps(self) -> str:
        """The schema as TOML text, its keys in a fixed order."""
        import tomli_w

        # The order of keys is part of the bytes: studies hash this text, and releases keep it as a file with a hash.
        out: dict[str, Any] = {"neighbours": self.neighbours}
        if self.status != DECLARED:
            out = {"status": self.status} | out
        if self.status == DRAFT:
            out["draft"] = self.drafted or self.digest
        if self.missing_values:
            out["missing_values"] = list(self.missing_values)
        if self.unit:
            out["unit"] = {"column": self.unit.column, "max_rows": self.unit.max_rows}
        if self.file:
            out["file"] = self.file.to_dict()
        out["columns"] = {c.name: _facts(c) for c in self.columns}
        if self.rules:
            halves = [{"if": rule.condition, "then": rule.then} for rule in self.rules]
            out["constraints"] = [{key: text for key, text in half.items() if text} for half in halves]
        head = f"{DRAFT_LINE}\n" * (self.status == DRAFT)
        return head + tomli_w.dumps(out)

    @property
    def commented(self) -> str:
        """The text of a draft with its notes, for whoever may see the rows."""
        if self.status != DRAFT or not self.notes:
            return self.dumps()
        text = self.dumps().splitlines()
        # A table's own keys end where the next table begins, so what may be uncommented stands before the first one.
        first = next(i for i, line in enumerate(text) if line.startswith("["))
        lines, names = [*text[:1], *self._notes_of(""), *text[1:first], *self._notes_of("unit")], iter(self.names)
        for line in text[first:]:
            # Only the head of a column begins so: what stands in a list or a text is indented or quoted.
            if line.startswith("[columns."):
                lines += self._notes_of(next(names))
            lines.append(line)
        return "\n".join([*lines, "", *self._notes_of("rules")]).rstrip() + "\n"

    def _notes_of(self, key: str) -> list[str]:
        return [f"#{note}".rstrip() for note in self.notes.get(key, ())]

    def save(self, path: str | Path) -> None:
        """Writes the schema as TOML, whole or not at all; a draft with its notes."""
        write_atomically(Path(path), self.commented.encode())


def _listing(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(names[:most])
    if len(names) <= most:
        return shown
    return f"{shown} and {len(names) - most} more"


# --- TOML, with errors that name the column and the key ---------------------------------------------------------------

PRIVATE = "private"
DRAFT_LINE = (
    '# DRAFT made from the data: not public until a person has checked every line and changed status to "confirmed".'
)

_BINNED = {"min": "minimum", "max": "maximum", "bins": "bins", "cuts": "cuts"}
_KEYS: dict[type[Column], dict[str, str]] = {
    Integer: _BINNED,
    Number: _BINNED | {"decimals": "decimals"},
    Datetime: _BINNED | {"resolution": "resolution", "format": "format"},
    Categorical: {"values": "values", "other": "other"},
    Ordinal: {"values": "values", "other": "other"},
    Boolean: {},
    Identifier: {"made_up": "made_up"},
}
# Silence could mean "private" or "forgotten"; the first costs budget, so it has to be written.
_MUST_STATE = {"min", "max", "values"}
_TOP = ("status", "draft", "neighbours", "missing_values", "unit", "file", "columns", "constraints")


def _column(name: str, facts: Any) -> Column:
    where = f"column {name!r}"
    if not isinstance(facts, dict):
        raise SchemaError(f"{where} must be a table with a type, such as [columns.{name}]", facts)
    cls = COLUMN_TYPES.get(str(facts.get("type")))
    if cls is None:
        raise SchemaError(f"{where}: type ({facts.get('type')!r}) must be one of {', '.join(COLUMN_TYPES)}", facts)
    keys = _KEYS[cls]
    _known(where, facts, ("type", "missing", "missing_values", *keys))
    if not isinstance(facts.get("missing", False), bool):
        raise SchemaError(f"{where}: missing ({facts['missing']!r}) must be true or false", facts)
    for key in _MUST_STATE & keys.keys() - facts.keys():
        raise SchemaError(f'{where}: {key} must be stated; write {key} = "private" to buy it with budget', facts)
    fields = {name: _value(where, cls, key, facts[key]) for key, name in keys.items() if key in facts}
    own = facts.get("missing_values", [])
    if not isinstance(own, list) or not all(isinstance(v, str) for v in own):
        raise SchemaError(f"{where}: missing_values ({own!r}) must be a list of strings", facts)
    return cls(name, missing=facts.get("missing", False), missing_values=tuple(own), **fields)


def _value(where: str, cls: type[Column], key: str, value: Any) -> Any:
    if value == PRIVATE and key in _MUST_STATE:
        return None  # to be bought
    if key in ("values", "cuts"):
        if not isinstance(value, list):
            raise SchemaError(f"{where}: {key} ({value!r}) must be a list", value)
        return tuple(value)
    if key in ("min", "max") and cls is Datetime:
        return as_datetime(value)
    if key in ("other", "format", "made_up", "resolution") and not isinstance(value, str):
        raise SchemaError(f"{where}: {key} ({value!r}) must be a string", value)
    return value


def _facts(column: Column) -> dict[str, Any]:
    out: dict[str, Any] = {"type": column.type}
    for key, attribute in _KEYS[type(column)].items():
        value = getattr(column, attribute)
        if value is None:
            if key in _MUST_STATE:
                out[key] = PRIVATE
        elif not (key == "resolution" and value == "day"):  # the default
            out[key] = _plain(value)
    if column.missing:
        out["missing"] = True
    if column.missing_values:
        out["missing_values"] = list(column.missing_values)
    return out


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, datetime) and value == datetime(value.year, value.month, value.day):
        return value.date()
    return value


def _unit(raw: Any) -> Unit | None:
    if raw is None:
        return None
    if not isinstance(raw, dict) or not isinstance(raw.get("column"), str):
        raise SchemaError('unit needs a column, such as [unit] column = "patient_id"', raw)
    _known("unit", raw, ("column", "max_rows"))
    return Unit(raw["column"], raw.get("max_rows", 1))


def _drafted(raw: Any) -> str | None:
    if raw is not None and not isinstance(raw, str):
        raise SchemaError(f"draft ({raw!r}) must be a string, the digest that was written with the draft", raw)
    return raw


def _rules(raw: Any) -> tuple[Rule, ...]:
    if not isinstance(raw, list):
        raise SchemaError(f"constraints ({raw!r}) must be a list of tables, such as [[constraints]]", raw)
    return tuple(_rule(r) for r in raw)


def _rule(raw: Any) -> Rule:
    if not isinstance(raw, dict) or not isinstance(raw.get("then"), str):
        raise SchemaError('a constraint needs a text under then, such as then = "age >= 18"', raw)
    _known("a constraint", raw, ("if", "then"))
    if not isinstance(raw.get("if", ""), str):
        raise SchemaError(f"a constraint's if ({raw['if']!r}) must be a text", raw)
    return Rule(raw["then"], raw.get("if"))


def _known(where: str, raw: Mapping[str, Any], keys: Iterable[str]) -> None:
    # Passed over, a misspelt key would be a fact that somebody relies on and that does not hold.
    for key in raw:
        if key not in keys:
            hint = suggestion(key, keys, "it takes")
            raise SchemaError(f"{where}: key {key!r} is unknown; {hint}", raw)
