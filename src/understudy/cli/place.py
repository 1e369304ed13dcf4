"""Where things are when the user does not say."""

from __future__ import annotations

from pathlib import Path

from understudy.errors import SchemaError
from understudy.schema.schema import Schema


def beside(data: str, ending: str) -> Path:
    """A path beside the data: `adult.csv` and `.toml` give `adult.toml`; `db.duckdb::people` gives `db.people.toml`."""
    where, _, inside = data.partition("::")
    path = Path(where)
    stem = path.name.removesuffix(".gz")
    stem = stem[: stem.rindex(".")] if "." in stem[1:] else stem
    return path.with_name(f"{stem}{'.' + inside if inside else ''}{ending}")


def ledger_of(data: str, given: Path | None) -> Path:
    """The ledger carries the whole name of the data file, so that `a.csv` and `a.parquet` have one each."""
    where, _, inside = data.partition("::")
    path = Path(where)
    return given or path.with_name(f"{path.name}{'.' + inside if inside else ''}.ledger.sqlite")


def schema_of(data: str, given: Path | None) -> Schema:
    """The schema that was given, or the one that lies beside the data."""
    path = given or beside(data, ".toml")
    if given is None and not path.exists():
        raise SchemaError(
            f"{str(path)!r} does not exist; draft a schema with `understudy schema {data} --out {path}`, "
            "check it, and give it with --schema",
            path,
        )
    return Schema.load(path)
