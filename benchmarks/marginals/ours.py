"""Runs one of our methods: `python -m marginals.ours` in the project's own environment.

The time is that of the public call, from the CSV on disk to the finished release. The rivals are given a frame that
was read before their clock started; what the library imports on first use is imported before ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from .job import Job, Table, run

LAZY = ("duckdb", "pyarrow", "sqlglot")
WITH_TARGET = {"marginals": "marginals"} | {f"{m}+target": m for m in ("aim", "rake", "dp-arf")}


def prepare(job: Job) -> Callable[[], Table]:
    import understudy as us

    for module in LAZY:
        import_module(module)
    schema = us.Schema.load(job.schema)

    def work() -> Table:
        release = us.synthesize(
            us.open(job.train, schema),
            ledger=False,
            method=WITH_TARGET.get(job.method, job.method),
            target=job.target if job.method in WITH_TARGET else None,
            epsilon=job.epsilon,
            delta=job.delta,
            rows=job.rows,
            seed=job.seed,
        )
        return Table(release.arrow.column_names, _rows(release.arrow))

    return work


def _rows(arrow: Any) -> Iterator[tuple[int, ...]]:
    """Row by row; a generator, so that the conversion falls outside the clock, like the rivals'."""
    yield from zip(*(arrow[name].to_pylist() for name in arrow.column_names), strict=True)


if __name__ == "__main__":
    from importlib.metadata import version

    run(version("understudy"), prepare)
