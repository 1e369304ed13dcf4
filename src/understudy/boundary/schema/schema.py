"""The schema: everything about a table that is public, and nothing else.

A method may use whatever stands here without paying for it. What is not here is bought or unknown.
"""

from __future__ import annotations

import dataclasses
import hashlib
import tomllib
from collections import Counter
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
    Line,
    Number,
    Ordinal,
    as_datetime,
    with_points,
)
from understudy.boundary.schema.derived import (
    DERIVED,
    Derived,
    DerivedInteger,
    DerivedNumber,
    DerivedPart,
    Formula,
    bound,
    derived,
    is_part,
)
from understudy.boundary.schema.expression import Constraint, Kinds
from understudy.boundary.schema.file_format import FileFormat
from understudy.boundary.schema.spelling import special_name
from understudy.card import Card, shortened
from understudy.errors import InputError, SchemaError
from understudy.files import write_atomically
from understudy.parameters import close_names, one_of, printable, shown, suggestion, whole_number

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
    """What one person contributes: at most `max_rows` rows that carry the same value in `column`.

    The first ones count, in the order of the values of `order`; without it, in the table's own order.
    """

    column: str
    max_rows: int = 1
    order: str | None = None

    def __post_init__(self) -> None:
        whole_number("unit: max_rows", self.max_rows, 1, error=SchemaError, subject=self)
        if self.order is not None and not isinstance(self.order, str):
            raise SchemaError(f"unit: order ({shown(self.order)}) must be the name of a column", self)


@dataclass(frozen=True)
class Rule:
    """A constraint as it is written: `if` may be empty, `then` must hold wherever it is true."""

    then: str
    condition: str | None = None


@dataclass(frozen=True)
class Confirmation:
    """Who said that the facts of a draft are public, and where they are written: a code book, a form, a law."""

    by: str
    source: str = ""

    def __post_init__(self) -> None:
        for key, text in (("by", self.by), ("source", self.source)):
            if not isinstance(text, str) or (key == "by" and not text.strip()):
                raise SchemaError(f'confirmed: {key} ({text!r}) must be a text, such as {key} = "A. Lovelace"', self)


