"""Raw results on disk: a JSON list, one line each, written whole after every measurement, so that a killed run loses
at most one."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from typing import Any, Generic, TypeVar

from places import RAW

Result = dict[str, Any]
Case = TypeVar("Case")


class ResultsCache(Generic[Case]):
    """At most one result for each case; a case is a frozen dataclass, whose fields stand in its result."""

    def __init__(self, name: str, kind: type[Case], order: Callable[[Case], Any] | None = None) -> None:
        self._path, self._kind, self._order = RAW / f"{name}.json", kind, order
        self.results = self._load()

    def add(self, case: Case, result: Result) -> None:
        """Merged with what is on disk by now, under a lock: another run may go on at the same time."""
        with self._locked():
            self.results = self._load() | {case: asdict(case) | result}
            self._save()

    def _load(self) -> dict[Case, Result]:
        entries = json.loads(self._path.read_text()) if self._path.exists() else []
        names = [field.name for field in fields(self._kind)]
        return {self._kind(**{n: entry[n] for n in names if n in entry}): entry for entry in entries}

    def _save(self) -> None:
        cases = sorted(self.results, key=self._order) if self._order else self.results
        lines = ",\n".join(json.dumps(self.results[case], ensure_ascii=False) for case in cases)
        new = self._path.with_suffix(".json.tmp-new")
        new.write_text(f"[\n{lines}\n]\n")
        new.replace(self._path)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._path.with_suffix(".lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
