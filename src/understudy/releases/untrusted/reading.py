"""Files of a folder that anybody may have made: only regular ones, and no more of them than the limits allow."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from understudy.boundary.schema.column import MAX_WIDTH, Categorical, Column, Datetime, Identifier, Line
from understudy.boundary.schema.schema import Schema
from understudy.errors import CheckFailed, UnderstudyError
from understudy.releases.untrusted.limits import Limits

BLOCK = 1 << 20
LARGEST_WHOLE = 2**64
"""Of whole numbers in JSON: identities and seeds have 64 bits, and what is larger is no float either."""
PLAIN_WIDTH = 32
"""The most characters that a number, a date or a truth value is written with."""
LONGEST_REASON = 300
COLUMN_HEAD = "\n[columns."


@contextmanager
def opened(path: Path, limit: str) -> Iterator[BinaryIO]:
    """A regular file of at most this limit, named in `Limits`.

    Whatever else stands under the name is refused: a pipe would never end, nor would a link to /dev/zero.
    """
    # Without O_NONBLOCK, opening a pipe waits for somebody who writes to it. Windows has neither.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        file = os.fdopen(os.open(path, flags), "rb")
    except OSError:
        raise CheckFailed(f"{path.name} is missing from the release, or can't be read", path) from None
    with file:
        # Of what was opened, and not of the path, which may be another file by now.
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise CheckFailed(f"{path.name} is no regular file, so it isn't read", path)
        Limits.here().check(f"{path.name} has", found.st_size, limit, "bytes")
        yield file


def read(path: Path, limit: str) -> bytes:
    """The content of such a file."""
    content, left = bytearray(), getattr(Limits.here(), limit) + 1
    with opened(path, limit) as file:
        try:
            # Block by block: to be asked for a gigabyte, Python takes it before it looks how much there is.
            while left > 0 and (block := file.read(min(BLOCK, left))):
                content += block
                left -= len(block)
        except OSError:
            raise CheckFailed(f"{path.name} can't be read", path) from None
    # A file may grow while it is read.
    Limits.here().check(f"{path.name} has", len(content), limit, "bytes")
    return bytes(content)


def sha256_of(path: Path, limit: str) -> str:
    """The digest of such a file, read block by block: a large table need not fit into memory."""
    digest, left = hashlib.sha256(), getattr(Limits.here(), limit)
    with opened(path, limit) as file:
        try:
            while left > 0 and (block := file.read(min(BLOCK, left))):
                digest.update(block)
                left -= len(block)
        except OSError:
            raise CheckFailed(f"{path.name} can't be read", path) from None
    return digest.hexdigest()


def parse_json(content: bytes | str, what: str) -> Any:
    """JSON of anybody: no more values, no deeper and no larger numbers than the limits allow."""
    text, limits = content, Limits.here()
    try:
        text = content.decode() if isinstance(content, bytes) else content
        # Each value but the first follows a comma or an opening bracket: a bound that texts can only make larger.
        limits.check(f"{what} holds", sum(map(text.count, ",[{")) + 1, "items", "values")
        value = json.loads(text)
        _check_values(value, what, limits)
    # RecursionError: thousands of brackets; ValueError: no JSON, no UTF-8, or a number of thousands of digits.
    except (ValueError, RecursionError) as error:
        raise CheckFailed(f"{what} can't be read: it is no JSON that Understudy writes", what) from error
    return value


def _check_values(value: Any, what: str, limits: Limits) -> None:
    """Level by level, and not by a function that calls itself, which ends where Python's stack does."""
    level, depth = [value], 0
    while level:
        limits.check(f"{what} is nested", depth, "nesting", "levels deep")
        depth += 1
        for each in level:
            if isinstance(each, int) and abs(each) > LARGEST_WHOLE:
                raise CheckFailed(f"{what} holds a whole number of more than 64 bits", what)
        held = [e.values() if isinstance(e, dict) else e for e in level if isinstance(e, dict | list)]
        level = [each for holder in held for each in holder]


def parse_schema(content: bytes, what: str) -> Schema:
    """A schema of anybody; `Schema.loads` refuses what no schema may say."""
    limits = Limits.here()
    limits.check(f"{what} has", len(content), "schema_bytes", "bytes")
    try:
        text = content.decode()
        # As Understudy writes it, a column begins a line: parsing 200,000 of them takes seconds.
        limits.check(f"{what} has", f"\n{text}".count(COLUMN_HEAD), "columns", "columns")
        # Columns can be written in other ways, each with its facts; a text may hold the sign, too.
        limits.check(f"{what} states", text.count("="), "facts", "facts")
        if "constraints" in text:
            limits.check(f"{what} states rules of", _length_of_rules(tomllib.loads(text)), "rules", "characters")
        schema = Schema.loads(text)
    except CheckFailed:
        raise
    except UnderstudyError as error:
        raise CheckFailed(f"{what} can't be read: {str(error)[:LONGEST_REASON]}", what) from error
    # Half a character, thousands of brackets or digits, or a date before the first year.
    except (ValueError, RecursionError, ArithmeticError) as error:
        raise CheckFailed(f"{what} can't be read: it was changed", what) from error
    limits.check(f"{what} has", len(schema.columns), "columns", "columns")
    limits.check(f"{what} has", sum(c.bins or 0 for c in schema.columns if isinstance(c, Line)), "bins", "bins")
    return schema


def _length_of_rules(raw: dict[str, Any]) -> int:
    rules = raw.get("constraints")
    stated = [rule for rule in rules if isinstance(rule, dict)] if isinstance(rules, list) else []
    return sum(len(str(text)) for rule in stated for text in rule.values())


def check_drawable(schema: Schema, rows: int, what: str) -> None:
    """Refuses more rows than may be drawn of such columns, by how many they are and how wide."""
    limits, columns = Limits.here(), len(schema.released)
    limits.check(f"{what} has {rows:,} rows of {columns:,} columns, which are", rows * columns, "values", "values")
    absent = max([0, *(len(text.encode()) for text in schema.missing_values)])
    width = sum(max(_width(column), absent) for column in schema.released)
    limits.check(f"{what} has {rows:,} rows, which may take", rows * width, "drawn_bytes", "bytes")


def _width(column: Column) -> int:
    """The most bytes that a value of the column is written with, or somewhat more."""
    if isinstance(column, Identifier):
        return PLAIN_WIDTH + MAX_WIDTH + len((column.made_up or "").encode())
    if isinstance(column, Datetime):
        return PLAIN_WIDTH + PLAIN_WIDTH * len(column.format or "")
    if isinstance(column, Categorical) and column.values is not None:
        return max(PLAIN_WIDTH, *(len(str(label).encode()) for label in column.labels))
    return PLAIN_WIDTH
