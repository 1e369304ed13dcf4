"""`dp-arf` beside `rake`: `PYTHONPATH=benchmarks .venv/bin/python -m forests.dp_arf [--report] ...`.

Every case is a release in a process of its own, scored by the shared scorer and kept at once in
benchmarks/.results/forests-dp-arf.json; what is there is not measured again without --again. Both methods are told the
target. A variant changes constants of the recipe, by name.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

from marginals.environment import BENCH, python_of
from marginals.job import cpu_seconds, peak_mb
from marginals.measurement import NO_TARGET, SCORER, prepare_table
from marginals.report import spread
from results_cache import Result, ResultsCache

from forests import generated

DELTA = 1e-6
BOX = 1800
SCORES = ("tv1", "tv2", "tv3", "lr_auc", "gbm_auc")
VARIANTS: dict[str, dict[str, Any]] = {
    "": {},
    "proxy: columns alone": {},
    "proxy: direct tree": {"most_paired_columns": 1},
    "leaves in no round": {"first_leaf_round": 1.0},
    "leaves from the first round": {"first_leaf_round": 0.0},
    "leaves in the last half": {"first_leaf_round": 0.5},
    "leaves alone from the first round": {"first_leaf_round": 0.0, "grids_too": False},
    "leaves alone in the last half": {"first_leaf_round": 0.5, "grids_too": False},
    "8 trees a round": {"trees": 8},
    "72 trees a round": {"trees": 72},
    "at most 16 leaves": {"leaves": 16},
    "whole trees only": {"cuts": (1,)},
    "depth 3": {"deepest": 3},
    "no predicting trees": {"predicting": 0.0},
    "FORGE": {},
}
"""What a variant changes: options of the method, and constants of `dp_arf.tuning`."""
OPTIONS = ("trees", "leaves")


@dataclass(frozen=True)
class Case:
    table: str
    epsilon: float
    method: str
    variant: str
    seed: int

    @property
    def key(self) -> tuple[Any, ...]:
        return (self.table, self.epsilon, self.method != "rake", self.variant, self.seed)

    def __str__(self) -> str:
        what = f"{self.method} ({self.variant})" if self.variant else self.method
        return f"{what} on {self.table}, epsilon {self.epsilon:g}, seed {self.seed}"


def main() -> None:
    asked = _parser().parse_args()
    if asked.case:
        print(json.dumps(release(Case(**json.loads(asked.case)), Path(asked.out))))
        return
    cache = ResultsCache("forests-dp-arf", Case, lambda case: case.key)
    if not asked.report:
        for case in _cases(asked):
            if case not in cache.results or asked.again:
                cache.add(case, measure(case))
    print(render(cache.results))


def measure(case: Case) -> Result:
    """In a process of its own; then scored."""
    folder = BENCH / "tables" / case.table
    if not (folder / "facts.json").exists():
        generated.write(case.table, folder) if case.table in generated.TABLES else prepare_table(case.table)
    print(f"{case} ...", end=" ", flush=True)
    conditions = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "load": round(os.getloadavg()[0], 2)}
    with tempfile.TemporaryDirectory(prefix="forests-") as scratch:
        synthetic = Path(scratch) / "synthetic.csv"
        command = [sys.executable, "-m", "forests.dp_arf", "--case", json.dumps(asdict(case)), "--out", str(synthetic)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=BOX, check=False)
        if done.returncode:
            result: Result = {"failed": done.stderr.strip().splitlines()[-1][:300]}
        else:
            result = json.loads(done.stdout.splitlines()[-1]) | {"scores": _score(folder, synthetic)}
    print(result.get("failed") or f"{result['cpu']:.1f} s of CPU, {result['scores']}", flush=True)
    return conditions | result


def release(case: Case, out: Path) -> Result:
    """One release, written as codes."""
    import pyarrow.csv

    import understudy as us

    folder = BENCH / "tables" / case.table
    facts = json.loads((folder / "facts.json").read_text())
    schema = us.Schema.load(folder / "schema.toml")
    with varied(case):
        start, cpu = time.perf_counter(), cpu_seconds()
        made = us.synthesize(
            us.open(folder / "train.csv", schema),
            ledger=False,
            method=case.method,
            options={name: value for name, value in VARIANTS[case.variant].items() if name in OPTIONS},
            target=facts["target"],
            epsilon=case.epsilon,
            delta=DELTA,
            rows=facts["rows"],
            seed=case.seed,
            test_only_noise_seed=case.seed,
        )
        seconds, cpu = time.perf_counter() - start, cpu_seconds() - cpu
    pyarrow.csv.write_csv(made.arrow, out)
    trees = [a for a in made.record if "tree" in a.question.get("kind", "")]
    return {"seconds": round(seconds, 2), "cpu": round(cpu, 2), "peak_mb": round(peak_mb()), "trees": len(trees)}


@contextmanager
def varied(case: Case) -> Iterator[None]:
    """The recipe with other constants, or with a part of it replaced, while one release is made."""
    from understudy.inference.particles.leaf_particles import LeafyModel
    from understudy.methods.dp_arf.dp_arf import DpArfState
    from understudy.methods.dp_arf.tuning import TUNING
    from understudy.methods.registry import METHODS

    constants = {name: value for name, value in VARIANTS[case.variant].items() if name not in OPTIONS}
    method, tuning = METHODS["dp-arf"], replace(TUNING, **constants)
    with ExitStack() as stack:
        METHODS["dp-arf"] = replace(method, build=lambda *of: replace(method.build(*of), tuning=tuning))
        stack.callback(METHODS.__setitem__, "dp-arf", method)
        if case.variant == "proxy: columns alone":
            stack.enter_context(mock.patch.object(DpArfState, "start_from_forest", start_from_columns))
        if case.variant == "FORGE":
            stack.enter_context(mock.patch.object(LeafyModel, "sample", forge))
        yield


def start_from_columns(state: Any, schedule: Any) -> None:
    """No forest of pairs: particles of independent columns."""
    state.start()
    state.particles.rake(state.tuning.passes, sampling=not state.whole)


def forge(model: Any, rows: int, rng: Any) -> dict[str, Any]:
    """Rows as FORGE draws them: a tree, one of its leaves, and each column from the leaf's rows, on its own."""
    import numpy as np

    particles, trees = model.particles, model.particles.leaves
    chosen = particles.draw(rows, rng)
    drawn = {c: v[chosen].copy() for c, v in particles.codes.items()}
    which = rng.integers(0, max(1, len(trees)), rows)
    for i, leaves in enumerate(trees):
        mine = np.flatnonzero(which == i)
        cells = leaves.cells(particles.codes)[chosen]
        order = np.argsort(cells, kind="stable")
        first, count = np.searchsorted(cells[order], cells[mine]), np.bincount(cells)[cells[mine]]
        for column, values in particles.codes.items():
            drawn[column][mine] = values[chosen[order[first + rng.integers(0, count)]]]
    return drawn


