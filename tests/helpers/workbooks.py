"""Workbooks written cell by cell, as small as a reader takes them, and with what no office program would write."""

from __future__ import annotations

import datetime as dt
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

_HEAD = '<?xml version="1.0"?>'
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_CONTENT = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def write_workbook(path: Path, sheets: dict[str, Iterable[Sequence[Any]]], beyond: str = "") -> Path:
    """Sheets of rows; `beyond` is put behind the rows of each as it is."""
    names = {f"sheet{i}": name for i, name in enumerate(sheets, 1)}
    listed = "".join(f'<sheet name={quoteattr(n)} sheetId="{f[5:]}" r:id="{f}"/>' for f, n in names.items())
    found = [_related(f, "worksheet", f"worksheets/{f}.xml") for f in names]
    kinds = [("/xl/workbook.xml", "sheet.main"), *((f"/xl/worksheets/{f}.xml", "worksheet") for f in names)]
    overrides = "".join(f'<Override PartName="{part}" ContentType="{_CONTENT}.{kind}+xml"/>' for part, kind in kinds)
    relations = f'<Default Extension="rels" ContentType="{_CONTENT.split(".open")[0]}.rels"/>'
    parts = {
        "[Content_Types].xml": f'{_HEAD}<Types xmlns="{_PACKAGE}/content-types">{relations}{overrides}</Types>',
        "_rels/.rels": _relations([_related("book", "officeDocument", "xl/workbook.xml")]),
        "xl/workbook.xml": f'{_HEAD}<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": _relations(found),
    }
    for (file, _), rows in zip(names.items(), sheets.values(), strict=True):
        written = "".join(_row(i, row) for i, row in enumerate(rows, 1))
        body = f'<worksheet xmlns="{_MAIN}"><sheetData>{written}{beyond}</sheetData></worksheet>'
        parts[f"xl/worksheets/{file}.xml"] = f"{_HEAD}{body}"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        for name, text in parts.items():
            book.writestr(name, text)
    return path


def cell(place: str, value: Any) -> str:
    """One cell; None leaves it out."""
    match value:
        case None:
            return ""
        case bool():
            return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
        case int() | float():
            return f'<c r="{place}"><v>{value!r}</v></c>'
        case dt.date():
            return f'<c r="{place}" t="d"><v>{value.isoformat()}</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{escape(str(value))}</t></is></c>'


def _row(number: int, values: Sequence[Any]) -> str:
    cells = "".join(cell(f"{chr(65 + i)}{number}", value) for i, value in enumerate(values))
    return f'<row r="{number}">{cells}</row>'


def _related(identity: str, kind: str, target: str) -> str:
    return f'<Relationship Id="{identity}" Type="{_OFFICE}/{kind}" Target="{target}"/>'


def _relations(listed: Sequence[str]) -> str:
    return f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships">{"".join(listed)}</Relationships>'
