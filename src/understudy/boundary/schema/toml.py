"""Schemas on disk: TOML in, TOML out, with errors that name the column and the key."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from datetime import datetime
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
)
from understudy.boundary.schema.schema import ADD_REMOVE, DECLARED, DRAFT, Rule, Schema, Unit
from understudy.errors import SchemaError
from understudy.parameters import suggestion

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
_MUST_STATE = {"min", "max", "values"}
_TOP = ("status", "neighbours", "missing_values", "unit", "columns", "constraints")


def load(path: Path) -> Schema:
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise SchemaError(f"schema file {str(path)!r} does not exist", path) from None
    except UnicodeDecodeError:
        raise SchemaError(f"schema file {str(path)!r} is not UTF-8 text", path) from None
    except OSError as error:
        raise SchemaError(f"schema file {str(path)!r} can't be read: {error.strerror}", path) from None
    try:
        return loads(text)
    except SchemaError as error:
        raise SchemaError(f"{path.name}: {error}", error.subject) from None


def loads(text: str) -> Schema:
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SchemaError(f"the schema is not valid TOML: {error}", text) from None
    _known("the schema", raw, _TOP)
    columns = raw.get("columns")
    if not isinstance(columns, dict):
        raise SchemaError("a schema needs at least one column under [columns]", raw)
    return Schema(
        columns=tuple(_column(name, facts) for name, facts in columns.items()),
        neighbours=raw.get("neighbours", ADD_REMOVE),
        unit=_unit(raw.get("unit")),
        rules=_rules(raw.get("constraints", [])),
        missing_values=_texts("missing_values", raw.get("missing_values", [])),
        status=raw.get("status", DECLARED),
    )


def dumps(schema: Schema) -> str:
    import tomli_w

    head = DRAFT_LINE + "\n" if schema.status == DRAFT else ""
    return head + tomli_w.dumps(to_dict(schema))


def to_dict(schema: Schema) -> dict[str, Any]:
    """The schema as plain values, in the order in which it is written."""
    out: dict[str, Any] = {"neighbours": schema.neighbours}
    if schema.status != DECLARED:
        out = {"status": schema.status} | out
    if schema.missing_values:
        out["missing_values"] = list(schema.missing_values)
    if schema.unit:
        out["unit"] = {"column": schema.unit.column, "max_rows": schema.unit.max_rows}
    out["columns"] = {c.name: _facts(c) for c in schema.columns}
    if schema.rules:
        out["constraints"] = [
            {"if": r.condition, "then": r.then} if r.condition else {"then": r.then} for r in schema.rules
        ]
    return out


def _column(name: str, facts: Any) -> Column:
    where = f"column {name!r}"
    if not isinstance(facts, dict):
        raise SchemaError(f"{where} must be a table with a type, such as [columns.{name}]", facts)
    cls = _column_type(where, facts.get("type"))
    keys = _KEYS[cls]
    _known(where, facts, ("type", "missing", *keys))
    if not isinstance(facts.get("missing", False), bool):
        raise SchemaError(f"{where}: missing ({facts['missing']!r}) must be true or false", facts)
    for key in _MUST_STATE & keys.keys() - facts.keys():
        raise SchemaError(f'{where}: {key} must be stated; write {key} = "private" to buy it with budget', facts)
    fields = {field: _value(where, cls, key, facts[key]) for key, field in keys.items() if key in facts}
    return cls(name, missing=facts.get("missing", False), **fields)


def _column_type(where: str, name: Any) -> type[Column]:
    if isinstance(name, str) and name in COLUMN_TYPES:
        return COLUMN_TYPES[name]
    raise SchemaError(f"{where}: type ({name!r}) must be one of {', '.join(COLUMN_TYPES)}", name)


def _value(where: str, cls: type[Column], key: str, value: Any) -> Any:
    if value == PRIVATE and key in _MUST_STATE:
        return None
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
    for key, field in _KEYS[type(column)].items():
        value = getattr(column, field)
        if value is None:
            if key in _MUST_STATE:
                out[key] = PRIVATE
        elif not (key == "resolution" and value == "day"):
            out[key] = _plain(value)
    if column.missing:
        out["missing"] = True
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


def _texts(key: str, raw: Any) -> tuple[str, ...]:
    if not isinstance(raw, list) or not all(isinstance(v, str) for v in raw):
        raise SchemaError(f"{key} ({raw!r}) must be a list of strings", raw)
    return tuple(raw)


def _known(where: str, raw: Mapping[str, Any], keys: Iterable[str]) -> None:
    for key in raw:
        if key not in keys:
            hint = suggestion(key, keys, "it takes")
            raise SchemaError(f"{where}: key {key!r} is unknown; {hint}", raw)
