"""`understudy methods`."""

from __future__ import annotations

from understudy.cli.screen import print_json, print_table
from understudy.lab.specimens.all_specimens import SPECIMENS
from understudy.methods.registry import METHODS, general_methods


def show(as_json: bool) -> None:
    rows = [(m.name, m.guarantee, m.good_for, m.limits) for m in METHODS.values()]
    heads = ("method", "guarantee", "good for", "limits")
    if as_json:
        print_json([dict(zip(heads, row, strict=True)) for row in rows])
        return
    general = ", ".join(m.name for m in general_methods())
    print_table(
        f"Methods (auto, the default: marginals if some are named, else by forecast one of {general})", heads, rows
    )
    print_table(
        "Without privacy (synth --no-privacy, for studies and for rows that are public)",
        ("name", "good for", "limits"),
        [(kind.name, kind.good_for, kind.limits) for kind in SPECIMENS.values()],
    )
