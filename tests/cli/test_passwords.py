"""The password in an address is not repeated, whatever is wrong with the address."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from understudy.errors import TableError, without_secrets

SECRET = "s3cr3t"
ADDRESSES = [
    f"postgresql://ada:{SECRET}@127.0.0.1:1/db::people",
    f"POSTGRESQL://ada:{SECRET}@127.0.0.1:1/db::people",
    f"postgresql+psycopg://ada:{SECRET}@127.0.0.1:1/db::people",
    f"postgres://ada:p@ss:{SECRET}@127.0.0.1:1/db::people",
    f"postgresql://127.0.0.1:1/db?user=ada&password={SECRET}::people",
    f"postgresql://ada:{SECRET}@127.0.0.1:1/db",
]
COMMANDS = [
    ("synth", "--epsilon", "1", "--schema", "people.toml", "--ledger", "ledger.sqlite"),
    ("schema",),
    ("query", "SELECT count(*) FROM people", "--epsilon", "1", "--schema", "people.toml", "--ledger", "ledger.sqlite"),
    ("evaluate", "people.csv", "--schema", "people.toml"),
    ("attack", "people.csv", "people.csv", "--schema", "people.toml"),
    ("compare", "--schema", "people.toml"),
    ("verify",),
    ("replay",),
    ("count", "age > 3"),
    ("budget-show",),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c[0])
@pytest.mark.parametrize("address", ADDRESSES)
def test_no_command_repeats_a_password(
    understudy: Callable[..., Any], desk: Path, command: tuple[str, ...], address: str
):
    name, *rest = command
    outcome = understudy(*name.split("-"), address, *rest)
    assert SECRET not in outcome.out + outcome.err
    assert not any(SECRET.encode() in p.read_bytes() for p in desk.rglob("*") if p.is_file())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"'postgresql://ada:{SECRET}@host/db' is gone", "'postgresql://…@host/db' is gone"),
        (f"postgresql://ada:a@b:{SECRET}@host/db", "postgresql://…@host/db"),
        (f"postgresql://h/db?password={SECRET}&x=1", "postgresql://h/db?password=…&x=1"),
        ("postgresql://ada@host:5432/db", "postgresql://ada@host:5432/db"),
        ("ada@example.org asked at 10:30", "ada@example.org asked at 10:30"),
        ("see https://example.org/a:b", "see https://example.org/a:b"),
    ],
)
def test_what_is_left_of_an_address(text: str, shown: str):
    assert without_secrets(text) == str(TableError(text)) == shown
