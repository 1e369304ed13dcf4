"""Methods of dpmm as functions that `understudy audit --callable` takes; from the folder benchmarks:

    understudy audit --callable audits.theirs_dpmm:privbayes --python ../.bench/dpmm/bin/python --epsilon 1 \
        --setting full --time-limit 2400 --jobs 1

For `privbayes` and `mst` the domain is declared and rows are codes already, so that dpmm's own preprocessing is off and
the whole budget goes to its mechanism; the other functions go through its preprocessing, as its documentation means it.
The fit, which reads nothing but noisy counts, gets few iterations: that is post-processing, and saves minutes. A
pipeline is made once for each claim and copied, since its search for a noise scale takes a second. The structure of
PrivBayes is chosen by the seed; the noise has no seed.
"""

from __future__ import annotations

import copy
import functools
from typing import Any

from .coded import FEW, RECORDS, decoded, encoded, of_fruit, sizes_of

ITERATIONS = 20
PREPROCESSING = 0.1
"""The share of the budget that goes to preprocessing; by default it is 0.1 beside a budget of 1."""
DOMAIN: dict[str, dict[str, Any]] = {
    "colour": {"categories": ["red", "green", "blue", "violet"]},
    "weight": {"lower": 0.0, "upper": 100.0},
    "size": {"lower": 0, "upper": 3},
    "ripe": {"categories": [False, True]},
    "public": {"categories": ["even", "odd"]},
}


def privbayes(frame: Any, epsilon: float, delta: float, seed: int) -> Any:
    return _release("PrivBayesPipeline", frame, epsilon, delta, seed)


def mst(frame: Any, epsilon: float, delta: float, seed: int) -> Any:
    """Half a minute a run: 2,500 iterations in its selection can't be changed."""
    return _release("MSTPipeline", frame, epsilon, delta, seed)


@of_fruit
def domain_from_rows(frame: Any, epsilon: float, delta: float, seed: int) -> Any:
    """Through its preprocessing, which is told no categories; the columns that have none are left out."""
    return _processed(frame[["colour", "ripe"]], epsilon, delta, seed, {})


@of_fruit
def constant_columns(frame: Any, epsilon: float, delta: float, seed: int) -> Any:
    """Through its preprocessing, which is told the whole domain."""
    return _processed(frame, epsilon, delta, seed, DOMAIN)


def _processed(frame: Any, epsilon: float, delta: float, seed: int, domain: dict[str, Any]) -> Any:
    """With one more column, which tells nothing: a table of constant columns alone can't be fitted."""
    import numpy as np

    public = np.where(np.arange(len(frame)) % 2, "odd", "even")
    rows = frame.assign(public=public)
    pipeline = copy.deepcopy(_pipeline("PrivBayesPipeline", epsilon, delta, processed=True))
    pipeline.fit(rows, domain=dict(domain), random_state=np.random.RandomState(seed))
    made = pipeline.generate(n_records=FEW, random_state=np.random.RandomState(seed))
    return made.drop(columns="public")


def _release(kind: str, frame: Any, epsilon: float, delta: float, seed: int) -> Any:
    import numpy as np

    pipeline, random = copy.deepcopy(_pipeline(kind, epsilon, delta)), np.random.RandomState(seed)
    pipeline.fit(encoded(frame), domain=sizes_of(frame), random_state=random)
    return decoded(pipeline.generate(n_records=RECORDS, random_state=random), list(frame.columns))


@functools.lru_cache
def _pipeline(kind: str, epsilon: float, delta: float, *, processed: bool = False) -> Any:
    """Its two budgets are added up."""
    from dpmm import pipelines  # type: ignore[import-not-found]

    first = PREPROCESSING * epsilon if processed else 0.0
    options: dict[str, Any] = {"proc_epsilon": first or None, "n_bins": 8, "disable_processing": not processed}
    claim = {"epsilon": epsilon - first, "delta": delta}
    return getattr(pipelines, kind)(**claim, **options, n_jobs=1, gen_kwargs={"n_iters": ITERATIONS})