@dataclass(frozen=True, repr=False)
class Schema(Card):
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
    confirmation: Confirmation | None = None
    file: FileFormat | None = None
    """How the CSV file is written, where that is declared."""
    drafted: str | None = field(default=None, compare=False, repr=False)
    """The digest of the facts that were drafted. A release never has it: the facts may have been changed since."""
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False, repr=False)
    """What a draft says about its columns; under "", "unit" and "rules" about the table. Prose begins with a space,
    what may be uncommented does not. They tell counts, so `dumps` leaves them out."""
    _by_name: Mapping[str, Column] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", bound(self.columns))
        object.__setattr__(self, "_by_name", {c.name: c for c in self.columns})
        if not self.columns:
            raise SchemaError("a schema needs at least one column under [columns]", self)
        if len(self._by_name) < len(self.columns):
            names = [c.name for c in self.columns]
            twice = next(n for n, times in Counter(names).items() if times > 1)
            raise SchemaError(f"column {shown(twice)} is declared twice", self)
        if not self.modelled:
            raise SchemaError("every column is an identifier, so there is nothing to model; declare another type", self)
        one_of("neighbours", self.neighbours, NEIGHBOURS, error=SchemaError, subject=self)
        one_of("status", self.status, STATUSES, error=SchemaError, subject=self)
        if self.confirmation is not None and self.status not in (CONFIRMED, UNCHANGED):
            raise SchemaError(f'confirmed: the status ({self.status}) must be "confirmed" beside it', self)
        if self.status == CONFIRMED and self.drafted is not None and self.drafted == self.digest:
            object.__setattr__(self, "status", UNCHANGED)
        self._check_missing_values()
        self._check_special_values()
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
        own = frozenset(self.missing_texts)
        for column in self.columns:
            if not isinstance(column, Categorical) or column.values is None:
                continue
            # A row with such a text would be missing on one reading and a label on the other.
            missing = own.union(column.missing_texts)
            both = next((v for v in column.labels if str(v) in missing), None)
            if both is not None:
                raise SchemaError(
                    f"column {shown(column.name)}: value {shown(both)} is also among missing_values; "
                    "keep it in one place",
                    column,
                )

    def _check_special_values(self) -> None:
        for column in self._with_special:
            missing = self.missing_texts_of(column.name)
            both = next((v for v in column.special_texts if v in missing), None)
            if both is not None:
                raise SchemaError(
                    f"column {shown(column.name)}: special value {shown(both)} is also among missing_values; "
                    "keep it in one place",
                    column,
                )
            if special_name(column.name) in self._by_name:
                raise SchemaError(f"column {special_name(column.name)!r} has a name of ours; rename it", column)

    def _check_unit(self) -> None:
        if self.unit is None:
            return
        if self.unit.column not in self._by_name:
            raise SchemaError(
                f"unit: column {shown(self.unit.column)} is not among the columns of the schema", self.unit
            )
        if self.unit.order is not None:
            self._check_order(self.unit.order)
        if self.neighbours == REPLACE_ONE and self.unit.max_rows > 1:
            # Every sensitivity under replace-one is that of one row put in place of another.
            raise SchemaError(
                f'unit: max_rows ({self.unit.max_rows}) must be 1 with neighbours = "replace-one"; use "add-remove"',
                self.unit,
            )

    def _check_order(self, name: str) -> None:
        """Rows are put in order by what stands in the table, dates as texts."""
        if name not in {c.name for c in self.in_table}:
            raise SchemaError(f"unit: order ({shown(name)}) must be one of the columns of the table", self.unit)
        column = self._by_name[name]
        if isinstance(column, Datetime) and column.format:
            raise SchemaError(
                f"unit: order ({shown(name)}) has a format ({column.format}), and dates put rows in order as ISO dates "
                "alone; name another column",
                self.unit,
            )

    def __getitem__(self, name: str) -> Column:
        try:
            return self._by_name[name]
        except KeyError:
            near = close_names(name, self.names, most=1)
            meant = f"did you mean {near[0]!r}?" if near else f"it has {_listing(self.names)}"
            raise SchemaError(f"column {name!r} is not in the schema; {meant}", name) from None

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns)

    @property
    def modelled(self) -> tuple[Column, ...]:
        """The columns that a method looks at: all but the identifiers and what is rebuilt."""
        return tuple(c for c in self.columns if c.modelled)

    @property
    def private(self) -> tuple[Column, ...]:
        """The columns of which something must be bought first."""
        return tuple(c for c in self.columns if c.private)

    @property
    def released(self) -> tuple[Column, ...]:
        """The columns of a synthetic table: those of the private one, but for the identifiers that are dropped."""
        return tuple(c for c in self.in_table if not (isinstance(c, Identifier) and c.made_up is None))

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
    def in_table(self) -> tuple[Column, ...]:
        """The columns that the private table has."""
        return tuple(c for c in self.columns if not isinstance(c, Derived) or c.in_table)

    @property
    def formulas(self) -> tuple[Formula, ...]:
        """The derived columns from which others are rebuilt, in the order in which they are."""
        return tuple(c for c in self.columns if isinstance(c, Formula))

    @property
    def _with_special(self) -> tuple[Line, ...]:
        return tuple(c for c in self.columns if isinstance(c, Line) and c.special)

    @property
    def kinds(self) -> Kinds:
        """What a question about the rows may name."""
        return self._kinds_of(self.modelled)

    def _kinds_of(self, columns: Iterable[Column]) -> Kinds:
        rebuilt = {c.name: c.rebuilt_from for c in self.columns if isinstance(c, Line) and c.rebuilt_from}
        return Kinds(
            {c.name: c.kind for c in columns},
            special={c.name: c.special_texts for c in self._with_special},
            rebuilt=rebuilt,
            identifiers=(c.name for c in self.columns if isinstance(c, Identifier)),
        )

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        # They bind synthetic rows, in which rebuilt columns have values too.
        kinds = self._kinds_of(c for c in self.columns if not isinstance(c, Identifier))
        return tuple(Constraint.parse(rule.condition, rule.then, kinds) for rule in self.rules)

    @property
    def digest(self) -> str:
        """Of the facts alone, whoever confirmed them."""
        facts = dataclasses.replace(self, status=DECLARED, confirmation=None, drafted=None).dumps()
        return f"sha256:{hashlib.sha256(facts.encode()).hexdigest()}"

    def with_columns(self, columns: Iterable[Column]) -> Schema:
        """The same schema with some columns put in place of those of the same name (say, with bought bounds)."""
        # `replace` makes every check again: a bought bound obeys the rules of a declared one.
        new = {c.name: c for c in columns}
        return dataclasses.replace(self, columns=tuple(new.get(c.name, c) for c in self.columns))

    def edit(self, changes: Mapping[str, Mapping[str, Any]] | None = None, /, **columns: Mapping[str, Any]) -> Schema:
        """The same schema with some keys of some columns changed; as in TOML, and None takes a key away.

        What was confirmed is a draft again, since nobody has looked at the new facts.

        Args:
            changes: Keys by column, for names that Python can't take as an argument.
            columns: Likewise, by name. A new `type` starts from its own keys. A derived column may be a new one.

        Returns:
            A new schema.

        Raises:
            SchemaError: There is no such column or key, or the new facts are impossible.

        >>> schema = Schema.loads('[columns.age]\\ntype = "integer"\\nmin = 18\\nmax = 64')
        >>> schema.edit(age={"min": 0, "max": 110})["age"].maximum
        110
        """
        found = []
        for name, keys in {**(changes or {}), **columns}.items():
            if name not in self and _is_derived(keys):
                found.append(_column(name, dict(keys), self._by_name))
                continue
            if name not in self:
                raise SchemaError(f"column {name!r} is not in the schema; {suggestion(name, self.names)}", name)
            if not isinstance(keys, Mapping):
                raise SchemaError(f"column {name!r}: {keys!r} must be keys with values, such as {{'max': 110}}", keys)
            facts = _facts(self[name])
            if keys.get("type", facts["type"]) != facts["type"]:
                facts = {"missing": self[name].missing}
            facts |= {key: list(v) if isinstance(v, tuple) else v for key, v in keys.items()}
            stated = {key: v for key, v in facts.items() if v is not None}
            found.append(_column(name, stated, self._by_name))
        replaced = self.with_columns(found)
        return replaced._changed(columns=(*replaced.columns, *(c for c in found if c.name not in self)))

    def with_unit(self, column: str, *, max_rows: int = 1) -> Schema:
        """The same schema for persons instead of rows: each has at most `max_rows` rows with their value of a column.

        >>> schema = Schema.loads('[columns.who]\\ntype = "identifier"\\n[columns.ill]\\ntype = "boolean"')
        >>> schema.with_unit("who", max_rows=3).unit
        Unit(column='who', max_rows=3, order=None)
        """
        return self._changed(unit=Unit(column, max_rows))

    def _changed(self, **facts: Any) -> Schema:
        """What was confirmed is a draft again: nobody has looked at the new facts."""
        status = DRAFT if self.status in (CONFIRMED, UNCHANGED) else self.status
        return dataclasses.replace(self, **facts, status=status, confirmation=None)

    def confirm(self, *, by: str, source: str = "") -> Schema:
        """The same schema, confirmed: somebody has checked every line, and says that its facts are public.

        Args:
            by: Who says so.
            source: Where the facts are written, such as "code book 2019, p. 12".

        Returns:
            A new schema, whose file and releases name both.

        Raises:
            SchemaError: Nobody is named.

        >>> schema = Schema.loads('status = "draft"\\n[columns.age]\\ntype = "integer"\\nmin = 0\\nmax = 110')
        >>> schema.confirm(by="A. Lovelace", source="census form").status
        'confirmed'
        """
        return dataclasses.replace(self, status=CONFIRMED, confirmation=Confirmation(by, source))

    def card(self) -> tuple[str, list[tuple[str, str]]]:
        status = self.status
        if self.confirmation is not None:
            status += f" by {self.confirmation.by}"
        facts = [("status", status), ("neighbours", self.neighbours)]
        if self.unit is not None:
            facts.append(("unit", f"{self.unit.column}, at most {self.unit.max_rows} rows"))
        listed = shortened([f"{c.name} ({c.type})" for c in self.columns])
        rules = [("constraints", str(len(self.rules)))] if self.rules else []
        return "Schema", [*facts, (f"{len(self.columns)} columns", listed), *rules]

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Reads a schema from a TOML file."""
        path = Path(path)
        try:
            text = path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            raise SchemaError(f"schema file {str(path)!r} is not UTF-8 text", path) from None
        except (FileNotFoundError, ValueError):  # no name of a file has a NUL in it
            raise SchemaError(f"schema file {str(path)!r} does not exist", path) from None
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
            raise SchemaError(f"the schema is not valid TOML: {printable(str(error))}", text) from None
        except ValueError:  # the one thing that Python's reader lets through: a number of more than 4,300 digits
            raise SchemaError("the schema has a number of thousands of digits; write a shorter one", text) from None
        except RecursionError:
            raise SchemaError(
                "the schema nests lists or tables too deeply; nothing in it needs more than two", text
            ) from None
        _no_endless_numbers(raw)
        _known("the schema", raw, _TOP)
        columns = raw.get("columns")
        if not isinstance(columns, dict):
            raise SchemaError("a schema needs at least one column under [columns]", raw)
        missing = raw.get("missing_values", [])
        if not isinstance(missing, list) or not all(isinstance(v, str) for v in missing):
            raise SchemaError(f"missing_values ({shown(missing)}) must be a list of strings", missing)
        return cls(
            columns=_columns(columns),
            neighbours=raw.get("neighbours", ADD_REMOVE),
            unit=_unit(raw.get("unit")),
            rules=_rules(raw.get("constraints", [])),
            missing_values=tuple(missing),
            status=raw.get("status", DECLARED),
            confirmation=_confirmation(raw.get("confirmed")),
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
        if self.confirmation is not None:
            said = {"by": self.confirmation.by, "source": self.confirmation.source}
            out["confirmed"] = {key: text for key, text in said.items() if text}
        if self.missing_values:
            out["missing_values"] = list(self.missing_values)
        if self.unit:
            out["unit"] = {"column": self.unit.column, "max_rows": self.unit.max_rows}
            if self.unit.order is not None:
                out["unit"]["order"] = self.unit.order
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
        """The text of a draft with its notes and the digest of its facts, for whoever may see the rows."""
        import tomli_w

        if self.status != DRAFT:
            return self.dumps()
        text = self.dumps().rstrip("\n").split("\n")  # no other character ends a line of TOML
        if self.drafted is not None:
            # A release has the text without it: of facts that were taken out since, it could be guessed.
            text.insert(3, tomli_w.dumps({"draft": self.drafted}).rstrip("\n"))
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
        # A line break in a note would end the comment, and what a cell says behind it would be declared.
        return [f"#{printable(note)}".rstrip() for note in self.notes.get(key, ())]

    def save(self, path: str | Path) -> None:
        """Writes the schema as TOML, whole or not at all; a draft with its notes."""
        # A draft holds values of the rows, until somebody says that they are public.
        write_atomically(Path(path), self.commented.encode(), private=self.status == DRAFT)


def _listing(names: Sequence[str], most: int = 8) -> str:
    listed = ", ".join(map(printable, names[:most]))
    if len(names) <= most:
        return listed
    return f"{listed} and {len(names) - most} more"


# --- TOML, with errors that name the column and the key ---------------------------------------------------------------

PRIVATE = "private"
DRAFT_LINE = (
    '# DRAFT made from the data: not public until a person has checked every line and changed status to "confirmed".'
)

_BINNED = {"min": "minimum", "max": "maximum", "bins": "bins", "cuts": "cuts"}
_SPECIAL = {"special": "special"}
_FORMULA = {"of": "of", "rebuilds": "rebuilds"}
_KEYS: dict[type[Column], dict[str, str]] = {
    Integer: _BINNED | {"step": "step"} | _SPECIAL,
    Number: _BINNED | {"decimals": "decimals"} | _SPECIAL,
    Datetime: _BINNED | {"resolution": "resolution", "format": "format"} | _SPECIAL,
    DerivedInteger: _FORMULA | _BINNED | {"step": "step"},
    DerivedNumber: _FORMULA | _BINNED | {"decimals": "decimals"},
    DerivedPart: {"of": "of"},
    Categorical: {"values": "values", "other": "other"},
    Ordinal: {"values": "values", "other": "other"},
    Boolean: {},
    Identifier: {"made_up": "made_up"},
}
# Silence could mean "private" or "forgotten"; the first costs budget, so it has to be written.
_MUST_STATE = {"min", "max", "values"}
_LONGEST_NUMBER = 10_000
"""In bits: some 3,000 digits, fewer than Python's own limit. What is beyond all doubles is refused by its column."""
_TOP = ("status", "draft", "confirmed", "neighbours", "missing_values", "unit", "file", "columns", "constraints")


