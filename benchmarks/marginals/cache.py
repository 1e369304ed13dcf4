"""The results on disk: one JSON list, written whole after every measurement, so that a killed run loses at most one."""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from places import RAW

from .case import OURS, Case
from .environment import BENCH, PINS, ROOT

PATH = RAW / "marginals.json"
CODE = ("boundary", "inference", "methods", "releases")
"""The packages of ours that a measurement runs through."""
Result = dict[str, Any]


@dataclass
class Cache:
    """At most one result for each case; it holds while the code is the one that was measured."""

    path: Path = PATH
    results: dict[Case, Result] = field(default_factory=dict)
    any_code: bool = False

    @classmethod
    def load(cls, path: Path = PATH, any_code: bool = False) -> Cache:
        entries = json.loads(path.read_text()) if path.exists() else []
        return cls(path, {_case(entry): entry for entry in entries}, any_code)

    def get(self, case: Case) -> Result | None:
        """The result of a case, unless the code that made it has changed since."""
        result = self.results.get(case)
        needed = {} if self.any_code else identity(case.tool)
        return result if result is not None and needed.items() <= result.items() else None

    def add(self, case: Case, result: Result) -> None:
        """Merged with what is on disk by now, under a lock: two runs of different tools may go on at once."""
        with self._locked():
            self.results = Cache.load(self.path).results | {case: asdict(case) | result}
            self._save()

    def other_seeds(self, case: Case) -> Iterator[Result]:
        """The results of the same case with other seeds."""
        others = (c for c in self.results if c != case and _key(c)[:-1] == _key(case)[:-1])
        return (result for c in others if (result := self.get(c)))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        BENCH.mkdir(exist_ok=True)
        with (BENCH / "results.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _save(self) -> None:
        entries = [self.results[case] for case in sorted(self.results, key=_key)]
        lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
        new = self.path.with_suffix(".json.tmp-new")
        new.write_text(f"[\n{lines}\n]\n")
        new.replace(self.path)


def identity(tool: str) -> Result:
    """What a result depends on: a rival's version; of us, the code itself, since not every edit is a version."""
    return {"code": _our_code()} if tool == OURS else {"version": PINS[tool]}


def _our_code() -> str:
    digest = hashlib.sha256()
    for path in sorted(p for folder in CODE for p in (ROOT / "src" / "understudy" / folder).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _case(entry: Result) -> Case:
    return Case(*(entry[name] for name in ("tool", "method", "table", "epsilon", "delta", "seed")))


def _key(case: Case) -> tuple[Any, ...]:
    return (case.table, case.epsilon, case.method, case.tool, case.delta, case.seed)
