"""`understudy methods`."""

from __future__ import annotations

from understudy.cli.screen import print_json, print_table
from understudy.synthesizers.registry import GENERAL, METHODS


def show(as_json: bool) -> None:
    rows = [(m.name, m.guarantee, m.good_for, m.limits) for m in METHODS.values()]
    heads = ("method", "guarantee", "good for", "limits")
    if as_json:
        print_json([dict(zip(heads, row, strict=True)) for row in rows])
        return
    print_table(
        f"Methods (auto, the default: marginals if some are named, else by forecast one of {', '.join(GENERAL)})",
        heads,
        rows,
    )
