"""Runs a method of smartnoise-synth: `python -m marginals.smartnoise` in an environment that has it.

The domain is declared to its transformer from public facts, so no budget goes into preprocessing. Its noise comes
from OpenDP and can't be seeded: for it a seed is only the number of the repetition. MWEM takes no delta.
"""

from __future__ import annotations

from collections.abc import Callable

from .job import Job, Table, run

SPLIT = {"mwem-split": {"split_factor": 3}}
PURE = ("mwem", "mwem-split")


def prepare(job: Job) -> Callable[[], Table]:
    import numpy as np
    import pandas as pd
    from snsynth import Synthesizer  # type: ignore[import-not-found]
    from snsynth.transform import LabelTransformer, TableTransformer  # type: ignore[import-not-found]

    np.random.seed(job.seed)  # noqa: NPY002 - the rival's own draws are global
    sizes = job.sizes()
    frame = pd.read_csv(job.train)[list(sizes)]
    every_code = pd.DataFrame({name: np.arange(max(sizes.values())) % size for name, size in sizes.items()})
    options = SPLIT.get(job.method, {}) | ({} if job.method in PURE else {"delta": job.delta})

    def work() -> Table:
        transformer = TableTransformer([LabelTransformer(nullable=False) for _ in sizes])
        transformer.fit(every_code)
        synthesizer = Synthesizer.create(job.method.removesuffix("-split"), epsilon=job.epsilon, **options)
        synthesizer.fit(frame, transformer=transformer, preprocessor_eps=0.0)
        return Table(list(sizes), synthesizer.sample(job.rows)[list(sizes)].itertuples(index=False))

    return work


if __name__ == "__main__":
    from importlib.metadata import version

    run(version("smartnoise-synth"), prepare)