def _no_endless_numbers(raw: Any) -> None:
    """Hexadecimal ones are read at any length, and Python then refuses to write them out, wherever that is tried."""
    left = [raw]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)
        elif isinstance(value, int) and value.bit_length() > _LONGEST_NUMBER:
            raise SchemaError("the schema has a number of thousands of digits; write a shorter one", None)


def _columns(tables: Mapping[str, Any]) -> tuple[Column, ...]:
    """All columns in their order. Those that are derived come last: their type follows from the others."""
    found: dict[str, Column] = {n: _column(n, facts) for n, facts in tables.items() if not _is_derived(facts)}
    for name in [n for n in tables if n not in found]:
        found[name] = _column(name, tables[name], found)
    return tuple(found[name] for name in tables)


def _is_derived(facts: Any) -> bool:
    return isinstance(facts, dict) and facts.get("type") == DERIVED


def _column(name: str, facts: Any, others: Mapping[str, Column] | None = None) -> Column:
    where = f"column {shown(name)}"
    if not isinstance(facts, dict):
        raise SchemaError(f"{where} must be a table with a type, such as [columns.age]", facts)
    cls = (COLUMN_TYPES | {DERIVED: DerivedNumber}).get(str(facts.get("type")))
    if cls is None:
        known = ", ".join((*COLUMN_TYPES, DERIVED))
        raise SchemaError(f"{where}: type ({shown(facts.get('type'))}) must be one of {known}", facts)
    keys = _KEYS[cls]
    if cls is DerivedNumber:
        keys = _KEYS[DerivedInteger] | keys
    _known(where, facts, ("type", "missing", "missing_values", *keys))
    if not isinstance(facts.get("missing", False), bool):
        raise SchemaError(f"{where}: missing ({shown(facts['missing'])}) must be true or false", facts)
    # Nothing is modelled of a column that rebuilds itself, and a part of a date has bounds of its own.
    free = facts.get("rebuilds") == name or (cls is DerivedNumber and is_part(facts.get("of")))
    must_state = frozenset[str]() if free else _MUST_STATE
    for key in sorted(must_state & keys.keys() - facts.keys()):
        raise SchemaError(f'{where}: {key} must be stated; write {key} = "private" to buy it with budget', facts)
    fields = {name: _value(where, cls, key, facts[key]) for key, name in keys.items() if key in facts}
    fields["missing"] = facts.get("missing", False)
    own = facts.get("missing_values", [])
    if not isinstance(own, list) or not all(isinstance(v, str) for v in own):
        raise SchemaError(f"{where}: missing_values ({shown(own)}) must be a list of strings", facts)
    fields["missing_values"] = tuple(own)
    if cls is DerivedNumber:
        if "of" not in fields:
            raise SchemaError(f'{where}: of must be stated, such as of = "discharged - admitted"', facts)
        return derived(name, others or {}, **fields)
    return cls(name, **fields)


