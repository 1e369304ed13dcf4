"""The canaries of the audit of trainings: `PYTHONPATH=benchmarks python -m audits.one_run [--seconds S]`.

Audits dp-gan and dp-ctgan at several ε, honest ones many times and mutants a few times, and sets what one run proves
beside what canaries could prove that nothing disturbs. Runs are kept as they come, so that a benchmark that was stopped
goes on; the table is written to benchmarks/results/audits-one-run.md.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
from places import RAW, TABLES
from scipy.stats import binom

from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.mechanisms.subsampling import Course
from understudy.lab.audits.checks.canaries import guessed, judged
from understudy.lab.audits.checks.training_checks import (
    CANARIES,
    CANARY_TRAINING,
    GUESSED,
    LEVEL,
    CanaryOutcome,
    played,
)
from understudy.lab.audits.games.bounds import curve_of
from understudy.lab.audits.mutants.mutants import harness_of
from understudy.methods.dp_ctgan import dp_ctgan
from understudy.methods.dp_gan import dp_gan
from understudy.methods.parts.networks import RATE, TRAINED_DELTA

RECIPES = {"dp-gan": dp_gan, "dp-ctgan": dp_ctgan}
EPSILONS, DELTA = (1.0, 2.0, 8.0), 1e-5
HONEST_RUNS, MUTANT_RUNS, IDEAL_RUNS = 4, 1, 5
ALARM_RUNS = 100
"""At each ε, of canaries without a network: the level of the bounds themselves."""
MUTANTS = ("half-gradient-noise", "no-clipping", "shuffled-batches")
RARE = 1e-3
"""How rarely the stated number of false alarms may be exceeded by an auditor that keeps its level."""


def wanted() -> list[tuple[int, str, float, str]]:
    """Every run, rounds first, so that a benchmark that was stopped has some of each."""
    kinds = [("", HONEST_RUNS), *((m, MUTANT_RUNS) for m in MUTANTS)]
    runs = [(i, k, e, m) for k, n in kinds for i in range(n) for e in EPSILONS for m in RECIPES]
    return sorted(runs, key=lambda r: r[0])


def one(mutant: str, epsilon: float, method: str) -> dict[str, Any]:
    begun, budget = time.process_time(), Budget(epsilon, DELTA)
    rng = np.random.Generator(np.random.PCG64())
    _, found = played(RECIPES[method](), budget, harness_of(mutant or None), rng)
    if found is None:
        raise SystemExit(f"values shared groups at an epsilon of {epsilon:g}; there is nothing to compare")
    proved = proofs(found)
    return {**proved, "noise": found.course.noise, "paid": found.paid.epsilon, "cpu": time.process_time() - begun}


def proofs(found: CanaryOutcome) -> dict[str, float]:
    """What is proved of the claimed pair (ε, δ) alone, of the curve, and of the curve by independent canaries."""
    alone = max(r.epsilon(LEVEL / 2, found.paid.delta) for r in (found.surest, found.unclipped))
    return {"pair": alone, "tied": found.tied(), "apart": found.apart()}


def reachable(course: Course, paid: Budget) -> dict[str, float]:
    """The median of canaries of full length which nothing but their own noise hides."""
    rng = np.random.Generator(np.random.PCG64(1))
    found = [proofs(ideal(course, paid, rng)) for _ in range(IDEAL_RUNS)]
    return {k: float(np.median([f[k] for f in found])) for k in found[0]}


def ideal(course: Course, paid: Budget, rng: np.random.Generator) -> CanaryOutcome:
    canaries, scores = len(CANARIES.rows), np.zeros(len(CANARIES.rows))
    coins = rng.random(canaries) < 0.5
    for _ in range(course.steps):
        heard = coins * (rng.random(canaries) < course.rate) + course.noise * rng.standard_normal(canaries)
        joined = (heard - 0.5) / course.noise**2
        scores += np.log1p(course.rate * np.expm1(joined))
    units = judged(coins[: CANARIES.units], scores[: CANARIES.units])
    return CanaryOutcome(course, paid, guessed(coins, scores, GUESSED), judged(coins, scores), units)


def alarms(course: Course, paid: Budget) -> int:
    """How many of ALARM_RUNS have their own true curve refuted."""
    rng, curve = np.random.Generator(np.random.PCG64(2)), curve_of(course)
    found = [ideal(course, paid, rng) for _ in range(ALARM_RUNS)]
    return sum(
        any(r.refutes(curve, LEVEL / 3) for r in (f.surest, f.unclipped)) or f.every.refutes_apart(curve, LEVEL / 3)
        for f in found
    )


def table(runs: dict[str, dict[str, Any]]) -> str:
    rows = [
        "| training | ε paid | runs | (ε, δ) alone | curve, whatever ties | curve, independent | refuted | CPU s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    called = 0
    for epsilon in EPSILONS:
        first = next(r for r in runs.values() if r["epsilon"] == epsilon)
        course, paid = Course(RATE, first["noise"], CANARY_TRAINING.steps), Budget(first["paid"], TRAINED_DELTA * DELTA)
        ideal_row, called = (
            " | ".join(f"{v:.2f}" for v in reachable(course, paid).values()),
            called + alarms(course, paid),
        )
        rows.append(f"| reachable | {paid.epsilon:g} | {IDEAL_RUNS} | {ideal_row} | – | – |")
        for mutant in ("", *MUTANTS):
            rows += [_row(runs, mutant, epsilon, method) for method in RECIPES]
    return "\n".join([*rows, "", _alarms(runs), "", _reach(called)])


def _row(runs: dict[str, dict[str, Any]], mutant: str, epsilon: float, method: str) -> str:
    of = [r for r in runs.values() if (r["mutant"], r["epsilon"], r["method"]) == (mutant, epsilon, method)]
    if not of:
        return f"| {method}, {mutant or 'honest'} | – | 0 | – | – | – | – | – |"
    spread = [_spread([r[k] for r in of]) for k in ("pair", "tied", "apart")]
    refuted, cpu = sum(violated(r) for r in of), np.median([r["cpu"] for r in of])
    name = f"{method}, {mutant or 'honest'}"
    return f"| {name} | {of[0]['paid']:g} | {len(of)} | {' | '.join(spread)} | {refuted} | {cpu:.0f} |"


def _spread(values: list[float]) -> str:
    found = f"{np.median(values):.2f}"
    return found if len(values) == 1 else f"{found} ({min(values):.2f}–{max(values):.2f})"


def violated(run: dict[str, Any]) -> bool:
    """As the audit's own check: by either bound on the curve."""
    return max(run["tied"], run["apart"]) > run["paid"]


