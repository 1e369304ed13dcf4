"""What is measured: one method on one table, at one ε, with one seed.

The names of methods: `rake` is a method of ours, `auto` is whatever the command takes by default, `rake@1a2b3c4` is one
of an earlier commit, and `rake!numpy` one without compiled loops. `smartnoise-aim` is a method of another tool, and
`mbi-aim` is our AIM with the estimator of mbi.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from marginals.cache import identity
from marginals.case import OURS
from results_cache import Result, ResultsCache

TOOLS = ("smartnoise", "dpmm", "mbi")
DELTA = 1e-6
PLAIN = "!numpy"


@dataclass(frozen=True)
class Case:
    """One measurement to be made; its fields name it in the cache."""

    table: str
    method: str
    epsilon: float
    seed: int

    def __str__(self) -> str:
        return f"{self.method} on {self.table}, epsilon {self.epsilon:g}, seed {self.seed}"

    @property
    def key(self) -> tuple[Any, ...]:
        return (self.table, self.epsilon, self.method, self.seed)

    @property
    def tool(self) -> str:
        return tool_of(self.method)

    @property
    def revision(self) -> str:
        """The commit of ours that is measured, where it is not this one."""
        return self.method.partition("@")[2]


def tool_of(method: str) -> str:
    name = method.partition("-")[0]
    return name if name in TOOLS else OURS


class Cache(ResultsCache[Case]):
    """Knows which results still are those of the code."""

    def __init__(self, any_code: bool = False) -> None:
        super().__init__("flagship", Case, lambda case: case.key)
        self._any_code = any_code

    def has(self, case: Case) -> bool:
        result = self.results.get(case)
        return result is not None and (self._any_code or code_of(case).items() <= result.items())

    def valid(self) -> list[Result]:
        return [result for case, result in self.results.items() if self.has(case)]


def code_of(case: Case) -> Result:
    """What a result depends on."""
    return {"code": case.revision} if case.revision else identity(case.tool)
