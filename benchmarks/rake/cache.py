"""The results of one sub-command on disk: a JSON list, one line each, written whole after every measurement."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields

from marginals.cache import identity
from marginals.case import OURS
from marginals.environment import BENCH
from places import RAW

from .case import Case, Result


class Cache:
    """At most one result for each case; it holds while our code is the one that was measured."""

    def __init__(self, study: str, any_code: bool = False, retry: bool = False) -> None:
        self._path = RAW / f"rake-{study}.json"
        self._code = {} if any_code else identity(OURS)
        self._retry = retry
        self.results = self._load()

    def has(self, case: Case) -> bool:
        result = self.results.get(case)
        if result is None or (self._retry and "failed" in result):
            return False
        return self._code.items() <= result.items()

    def add(self, case: Case, result: Result) -> None:
        """Merged with what is on disk by now, under a lock: another run may go on at the same time."""
        with self._locked():
            self.results = self._load() | {case: asdict(case) | result}
            self._save()

    def _load(self) -> dict[Case, Result]:
        entries = json.loads(self._path.read_text()) if self._path.exists() else []
        return {Case(*(entry[f.name] for f in fields(Case))): entry for entry in entries}

    def _save(self) -> None:
        entries = [self.results[case] for case in sorted(self.results, key=lambda c: c.key)]
        lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
        new = self._path.with_suffix(".json.tmp-new")
        new.write_text(f"[\n{lines}\n]\n")
        new.replace(self._path)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        BENCH.mkdir(exist_ok=True)
        with (BENCH / "rake.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
