"""Our `arf` beside arfpy 0.1.1 (time, likelihood, prediction), and the ages that the published form makes up.

`.venv/bin/python benchmarks/forests/arf.py [--tables adult …] [--box SECONDS] [--seeds N]` writes
benchmarks/results/forests-arf.md. arfpy runs in .bench/arfpy with the older numpy and pandas that it needs. Where it
does not finish in the box, both get a quarter of the rows, and the table says so. Runs of arfpy are kept in
.bench/arfpy-runs; `--again` runs it anew.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from places import DATA, TABLES

from understudy.boundary.schema.column import Integer
from understudy.datasets import schema
from understudy.inference.forest.adversarial_forest import FittedForest
from understudy.inference.forest.density import ForestDensity, Normal
from understudy.inference.forest.trees import LeafBoxes, Trees
from understudy.lab.specimens import arf as adversarial
from understudy.lab.specimens import published_arf
from understudy.lab.specimens.arf import Arf
from understudy.lab.specimens.points import Points

ROOT = Path(__file__).resolve().parents[2]
RIVAL, RUNS = ROOT / ".bench" / "arfpy", ROOT / ".bench" / "arfpy-runs"
PINS = ("numpy==1.26.4", "pandas==2.1.4", "scikit-learn==1.4.2", "scipy==1.12.0", "arfpy==0.1.1")
TARGETS = {"insurance": "smoker", "adult": "income"}
RIVAL_SEEDS, QUARTER_SEEDS = {"insurance": 5, "adult": 1}, 2
"""Of arfpy, which takes more than twenty minutes of a processor for all of Adult, and four for a quarter of it."""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
ALPHA = 0.1
"""For likelihoods: with none, a row with a category that its leaves have not seen is impossible."""
STEPS = ("growing", "density", "rows")


@dataclass(frozen=True)
class Case:
    """A table in two parts."""

    name: str
    train: pa.Table
    test: pa.Table

    @classmethod
    def read(cls, name: str, seed: int = 0) -> Case:
        if (DATA / f"{name}.train.csv").exists():
            return cls(name, _csv(f"{name}.train.csv"), _csv(f"{name}.test.csv"))
        rows = _csv(f"{name}.csv")
        held = np.random.default_rng(seed).random(rows.num_rows) < 0.2
        return cls(name, rows.filter(pa.array(~held)), rows.filter(pa.array(held)))

    def quarter(self) -> Case:
        kept = np.random.default_rng(1).permutation(self.train.num_rows)[: self.train.num_rows // 4]
        return Case(self.name, self.train.take(kept), self.test)


@dataclass(frozen=True)
class Score:
    """What one model is worth."""

    wall: np.ndarray
    processor: np.ndarray
    impossible: float
    """The share of test rows that it gives no probability, without smoothing."""
    likelihood: float
    """The mean log-likelihood of test rows, with α smoothing."""
    auc: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=list(TARGETS), choices=TARGETS)
    parser.add_argument("--box", type=float, default=3000.0, help="seconds that arfpy may take")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--again", action="store_true")
    asked = parser.parse_args()
    _install()
    parts = ["# `arf` beside arfpy 0.1.1", NOTE.format(alpha=ALPHA)]
    for name in asked.tables:
        parts += list(_compared(Case.read(name), asked))
    parts += ["## Impossible ages", AGES, _table(("table", "method", "ε", *AGE_HEADS), list(_ages(asked.tables)))]
    (TABLES / "forests-arf.md").write_text("\n\n".join(parts) + "\n")
    print("\n\n".join(parts))


NOTE = """By `python benchmarks/forests/arf.py`, one thread each. Figures are means over the seeds. Seconds are of the
processor, which other work on the machine disturbs less than the clock. *log P* is the mean log-likelihood of test
rows, numbers rounded as in the table, with α = {alpha} in both; *impossible* is the share of test rows that have no
probability at all with α = 0, the only value that works in arfpy. *AUC*: gradient boosting (scikit-learn) learns from
synthetic rows and is tested on real ones. `merge=False` prunes as arfpy does."""
AGES = "Ages outside the bounds that the schema declares; no private method of ours can make any."
AGE_HEADS = ("outside", "lowest", "highest")


def _compared(case: Case, asked: argparse.Namespace) -> Iterator[str]:
    whole, note, seeds = case, "", range(min(RIVAL_SEEDS[case.name], asked.seeds))
    runs = [_rival(case, seed, asked) for seed in seeds]
    if None in runs:
        note = f" (a quarter of the rows: arfpy did not finish {case.train.num_rows:,} in {asked.box:g} s)"
        case = case.quarter()
        runs = [_rival(case, seed, asked) for seed in range(min(QUARTER_SEEDS, asked.seeds))]
    found = [_theirs(case, *files) for files in runs if files]
    theirs, agreement = [score for score, _ in found], max((a for _, a in found), default=np.nan)
    mine = {merge: [_ours(case, seed, merge) for seed in range(asked.seeds)] for merge in (True, False)}
    yield f"## {case.name}: {case.train.num_rows:,} rows{note}"
    named = {"arfpy 0.1.1": theirs, "`arf`": mine[True], "`arf`, merge=False": mine[False]}
    heads = ("", "seeds", *(f"{s} s" for s in STEPS), "total s", "by the clock s", "impossible", "log P", "AUC")
    yield _table(heads, [(name, *_cells(scores)) for name, scores in named.items() if scores])
    ratio = np.mean([t.processor.sum() for t in theirs]) / np.mean([m.processor.sum() for m in mine[True]])
    real = _auc(case, Points.of(case.train, schema(case.name)), case.train)
    yield (
        f"**{ratio:.0f} times as fast.** Real rows: AUC {real:.4f}. On arfpy's own forest our means and deviations "
        f"differ from its by at most {agreement:.1e} of the column's scale."
    )
    if note:
        heads = ("all rows", *heads[1:])
        yield _table(heads, [("`arf`", *_cells([_ours(whole, seed, True) for seed in range(QUARTER_SEEDS)]))])


def _cells(scores: list[Score]) -> tuple[str, ...]:
    steps = np.mean([s.processor for s in scores], axis=0)
    wall = np.mean([s.wall.sum() for s in scores])
    impossible = np.mean([s.impossible for s in scores])
    known = [_with_spread([getattr(s, k) for s in scores], d) for k, d in (("likelihood", 3), ("auc", 4))]
    times = (*(f"{s:.2f}" for s in steps), f"{steps.sum():.2f}", f"{wall:.2f}")
    return (str(len(scores)), *times, f"{impossible:.4f}", *known)


def _with_spread(values: list[float], digits: int) -> str:
    spread = f" (sd {np.std(values, ddof=1):.{digits}f})" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{spread}"


def _ours(case: Case, seed: int, merge: bool) -> Score:
    import sklearn.ensemble  # noqa: F401 - what is imported once is not timed

    clock = [_now()]
    model = Arf(case.train, schema=schema(case.name), seed=seed, verbose=False, merge=merge)
    clock.append(_now())
    model.forde()
    clock.append(_now())
    made = model.forge(case.train.num_rows)
    clock.append(_now())
    wall, processor = np.diff(clock, axis=0).T
    points = model.points
    print(f"{case.name}, seed {seed}: {processor.sum():.2f} s", file=sys.stderr, flush=True)
    return Score(wall, processor, *_likelihood(points, model.grown, case.test), _auc(case, points, made))


def _theirs(case: Case, npz: Path, synthetic: Path) -> tuple[Score, float]:
    """Its forest under our evaluation of a density, and how far our parameters are from its own."""
    found = np.load(npz)
    points = _lexical(Points.of(case.train, schema(case.name)))
    names = {"left": "children_left", "right": "children_right", "feature": "feature", "threshold": "threshold"}
    nodes = {ours: found[theirs] for ours, theirs in names.items()}
    trees = Trees.joined(found["sizes"], nodes | {"missing_left": np.zeros(len(nodes["left"]), dtype=bool)})
    leaves = LeafBoxes.of(trees, len(points.columns))
    leaf = leaves.number[trees.apply(points.values)]
    grown = FittedForest(trees, leaves, leaf, np.ones_like(leaf, dtype=bool), tuple(found["accuracy"]))
    wall, processor = found["seconds"].T
    score = Score(wall, processor, *_likelihood(points, grown, case.test), _auc(case, points, _csv(synthetic)))
    return score, _agreement(points, grown, found)


def _agreement(points: Points, grown: FittedForest, found: np.lib.npyio.NpzFile) -> float:
    density = ForestDensity.fit(grown.leaves, points.values, points.sizes, grown.leaf)
    leaf = grown.leaves.number[grown.trees.roots[found["tree"].astype(int)] + found["nodeid"].astype(int)]
    worst = 0.0
    for j, name in enumerate(points.names):
        column, mine = density.columns[j], found["variable"] == name
        if isinstance(column, Normal):
            scale = np.abs(points.values[:, j]).max()
            for ours, theirs in ((column.mean, found["mean"]), (column.deviation, found["sd"])):
                worst = max(worst, float(np.abs(ours[leaf[mine]] - theirs[mine]).max() / scale))
    return worst


def _lexical(points: Points) -> Points:
    """With categories in the order of their names, as pandas has them."""
    import dataclasses

    values, labels = points.values.copy(), list(points.labels)
    for j, known in enumerate(points.labels):
        texts = ["?" if label is None else str(label) for label in known]
        order = np.argsort(np.array(texts)) if texts else np.zeros(0, dtype=int)
        labels[j] = tuple(known[i] for i in order)
        if texts:
            values[:, j] = np.argsort(order)[values[:, j].astype(int)]
    return dataclasses.replace(points, values=values, labels=tuple(labels))


def _likelihood(points: Points, grown: FittedForest, test: pa.Table) -> tuple[float, float]:
    rows = points.read(test)
    leaf = grown.locate(rows)
    plain, smooth = (
        ForestDensity.fit(grown.leaves, points.values, points.sizes, grown.leaf, alpha=alpha) for alpha in (0.0, ALPHA)
    )
    impossible = np.isneginf(plain.log_likelihood(rows, leaf, points.steps)).mean()
    found = smooth.log_likelihood(rows, leaf, points.steps)
    return float(impossible), float(found[np.isfinite(found)].mean())


def _auc(case: Case, points: Points, synthetic: pa.Table) -> float:
    """Trained on synthetic rows, tested on real ones; whole numbers are rounded, as arfpy's users have to do."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    place = points.names.index(TARGETS[case.name])
    made, real = points.read(synthetic), points.read(case.test)
    whole = [j for j, c in enumerate(points.columns) if isinstance(c, Integer)]
    made[:, whole] = np.rint(made[:, whole])
    others = [j for j in range(len(points.columns)) if j != place]
    listed = np.array([points.sizes[j] > 0 for j in others])
    model = HistGradientBoostingClassifier(categorical_features=listed, random_state=0)
    model.fit(made[:, others], made[:, place])
    return float(roc_auc_score(real[:, place] == 1, model.predict_proba(real[:, others])[:, 1]))


