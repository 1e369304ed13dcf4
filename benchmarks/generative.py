"""The generative forest beside `rake` and `dp-arf`: errors, prediction, likelihood of test rows, and missing cells.

Tables are coded; ε = 1, δ = 1e-6, real noise; each release is told the target. Likelihood is the mean of log P of test
rows, beside that of the adversarial random forest on the real rows, which is not private. For missing cells a tenth of
those of some test rows is taken away and filled in five times; what came most often is right, or not. Beside it: the
most frequent value of the release, and the nearest of the real rows (not private).
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from marginals.environment import BENCH
from marginals.measurement import prepare_table
from places import TABLES
from results_cache import Result, ResultsCache
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

import understudy as us
from understudy.lab.specimens.arf import Arf

NAMES = ("adult_coded", "mushroom", "nursery", "insurance")
METHODS = ("generative-forest", "dp-arf", "rake", "arf")
EPSILON, DELTA, SEEDS = 1.0, 1e-6, 5
JUDGED, IMPUTED, GAPS, FILLS, NEIGHBOURS = 5_000, 250, 0.1, 5, 5_000
Codes = dict[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    table: str
    method: str
    seed: int


@dataclass(frozen=True)
class Coded:
    """A coded table: real rows, test rows, the size of each column, and the target."""

    train: Codes
    test: Codes
    sizes: dict[str, int]
    target: str
    schema: us.Schema

    @classmethod
    def load(cls, name: str) -> Coded:
        prepare_table(name)
        folder = BENCH / "tables" / name
        sizes = json.loads((folder / "domain.json").read_text())
        target = json.loads((folder / "facts.json").read_text())["target"]
        train, test = (_read(folder / file) for file in ("train.csv", "test.csv"))
        return cls(train, test, sizes, target, us.Schema.load(folder / "schema.toml"))

    def features(self, rows: Codes) -> np.ndarray:
        return np.stack([rows[c] for c in self.sizes if c != self.target], axis=1)


def _read(path: Path) -> Codes:
    import pandas as pd

    return {str(c): v.to_numpy().astype(np.int64) for c, v in pd.read_csv(path).items()}


def measured(table: Coded, case: Case) -> Result:
    if case.method == "arf":
        return {"likelihood": arf_likelihood(table, case.seed)}
    start = time.process_time()
    release = us.synthesize(
        us.open(pa.table(table.train), table.schema),
        epsilon=EPSILON,
        delta=DELTA,
        method=case.method,
        target=table.target,
        rows=len(table.train[table.target]),
        ledger=False,
    )
    spent = time.process_time() - start
    rows = {c: np.asarray(release.arrow.column(c)).astype(np.int64) for c in table.sizes}
    result: Result = {"seconds": round(spent, 1), **errors(table, rows), **imputed(table, release, rows, case.seed)}
    if case.method == "generative-forest":
        judged = pa.table({c: v[:JUDGED] for c, v in table.test.items()})
        result["likelihood"] = float(release.log_density(judged).mean())
    return result


def errors(table: Coded, rows: Codes) -> Result:
    """Mean total variation of pairs and of a hundred triples, and the AUC of boosting on real rows."""
    names, rng = list(table.sizes), np.random.default_rng(0)
    triples = list(itertools.combinations(names, 3))
    triples = [triples[i] for i in rng.permutation(len(triples))[:100]]
    sets = {"tv2": list(itertools.combinations(names, 2)), "tv3": triples}
    found = {key: float(np.mean([apart(table, rows, s) for s in of])) for key, of in sets.items()}
    target = rows[table.target]
    several = np.bincount(target)[target] > 1  # of a class with one row none could be set aside for early stopping
    boosting = HistGradientBoostingClassifier(random_state=0).fit(table.features(rows)[several], target[several])
    odds, truth = boosting.predict_proba(table.features(table.test)), table.test[table.target]
    if table.sizes[table.target] == 2:
        return found | {"auc": float(roc_auc_score(truth, odds[:, 1]))}
    return found | {"accuracy": float((boosting.classes_[odds.argmax(axis=1)] == truth).mean())}


def apart(table: Coded, rows: Codes, columns: tuple[str, ...]) -> float:
    shape = [table.sizes[c] for c in columns]
    shares = []
    for of in (table.train, rows):
        cells = np.ravel_multi_index([of[c] for c in columns], shape)
        shares.append(np.bincount(cells, minlength=int(np.prod(shape))) / len(cells))
    return 0.5 * float(np.abs(shares[0] - shares[1]).sum())


def imputed(table: Coded, release: us.Release, made: Codes, seed: int) -> Result:
    """The share of missing cells that are filled in rightly."""
    rng = np.random.default_rng(seed)
    rows = {c: v[:IMPUTED] for c, v in table.test.items()}
    gaps = {c: rng.random(len(v)) < GAPS for c, v in rows.items()}
    frame = pa.table({c: pa.array(v, mask=gaps[c]) for c, v in rows.items()})
    fills = [release.impute(frame, seed=seed * FILLS + i) for i in range(FILLS)]
    usual = {c: int(np.bincount(made[c]).argmax()) for c in rows}
    nearest = neighbours(table, rows, gaps, rng)
    right: dict[str, list[bool]] = {"filled": [], "mode": [], "nearest": []}
    for c, gap in gaps.items():
        drawn = np.stack([np.asarray(f.column(c)).astype(np.int64)[gap] for f in fills])
        often = [int(np.bincount(column).argmax()) for column in drawn.T]
        right["filled"] += (np.array(often, dtype=np.int64) == rows[c][gap]).tolist()
        right["mode"] += (usual[c] == rows[c][gap]).tolist()
        right["nearest"] += (nearest[c][gap] == rows[c][gap]).tolist()
    return {name: float(np.mean(hits)) for name, hits in right.items()}


def neighbours(table: Coded, rows: Codes, gaps: dict[str, np.ndarray], rng: np.random.Generator) -> Codes:
    """For each cell the most frequent value of the ten real rows that agree with its row in most columns."""
    size = len(table.train[table.target])
    some = rng.choice(size, min(NEIGHBOURS, size), replace=False)
    real = np.stack([table.train[c][some] for c in rows], axis=1)
    own, known = np.stack([rows[c] for c in rows], axis=1), ~np.stack([gaps[c] for c in rows], axis=1)
    found = np.empty_like(own)
    for i in range(len(own)):
        agree = ((real == own[i]) & known[i]).sum(axis=1)
        near = real[np.argpartition(-agree, 10)[:10]]
        found[i] = [np.bincount(column).argmax() for column in near.T]
    return {c: found[:, j] for j, c in enumerate(rows)}


def arf_likelihood(table: Coded, seed: int) -> float:
    """Mean log P of test rows by the adversarial random forest of the real rows, with smoothed categories."""
    model = Arf(pa.table(table.train), verbose=False, schema=table.schema, seed=seed)
    model.forde(alpha=0.1)
    return float(model.log_likelihood(pa.table({c: v[:JUDGED] for c, v in table.test.items()})).mean())


def report(results: dict[Case, Result]) -> str:
    keys = ("tv2", "tv3", "auc", "accuracy", "likelihood", "filled", "mode", "nearest", "seconds")
    head = "table | method | seeds | TV2 | TV3 | AUC | accuracy | log P | filled in | most frequent | nearest | CPU s"
    lines = [f"| {head} |", "|" + " --- |" * (head.count("|") + 1)]
    for name, method in itertools.product(NAMES, METHODS):
        own = [r for c, r in results.items() if (c.table, c.method) == (name, method)]
        if own:
            cells = [_cell([r[k] for r in own if k in r], k) for k in keys]
            lines.append(f"| {name} | `{method}` | {len(own)} | {' | '.join(cells)} |")
    made = f"Made by `scripts/bench generative`: mean ± standard error, ε = {EPSILON:g}, δ = {DELTA:g}, real noise."
    return "\n".join([f"{made} {__doc__.split(chr(10) * 2, 1)[1].strip()}", "", *lines, ""])


def _cell(values: list[Any], key: str) -> str:
    if not values:
        return "–"
    digits = {"seconds": 0, "likelihood": 2, "auc": 3}.get(key, 3 if key not in ("tv2", "tv3") else 4)
    mean = f"{statistics.fmean(values):.{digits}f}"
    if len(values) == 1 or key == "seconds":
        return mean
    return f"{mean} ± {statistics.stdev(values) / len(values) ** 0.5:.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench generative", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--tables", nargs="+", default=NAMES, choices=NAMES)
    parser.add_argument("--report", action="store_true", help="measure nothing, write the page of what is kept")
    said = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    cache = ResultsCache("generative", Case)
    for name in () if said.report else said.tables:
        table = Coded.load(name)
        for seed, method in itertools.product(range(1, said.seeds + 1), METHODS):
            case = Case(name, method, seed)
            if case not in cache.results and not (method == "arf" and seed > 2):
                cache.add(case, measured(table, case))
                print(case, cache.results[case], flush=True)
    (TABLES / "generative.md").write_text(report(cache.results))


if __name__ == "__main__":
    main()
