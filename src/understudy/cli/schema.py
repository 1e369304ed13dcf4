"""`understudy schema`."""

from __future__ import annotations

import sys
from pathlib import Path

from understudy.boundary.schema.column import Identifier
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.draft import draft_schema
from understudy.errors import ReleaseError
from understudy.files import write_atomically


def draft(data: str, out: Path | None, overwrite: bool) -> None:
    if out is not None and out.exists() and not overwrite:
        raise ReleaseError(f"{str(out)!r} exists already; choose another file, or overwrite it", out)
    schema = draft_schema(data)
    if out is not None:
        write_atomically(out, schema.dumps().encode())
    _show_left_out(schema)
    if out is None:
        print(schema.dumps(), end="")
    else:
        print(f'{out}: check every line, then change status to "confirmed"', file=sys.stderr)


def _show_left_out(schema: Schema) -> None:
    left_out = [c.name for c in schema if isinstance(c, Identifier)]
    if left_out:
        print(f"drafted as identifiers, so left out of a release: {', '.join(left_out)}", file=sys.stderr)
