"""Methods of smartnoise-synth as functions that `understudy audit --callable` takes; from the root of the repository:

    understudy audit --callable benchmarks.audits.theirs_smartnoise:mwem --python .bench/smartnoise/bin/python \
        --epsilon 1 --delta 1e-6 --setting full --time-limit 1800 --out .bench/audits/smartnoise-mwem

`scripts/bench marginals` makes the environment. The domain is declared to its transformer, so that no budget goes to
preprocessing, and numbers that would follow the exact row count (rows, rounds of MWEM) are fixed. Its noise can't be
seeded: the seed moves only the draws that it takes from numpy.
"""

from __future__ import annotations

from typing import Any

from .coded import RECORDS, decoded, encoded, sizes_of

ROUNDS = 10


def mwem(frame: Any, epsilon: float, delta: float, seed: int) -> Any:
    """Pure: it has no use for a delta. Columns in fours, since it holds every cell of all columns together."""
    return _release("mwem", frame, seed, epsilon=epsilon, iterations=ROUNDS, marginal_width=2, split_factor=4)


def mst(frame: Any, epsilon: float, delta: float, seed: int) -> Any:
    """Five seconds of a core each run, for its 6,000 iterations can't be changed."""
    return _release("mst", frame, seed, epsilon=epsilon, delta=delta)


def _release(method: str, frame: Any, seed: int, **options: Any) -> Any:
    import numpy as np
    import pandas as pd
    from snsynth import Synthesizer  # type: ignore[import-not-found]
    from snsynth.transform import LabelTransformer, TableTransformer  # type: ignore[import-not-found]

    np.random.seed(seed)  # noqa: NPY002 - the rival's own draws are global
    sizes = sizes_of(frame)
    every_code = pd.DataFrame({name: np.arange(max(sizes.values())) % size for name, size in sizes.items()})
    transformer = TableTransformer([LabelTransformer(nullable=False) for _ in sizes])
    transformer.fit(every_code)
    synthesizer = Synthesizer.create(method, **options)
    synthesizer.fit(encoded(frame), transformer=transformer, preprocessor_eps=0.0)
    return decoded(synthesizer.sample(RECORDS), list(sizes))
