"""The results of all tools, which hold while the code is the one that was measured."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from results_cache import Result, ResultsCache

from .case import OURS, Case
from .environment import PINS, ROOT

CODE = ("boundary", "inference", "methods", "releases")
"""The packages of ours that a measurement runs through."""


class Cache(ResultsCache[Case]):
    """Knows which results are still those of a tool, and which cases differ in the seed alone."""

    def __init__(self, any_code: bool = False) -> None:
        super().__init__("marginals", Case, _key)
        self._any_code = any_code

    def get(self, case: Case) -> Result | None:
        """The result of a case, unless the code that made it has changed since."""
        result = self.results.get(case)
        needed = {} if self._any_code else identity(case.tool)
        return result if result is not None and needed.items() <= result.items() else None

    def other_seeds(self, case: Case) -> Iterator[Result]:
        """The results of the same case with other seeds."""
        others = (c for c in self.results if c != case and _key(c)[:-1] == _key(case)[:-1])
        return (result for c in others if (result := self.get(c)))


def identity(tool: str) -> Result:
    """What a result depends on: a rival's version; of us, the code itself, since not every edit is a version."""
    return {"code": _our_code()} if tool == OURS else {"version": PINS[tool]}


def _our_code() -> str:
    digest = hashlib.sha256()
    for path in sorted(p for folder in CODE for p in (ROOT / "src" / "understudy" / folder).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _key(case: Case) -> tuple[Any, ...]:
    return (case.table, case.epsilon, case.method, case.tool, case.delta, case.seed)
