"""arfpy 0.1.1 on one table, in an environment of its own: `python arfpy_run.py TRAIN.csv OUT.npz SYNTHETIC.csv SEED`.

Writes the synthetic rows, the pruned trees as arrays, the parameters of its density, and the seconds of growing,
estimating and forging: by the clock, and of the processor.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from arfpy import arf

NODES = ("children_left", "children_right", "feature", "threshold")


def main(train: str, out: str, synthetic: str, seed: str) -> None:
    warnings.filterwarnings("ignore")
    np.random.seed(int(seed))  # noqa: NPY002 - arfpy draws from the global generator
    rows = pd.read_csv(train, keep_default_na=False)
    clock = [_now()]
    model = arf.arf(rows, verbose=False)
    clock.append(_now())
    model.forde()
    clock.append(_now())
    made = model.forge(len(rows))
    clock.append(_now())
    made.to_csv(synthetic, index=False)
    numbers = model.params.sort_values(["tree", "nodeid", "variable"])
    half = Path(out).with_suffix(".half.npz")
    np.savez_compressed(
        half,
        seconds=np.diff(clock, axis=0),
        accuracy=model.acc,
        **_trees(model),
        **{name: numbers[name].to_numpy() for name in ("tree", "nodeid", "mean", "sd")},
        variable=numbers["variable"].to_numpy().astype(str),
    )
    half.rename(out)  # whole or not at all


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _trees(model: arf.arf) -> dict[str, np.ndarray]:
    """The nodes of all trees, one after the other."""
    trees = [e.tree_ for e in model.clf.estimators_]
    nodes = {name: np.concatenate([getattr(t, name) for t in trees]) for name in NODES}
    return {**nodes, "sizes": np.array([t.node_count for t in trees])}


if __name__ == "__main__":
    main(*sys.argv[1:])
