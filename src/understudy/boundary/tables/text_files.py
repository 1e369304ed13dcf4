"""CSV files: found out how they are written, and read as the schema's `[file]` says they are.

Every choice is made from the header and from what is declared, none from the rows. `detected`, which looks at rows,
is for drafts alone.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from understudy.boundary.schema.file_format import FileFormat, Marks
from understudy.boundary.schema.late_imports import exp
from understudy.boundary.tables.connection import literal_path, spill_directory
from understudy.boundary.tables.excel import check_names
from understudy.errors import TableError

CSV_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz")
_DELIMITERS = ",;\t|"
# A file without a line break would else be read whole into memory.
_LONGEST_HEADER = 1 << 20
_BLOCK = 1 << 20
_LINES = 100
"""That are looked at to find delimiter and quotes."""


def csv_relation(path: Path, declared: FileFormat | None = None, name: str = "", numbers: Iterable[str] = ()) -> Any:
    """`read_csv` with every choice made from the header and the declaration; `numbers` are put into plain notation."""
    declared = declared or FileFormat()
    names, delimiter = read_header(path, declared, name or path.name)
    columns = exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.Identifier(this=n, quoted=True), expression=exp.Literal.string("VARCHAR"))
            for n in names
        ]
    )
    settings = {
        "columns": columns,
        "delim": exp.Literal.string(delimiter),
        "header": exp.true(),
        "auto_detect": exp.false(),  # else the first thousands of rows would decide how all are read
        "quote": exp.Literal.string(declared.quote),
        "escape": exp.Literal.string(declared.quote),
        "nullstr": exp.Literal.string(""),
        "compression": exp.Literal.string("gzip" if _is_gzip(path) else "none"),
    }
    rows = scan("READ_CSV", path, settings)
    marked = [n for n in numbers if n in names and not declared.marks_of(n).plain]
    if not marked:
        return rows
    plain = [exp.alias_(plain_number(exp.column(n, quoted=True), declared.marks_of(n)), n, quoted=True) for n in marked]
    return exp.select(exp.Star(replace=plain)).from_(rows).subquery("plain")


def plain_number(text: Any, marks: Marks) -> Any:
    """A number that follows the notation, with a point and nothing else in it; any other text as it stands."""
    point, between = re.escape(marks.decimal), re.escape(marks.thousands)
    whole = rf"([0-9]{{1,3}}({between}[0-9]{{3}})+|[0-9]+)" if between else "[0-9]+"
    pattern = rf"\s*[+-]?({whole}({point}[0-9]*)?|{point}[0-9]+)([eE][+-]?[0-9]+)?\s*"
    follows = exp.Anonymous(this="REGEXP_FULL_MATCH", expressions=[text, exp.Literal.string(pattern)])
    turned = text.copy()
    for mark, instead in ((marks.thousands, ""), (marks.decimal, ".")):
        if mark:
            places = [turned, exp.Literal.string(mark), exp.Literal.string(instead)]
            turned = exp.Anonymous(this="REPLACE", expressions=places)
    return exp.Case(ifs=[exp.If(this=follows, true=turned)], default=text.copy())


def read_header(path: Path, declared: FileFormat, name: str) -> tuple[list[str], str]:
    """The column names of a CSV file in UTF-8, and its delimiter: the first of those that give the most fields."""
    text = _first_line(path, name)
    if not text.strip():
        raise TableError(f"{name} can't be read: it has no header line", path)
    # One line was read, so that a line break inside of quotes, or a lone \r, would leave half a header here.
    if text.count(declared.quote) % 2 or "\r" in text.rstrip("\r\n"):
        raise TableError(f"{name} can't be read: its header must be one line, ended by \\n or \\r\\n", path)
    try:
        given = declared.delimiter
        delimiter = given or max(_DELIMITERS, key=lambda d: len(_fields(text, d, declared.quote)))
        names = _fields(text, delimiter, declared.quote)
    except csv.Error:
        raise TableError(
            f"{name} can't be read: a name in its header has more than {csv.field_size_limit():,} characters", path
        ) from None
    check_names(name, names)
    return names, delimiter


def _first_line(path: Path, name: str) -> str:
    try:
        with _opened(path) as file:
            raw = file.readline(_LONGEST_HEADER)
    except (gzip.BadGzipFile, zlib.error, EOFError):
        raise TableError(f"{name} can't be read: it is not a gzip file, or a damaged one", path) from None
    except OSError as error:
        raise TableError(f"{name} can't be read: {error.strerror}", path) from None
    try:
        return raw.decode("utf-8-sig")  # spreadsheets put a byte order mark before the first name
    except UnicodeDecodeError:
        raise TableError(
            f"{name} can't be read: it is not UTF-8 text; declare its encoding in the schema, as in [file] with "
            'encoding = "cp1252" (understudy schema finds it out)',
            path,
        ) from None


def _opened(path: Path) -> Any:
    return gzip.open(path, "rb") if _is_gzip(path) else path.open("rb")


def _is_gzip(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _fields(line: str, delimiter: str, quote: str) -> list[str]:
    rows = list(csv.reader(io.StringIO(line.rstrip("\r\n")), delimiter=delimiter, quotechar=quote))
    return [name.strip() for name in rows[0]] if rows else []


def scan(function: str, path: Path, settings: dict[str, Any]) -> Any:
    """`function('path', key = value, …)` as a relation; the settings come in a fixed order."""
    pattern = exp.Literal.string(literal_path(path))
    arguments = [exp.EQ(this=exp.var(key), expression=value) for key, value in settings.items()]
    return exp.Table(this=exp.Anonymous(this=function, expressions=[pattern, *arguments]))


# --- Other encodings --------------------------------------------------------------------------------------------------


def in_utf8(path: Path, declared: FileFormat) -> Path:
    """The file itself, or a copy of it in UTF-8 among our temporary files, which only this user may enter.

    The engine knows few encodings, and stops at a byte that is none of theirs; here such a byte becomes "\ufffd", so
    that no row decides whether a table is read. The copy is removed when the process ends.
    """
    if declared.is_utf8:
        return path
    folder = spill_directory()
    if not folder:
        raise TableError(f"{path.name} can't be read: there is no room for a copy of it in UTF-8", path)
    copy = Path(folder) / f"{path.name.removesuffix('.gz')}.utf8.csv"
    try:
        copy.parent.mkdir(mode=0o700)
        with copy.open("wb") as out:
            out.writelines(text.encode("utf-8", "replace") for text in _decoded(path, declared.encoding, "replace"))
    except UnicodeError:  # whatever else is no text was replaced
        raise TableError(
            f"{path.name} can't be read: it does not begin with the mark of {declared.encoding}; declare utf-16-le or "
            "utf-16-be (utf-32-le, utf-32-be)",
            path,
        ) from None
    except (gzip.BadGzipFile, zlib.error, EOFError):
        raise TableError(f"{path.name} can't be read: it is not a gzip file, or a damaged one", path) from None
    except OSError as error:
        raise TableError(f"{path.name} can't be read: {error.strerror}", path) from None
    return copy


def _decoded(path: Path, encoding: str, errors: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(encoding)(errors)
    with _opened(path) as file:
        while block := file.read(_BLOCK):
            yield decoder.decode(block)
        yield decoder.decode(b"", final=True)


# --- Found out, for a draft -------------------------------------------------------------------------------------------


def detected(path: Path) -> FileFormat:
    """How the file seems to be written; marks in numbers are found later, column by column."""
    encoding = _encoding(path)
    lines = _first_lines(path, encoding)
    quote = '"'
    if lines and '"' not in "".join(lines) and all(line.count("'") >= 2 and line.count("'") % 2 == 0 for line in lines):
        quote = "'"
    # A line is whole if its quotes are; others go on in the next one.
    whole = [line for line in lines if line.count(quote) % 2 == 0]
    delimiter = max(_DELIMITERS, key=lambda d: _agreement(whole, d, quote))
    return FileFormat(encoding=encoding, delimiter=delimiter, quote=quote)


def _agreement(lines: Sequence[str], delimiter: str, quote: str) -> tuple[int, int]:
    """How many lines have as many fields as the header has, if it has several; and how many those are."""
    if not lines:
        return 0, 0
    counts = [len(_fields(line, delimiter, quote)) for line in lines]
    return (counts.count(counts[0]) if counts[0] > 1 else 0), counts[0]


def _first_lines(path: Path, encoding: str) -> list[str]:
    try:
        text = next(_decoded(path, encoding, "replace"), "").removeprefix("\ufeff")
    except (gzip.BadGzipFile, zlib.error, EOFError, OSError):
        return []  # said when it is read
    return [line for line in text.splitlines()[:_LINES] if line.strip()]


def _encoding(path: Path) -> str:
    try:
        with _opened(path) as file:
            start = file.read(4096)
    except (gzip.BadGzipFile, zlib.error, EOFError):
        raise TableError(f"{path.name} can't be read: it is not a gzip file, or a damaged one", path) from None
    except OSError as error:
        raise TableError(f"{path.name} can't be read: {error.strerror}", path) from None
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    # Of Latin letters in UTF-16 every other byte is zero.
    if start[1::2].count(0) > 0.4 * len(start[1::2]) > 0:
        return "utf-16-le"
    if start[0::2].count(0) > 0.4 * len(start[0::2]) > 0:
        return "utf-16-be"
    # Of the usual ones UTF-8 refuses almost every text of another, and Latin-1 none: its place is the last.
    return next(e for e in ("utf-8", "cp1252", "latin-1") if _fits(path, e))


def _fits(path: Path, encoding: str) -> bool:
    try:
        for _ in _decoded(path, encoding, "strict"):
            pass
    except UnicodeDecodeError:
        return False
    except (gzip.BadGzipFile, zlib.error, EOFError, OSError):
        return True  # said when it is read
    return True
