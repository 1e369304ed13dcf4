"""What stands before a release: files in declared notations, workbooks, drafts and checks.

Values are private: whatever they are, a declared table is read, and no message repeats one of them. A draft is read
back as it was saved, and declares what it means to and nothing else.
"""

from __future__ import annotations

import io
import shutil
import zipfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from xml.sax.saxutils import escape

import understudy as us
from fuzz.case import Case, Target, failed, inside
from fuzz.material import SCHEMA_FILE, desk_in, people_csv
from fuzz.mutation import ODD_NUMBERS, ODD_TEXTS, spoiled_bytes
from fuzz.tables import differing

SECRET = "Zq7Xw"
"""Stands in cells, and in no message."""
NOTATION = """\
missing_values = ["?"]
[columns.name]
type = "identifier"
[columns.job]
type = "categorical"
values = ["clerk", "cook"]
other = "cook"
[columns.age]
type = "integer"
min = 18
max = 80
bins = 8
special = ["N", -99]
missing = true
[columns.pay]
type = "number"
min = 0
max = 100
decimals = 1
[columns.bonus]
type = "number"
min = 0
max = 100
decimals = 1
special = ["top", 999]
[columns.total]
type = "derived"
of = "pay - tax"
min = -100
max = 100
[columns.tax]
type = "number"
min = 0
max = 100
[columns.hours]
type = "integer"
min = 0
max = 100
step = 5
[columns.came]
type = "datetime"
min = 2015-01-01
max = 2024-12-31
bins = 5
format = "%d.%m.%Y"
special = ["never"]
missing = true
[columns.went]
type = "datetime"
min = 2015-01-01
max = 2034-12-31
bins = 5
format = "%d.%m.%Y"
missing = true
[columns.stay]
type = "derived"
of = "went - came"
min = 0
max = 99
missing = true
[columns.smoker]
type = "boolean"
[unit]
column = "name"
max_rows = 2
[[constraints]]
if = "age < 20"
then = "hours < 90"
"""
HEADER = ("name", "job", "age", "pay", "bonus", "tax", "hours", "came", "went", "smoker")
USUAL = (
    "cook", "clerk", "N", "-99", "40", "40,5", "1.234,5", "1'234.5", "1 234", "top", "999", "31.12.2020", "1.1.2021",
    "never", "true", "no", "?", "", SECRET, f"{SECRET} 12", f"1{SECRET}", "99.99.9999", "01.01.0001", "31.12.9999",
)  # fmt: skip
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252", "latin-1", "cp037", "gb18030", "shift_jis")
DELIMITERS, QUOTES = (",", ";", "\t", "|", "^"), ('"', "'")
MARKS = ((".", ""), (",", "."), (",", ""), (".", ","), (".", "'"), (",", " "), (",", "\u00a0"))
QUESTIONS = (
    "SELECT count(*) FROM data WHERE stay > 3", "SELECT avg(tax), sum(bonus) FROM data", "SELECT median(age) FROM data",
    "SELECT job, count(*) FROM data WHERE age = 'N' OR bonus = 'top' GROUP BY job",
    "SELECT avg(stay) FROM data WHERE total < 50 AND NOT smoker", "SELECT count(*) FROM data WHERE came = 'never'",
)  # fmt: skip


def notation(case: Case) -> None:
    """A sound file with odd values in a declared notation: read, asked and checked, whatever they are."""
    draw, case.secret = case.draw, SECRET
    encoding, delimiter, quote = draw.choice(ENCODINGS), draw.choice(DELIMITERS), draw.choice(QUOTES)
    decimal, thousands = draw.choice(MARKS)
    path = case.folder / "people.csv"
    path.write_bytes(_written(draw, delimiter, quote).encode(encoding, "replace"))
    stated = {"encoding": encoding, "delimiter": delimiter, "quote": quote, "decimal": decimal, "thousands": thousands}
    lines = "".join(f"{key} = {_toml(value)}\n" for key, value in stated.items())
    schema = us.Schema.loads(f"{NOTATION}[file]\n{lines}")
    _used(case, path, schema)


