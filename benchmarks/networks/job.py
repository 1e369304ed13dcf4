"""One run in a process of its own: which method, which files, which seed. Needs nothing but numpy."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Job:
    """A run: rows come from `train`, an array of codes, and the synthetic codes go to `out`."""

    table: str
    method: str
    epsilon: float
    delta: float
    target: str
    seed: int
    names: list[str]
    sizes: list[int]
    train: str
    out: str

    @classmethod
    def read(cls) -> Job:
        return cls(**json.loads(Path(sys.argv[1]).read_text()))

    def write(self, path: Path) -> Path:
        path.write_text(json.dumps(asdict(self)))
        return path


def run(job: Job, work: Callable[[], np.ndarray]) -> None:
    """Does the work, keeps the codes, and prints seconds and the largest memory in megabytes."""
    start = time.perf_counter()
    codes = work()
    seconds = time.perf_counter() - start
    np.save(job.out, codes.astype(np.int32))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "megabytes": peak}))
