"""Runs diffprivlib's forest: `python rival.py TABLE EPSILONS SEEDS OUT` in an environment that has it.

It is given bounds and classes from the schema, so that it need not read them off the rows. Categories are numbered in
the order of the schema, or turned into a column of 0 and 1 each; both are run. Reading the file is not timed; turning
its rows into numbers is timed apart from training, once for every split.
"""

from __future__ import annotations

import json
import sys
import time
import tomllib
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from case import LARGE, SCHEMAS, TARGETS, TRAINING_SHARE, files
from diffprivlib.models import RandomForestClassifier  # type: ignore[import-not-found]

ENCODINGS = ("numbered", "one column each")


def columns(table: str) -> dict:
    with (SCHEMAS / f"{table}.toml").open("rb") as file:
        return tomllib.load(file)["columns"]


def encode(frame: pd.DataFrame, table: str, encoding: str) -> tuple:
    """Features, classes, and the bounds of the features."""
    blocks, low, high = [], [], []
    for name, facts in columns(table).items():
        if name == TARGETS[table]:
            continue
        if facts["type"] in ("integer", "number"):
            blocks.append(pd.to_numeric(frame[name]).to_numpy(float)[:, None])
            low.append(facts["min"])
            high.append(facts["max"])
            continue
        values = [str(v) for v in facts.get("values", ("false", "true"))] + (["?"] if facts.get("missing") else [])
        codes = frame[name].map({v: i for i, v in enumerate(values)}).fillna(0).to_numpy(int)
        apart = encoding != "numbered" and len(values) > 2
        blocks.append(np.eye(len(values))[codes] if apart else codes[:, None].astype(float))
        low += [0] * (len(values) if apart else 1)
        high += [1] * len(values) if apart else [len(values) - 1]
    classes = [str(v) for v in columns(table)[TARGETS[table]]["values"]]
    labels = frame[TARGETS[table]].map({v: i for i, v in enumerate(classes)}).to_numpy(int)
    return np.hstack(blocks), labels, (np.array(low, float), np.array(high, float)), len(classes)


def read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def split(whole: tuple, held_out: tuple | None, seed: int) -> tuple:
    if held_out is not None:
        return whole[0], whole[1], held_out[0], held_out[1]
    order = np.random.default_rng(seed).permutation(len(whole[1]))
    cut = int(TRAINING_SHARE * len(order))
    kept, tested = order[:cut], order[cut:]
    return whole[0][kept], whole[1][kept], whole[0][tested], whole[1][tested]


def fit(rows: tuple, whole: tuple, epsilon: float, seed: int, **size: int) -> tuple[float, float]:
    features, labels, tested, expected = rows
    forest = RandomForestClassifier(
        epsilon=epsilon, bounds=whole[2], classes=np.arange(whole[3]), random_state=seed, **size
    )
    start = time.process_time()
    forest.fit(features, labels)
    seconds = time.process_time() - start
    return float((forest.predict(tested) == expected).mean()), seconds


def encoding_seconds(frame: pd.DataFrame, table: str, encoding: str, whole: bool, seed: int) -> float:
    """What it takes to turn the rows of one split, or all of them, into numbers."""
    order = np.random.default_rng(seed).permutation(len(frame))
    rows = frame if whole else frame.iloc[order[: int(TRAINING_SHARE * len(order))]]
    start = time.process_time()
    encode(rows, table, encoding)
    return time.process_time() - start


def main() -> None:
    table, epsilons, seeds, out = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    warnings.simplefilter("ignore")
    learned, tested = files(table)
    frame, test_frame = read(learned), read(tested) if tested else None
    found = []
    for encoding in ENCODINGS:
        whole = encode(frame, table, encoding)
        held_out = encode(test_frame, table, encoding) if test_frame is not None else None
        fit(split(whole, held_out, 0), whole, 1.0, 0)  # untimed: the first fit imports and compiles
        runs = [(e, s, {}) for e in epsilons for s in range(seeds)]
        runs += [(1.0, s, {"n_estimators": LARGE["trees"], "max_depth": LARGE["depth"]}) for s in range(min(seeds, 3))]
        encoding_took = [encoding_seconds(frame, table, encoding, held_out is not None, s) for s in range(seeds)]
        for epsilon, seed, size in runs:
            accuracy, seconds = fit(split(whole, held_out, seed), whole, epsilon, seed, **size)
            run = {"epsilon": epsilon, "seed": seed, "accuracy": accuracy, "training": seconds}
            run |= {"from_frame": seconds + encoding_took[seed]}
            found.append(run | {"method": f"diffprivlib, {encoding}", "large": bool(size)})
    out.write_text(json.dumps({"version": version("diffprivlib"), "runs": found}))


if __name__ == "__main__":
    main()