def _value(where: str, cls: type[Column], key: str, value: Any) -> Any:
    if value == PRIVATE and key in _MUST_STATE:
        return None  # to be bought
    if key in ("values", "cuts", "special"):
        if not isinstance(value, list):
            raise SchemaError(f"{where}: {key} ({shown(value)}) must be a list", value)
        return tuple(value)
    if key in ("min", "max") and cls is Datetime:
        return as_datetime(value)
    if key in ("other", "format", "made_up", "resolution", "of", "rebuilds") and not isinstance(value, str):
        raise SchemaError(f"{where}: {key} ({shown(value)}) must be a string", value)
    return value


def _facts(column: Column) -> dict[str, Any]:
    out: dict[str, Any] = {"type": column.type}
    for key, attribute in _KEYS[type(column)].items():
        value = getattr(column, attribute)
        if value is None or value == ():
            if key in _MUST_STATE and not (isinstance(column, Derived) and column.in_table):
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


def _confirmation(raw: Any) -> Confirmation | None:
    if raw is None:
        return None
    if not isinstance(raw, dict):
        raise SchemaError('confirmed must be a table, such as [confirmed] by = "A. Lovelace"', raw)
    _known("confirmed", raw, ("by", "source"))
    return Confirmation(raw.get("by", ""), raw.get("source", ""))


