"""One measurement inside a worker: a release, what it cost, and how far it is from the real table."""

from __future__ import annotations

import time
import traceback
import warnings
from pathlib import Path

from marginals.job import LONGEST_REASON, cpu_seconds, peak_mb

import understudy as us

# Imported now, so that the code that was hashed is the code that runs, whatever is edited while the worker lives.
from understudy.methods import (
    aim,  # noqa: F401
    independent,  # noqa: F401
    mst,  # noqa: F401
)
from understudy.methods.rake import rake  # noqa: F401

from .case import DELTA, Case, Result
from .score import Score
from .table import load
from .variant import patched, wants_target


def measure(case: Case) -> Result:
    """Seconds, memory and scores; or the reason why there are none: hostile tables are there to provoke one."""
    try:
        return _measured(case)
    except Exception as error:
        return {"failed": _reason(error)}


def _measured(case: Case) -> Result:
    table = load(case.table)
    score = Score.against(case.table)
    with warnings.catch_warnings(record=True) as caught, patched(case.variant):
        warnings.simplefilter("always")
        start, cpu = time.perf_counter(), cpu_seconds()
        release = us.synthesize(
            us.open(table.source, table.schema),
            ledger=False,
            method=case.method,
            target=table.target if wants_target(case.variant) else None,
            epsilon=case.epsilon,
            delta=DELTA,
            seed=case.seed,
            test_only_noise_seed=case.seed,
        )
        seconds, cpu, peak = time.perf_counter() - start, cpu_seconds() - cpu, peak_mb()
    cost = {"seconds": round(seconds, 3), "cpu": round(cpu, 3), "peak_mb": round(peak), "rows": release.arrow.num_rows}
    said = sorted({f"{w.category.__name__}: {w.message}"[:LONGEST_REASON] for w in caught})
    return cost | score.of(release.arrow) | ({"warned": said} if said else {})


def _reason(error: Exception) -> str:
    """What went wrong, and the last line of ours that it went through."""
    ours = [f for f in traceback.extract_tb(error.__traceback__) if "understudy" in f.filename]
    where = f" at {Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
    return f"{type(error).__name__}: {error}"[:LONGEST_REASON] + where
