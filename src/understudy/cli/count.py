"""`understudy count`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from understudy.cli.screen import print_facts, print_json, progress
from understudy.releases.release import Release


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
