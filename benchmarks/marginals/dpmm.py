"""Runs a method of dpmm: `python -m marginals.dpmm` in an environment that has it.

The rows are codes already and their domain is declared, so its own preprocessing, which costs budget, is switched
off. AIM has the model size that is the default of its class; the pipeline would lift the limit.
"""

from __future__ import annotations

from collections.abc import Callable

from .job import Job, Table, run

PIPELINES = {"privbayes": "PrivBayesPipeline", "mst": "MSTPipeline", "aim": "AIMPipeline"}
SIZE = {"aim": {"max_model_size": 80}}


def prepare(job: Job) -> Callable[[], Table]:
    import pandas as pd
    from dpmm import pipelines  # type: ignore[import-not-found]

    sizes = job.sizes()
    frame = pd.read_csv(job.train)[list(sizes)]
    make = getattr(pipelines, PIPELINES[job.method])

    def work() -> Table:
        pipeline = make(
            epsilon=job.epsilon, delta=job.delta, proc_epsilon=None, disable_processing=True, **SIZE.get(job.method, {})
        )
        pipeline.fit(frame, domain=sizes, random_state=job.seed)
        synthetic = pipeline.generate(n_records=job.rows, random_state=job.seed)
        return Table(list(sizes), synthetic[list(sizes)].itertuples(index=False))

    return work


if __name__ == "__main__":
    from importlib.metadata import version

    run(version("dpmm"), prepare)