def _rival(case: Case, seed: int, asked: argparse.Namespace) -> tuple[Path, Path] | None:
    """The files of a run of arfpy; None where it did not finish in the box."""
    stem = RUNS / f"{case.name}-{case.train.num_rows}-{seed}"
    npz, synthetic = stem.with_suffix(".npz"), stem.with_suffix(".csv")
    if npz.exists() and not asked.again:
        return npz, synthetic
    unfinished = stem.with_suffix(".unfinished")
    if unfinished.exists() and float(unfinished.read_text()) >= asked.box and not asked.again:
        return None
    RUNS.mkdir(parents=True, exist_ok=True)
    train = stem.with_suffix(".train.csv")
    pacsv.write_csv(case.train, train)
    command = [RIVAL / "bin" / "python", Path(__file__).with_name("arfpy_run.py"), train, npz, synthetic, seed]
    try:
        subprocess.run(list(map(str, command)), check=True, timeout=asked.box, env=os.environ | ONE_THREAD)
    except subprocess.TimeoutExpired:
        unfinished.write_text(str(asked.box))
        return None
    finally:
        train.unlink()
    return npz, synthetic


def _install() -> None:
    """Once, on first use."""
    if (RIVAL / "bin" / "python").exists():
        return
    subprocess.run([sys.executable, "-m", "virtualenv", "--quiet", "--python", "3.11", str(RIVAL)], check=True)
    subprocess.run([str(RIVAL / "bin" / "python"), "-m", "pip", "install", "--quiet", *PINS], check=True)


def _ages(tables: list[str]) -> Iterator[tuple[str, ...]]:
    for name in tables:
        known, train = schema(name), Case.read(name).train
        yield _age_row(name, "real rows", "", train)
        yield _age_row(name, adversarial.SPECIMEN.name, "", adversarial.specimen(train, known, seed=0).table)
        for epsilon in (0.1, 0.5, 1.0):
            made = published_arf.specimen(train, known, epsilon, seed=0).table
            yield _age_row(name, published_arf.SPECIMEN.name, f"{epsilon:g}", made)


def _age_row(name: str, method: str, epsilon: str, rows: pa.Table) -> tuple[str, ...]:
    column, ages = schema(name)["age"], rows["age"].to_numpy()
    assert isinstance(column, Integer) and column.minimum is not None and column.maximum is not None
    outside = ((ages < column.minimum) | (ages > column.maximum)).mean()
    return name, method, epsilon, f"{100 * outside:.1f} %", str(ages.min()), str(ages.max())


def _csv(name: str | Path) -> pa.Table:
    return pacsv.read_csv(DATA / name)


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heads, ("---",) * len(heads), *rows))


if __name__ == "__main__":
    main()