def _unit(raw: Any) -> Unit | None:
    if raw is None:
        return None
    if not isinstance(raw, dict) or not isinstance(raw.get("column"), str):
        raise SchemaError('unit needs a column, such as [unit] column = "patient_id"', raw)
    _known("unit", raw, ("column", "max_rows", "order"))
    return Unit(raw["column"], raw.get("max_rows", 1), raw.get("order"))


def _drafted(raw: Any) -> str | None:
    if raw is not None and not isinstance(raw, str):
        raise SchemaError(f"draft ({raw!r}) must be a string, the digest that was written with the draft", raw)
    return raw


def _rules(raw: Any) -> tuple[Rule, ...]:
    if not isinstance(raw, list):
        raise SchemaError(f"constraints ({shown(raw)}) must be a list of tables, such as [[constraints]]", raw)
    return tuple(_rule(r) for r in raw)


def _rule(raw: Any) -> Rule:
    if not isinstance(raw, dict) or not isinstance(raw.get("then"), str):
        raise SchemaError('a constraint needs a text under then, such as then = "age >= 18"', raw)
    _known("a constraint", raw, ("if", "then"))
    if not isinstance(raw.get("if", ""), str):
        raise SchemaError(f"a constraint's if ({shown(raw['if'])}) must be a text", raw)
    return Rule(raw["then"], raw.get("if"))


def _known(where: str, raw: Mapping[str, Any], keys: Iterable[str]) -> None:
    # Passed over, a misspelt key would be a fact that somebody relies on and that does not hold.
    for key in raw:
        if key not in keys:
            hint = suggestion(key, keys, "it takes")
            raise SchemaError(f"{where}: key {shown(key)} is unknown; {hint}", raw)
