"""`understudy methods`, and what the command line completes of methods and their options."""

from __future__ import annotations

from typing import Any

from understudy.cli.screen import print_facts, print_json, print_table
from understudy.lab.specimens.all_specimens import SPECIMENS
from understudy.lab.specimens.specimen_result import SpecimenKind
from understudy.methods.method import Method
from understudy.methods.registry import AUTO, METHODS, find_method, general_methods

HEADS = ("method", "guarantee", "good for", "limits")


def show(as_json: bool) -> None:
    """Every method, those without privacy, and why an installed one can't be used."""
    if as_json:
        print_json([_described(m) for m in METHODS.values()])
        return
    general = ", ".join(m.name for m in general_methods())
    print_table(
        f"Methods (auto, the default: marginals if some are named, else by forecast one of {general})",
        HEADS,
        [(m.name, m.guarantee, m.good_for, m.limits) for m in METHODS.values()],
    )
    print_table(
        "Without privacy (synth --no-privacy, for studies and for rows that are public)",
        ("name", "good for", "limits"),
        [(kind.name, kind.good_for, kind.limits) for kind in SPECIMENS.values()],
    )
    for reason in METHODS.offered.refused.values():
        print(f"{reason}.")


def show_one(name: str, as_json: bool) -> None:
    """One method, or one without privacy, with its options."""
    found = SPECIMENS.get(name) or find_method(name)
    described = _described(found)
    if as_json:
        print_json(described)
        return
    print_facts([(head, described[head]) for head in HEADS])
    if rows := found.params.rows():
        print_table("Options (--option NAME=VALUE)", ("option", "default", "must be", "what it is"), rows)
    else:
        print("It has no options of its own.")


def _described(found: Method | SpecimenKind) -> dict[str, Any]:
    guarantee = found.guarantee if isinstance(found, Method) else "none"
    texts = zip(HEADS, (found.name, guarantee, found.good_for, found.limits), strict=True)
    return {**dict(texts), "options": found.params.describe()}


def method_names() -> list[str]:
    return [*METHODS, AUTO, *SPECIMENS]


def option_texts(name: str) -> list[str]:
    """What may follow `--option` for this method: names with an equals sign, and choices where there are some."""
    found = METHODS.get(name) or SPECIMENS.get(name)
    if found is None:
        return []
    declared = found.params.declared().items()
    return [f"{option}={choice}" for option, of in declared for choice in of.choices or ("",)]
