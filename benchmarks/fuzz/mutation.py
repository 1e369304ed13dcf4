"""Ways to spoil bytes, texts and nested values, and the odd values to spoil them with."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from random import Random
from typing import Any

ODD_TEXTS = (
    "", " ", "\t", "\n", "\r\n", "\r", "\x00", "\x07", "\x1b]0;owned\x07", "\x1b[31mred", "\x9b2J", "\u2028", "\u202e",
    "\u200b", "\ufeff", "é", "e\u0301", "ß", "İ", "😀", "\U0010ffff", "١٢", "ＡＢ", "'", '"', "''", '""', "`", "\\",
    "\\'", "%s", "{}", "{0}", "{x!r:>9}", "${x}", "$$", ";", "--", "/*", "*/", "a,b", "a;b", "a|b", "=1+1", "@x", "+1",
    "-1", "0", "00", "1e5", "1e400", "-1e-400", "0x10", "1_000", "1.", ".5", "nan", "NaN", "inf", "-Infinity", "null",
    "None", "NULL", "NA", "?", "true", "TRUE", "f", "yes", "2020-02-30", "0000-00-00", "9999-12-31 23:59:59",
    "2021-01-01T00:00:00+14:00", "24:00", "understudy_code_0", "rowid", "__class__", "constructor", "private", "select",
    "../../x", "/dev/null", "CON", "x" * 70, "x" * 3_000, "é" * 400, "<script>alert(1)</script>", "&amp;", "]]>",
    "=HYPERLINK(\"http://x\")", "'; DROP TABLE people; --", "postgresql://u:pw@h/d",
)  # fmt: skip
ODD_NUMBERS = (
    0, 1, -1, 2, 3, 7, 10, 255, 256, 1_000, 65_536, 10**6, 2**31 - 1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, 2**63,
    -(2**63) - 1, 2**64, 10**30, 10**400, -(10**400), 0.0, -0.0, 0.5, -0.5, 1.5, 1e-9, 1e-300, 5e-324, 1e300, 1.8e308,
    float("inf"), float("-inf"), float("nan"),
)  # fmt: skip
ODD_BYTES = (
    b"\x00",
    b"\xff",
    b"\x80",
    b"\n",
    b"\r",
    b'"',
    b",",
    b"\x1b",
    b"\x7f",
    b"\xef\xbb\xbf",
    b"\xc3",
    b"\x1f\x8b",
)
DEEP = 5_000


def odd_value(draw: Random, deep: bool = False) -> Any:
    """A value of any kind that JSON knows; `deep` ones are nested beyond what a stack holds."""
    kind = draw.randrange(12 if deep else 11)
    if kind < 4:
        return draw.choice(ODD_NUMBERS)
    if kind < 7:
        return draw.choice(ODD_TEXTS)
    if kind < 11:
        return draw.choice([None, True, False, [], {}, [None], [[]], {"": {}}, [1, "1"], {"kind": "x"}, [0] * 50, "é"])
    nested: Any = []
    for _ in range(DEEP):
        nested = [nested]
    return nested


def spoiled_bytes(draw: Random, content: bytes, times: int = 4) -> bytes:
    """One to so many changes: bits, bytes, pieces cut, doubled, moved or put in, or the end cut off."""
    spoiled = bytearray(content)
    for _ in range(draw.randint(1, times)):
        size = len(spoiled)
        at, length = draw.randrange(size + 1), draw.choice([1, 1, 2, 4, 16, 64, 512])
        match draw.randrange(9):
            case 0 | 1 if at < size:
                spoiled[at] ^= 1 << draw.randrange(8)
            case 2 if at < size:
                spoiled[at] = draw.choice([0, 255, 127, 128, 10, 34, 44, 48, draw.randrange(256)])
            case 3:
                del spoiled[at : at + length]
            case 4:
                spoiled[at:at] = spoiled[at : at + length]
            case 5:
                spoiled[at:at] = draw.choice(ODD_BYTES) * draw.choice([1, 1, 3, 40])
            case 6:
                piece = spoiled[at : at + length]
                del spoiled[at : at + length]
                there = draw.randrange(len(spoiled) + 1)
                spoiled[there:there] = piece
            case 7:
                spoiled[at : at + length] = bytes(len(spoiled[at : at + length]))
            case 8 if draw.random() < 0.4:
                del spoiled[at:]
    return bytes(spoiled)


def spoiled_words(draw: Random, words: Sequence[str], others: Sequence[str]) -> str:
    """Words of which one to three were put in, taken out, doubled or exchanged."""
    made = list(words)
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(len(made)) if made else 0
        match draw.randrange(5):
            case 0:
                made.insert(at, draw.choice(others))
            case 1:
                made.insert(at, f" {draw.choice(others)} ")
            case 2 if made:
                made.pop(at)
            case 3 if made:
                made.insert(at, draw.choice(made))
            case 4 if made:
                made[at] = draw.choice(others)
    return "".join(made)


def spoiled_value(draw: Random, value: Any, times: int = 2, deep: bool = False) -> Any:
    """A nested value with one to so many changes in it: replaced, removed, doubled, renamed, of another type."""
    made = copy.deepcopy(value)
    for _ in range(draw.randint(1, times)):
        made = _spoiled_once(draw, made, deep)
    return made


def _spoiled_once(draw: Random, value: Any, deep: bool) -> Any:
    places = list(_places(value))
    if not places:
        return odd_value(draw, deep)
    # Deep places are many: half of the changes go to the top, where the meaning is.
    if draw.random() < 0.5:
        places = places[: max(1, len(places) // 8)]
    holder, key = draw.choice(places)
    old = holder[key]
    match draw.randrange(9):
        case 0 | 1 | 2:
            holder[key] = odd_value(draw, deep)
        case 3:
            del holder[key]
        case 4:
            holder[key] = [old] if draw.random() < 0.5 else {"": old}
        case 5:
            holder[key] = _other_type(draw, old)
        case 6 if isinstance(holder, dict):
            holder[draw.choice(ODD_TEXTS) if draw.random() < 0.7 else f"{key}x"] = holder.pop(key)
        case 7 if isinstance(holder, list):
            holder.insert(draw.randrange(len(holder) + 1), copy.deepcopy(old))
        case _:
            other, there = draw.choice(places)
            holder[key] = copy.deepcopy(other[there])
    return value


def _other_type(draw: Random, old: Any) -> Any:
    if isinstance(old, bool):
        return draw.choice([int(old), str(old), not old])
    if isinstance(old, int | float):
        return draw.choice([str(old), old + 1, old - 1, -old, old * 2, old / 2 if abs(old) < 1e300 else 0, bool(old)])
    if isinstance(old, str):
        return draw.choice([list(old), {old: old}, old + draw.choice(ODD_TEXTS), old[: len(old) // 2], old.upper()])
    if isinstance(old, list):
        return draw.choice([{str(i): v for i, v in enumerate(old)}, old * 2, old[::-1], old[:-1], old[:1]])
    if isinstance(old, dict):
        return draw.choice([list(old), list(old.values()), dict(list(old.items())[::-1]), str(old)])
    return draw.choice(ODD_TEXTS)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every place of a nested value as what holds it and its key there, the outer ones first."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    for holder in waiting:
        if isinstance(holder, dict):
            keys: Sequence[Any] = list(holder)
        elif isinstance(holder, list):
            keys = range(len(holder))
        else:
            continue
        found += [(holder, key) for key in keys]
        waiting += [holder[key] for key in keys]
    return found
