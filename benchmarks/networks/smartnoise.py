"""Runs dpctgan of smartnoise-synth on codes: `python -m networks.smartnoise JOB`, in an environment that has it.

The domain is declared to its transformer from public facts, so that no budget goes into preprocessing.
"""

from __future__ import annotations

import numpy as np

from .job import Job, run


def main() -> None:
    import pandas as pd
    import torch
    from snsynth import Synthesizer  # type: ignore[import-not-found]
    from snsynth.transform import ChainTransformer, LabelTransformer, OneHotEncoder, TableTransformer  # type: ignore[import-not-found]

    job = Job.read()
    torch.manual_seed(job.seed)
    np.random.seed(job.seed)  # noqa: NPY002 - the rival's own draws are global
    frame = pd.DataFrame(np.load(job.train), columns=job.names)
    every = pd.DataFrame({n: np.arange(max(job.sizes)) % s for n, s in zip(job.names, job.sizes, strict=True)})

    def work() -> np.ndarray:
        chain = [ChainTransformer([LabelTransformer(nullable=False), OneHotEncoder()]) for _ in job.names]
        transformer = TableTransformer(chain)
        transformer.fit(every)
        synthesizer = Synthesizer.create("dpctgan", epsilon=job.epsilon, delta=job.delta)
        synthesizer.fit(frame, transformer=transformer, preprocessor_eps=0.0)
        return synthesizer.sample(len(frame))[job.names].to_numpy().astype(np.int64)

    run(job, work)


if __name__ == "__main__":
    main()