def _alarms(runs: dict[str, dict[str, Any]]) -> str:
    honest = [r for r in runs.values() if not r["mutant"]]
    return (
        f"{len(CANARIES.rows):,} canaries in each run, {CANARIES.units} of them with a hidden unit; medians, with the "
        f"least and the most. Where several runs are made in one process, later ones reuse its curves: the first took "
        f"{max(r['cpu'] for r in runs.values()):.0f} s of one core. Honest runs: "
        + _level(sum(map(violated, honest)), len(honest))
    )


def _reach(called: int) -> str:
    return "Reachable: canaries of full length, each alone with the noise, without a network. Of those, " + _level(
        called, ALARM_RUNS * len(EPSILONS)
    )


def _level(called: int, runs: int) -> str:
    most = int(binom.isf(RARE, runs, LEVEL))
    return (
        f"{called} of {runs} trainings as declared were called violated (level {LEVEL:g}); an auditor that keeps its "
        f"level exceeds {most} once in {1 / RARE:,.0f} times."
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="audits.one_run", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=np.inf, help="stop after so long; the next call goes on")
    asked, begun = parser.parse_args(), time.monotonic()
    path = RAW / "audits-one-run.json"
    runs: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.exists() else {}
    for i, mutant, epsilon, method in wanted():
        key = f"{mutant or 'honest'} {method} {epsilon:g} {i}"
        if key in runs or time.monotonic() - begun > asked.seconds:
            continue
        runs[key] = {"mutant": mutant, "epsilon": epsilon, "method": method, **one(mutant, epsilon, method)}
        path.write_text(json.dumps(runs, indent=0))
        print(key, runs[key], flush=True)
    text = table(runs)
    (TABLES / "audits-one-run.md").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
