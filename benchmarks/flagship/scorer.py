"""Scores a synthetic table: `python scorer.py JUDGE FOLDER CODES VALUES` in the scorer's environment; prints JSON.

JUDGE is the shared score.py, whose distances and classifiers are used as they are. What it has not: tables of hundreds
of columns (some of their pairs and triples are taken), targets of many classes, and numbers as numbers.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

MOST_COLUMNS, MOST_PAIRS, MOST_TRIPLES = 40, 400, 100
EXPECTED = 5
"""A declared value of which so many rows are expected should occur at all: else chi-square is infinite."""


def main(judge_path: str, folder: str, codes_path: str, values_path: str) -> dict:
    judge, here = _module(judge_path), Path(folder)
    facts, domain = (json.loads((here / f"{name}.json").read_text()) for name in ("facts", "domain"))
    real, codes = pd.read_csv(here / "codes.csv"), pd.read_csv(codes_path)
    target, tested = facts["target"], bool(facts["test"])
    if tested and domain[target] == 2:
        found = judge.score(real, pd.read_csv(here / "test-codes.csv"), codes, domain, target)
    elif len(domain) <= MOST_COLUMNS:
        found = judge.score(real, None, codes, domain, "")
    else:
        found = _wide(judge, real, codes, domain)
    found["absent"] = sum(_absent(real[c], codes[c]) for c in facts["labels"])
    if tested and domain[target] > 2:
        found["accuracy"] = _accuracy(pd.read_csv(values_path), pd.read_csv(facts["test"]), target)
    if 1 < len(facts["numbers"]) < len(domain):
        found |= _numbers(pd.read_csv(facts["train"]), pd.read_csv(values_path), facts["numbers"])
    return {name: round(float(value), 6) for name, value in found.items()}


def _module(path: str):
    spec = importlib.util.spec_from_file_location("judge", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _wide(judge, real: pd.DataFrame, codes: pd.DataFrame, domain: dict) -> dict:
    rng, names = np.random.default_rng(0), list(domain)
    sets = {
        "tv1": [(c,) for c in names],
        "tv2": [tuple(rng.choice(names, 2, replace=False)) for _ in range(MOST_PAIRS)],
        "tv3": [tuple(rng.choice(names, 3, replace=False)) for _ in range(MOST_TRIPLES)],
    }
    return {name: judge.total_variation(real, codes, some, domain) for name, some in sets.items()}


def _absent(real: pd.Series, codes: pd.Series) -> int:
    """How many values that should have five rows have none."""
    expected = real.value_counts(normalize=True) * len(codes)
    return len(set(expected.index[expected >= EXPECTED]) - set(codes))


def _accuracy(synthetic: pd.DataFrame, test: pd.DataFrame, target: str) -> float:
    import lightgbm as lgb

    x = [c for c in test if c != target]
    boosting = lgb.LGBMClassifier(n_estimators=100, verbose=-1, n_jobs=2).fit(synthetic[x], synthetic[target])
    return float((boosting.predict(test[x]) == test[target]).mean())


def _numbers(real: pd.DataFrame, synthetic: pd.DataFrame, names: list[str]) -> dict:
    """The mean absolute error of all correlations of two numbers, and the Wasserstein-1 distance of charges."""
    real, synthetic = (t[names].apply(pd.to_numeric, errors="coerce") for t in (real, synthetic))
    # A constant column has no correlation with any other; none at all is what it says.
    gaps = (real.corr().fillna(0) - synthetic.corr().fillna(0)).abs()
    found = {"correlation": np.mean([gaps.loc[a, b] for a, b in itertools.combinations(names, 2)])}
    if "charges" in names:
        levels = (np.arange(10_000) + 0.5) / 10_000
        found["wasserstein"] = np.abs(real.charges.quantile(levels) - synthetic.charges.quantile(levels)).mean()
    return found


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
