"""`understudy verify`, `replay` and `count`: what can be asked of the folder of a release."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from understudy.cli.screen import print_facts, print_json, progress
from understudy.releases.checking import replay, verify
from understudy.releases.release import Release


def show_verified(folder: Path, as_json: bool) -> None:
    found = verify(folder)
    if as_json:
        print_json(asdict(found))
        return
    spent = f"epsilon {found.spent:.6g} at delta {found.delta:g}, within the {found.epsilon:g} asked for"
    print(f"verified: {found.spends} spends amount to {spent}; {len(found.files)} files are unchanged")
    if not found.claimed:
        print(f"but this release guarantees nothing: {found.void}")


def show_replayed(folder: Path, as_json: bool) -> None:
    with progress(1, quiet=as_json) as begin:
        begin("rebuilding the table")
        found = replay(folder)
    if as_json:
        print_json(asdict(found))
        return
    print(f"replayed: {found.file} ({found.rows:,} rows) rebuilt byte for byte from {found.answers} measurements")


def show_count(folder: Path, expression: str, confidence: float, as_json: bool) -> None:
    with progress(1, quiet=as_json) as begin:
        begin("rebuilding the model")
        counted = Release.load(folder).count(expression, confidence=confidence)
    if as_json:
        print_json({"expression": expression, **asdict(counted)})
        return
    print_facts(
        [
            ("rows", f"about {counted.value:,.0f}"),
            (f"{100 * confidence:g} % interval", f"{counted.low:,} to {counted.high:,}"),
            ("basis", counted.basis),
        ]
    )
