"""Runs one of our methods: `python -m networks.ours JOB`."""

from __future__ import annotations

import numpy as np

from understudy import datasets
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.partition import Grid
from understudy.boundary.tables.sources import open as open_table
from understudy.methods.method import Options
from understudy.releases.synthesis import Plan, synthesize_with

from .job import Job, run


def coded(source: object, schema: object, domain: Domain) -> np.ndarray:
    """Every row as codes of the public domain."""
    whole = Grid(domain.names, tuple(tuple(range(c.size)) for c in domain))
    return open_table(source, schema).read_codes(domain, whole)  # type: ignore[attr-defined, arg-type]


def main() -> None:
    job = Job.read()
    schema = datasets.schema(job.table)
    domain = Domain.of(schema)
    table = open_table(job.train, schema)
    plan = Plan.of(schema, Budget(job.epsilon, job.delta), job.method, Options((job.target,)), None, job.seed)
    made = []

    def work() -> np.ndarray:
        made.append(synthesize_with(table, plan, randomness=ExactRandomness.system()))
        return np.zeros((0, 0))

    run(job, work)
    np.save(job.out, coded(made[0].arrow, schema, domain))


if __name__ == "__main__":
    main()
