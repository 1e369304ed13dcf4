"""`python -m networks`: methods × seeds on one table, each in its own process; results are kept and runs resumed.

The measure of the field: a tree of depth 10 and gradient boosting learn from synthetic rows and are tested on real ones
that nobody trained on.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from places import RAW, TABLES

from understudy import datasets
from understudy.boundary.schema.domain import Domain

from .job import Job
from .ours import coded

ROOT = Path(__file__).resolve().parents[2]
RESULTS = RAW / "networks.jsonl"
RIVAL = "smartnoise dpctgan"
LACKING = "packaging"
"""What its version of opacus imports and does not ask for."""
TARGETS = {"adult": "income", "covertype": "cover_type"}


def main() -> None:
    asked = argparse.ArgumentParser(prog="python -m networks", description=__doc__)
    asked.add_argument("--table", default="adult", choices=TARGETS)
    asked.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    asked.add_argument("--methods", nargs="+", default=["dp-gan", "dp-ctgan", "pate-gan", RIVAL])
    asked.add_argument("--epsilons", nargs="+", type=float, default=[2.0])
    asked.add_argument("--seeds", type=int, default=5)
    options = asked.parse_args()
    known = {_key(r) for r in _read() if "error" not in r}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.table, options.data, Path(folder))
        for epsilon, method, seed in itertools.product(options.epsilons, options.methods, range(options.seeds)):
            if (options.table, method, epsilon, seed) not in known:
                _append(bench.measure(method, epsilon, seed))
    (TABLES / "networks.md").write_text(report(_read()) + "\n")
    print(report(_read()))


def rival_python() -> str:
    """The environment of the benchmark of marginals, which is made on first use."""
    from marginals.environment import python_of

    python = str(python_of("smartnoise"))
    subprocess.run([python, "-m", "pip", "install", "--quiet", LACKING], check=True)
    return python


class Bench:
    """One table as codes, its hold-out, and where files go."""

    def __init__(self, table: str, data: Path, folder: Path) -> None:
        self.table, self.folder, self.target = table, folder, TARGETS[table]
        self.schema = datasets.schema(table)
        self.domain = Domain.of(self.schema)
        self.train, test = self._files(data)
        self.codes, self.test = (coded(str(f), self.schema, self.domain) for f in (self.train, test))
        np.save(folder / "train.npy", self.codes)

    def _files(self, data: Path) -> tuple[Path, Path]:
        if self.table == "adult":
            return data / "adult.train.csv", data / "adult.test.csv"
        lines = (data / f"{self.table}.csv").read_text().splitlines()
        order = np.random.default_rng(0).permutation(len(lines) - 1) + 1
        cut, files = int(0.8 * len(order)), (self.folder / "train.csv", self.folder / "test.csv")
        for path, rows in zip(files, (order[:cut], order[cut:]), strict=True):
            path.write_text("\n".join([lines[0], *(lines[i] for i in rows)]) + "\n")
        return files

    def measure(self, method: str, epsilon: float, seed: int) -> dict:
        names, out = list(self.domain.names), self.folder / "out.npy"
        rival = method == RIVAL
        train = str(self.folder / "train.npy") if rival else str(self.train)
        sizes = [c.size for c in self.domain]
        delta = len(self.codes) ** -1.1
        job = Job(self.table, method, epsilon, delta, self.target, seed, names, sizes, train, str(out))
        python = rival_python() if rival else sys.executable
        module = "networks.smartnoise" if rival else "networks.ours"
        done = subprocess.run(
            [python, "-m", module, str(job.write(self.folder / "job.json"))],
            capture_output=True, text=True, check=False, cwd=ROOT / "benchmarks",
            env=os.environ | {"OMP_NUM_THREADS": "2"},
        )  # fmt: skip
        facts = {"table": self.table, "method": method, "epsilon": epsilon, "seed": seed}
        if done.returncode:
            return facts | {"error": (done.stderr.strip().splitlines() or ["no message"])[-1]}
        return facts | json.loads(done.stdout.strip().splitlines()[-1]) | self.scores(np.load(out))

    def scores(self, made: np.ndarray) -> dict[str, float]:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.metrics import balanced_accuracy_score, roc_auc_score
        from sklearn.tree import DecisionTreeClassifier

        at = self.domain.names.index(self.target)
        (x, y), (tx, ty) = ((np.delete(c, at, axis=1), c[:, at]) for c in (made, self.test))
        said = DecisionTreeClassifier(max_depth=10, random_state=0).fit(x, y).predict(tx)
        boosted = HistGradientBoostingClassifier(early_stopping=False, random_state=0).fit(x, y)
        chances = np.zeros((len(tx), self.domain.size(self.target)))
        chances[:, boosted.classes_] = boosted.predict_proba(tx)
        binary = chances.shape[1] == 2
        auc = roc_auc_score(ty, chances[:, 1]) if binary else roc_auc_score(ty, chances, multi_class="ovr")
        return {
            "accuracy": float((said == ty).mean()),
            "balanced": float(balanced_accuracy_score(ty, said)),
            "auc": float(auc),
            "pairs": float(np.mean([self._tv(made, a, b) for a, b in itertools.combinations(range(made.shape[1]), 2)])),
        }

    def _tv(self, made: np.ndarray, a: int, b: int) -> float:
        size = self.domain.codings[b].size
        cells = self.domain.codings[a].size * size
        shares = [
            np.bincount(c[:, a].astype(np.int64) * size + c[:, b], minlength=cells) / len(c) for c in (made, self.codes)
        ]
        return 0.5 * float(np.abs(shares[0] - shares[1]).sum())


def report(results: list[dict]) -> str:
    """A Markdown table of means, with the range of the accuracy."""
    lines = [
        "| table | ε | method | runs | tree accuracy (range) | balanced | boosting AUC | pairs TV | seconds | MB |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    kept = sorted(results, key=lambda r: (r["table"], r["epsilon"], r["method"]))
    for (table, epsilon, method), group in itertools.groupby(
        kept, key=lambda r: (r["table"], r["epsilon"], r["method"])
    ):
        runs = [r for r in group if "error" not in r]
        if not runs:
            lines.append(f"| {table} | {epsilon:g} | {method} | 0 | failed | | | | | |")
            continue
        mean = {k: float(np.mean([r[k] for r in runs])) for k in runs[0] if k not in ("table", "method")}
        low, high = min(r["accuracy"] for r in runs), max(r["accuracy"] for r in runs)
        lines.append(
            f"| {table} | {epsilon:g} | {method} | {len(runs)} | {100 * mean['accuracy']:.1f} % "
            f"({100 * low:.1f}–{100 * high:.1f}) | {100 * mean['balanced']:.1f} % | {mean['auc']:.3f} "
            f"| {100 * mean['pairs']:.1f} % | {mean['seconds']:.0f} | {max(r['megabytes'] for r in runs):.0f} |"
        )
    return "\n".join(lines)


def _key(result: dict) -> tuple:
    return result["table"], result["method"], result["epsilon"], result["seed"]


def _read() -> list[dict]:
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def _append(result: dict) -> None:
    with RESULTS.open("a") as file:
        file.write(json.dumps(result) + "\n")
    print(result, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
