"""Sheets of Excel and other workbooks, by the package python-calamine (the extra `excel`)."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from understudy.boundary.schema.late_imports import pa
from understudy.boundary.schema.spelling import spell
from understudy.errors import TableError, installing, without_cells

REFUSED = 2
"""How the reading process ends after a refusal, which it has written."""
_BEGIN = "import sys; sys.path[:] = sys.argv[4:]; from understudy.boundary.tables.excel import main; main()"


def read_sheet(path: Path, sheet: str, *, unit: str | None = None) -> pa.Table:
    """One sheet, the first if none is named, as texts under the names of its first row.

    A cell is spelled by itself, as a cell of a frame is; ids of people, in the column `unit`, with all their digits.
    """
    if find_spec("python_calamine") is None:
        raise TableError(
            f"{path.name} can't be read without a reader of workbooks: {installing('excel')}",
            path,
        )
    # In a process of its own: a sheet is held as large as its last row and column, so that one cell at the far end of
    # it asks for hundreds of gigabytes, upon which native code ends the process and not the reading.
    command = [sys.executable, "-P", "-c", _BEGIN, str(path), sheet, unit or "", *map(str, sys.path)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode == REFUSED:
        raise TableError(done.stdout.decode(), path)
    if done.returncode:
        raise TableError(
            f"{path.name} can't be read: the file is damaged, or a cell far outside of the table makes it too large "
            "for the memory; delete what stands outside, and save it anew",
            path,
        )
    return pa.ipc.open_stream(done.stdout).read_all()


def main() -> None:
    """In the process of its own: a table goes to standard output, or a refusal."""
    path, sheet, unit = sys.argv[1:4]
    with suppress(ImportError, ValueError, OSError):
        import resource

        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # it would hold the rows
        resource.setrlimit(resource.RLIMIT_DATA, (memory, resource.RLIM_INFINITY))
    try:
        table = _sheet(Path(path), Path(path).name, sheet=sheet, unit=unit or None)
    except TableError as error:
        sys.stdout.buffer.write(str(error).encode())
        sys.exit(REFUSED)
    with pa.ipc.new_stream(sys.stdout.buffer, table.schema) as stream:
        stream.write_table(table)


@without_cells
def _sheet(path: Path, name: str, *, sheet: str, unit: str | None) -> pa.Table:
    from python_calamine import CalamineError, CalamineWorkbook

    try:
        book = CalamineWorkbook.from_path(str(path))
        found = sheet or book.sheet_names[0]
        if found not in book.sheet_names:
            raise TableError(f"{name} has no sheet {found!r}; it has {', '.join(book.sheet_names)}", path)
        rows = book.get_sheet_by_name(found).to_python(skip_empty_area=False)
    except (CalamineError, OSError, IndexError):
        raise TableError(f"{name} can't be read: the file is damaged or not a workbook", path) from None
    names = [str(cell).strip() for cell in rows[0]] if rows else []
    # A note beside the table makes all rows longer; it must not decide whether the others are read.
    while names and not names[-1]:
        names.pop()
    if not names:
        raise TableError(f"{name} can't be read: its first row must hold the names of the columns", path)
    check_names(name, names)
    cells = [row[: len(names)] for row in rows[1:]]
    body = [row for row in cells if any(cell != "" for cell in row)]
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