def _toml(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t") + '"'


def _used(case: Case, source: Any, schema: us.Schema) -> None:
    table = case.call("open", us.open, source, schema)
    if failed(table):
        _refused(case, table)
        return
    match case.draw.randrange(4):
        case 0:
            found = case.call("synth", us.synthesize, table, epsilon=1.0, method="independent", rows=20, ledger=False)
        case 1 | 2:
            found = case.call("query", us.query, table, case.draw.choice(QUESTIONS), epsilon=1.0, ledger=False)
        case _:
            found = _checked(case, table)
    if failed(found):
        _refused(case, found)


def _refused(case: Case, found: Any) -> None:
    """That there are so few rows is no value: whoever reads a file must be told."""
    if "must have at least 2 rows" not in str(found):
        case.fail("a value was a reason to refuse", found)


def _checked(case: Case, table: Any) -> Any:
    found = case.call("check", us.check, table)
    if not failed(found):
        case.call("report of a check", found.to_html)
        case.call("a check for programs", found.to_json)
        if SECRET in repr(found):
            case.fail("a check shows a value where it says that it shows none", repr(found))
    return found


def _written(draw: Random, delimiter: str, quote: str) -> str:
    everywhere, ending = draw.random() < 0.3, draw.choice(["\n", "\r\n"])
    special = (delimiter, quote, "\r", "\n")

    def cell(text: str) -> str:
        if everywhere or any(c in text for c in special):
            return quote + text.replace(quote, 2 * quote) + quote
        return text

    rows = [[_cell(draw) for _ in HEADER] for _ in range(draw.randint(2, 30))]
    return "".join(delimiter.join(map(cell, row)) + ending for row in [HEADER, *rows])


def _cell(draw: Random) -> str:
    kind = draw.random()
    if kind < 0.6:
        return draw.choice(USUAL)
    return draw.choice(ODD_TEXTS) if kind < 0.8 else str(draw.choice(ODD_NUMBERS))


# --- Drafts -----------------------------------------------------------------------------------------------------------


def draft(case: Case) -> None:
    """A file or a frame is drafted, or refused without a word of what is in it; then the draft is used as it is."""
    draw, case.secret = case.draw, SECRET
    kind = draw.randrange(4)
    source = _frame(draw) if kind == 0 else _file(case, sound=kind < 3)
    drafted = case.call("draft", us.draft_schema, source)
    if failed(drafted):
        return
    path = case.folder / "people.toml"
    if failed(case.call("save", drafted.save, path)):
        return
    again = case.call("read again", us.Schema.load, path)
    if failed(again) or again != drafted:
        case.fail("a draft is another one when it is read back", again)
        return
    if case.folder.stat().st_mode & 0o700 and path.stat().st_mode & 0o077:
        case.fail("a draft can be read by others", oct(path.stat().st_mode))
    confirmed = case.call("confirm", again.confirm, by="somebody", source="a code book")
    if failed(confirmed):
        return
    if any(line.startswith("#") for line in confirmed.dumps().splitlines()):
        case.fail("a confirmed schema keeps the notes of its draft")
    table = case.call("open", us.open, source, confirmed)
    if not failed(table):
        _checked(case, table)
    elif kind < 3:
        case.fail("what was drafted can't be opened", table)


def _file(case: Case, sound: bool) -> Path:
    """The usual people, with odd values in some columns; or spoiled bytes of that."""
    draw, path = case.draw, case.folder / case.draw.choice(["people.csv", "people.csv", "people.tsv", "people.txt"])
    lines = [line.split(",") for line in people_csv(draw.choice([3, 40, 120])).splitlines()]
    for column in draw.sample(range(6), draw.randint(0, 4)):
        odd = draw.sample([*ODD_TEXTS, *USUAL, *map(str, ODD_NUMBERS)], 3)
        share = draw.choice([0.02, 0.3, 1.0])
        for row in lines[1:]:
            if draw.random() < share:
                row[column] = draw.choice(odd)
    if draw.random() < 0.2:
        lines[0][draw.randrange(6)] = draw.choice([t for t in ODD_TEXTS if "\n" not in t and "\r" not in t])
    delimiter = draw.choice([",", ";", "\t"])
    text = "".join(delimiter.join('"' + c.replace('"', '""') + '"' for c in row) + "\n" for row in lines)
    content = text.encode(draw.choice(ENCODINGS[:6]), "replace")
    path.write_bytes(content if sound else spoiled_bytes(draw, content))
    return path


def _frame(draw: Random) -> Any:
    import pandas as pd

    odd = [*ODD_TEXTS, *ODD_NUMBERS, None, True, 40, 41, SECRET, b"\xff", [SECRET], {"a": 1}]
    few = draw.sample(odd, 5)
    columns = {name: [draw.choice(odd if i % 2 else few) for _ in range(60)] for i, name in enumerate(HEADER[:6])}
    columns |= {f"n{draw.choice(ODD_TEXTS)}": [draw.randrange(90) for _ in range(60)]}
    return pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})


