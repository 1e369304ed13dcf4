"""Where things are when the user does not say."""

from __future__ import annotations

import shlex
from pathlib import Path

from understudy.boundary.privacy.ledger.ledger import is_server, ledger_beside
from understudy.boundary.schema.schema import Schema
from understudy.errors import InputError, SchemaError, without_secrets

UNSEEN = ("flower://", "sc://")
"""Begin addresses of tables whose rows nobody looks at from here; `check` refuses them, as it does SQLite files."""
UNSEEN_FILES = (".sqlite", ".sqlite3", ".db")


def beside(data: str, ending: str) -> Path:
    """A path beside the data: `adult.csv` and `.toml` give `adult.toml`; `db.duckdb::people` gives `db.people.toml`."""
    _demand_file(data, "where to write, with --out")
    where, _, inside = data.partition("::")
    path = _file(where)
    stem = path.name.removesuffix(".gz")  # people.csv.gz has its schema in people.toml
    if "." in stem[1:]:  # a dot at the beginning hides a file, and begins no ending
        stem = stem[: stem.rindex(".")]
    if inside:
        stem += f".{inside}"
    return path.with_name(stem + ending)


def ledger_of(data: str, given: Path | None) -> Path:
    """The ledger that was given, or the one beside the data."""
    if given is not None:
        return given
    _demand_file(data, "a ledger, with --ledger")
    _file(data.partition("::")[0])
    return ledger_beside(data)


def _file(where: str) -> Path:
    path = Path(where)
    if not path.name:  # the root, or the folder that one is in: nothing can lie beside them
        raise InputError(f"{where!r} must be a file; name the data", where)
    return path


def _demand_file(data: str, wanted: str) -> None:
    """A table on a server lies in no folder, and a folder is no table. An address may hold a password: not repeated."""
    if is_server(data):
        raise InputError(f"a table on a server has no folder of its own; give {wanted}", data)
    where = data.partition("::")[0]
    if not Path(where).name or Path(where).is_dir():
        raise InputError(f"{where!r} is a folder; give the file of the data, or {wanted}", data)


def schema_of(data: str, given: Path | None) -> Schema:
    """The schema that was given, or the one that lies beside the data."""
    if given is None:
        _demand_file(data, "its schema, with --schema")
    path = given or beside(data, ".toml")
    if given is None and not path.exists():
        where = Path(data.partition("::")[0])
        if not where.exists():
            raise InputError(f"{str(where)!r} does not exist; name the file of the data", data)
        raise SchemaError(
            f"{str(path)!r} does not exist; draft a schema with `understudy schema {data} --out {path}`, "
            "check it, and give it with --schema",
            path,
        )
    return Schema.load(path)


def check_command(data: str | None) -> str | None:
    """What shows the steward what the schema does to these rows; None where nobody can look at them.

    >>> check_command("people.csv"), check_command("flower://127.0.0.1:9092?sites=3")
    ('understudy check people.csv', None)
    """
    where = (data or "DATA").partition("::")[0]
    if where.startswith(UNSEEN) or where.lower().endswith(UNSEEN_FILES):
        return None
    return f"understudy check {shlex.quote(without_secrets(data or 'DATA'))}"
