"""What smartnoise-synth releases, as functions that `understudy audit --callable` takes; from the folder benchmarks:

    understudy audit --callable audits.theirs_smartnoise:mwem --python ../.bench/smartnoise/bin/python --epsilon 1 \
        --setting full --time-limit 300 --jobs 1

For `mwem` and `mst` the domain is declared to its transformer, so that no budget goes to preprocessing, and what would
follow the exact row count (rows, rounds of MWEM) is fixed. `mwem_by_default` leaves the domain to it. Its noise can't
be seeded: the seed moves only the draws that it takes from numpy.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from .coded import RECORDS, decoded, encoded, of_fruit, sizes_of

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


@of_fruit
def covariance(frame: Any, epsilon: float, delta: float, seed: int) -> Any:
    """The noisy covariances of weight and size, with bounds that are narrower than the table's: it is told to clip."""
    import numpy as np
    import pandas as pd

    # Version 1.0.5 asks for this module by the name that it had before scikit-learn 0.24.
    sys.modules.setdefault("sklearn.linear_model.base", importlib.import_module("sklearn.linear_model._base"))
    from snsynth.models.dp_covariance import DPcovariance  # type: ignore[import-not-found]

    rows = pd.DataFrame({0: frame["weight"].to_numpy(dtype=float), 1: frame["size"].to_numpy(dtype=float)})
    bounds = pd.DataFrame({0: [10.0, 15.0], 1: [0.0, 3.0]})
    found = DPcovariance(len(rows), [0, 1], bounds, epsilon).release(rows)
    return pd.DataFrame({"weight": np.array(found)})


@of_fruit
def mwem_by_default(frame: Any, epsilon: float, delta: float, seed: int) -> Any:
    """Its own preprocessing is told the kind of each column, and nothing else."""
    from snsynth import Synthesizer

    rows = frame[["colour", "ripe"]]
    synthesizer = Synthesizer.create("mwem", epsilon=epsilon, q_count=50, iterations=5, split_factor=2)
    synthesizer.fit(rows, categorical_columns=list(rows.columns))
    return synthesizer.sample(RECORDS)
