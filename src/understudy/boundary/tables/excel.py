"""Sheets of Excel and other workbooks, by the package python-calamine (`pip install 'understudy[excel]'`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from understudy.boundary.schema.late_imports import pa
from understudy.boundary.schema.spelling import spell
from understudy.errors import TableError, without_cells


@without_cells
def read_sheet(path: Path, sheet: str, *, unit: str | None = None) -> pa.Table:
    """One sheet, the first if none is named, as texts under the names of its first row.

    A cell is spelled by itself, as a cell of a frame is; ids of people, in the column `unit`, with all their digits.
    """
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise TableError(
            f"{path.name} can't be read without a reader of workbooks; install it with pip install 'understudy[excel]'",
            path,
        ) from None
    try:
        book = CalamineWorkbook.from_path(str(path))
        found = sheet or book.sheet_names[0]
        if found not in book.sheet_names:
            raise TableError(f"{path.name} has no sheet {found!r}; it has {', '.join(book.sheet_names)}", path)
        rows = book.get_sheet_by_name(found).to_python(skip_empty_area=False)
    except (CalamineError, OSError, IndexError):
        raise TableError(f"{path.name} can't be read: the file is damaged or not a workbook", path) from None
    names = [str(name).strip() for name in rows[0]] if rows else []
    if not any(names):
        raise TableError(f"{path.name} can't be read: its first row must hold the names of the columns", path)
    check_names(path.name, names)
    body = [row for row in rows[1:] if any(cell != "" for cell in row)]
    arrays = [pa.array([_text(r[i], names[i] == unit) for r in body], type=pa.string()) for i in range(len(names))]
    return pa.Table.from_arrays(arrays, names=names)


def check_names(file: str, names: list[str]) -> None:
    """Every column needs a name of its own."""
    if not all(names):
        raise TableError(
            f"{file}: column {names.index('') + 1} of the header has no name; give it one (pandas writes its index so, "
            "unless it is told to_csv(index=False))",
            names,
        )
    lower = [n.lower() for n in names]
    if len(set(lower)) < len(set(names)):  # which the engine's names can't tell apart
        twin = next(n for n in names if lower.count(n.lower()) > 1)
        other = next(n for n in names if n != twin and n.lower() == twin.lower())
        raise TableError(f"{file}: columns {twin!r} and {other!r} differ in case only; rename one of them", names)
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise TableError(f"{file}: column {twice!r} stands twice in the header; rename one of them", names)


def _text(cell: Any, exactly: bool) -> str | None:
    return None if cell == "" else spell(cell, exactly=exactly)
