"""Runs our predictors on a table: timed from the frame to the fitted predictor, and from rows that are codes already.

The second is to be compared with a rival's training on a matrix of numbers; the first, with its encoding and training.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from understudy.boundary.schema.domain import Domain
from understudy.boundary.tables.cache import EncodedTable
from understudy.datasets import schema
from understudy.predictors.boosting_predictors import PrivateBoosting
from understudy.predictors.classifiers import PrivateForest, PrivateGreedyTree
from understudy.predictors.input_data import codes_of

from .case import LARGE, TARGETS, TRAINING_SHARE, files

METHODS: dict[str, Any] = {
    "PrivateBoosting": lambda epsilon: PrivateBoosting(epsilon),
    "PrivateForest": lambda epsilon: PrivateForest(epsilon),
    "PrivateForest, random": lambda epsilon: PrivateForest(epsilon, structure="random"),
    "PrivateGreedyTree, noisy": lambda epsilon: PrivateGreedyTree(epsilon, splits="noisy"),
}
SMALL, SLOW = 50_000, ("PrivateGreedyTree, noisy",)
"""It buys every column at every level, which takes long and, as small tables show, is not worth it."""
LARGEST: dict[str, Any] = {
    "PrivateForest, random": lambda epsilon: PrivateForest(epsilon, structure="random", **LARGE),
}


def read(path: Any) -> Any:
    import pyarrow.csv as pacsv

    return pacsv.read_csv(path)


def runs_of(table: str, epsilons: tuple[float, ...], seeds: int) -> list[dict[str, Any]]:
    learned, tested = files(table)
    frame, held_out = read(learned), read(tested) if tested else None
    found = []
    methods = {n: m for n, m in METHODS.items() if frame.num_rows <= SMALL or n not in SLOW}
    jobs = [(n, m, e, s, False) for n, m in methods.items() for e in epsilons for s in range(seeds)]
    jobs += [(n, m, 1.0, s, True) for n, m in LARGEST.items() for s in range(min(seeds, 3))]
    jobs.insert(0, jobs[0])  # the first is thrown away: it imports
    for name, make, epsilon, seed, large in jobs:
        kept, test = _split(frame, held_out, seed)
        public, domain = schema(table), Domain.of(schema(table))
        start = time.process_time()
        predictor = make(epsilon).set_params(schema=public).fit(kept, target=TARGETS[table])
        from_frame = time.process_time() - start
        encoded = EncodedTable.of(domain, codes_of(kept, domain, domain.names))
        start = time.process_time()
        make(epsilon).fit(encoded, target=TARGETS[table])
        training = time.process_time() - start
        accuracy = _accuracy(predictor, test, TARGETS[table])
        run = {"epsilon": epsilon, "seed": seed, "accuracy": accuracy, "training": training, "from_frame": from_frame}
        found.append(run | {"method": name, "large": large, "grown": _grown(predictor)})
    return found[1:]


def _grown(predictor: Any) -> list[int]:
    """How many trees, and of the first one the depth and the leaves: settled by the public rule."""
    first, *_ = trees = predictor.trees_
    return [len(trees), first.depth, first.leaves]


def _split(frame: Any, held_out: Any, seed: int) -> tuple[Any, Any]:
    if held_out is not None:
        return frame, held_out
    order = np.random.default_rng(seed).permutation(frame.num_rows)
    cut = int(TRAINING_SHARE * len(order))
    return frame.take(order[:cut]), frame.take(order[cut:])


def _accuracy(predictor: Any, test: Any, target: str) -> float:
    labels = np.array([str(v) for v in test.column(target).to_pylist()])
    return float(np.mean(predictor.predict(test).astype(str) == labels))
