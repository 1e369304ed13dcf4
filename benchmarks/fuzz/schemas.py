"""Schemas in TOML, spoiled as texts, as lines and as values; and forecasts for those that are accepted."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import tomli_w

import understudy as us
from fuzz.case import Case, Target, failed
from fuzz.material import SCHEMA
from fuzz.mutation import ODD_NUMBERS, ODD_TEXTS, spoiled_bytes, spoiled_value
from understudy import datasets

KEYS = (
    "status", "neighbours", "missing_values", "unit", "columns", "constraints", "type", "min", "max", "bins", "cuts",
    "values", "other", "missing", "decimals", "resolution", "format", "made_up", "column", "max_rows", "if", "then",
    "special", "step", "of", "rebuilds", "file", "encoding", "delimiter", "quote", "decimal", "thousands", "draft",
    "confirmed",
)  # fmt: skip
VALUES = (
    "0", "-0", "1", "-1", "3", "100", "1e400", "-1e400", "nan", "inf", "-inf", "1e-320", "0.1", "9" * 400,
    "-" + "9" * 400, "9" * 5_000, "0x" + "f" * 4_000, "true", "false", '""', '"private"', '"draft"', '"integer"',
    '"number"',
    '"categorical"', '"ordinal"', '"datetime"', '"boolean"', '"identifier"', '"add-remove"', '"replace-one"', "[]",
    "{}", '["a", "b"]', '["a", "a"]', "[1, 2, 3]", "[3, 2, 1]", "[0.1, nan]", "[1, \"1\", true]", "[[1]]",
    "{a = 1}",
    "0001-01-01", "9999-12-31", "2020-02-29", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "12:30:00",
    "2020-01-01T00:00:00.123456", "0001-01-01T00:00:00Z", '"{:05d}"', '"{}"', '"{0.__class__}"', '"%Y-%m-%d"', '"%"',
    '"day"', '"second"', '"age > 3"', '"age > "', '"\\u001b[31m"', '"\\u0000"', '"\\n"', "[" * 5_000 + "]" * 5_000,
    '["N", -99]', '["N", "N"]', '"cost - age"', '"age + age"', '"derived"', '"age"', '"utf-16"', '"utf-7"',
    '"undefined"', '"cp1252"', '";"', '","', '"\'"', '{encoding = "idna"}', '{by = "x", on = 2020-01-01}',
    "2147483647", "9223372036854775807", "9223372036854775808", "1_000_000_000", "-9223372036854775808",
)  # fmt: skip
EPSILONS, DELTAS = (1e-3, 0.1, 1.0, 10.0), (0.0, 1e-9, 1e-6, 1e-2)


def spoil(case: Case) -> None:
    """Refused in one line, or accepted and then written and read back as it was."""
    text = _spoiled(case.draw)
    schema = case.call("schema", us.Schema.loads, text)
    if failed(schema):
        return
    written = case.call("write", schema.dumps)
    if failed(written):
        case.fail("an accepted schema can't be written", written)
        return
    again = case.call("read again", us.Schema.loads, written)
    if failed(again):
        case.fail("an accepted schema can't be read back", again)
        return
    if repr(again) != repr(schema) or again.dumps() != written:
        case.fail("an accepted schema is another one when it is read back", written[:100])
    _edited(case, schema)


def _edited(case: Case, schema: us.Schema) -> None:
    """Changed and confirmed as in Python, or refused in one line."""
    draw = case.draw
    value = draw.choice([*ODD_TEXTS, *ODD_NUMBERS, None, [], ["N", -99], {"a": 1}])
    edited = case.call("edit", lambda: schema.edit(**{draw.choice(schema.names): {draw.choice(KEYS): value}}))
    if failed(edited):
        edited = schema
    confirmed = case.call("confirm", lambda: edited.confirm(by=draw.choice(ODD_TEXTS), source=draw.choice(ODD_TEXTS)))
    if not failed(confirmed) and failed(again := case.call("read confirmed", us.Schema.loads, confirmed.dumps())):
        case.fail("a confirmed schema can't be read back", again)


def forecast(case: Case) -> None:
    """A schema that is accepted can be planned for, or is refused in one line."""
    draw, schema = case.draw, None
    for _ in range(50):
        found = case.call("schema", us.Schema.loads, _spoiled_values(draw, times=3))
        if not failed(found):
            schema = found
            break
    if schema is None:
        return
    target = draw.choice([None, None, *schema.names, "nobody"])
    asked: dict[str, Any] = {"epsilon": draw.choice(EPSILONS), "delta": draw.choice(DELTAS)}
    outlook = case.call("plan", us.plan, schema, **asked, rows=draw.choice([1, 100, 10**6]), target=target)
    if not failed(outlook) and not all(f.low <= f.error <= f.high for f in outlook.forecasts):
        case.fail("a forecast is outside of its own interval", outlook.forecasts)


def _spoiled(draw: Random) -> str:
    match draw.randrange(10):
        case 0 | 1:
            return spoiled_bytes(draw, _source(draw).encode()).decode(errors=draw.choice(["replace", "ignore"]))
        case 2 | 3 | 4 | 5:
            return _spoiled_lines(draw)
        case _:
            return _spoiled_values(draw, times=2)


def _spoiled_values(draw: Random, times: int) -> str:
    known = tomllib.loads(_source(draw))
    while True:
        spoiled = spoiled_value(draw, known, times)
        try:
            return tomli_w.dumps(_without_nothing(spoiled))
        except (TypeError, ValueError, AttributeError):  # TOML has no such value: another one then
            continue


def _without_nothing(value: Any) -> Any:
    """TOML knows no null."""
    if isinstance(value, dict):
        return {str(k): _without_nothing(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_without_nothing(v) for v in value if v is not None]
    return value


def _spoiled_lines(draw: Random) -> str:
    lines = _source(draw).splitlines()
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(len(lines))
        match draw.randrange(5):
            case 0 | 1:
                lines[at] = f"{lines[at].partition('=')[0]} = {draw.choice(VALUES)}"
            case 2:
                lines.insert(at, f"{draw.choice(KEYS)} = {draw.choice(VALUES)}")
            case 3:
                lines[at] = f"[columns.{tomli_w.dumps({draw.choice(ODD_TEXTS): 1}).partition(' = ')[0]}]"
            case 4:
                lines.insert(at, draw.choice(lines))
    return "\n".join(lines)


def _source(draw: Random) -> str:
    small, bundled = _sources()
    return draw.choice(small if draw.random() < 0.8 else bundled)


@cache
def _sources() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Schemas that are accepted; most draws take a small one, in which each change means something."""
    rich = SCHEMA + (
        '[columns.size]\ntype = "ordinal"\nvalues = ["s", "m", "l"]\nother = "?!"\n'
        '[columns.code]\ntype = "identifier"\nmade_up = "{:05d}"\n'
        '[columns.when]\ntype = "datetime"\nmin = 2020-01-01T00:00:00\nmax = 2020-01-02T00:00:00\n'
        'resolution = "second"\nbins = 4\n[columns.score]\ntype = "integer"\nmin = 0\nmax = 9\ncuts = [3, 6]\n'
        '[columns.cost]\ntype = "integer"\nmin = 0\nmax = 99\nstep = 5\n[columns.tax]\ntype = "number"\nmin = 0\n'
        'max = 9\nspecial = ["N", -99]\n[columns.rest]\ntype = "derived"\nof = "cost - score"\nmin = -9\nmax = 99\n'
        '[file]\nencoding = "cp1252"\ndelimiter = ";"\nquote = "\\""\ndecimal = ","\nthousands = "."\n'
        '[file.columns.tax]\ndecimal = "."\n'
        '[unit]\ncolumn = "name"\nmax_rows = 3\n'
    )
    hidden = (
        'neighbours = "replace-one"\nstatus = "draft"\n[columns.a]\ntype = "categorical"\nvalues = "private"\n'
        '[columns.b]\ntype = "integer"\nmin = "private"\nmax = "private"\nmissing = true\n'
        '[columns.c]\ntype = "categorical"\nvalues = [1, 2, 3]\n[[constraints]]\nthen = "b >= 0 OR c = 1"\n'
    )
    for text in (rich, hidden):
        us.Schema.loads(text)
    bundled = tuple(datasets.schema_path(name).read_text() for name in datasets.names())
    return (SCHEMA, rich, hidden), tuple(text for text in bundled if len(text) < 6_000)


def check_material(base: Path) -> None:
    _sources()
    us.plan(us.Schema.loads(SCHEMA), epsilon=1.0)


TARGETS = (
    Target("schemas", "TOML schemas, written and read again", 25_000, spoil, chunk=200, prepare=check_material),
    Target("plans", "forecasts for accepted schemas", 1_310, forecast, prepare=check_material),
)
