"""Files of rows that nobody has described yet: drafted, and checked against the draft.

Whatever a file holds, it is drafted or refused by a sentence of ours; a draft can be written, read again and checked;
and no message repeats a cell. Cells hold marked texts for that, which stand in no header.
"""

from __future__ import annotations

import csv
import gzip
import io
from functools import cache
from pathlib import Path
from random import Random

import understudy as us
from fuzz.case import Case, Target, failed, printed
from fuzz.mutation import ODD_NUMBERS, ODD_TEXTS, spoiled_bytes

MARKED = ("Qx7secret", "918273645546", "Zz9 hidden", "1918-03-27", "77123,4567")
"""Texts, a long number, a date and a number with a comma, that a message could only have from a cell."""
LINES = 80
ENCODINGS = ("utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16", "utf-16-le", "utf-32", "utf-7", "cp037")
NAMES = ("id", "age", "name", "Straße", "select", "a b", 'say "x"', "datum", "comment", "e-mail", "zip", "x", "1", "é")
DELIMITERS = (",", ";", "\t", "|")
ENDINGS = (".csv", ".csv", ".csv", ".csv", ".tsv", ".txt", ".csv.gz")


def drafted(case: Case) -> None:
    draw = case.draw
    ending = draw.choice(ENDINGS)
    path = case.folder / f"people{ending}"
    content = _content(draw)
    path.write_bytes(_packed(draw, content) if ending.endswith(".gz") else content)
    hidden = _hidden(content)
    case.doing = "schema: "
    schema = case.call("schema", us.draft_schema, path)
    _check_silent(case, "schema", schema, hidden)
    if failed(schema):
        return
    case.doing = "check: "
    again = case.call("read again", us.Schema.loads, schema.commented)
    if failed(again):
        case.fail("a draft can't be read again", again)
        return
    found = case.call("check", _checked, path, again)
    _check_silent(case, "check", found, hidden)
    if failed(found) and "has no rows" not in str(found):
        case.fail("what was drafted can't be checked", found)
    elif not failed(found) and draw.random() < 0.2:
        case.call("page", found.to_html)


def _checked(path: Path, schema: us.Schema) -> us.Check:
    return us.check(us.open(path, schema))


def _check_silent(case: Case, what: str, found: object, hidden: tuple[str, ...]) -> None:
    if isinstance(found, Exception):
        said = printed(found)
        if told := [text for text in hidden if text in said]:
            case.fail(f"{what}: a cell is in the message", f"{told} in {said}")


def _hidden(content: bytes) -> tuple[str, ...]:
    """The marked texts that are in no line which could be taken for a header."""
    head = content[: 1 << 20].split(b"\n")[0].replace(b"\0", b"")
    return tuple(text for text in MARKED if text.encode() not in head)


def _packed(draw: Random, content: bytes) -> bytes:
    squeezed = gzip.compress(content)
    return squeezed if draw.random() < 0.6 else spoiled_bytes(draw, squeezed)


def _content(draw: Random) -> bytes:
    text = draw.choice(_messy()) if draw.random() < 0.5 else _made(draw)
    encoding = draw.choice(ENCODINGS) if draw.random() < 0.2 else "utf-8"
    content = _ragged(draw, text).encode(encoding, errors="replace")
    return spoiled_bytes(draw, content) if draw.random() < 0.3 else content


@cache
def _messy() -> list[str]:
    """The heads of the messy tables that drafts are measured on, some of their cells marked."""
    from intake import messy

    draw, found = Random(5), []
    for table in messy.tables():
        # Two hundred columns take a second, and gigabytes of addresses that the engine keeps.
        if not isinstance(table.content, bytes) or table.content[:2] == b"PK" or table.name == "wide.csv":
            continue
        content = gzip.decompress(table.content) if table.name.endswith(".gz") else table.content
        encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
        head, *rows = content.decode(encoding, errors="replace").splitlines()[:LINES]
        found.append("\n".join([head, *(_marked(draw, row) for row in rows)]) + "\n")
    return found


def _marked(draw: Random, row: str) -> str:
    if draw.random() < 0.8:
        return row
    delimiter = max(DELIMITERS, key=row.count)
    cells = row.split(delimiter)
    cells[draw.randrange(len(cells))] = draw.choice([m for m in MARKED if delimiter not in m])
    return delimiter.join(cells)


def _made(draw: Random) -> str:
    """A table whose columns each have a kind of values of their own, with odd ones among them."""
    names = draw.sample(NAMES, draw.randint(1, 6))
    kinds = [draw.choice(_KINDS) for _ in names]
    out = io.StringIO()
    writer = csv.writer(
        out, delimiter=draw.choice(DELIMITERS), lineterminator=draw.choice(["\n", "\r\n"]),
        quoting=draw.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    )  # fmt: skip
    writer.writerow(names)
    odd = draw.choice([0.0, 0.05, 0.5])
    for _ in range(draw.choice([0, 1, 5, 40, LINES])):
        writer.writerow([_cell(draw, kind, odd) for kind in kinds])
    return out.getvalue()


_KINDS = (
    lambda draw: str(draw.randrange(90)),
    lambda draw: str(draw.choice([1, 2, 99, -99])),
    lambda draw: f"{draw.lognormvariate(3, 2):.2f}",
    lambda draw: f"{draw.gauss(0, 1):.2f}".replace(".", ","),
    lambda draw: f"{draw.randrange(1, 31):02d}.{draw.randrange(1, 13):02d}.{draw.randrange(1900, 2030)}",
    lambda draw: f"{draw.randrange(1, 9999):04d}-{draw.randrange(1, 14):02d}-{draw.randrange(1, 32):02d}",
    lambda draw: draw.choice(["yes", "no", ""]),
    lambda draw: f"p{draw.randrange(10**6)}",
    lambda draw: draw.choice(MARKED),
    lambda draw: f"1e{draw.randrange(-330, 330)}",
    lambda draw: str(draw.randrange(10 ** draw.randrange(1, 30))),
    lambda draw: "".join(chr(draw.randrange(32, 0xD7FF)) for _ in range(draw.randrange(12))),
    lambda draw: " ".join(draw.choices(["we", "waited", "long", "Zz9 hidden", "for", "a", "room"], k=9)),
)


def _cell(draw: Random, kind: object, odd: float) -> str:
    if draw.random() < odd:
        return draw.choice([*ODD_TEXTS, *map(str, ODD_NUMBERS), *MARKED])
    return kind(draw)  # type: ignore[operator]


def _ragged(draw: Random, text: str) -> str:
    if draw.random() < 0.8:
        return text
    lines = text.splitlines()
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(lines)) if lines else 0
        changed = {0: '"', 1: ",", 2: "\r", 3: "\0", 4: ";" * 50}.get(draw.randrange(7), "")
        if lines:
            lines[at] = lines[at] + changed if draw.random() < 0.5 else changed + lines[at]
    return "\n".join(lines)


def _prepare(base: Path) -> None:
    import pyarrow as pa

    frame = pa.table({"age": [31, 47, 52], "since": ["2020-01-01", "2020-01-02", "2021-01-01"]})
    us.check(us.open(frame, us.draft_schema(frame)))
    _messy()


TARGETS = (Target("drafts", "files of rows, drafted and checked", 10_000, drafted, seconds=20.0, prepare=_prepare),)