# --- Workbooks --------------------------------------------------------------------------------------------------------


def workbook(case: Case) -> None:
    """A workbook with a spoiled part, or with cells where none belongs; a refusal debits nothing and leaves nothing."""
    draw, case.secret = case.draw, SECRET
    desk, ledger = desk_in(case.folder, case.base), case.folder / "ledger"
    shutil.copy(case.base / "ledger.sqlite", ledger)
    parts = dict(_parts())
    content = b""
    match draw.randrange(4):
        case 0:
            content = spoiled_bytes(draw, _packed(parts))
        case 1 | 2:
            name = draw.choice(list(parts))
            parts[name] = spoiled_bytes(draw, parts[name])
        case _:
            name = "xl/worksheets/sheet1.xml"
            parts[name] = parts[name].replace(b"</sheetData>", _stray(draw) + b"</sheetData>")
    (desk / "people.xlsx").write_bytes(content or _packed(parts))
    before = inside(case.folder)
    answer = case.call("query", _asked, ledger)
    if failed(answer) and (changed := differing(before, inside(case.folder))):
        case.fail("a refusal changed or left files", changed)


def _asked(ledger: Path) -> us.Answer:
    table = us.open("people.xlsx", SCHEMA_FILE)
    return us.query(table, "SELECT count(*) FROM data WHERE age > 40", epsilon=0.5, ledger=ledger, analyst="ada")


def _stray(draw: Random) -> bytes:
    row = draw.choice([0, 1, 7, 300, 1_048_576, 2**32 - 1, 2**64, -1])
    column = draw.choice(["A", "B", "H", "XFD", "AAAAAAA", "", "1"])
    kind = draw.choice(["s", "b", "e", "d", "str", "inlineStr", "n", "x"])
    value = escape(str(draw.choice([*ODD_TEXTS, *ODD_NUMBERS, SECRET])))
    return f'<row r="{row}"><c r="{column}{row}" t="{kind}"><v>{value}</v></c></row>'.encode("utf-8", "replace")


@cache
def _parts() -> tuple[tuple[str, bytes], ...]:
    """The people as a workbook."""
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"

    def related(kind: str, target: str) -> str:
        one = f'<Relationship Id="r1" Type="{office}/{kind}" Target="{target}"/>'
        return f'<Relationships xmlns="{package}/relationships">{one}</Relationships>'

    rows = [line.split(",") for line in people_csv(60).splitlines()]
    rows[5][0] = SECRET
    cells = (
        f'<row r="{i}">' + "".join(_cell_xml(f"{'ABCDEF'[j]}{i}", text) for j, text in enumerate(row)) + "</row>"
        for i, row in enumerate(rows, 1)
    )
    texts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{kind}.worksheet+xml"/></Types>',
        "_rels/.rels": related("officeDocument", "xl/workbook.xml"),
        "xl/workbook.xml": f'<workbook {main} xmlns:r="{office}"><sheets>'
        '<sheet name="people" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": related("worksheet", "worksheets/sheet1.xml"),
        "xl/worksheets/sheet1.xml": f"<worksheet {main}><sheetData>{''.join(cells)}</sheetData></worksheet>",
    }
    return tuple((name, f'<?xml version="1.0"?>{text}'.encode()) for name, text in texts.items())


def _cell_xml(place: str, text: str) -> str:
    if text.replace(".", "").isdigit():
        return f'<c r="{place}"><v>{text}</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t>{escape(text)}</t></is></c>'


def _packed(parts: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def check_material(base: Path) -> None:
    import pandas as pd

    us.check(us.open(pd.DataFrame({"age": [31]}), us.draft_schema(pd.DataFrame({"age": list(range(18, 80)) * 2}))))
    _parts()


TARGETS = (
    Target("notations", "CSV in declared notations, special and derived values", 400, notation, prepare=check_material),
    Target("cells", "odd cells and names, drafted, saved and read again", 1_000, draft, prepare=check_material),
    Target("workbooks", "Excel files, broken, with a ledger beside", 300, workbook, prepare=check_material),
)
