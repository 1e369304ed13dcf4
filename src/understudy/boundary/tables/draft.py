"""A first schema from the data, for a person to check. It reads rows, so it is not public until confirmed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from understudy.boundary.schema.column import Column, Integer, Number
from understudy.boundary.schema.file_format import FileFormat, Marks
from understudy.boundary.schema.schema import DRAFT, Schema
from understudy.boundary.schema.spelling import spell
from understudy.boundary.tables.drafting.columns import Drafted, draft_column
from understudy.boundary.tables.drafting.facts import MISSING_TOKENS, Facts, gather
from understudy.boundary.tables.drafting.rules import propose_rules, propose_unit
from understudy.boundary.tables.rows import Rows
from understudy.boundary.tables.table import is_table
from understudy.boundary.tables.text_files import CSV_ENDINGS, detected
from understudy.errors import SchemaError, TableError

OPENING = (
    " Each column below was guessed from the rows. Put in what you can defend without them, from the code book, the",
    ' form or the law. Lists and bounds that are not public can be bought: values = "private", max = "private".',
    " Comments are for you alone, and no release has them. What the keys mean: docs/concepts/schema.md",
    "",
)


def draft_schema(source: Any, *, progress: Callable[[str], None] | None = None) -> Schema:
    """Drafts a schema from a frame or a file, to be checked and confirmed by a person before it is used.

    Saved, it has comments for that person: what was counted, what else a column could be, which rules every row obeys,
    and which ids come back. They are internal, as the draft is; no release has them.

    Args:
        source: A frame, or a path as `understudy.open` takes it.
        progress: Called with the name of each pass over the rows.

    >>> import pyarrow as pa
    >>> draft_schema(pa.table({"age": [31, 47, 52]})).status
    'draft'
    """
    if is_table(source):
        raise TableError(f"a {type(source).__name__} can't be read; give a frame or a path", source)
    watch = progress or (lambda part: None)
    file = _file_of(source)
    rows = Rows.of(source, file=file)
    facts = gather(rows, _categories(source), watch)
    with np.errstate(over="ignore"):  # of numbers near the largest there are, whose range is infinite
        drafted = [_drafted(f) for f in facts]
    columns = tuple(d.column for d in drafted)
    if not any(c.modelled for c in columns):
        raise TableError(
            "no schema can be drafted: every column is an identifier, by its values; write one by hand", columns
        )
    seen = {t for f in facts for t in (*f.tokens, *f.strays, *(f.counts or ()))}
    tokens = tuple(t for t in MISSING_TOKENS if t in seen)
    file = _with_marks(file, facts, columns) if file else None
    schema = Schema(columns, missing_values=tokens, status=DRAFT, file=file)
    watch("rules and ids")
    if file is not None:  # with numbers in plain notation
        rows = Rows.of(source, schema=schema)
    notes = {d.column.name: tuple(f" {note}" for note in d.notes) for d in drafted}
    unit = propose_unit(rows, drafted, facts)
    with np.errstate(over="ignore"):
        rules = propose_rules(rows, columns, tokens)
    notes |= {"": OPENING, "unit": tuple(unit), "rules": tuple(rules)}
    return replace(schema, notes=notes, drafted=schema.digest)


def _file_of(source: Any) -> FileFormat | None:
    if isinstance(source, str | Path) and str(source).lower().endswith(CSV_ENDINGS) and Path(source).is_file():
        return detected(Path(source))
    return None


def _with_marks(file: FileFormat, facts: list[Facts], columns: tuple[Column, ...]) -> FileFormat:
    """The marks that most columns have, for the whole file; those of the others by name."""
    found = {
        f.name: f.reading.marks
        for f, c in zip(facts, columns, strict=True)
        if f.reading.kind == "number" and isinstance(c, Integer | Number)
    }
    grouped = {m.decimal: m for m in found.values() if m.thousands}
    found = {n: grouped.get(m.decimal, m) if not (m.plain or m.thousands) else m for n, m in found.items()}
    special = [m for m in found.values() if not m.plain]
    # Where some column has a decimal comma, whole numbers without any mark agree with it.
    common = max(special, key=special.count) if special else Marks()
    pointed = {f.name for f in facts if f.reading.marks.plain and f.decimals}
    others = {n: m for n, m in found.items() if m != common and (not m.plain or n in pointed)}
    if len(others) > len(found) / 2:
        return replace(file, columns={n: m for n, m in found.items() if not m.plain})
    return replace(file, marks=common, columns=others)


def _drafted(facts: Facts) -> Drafted:
    try:
        return draft_column(facts)
    except SchemaError:  # it may quote a bound or a label, which here is a cell
        raise TableError(
            f"no schema can be drafted for column {facts.name!r}: no declaration fits its values; write one by hand"
        ) from None


def _categories(source: Any) -> dict[str, tuple[tuple[str, ...], bool]]:
    """The categories that a frame declares, as texts, and whether they are in order."""
    found: dict[str, tuple[tuple[str, ...], bool]] = {}
    if hasattr(source, "iloc"):  # pandas
        for name, kind in zip(source.columns, source.dtypes, strict=True):
            if hasattr(kind, "categories"):
                found[str(name)] = _spelled(list(kind.categories)), bool(kind.ordered)
    elif hasattr(source, "collect_schema"):  # polars
        for name, kind in source.collect_schema().items():
            if type(kind).__name__ == "Enum":  # its order is that of its list
                found[name] = _spelled(kind.categories.to_list()), False
    return found


def _spelled(values: list[Any]) -> tuple[str, ...]:
    return tuple(text for value in values if (text := spell(value)) is not None)
