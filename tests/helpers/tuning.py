"""Methods with constants of a test's own: fewer particles, smaller pools."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from understudy.methods.method import Options
from understudy.methods.params import Params
from understudy.methods.registry import METHODS


def tuned(tuning: Any, **changes: Any) -> Any:
    """The same constants but for these; a dictionary changes those of a part."""
    parts = {k: tuned(getattr(tuning, k), **v) if isinstance(v, dict) else v for k, v in changes.items()}
    return replace(tuning, **parts)


def tune(monkeypatch: pytest.MonkeyPatch, method: str, params: Params | None = None, **changes: Any) -> None:
    """Other constants of a method, and other options, wherever it is built by its name; on top of earlier changes."""
    known = METHODS[method]

    def build(options: Options, given: Any) -> Any:
        recipe: Any = known.build(options, given if params is None else params)
        return replace(recipe, tuning=tuned(recipe.tuning, **changes))

    monkeypatch.setitem(METHODS, method, replace(known, build=build))
