"""Methods of dpmm as functions that `understudy audit --callable` takes; from the root of the repository:

    understudy audit --callable benchmarks.audits.theirs_dpmm:privbayes --python .bench/dpmm/bin/python \
        --epsilon 1 --delta 1e-6 --setting full --time-limit 1800 --out .bench/audits/dpmm-privbayes

`scripts/bench marginals` makes the environment. The domain is declared and rows are codes already, so that dpmm's own
preprocessing is off and the whole budget goes to its mechanism. The fit, which reads nothing but noisy counts, gets
few iterations: that is post-processing, and saves minutes. A pipeline is made once for each claim and copied, since
its search for a noise scale takes a second. The structure of PrivBayes is chosen by the seed; the noise has no seed.
"""

from __future__ import annotations

import copy
import functools
from typing import Any

from .coded import RECORDS, decoded, encoded, sizes_of

ITERATIONS = 20


def privbayes(frame: Any, epsilon: float, delta: float, seed: int) -> Any:
    return _release("PrivBayesPipeline", frame, epsilon, delta, seed)


def mst(frame: Any, epsilon: float, delta: float, seed: int) -> Any:
    """Half a minute a run: 2,500 iterations in its selection can't be changed."""
    return _release("MSTPipeline", frame, epsilon, delta, seed)


def _release(kind: str, frame: Any, epsilon: float, delta: float, seed: int) -> Any:
    import numpy as np

    pipeline, random = copy.deepcopy(_pipeline(kind, epsilon, delta)), np.random.RandomState(seed)
    pipeline.fit(encoded(frame), domain=sizes_of(frame), random_state=random)
    return decoded(pipeline.generate(n_records=RECORDS, random_state=random), list(frame.columns))


@functools.lru_cache
def _pipeline(kind: str, epsilon: float, delta: float) -> Any:
    from dpmm import pipelines  # type: ignore[import-not-found]

    options = {"proc_epsilon": None, "disable_processing": True, "n_jobs": 1, "gen_kwargs": {"n_iters": ITERATIONS}}
    return getattr(pipelines, kind)(epsilon=epsilon, delta=delta, **options)
