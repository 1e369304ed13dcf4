"""The results of one sub-command, which hold while our code is the one that was measured."""

from __future__ import annotations

from marginals.cache import identity
from marginals.case import OURS
from results_cache import ResultsCache

from .case import Case


class Cache(ResultsCache[Case]):
    """Knows whether a case has to be measured."""

    def __init__(self, study: str, any_code: bool = False, retry: bool = False) -> None:
        super().__init__(f"rake-{study}", Case, lambda case: case.key)
        self._code = {} if any_code else identity(OURS)
        self._retry = retry

    def has(self, case: Case) -> bool:
        result = self.results.get(case)
        if result is None or (self._retry and "failed" in result):
            return False
        return self._code.items() <= result.items()