def _score(folder: Path, synthetic: Path) -> dict[str, float]:
    facts = json.loads((folder / "facts.json").read_text())
    public = [str(folder / name) for name in ("train.csv", "test.csv", "domain.json")]
    command = [str(python_of("score")), str(SCORER), *public, facts["target"] if facts["binary"] else NO_TARGET]
    calm = os.environ | {"OMP_WAIT_POLICY": "PASSIVE", "PYTHONPATH": ""}
    done = subprocess.run([*command, str(synthetic)], env=calm, capture_output=True, text=True, check=True)
    scores: dict[str, float] = ast.literal_eval(done.stdout.removeprefix(str(synthetic)).strip())
    return scores


def render(results: dict[Case, Result]) -> str:
    """One Markdown table for each table of rows and ε: mean ± standard deviation over the seeds."""
    blocks: dict[tuple[str, float], dict[tuple[str, str], list[Result]]] = {}
    for case, result in results.items():
        if "failed" not in result:
            rows = blocks.setdefault((case.table, case.epsilon), {})
            rows.setdefault((case.method, case.variant), []).append(result)
    return "\n\n".join(_block(*key, blocks[key]) for key in sorted(blocks))


def _block(table: str, epsilon: float, rows: dict[tuple[str, str], list[Result]]) -> str:
    head = ("method", "seeds", *SCORES, "trees", "CPU s", "MB")
    lines = [f"### {table}, epsilon {epsilon:g}, delta {DELTA:g}", "", _line(head), _line(["---"] * len(head))]
    for (method, variant), of in rows.items():
        scores = [spread([r["scores"][s] for r in of if s in r["scores"]], 4) for s in SCORES]
        usage = [f"{statistics.fmean(r[k] for r in of):.0f}" for k in ("trees", "cpu")]
        name = f"{method}: {variant}" if variant else method
        lines.append(_line([name, str(len(of)), *scores, *usage, str(max(r["peak_mb"] for r in of))]))
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cases(asked: argparse.Namespace) -> Sequence[Case]:
    return [
        Case(table, epsilon, method, variant, seed)
        for seed in range(asked.seeds)
        for table in asked.tables
        for epsilon in asked.epsilons
        for method in asked.methods
        for variant in asked.variants
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="forests.dp_arf", description=__doc__.splitlines()[0])
    parser.add_argument("--report", action="store_true", help="print the results that are kept, and measure nothing")
    parser.add_argument("--tables", nargs="+", default=["adult_coded", "mushroom", "insurance"])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 1.0, 10.0])
    parser.add_argument("--methods", nargs="+", default=["rake", "dp-arf"])
    parser.add_argument("--variants", nargs="+", default=[""], choices=list(VARIANTS), metavar="VARIANT")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--again", action="store_true", help="measure what is kept anew")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    main()
