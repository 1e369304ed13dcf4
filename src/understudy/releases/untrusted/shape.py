"""The form of a certificate: of which kind each of its values must be, before any of them is used."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, TypeAlias

NUMBER = (int, float)
MAYBE_NUMBER = (int, float, type(None))
TEXTS: dict[type, Any] = {str: str}

Form: TypeAlias = Any
"""A type or several, a mapping of fields to forms, `{str: form}` for any names, or `[form]` for a list of these."""

SPEND = {
    "mechanism": str,
    "asked": str,
    "sensitivity": NUMBER,
    "scale": NUMBER,
    "delta": NUMBER,
    "cells": int,
}
CERTIFICATE = {
    "format": str,
    "asked": {"epsilon": NUMBER, "delta": NUMBER},
    "method": {"name": str, "parameters": dict, "reason": str},
    "neighbours": str,
    "unit": dict,
    "spends": [SPEND],
    "columns": TEXTS,
    "rows": {"synthetic": int, "rule": str},
    "postprocessing_seed": int,
    "secure_randomness": bool,
    "created": str,
    "versions": TEXTS,
    "files": TEXTS,
    "digest": str,
}
MAYBE = {
    "schema_status": (str, type(None)),
    "ledger": (dict, type(None)),
    "audit": (dict, type(None)),
    "imprint": TEXTS,
    "sites": (dict, type(None)),
}
"""What not every format has, or not every release."""
SITES = {"trust": str, "sites": int, "honest": int, "places": int, "trusted": str, "unit": str}
LEDGER = {"name": str, "identity": str, "entry": int}
BOUND = {"view": str, "epsilon": NUMBER, "rho": NUMBER, "mu": NUMBER, "level": NUMBER, "refutes": str}
AUDIT = {
    "verdict": str,
    "steps": TEXTS,
    "subject": str,
    "setting": str,
    "claim": {"epsilon": NUMBER, "delta": NUMBER, "neighbours": str, "rho": MAYBE_NUMBER, "mu": MAYBE_NUMBER},
    "level": NUMBER,
    "bounds": [BOUND],
    "power": MAYBE_NUMBER,
    "seconds": NUMBER,
    "created": str,
    "versions": TEXTS,
}
VERSION = re.compile(r"[A-Za-z0-9._+!-]{1,64}")
"""A package, or its version: both are repeated in sentences."""
MOST_TRAININGS = 4
"""A release has one. The price of each takes the accountant a second or more, so that thousands would take hours."""


def misfit(value: Any, form: Form, where: str = "") -> str | None:
    """The first place at which a value from JSON has another form, or None.

    >>> misfit({"rows": [1, "2"]}, {"rows": [int]})
    'rows.1'
    """
    if isinstance(form, type | tuple):
        # By its exact type: True is an int in Python.
        return None if type(value) in (form if isinstance(form, tuple) else (form,)) else where
    if type(value) is not type(form):
        return where
    if isinstance(form, list):
        found = (misfit(each, form[0], f"{where}.{i}") for i, each in enumerate(value))
    elif str in form:
        found = (misfit(each, form[str], f"{where}.{name}") for name, each in value.items())
    else:
        found = (
            misfit(value[name], each, f"{where}.{name}") if name in value else f"{where}.{name}"
            for name, each in form.items()
        )
    first = next((place for place in found if place is not None), None)
    return None if first is None else first.lstrip(".")


def misfit_of_certificate(raw: Any) -> str | None:
    """Likewise of a whole certificate, with what is there of its optional parts."""
    found = misfit(raw, CERTIFICATE)
    if found is not None:
        return found or "certificate"
    there = {name: form for name, form in MAYBE.items() if name in raw}
    parts = [
        misfit(raw, there),
        misfit(raw.get("ledger") or LEDGER_OF_NOBODY, LEDGER, "ledger"),
        None if raw.get("audit") is None else misfit(raw["audit"], AUDIT, "audit"),
        None if raw.get("sites") is None else misfit(raw["sites"], SITES, "sites"),
        None if is_moment(raw["created"]) else "created",
        None if all(VERSION.fullmatch(text) for pair in raw["versions"].items() for text in pair) else "versions",
        "spends" if sum(bool(s.get("steps")) for s in raw["spends"]) > MOST_TRAININGS else None,
    ]
    return next((part for part in parts if part is not None), None)


LEDGER_OF_NOBODY = {"name": "", "identity": "", "entry": 0}


def is_moment(text: str) -> bool:
    """Whether it is a date and time as ISO 8601 writes them."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
