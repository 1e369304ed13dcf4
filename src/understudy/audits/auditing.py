"""`understudy.audit`: tries to refute what a method claims, on tables that were made up for it."""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from understudy.attacks import audit as typed
from understudy.attacks.audit import DOES_NOT_APPLY, FAILED, PASSED, Bound, Check, Claim, Matrix, Step
from understudy.audits.asked import LEVEL, Asked
from understudy.audits.game import cut
from understudy.audits.games import Games
from understudy.audits.inside import CONFORMANCE, SENSITIVITY, TAINT, Inside
from understudy.audits.mutants import MUTANTS
from understudy.audits.registry import SUBJECTS, TRAINED, applies, is_opaque, rig_of
from understudy.audits.setting import SETTINGS, setting_of
from understudy.audits.training import DRAWN, MOVED, ONE_RUN, looks_at
from understudy.audits.training import MUTANTS as TRAINING_MUTANTS
from understudy.audits.witness import Ask
from understudy.errors import InputError, MethodError
from understudy.files import write_atomically
from understudy.privacy.budget import Budget
from understudy.releases.synthesis import DEFAULT_DELTA, versions
from understudy.reports import audit as audit_report
from understudy.schema.schema import ADD_REMOVE, NEIGHBOURS
from understudy.studies.result import report_writer, save_figures

Progress = Callable[[str], None]
GAME = ("game", "Distinguishing game", "Can two tables that differ in one person be told apart better than is claimed?")
CANARIES = ("canaries", "Canaries in one run", "Are people who were trained on recognised better than is claimed?")
OUTSIDE = "only its rows can be looked at: it is not run through a curator of ours"
TOO_SHORT = "time was up before a game had enough runs"
NO_GRADIENTS = "it trains nothing by gradients"
TOO_SLOW = "training takes too long for thousands of runs; canaries are looked for in one"
TRAINED_BEFORE = "what is asked before the training is asked by other methods, too, and looked at there"
VOTES_ALONE = "its rows are only voted on, and votes have the noise of other counts"


class Audit(typed.Audit):
    """What an audit found, able to show itself."""

    def to_html(self) -> str:
        """The report as one page that needs nothing else."""
        return audit_report.render(self)

    def save(self, path: str | Path) -> None:
        """Writes the report (.html) or the result (.json), by the ending of the path."""
        path = Path(path)
        write_atomically(path, report_writer(path, {".html": self.to_html, ".json": self.to_json})().encode())

    def save_figures(self, folder: str | Path, format: str = "svg") -> list[Path]:
        """Writes every picture of the report as a file of its own, for papers and slides."""
        return save_figures(audit_report.pictures(self), Path(folder), format)

    def _repr_html_(self) -> str:
        return audit_report.render_brief(self)


def audit(
    method: str | None = None,
    *,
    epsilon: float = 1.0,
    delta: float = DEFAULT_DELTA,
    neighbours: str = ADD_REMOVE,
    setting: str = "quick",
    mutant: str | None = None,
    function: str | None = None,
    python: str | Path | None = None,
    level: float = LEVEL,
    time_limit: float | None = None,
    out: str | Path | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Tries to refute the claim of a method (by its name), or of a function ("module:name", in any Python).

    No private row is read: methods are run on small tables that differ in one person. `level` is how rarely a correct
    method is called a violation. With `out`, the rounds of the games are kept in that folder, and an audit that was
    stopped goes on where it was. `mutant` breaks the method on purpose, to see that the auditor sees it.
    """
    if (method is None) == (function is None):
        raise InputError("an audit needs either the name of a method or a function, such as module:name", method)
    if function is not None and (":" not in function or mutant is not None):
        raise InputError(f"function {function!r} must be module:name, and can't have a mutant", function)
    if not 0 < level <= 0.5:
        raise InputError(f"level ({level}) must be above 0 and at most 0.5", level)
    if time_limit is not None and not time_limit > 0:
        raise InputError(f"the time limit ({time_limit}) must be above 0 seconds", time_limit)
    if method in TRAINED:
        return _audit_training(str(method), Claim(epsilon, delta, neighbours, None, None), setting, level, mutant)
    chosen = setting_of(setting)
    chosen = chosen if time_limit is None else dataclasses.replace(chosen, seconds=float(time_limit))
    rig_of(mutant)
    if mutant is not None and is_opaque(method or ""):
        raise InputError(f"{method!r} is a specimen, which is broken already, and can't have a mutant", mutant)
    if neighbours not in NEIGHBOURS:
        raise InputError(f"neighbours ({neighbours!r}) must be one of {', '.join(NEIGHBOURS)}", neighbours)
    budget, runner = Budget(epsilon, delta), str(python or sys.executable)
    asked = Asked(method, function, mutant, budget, chosen, level, runner, neighbours)
    return _audit(asked, _jobs(jobs), Path(out) if out else None, progress or (lambda text: None))


def _jobs(asked: int | None) -> int:
    if asked is not None and not (isinstance(asked, int) and asked >= 1):
        raise InputError(f"jobs ({asked}) must be a whole number of at least 1", asked)
    return asked or os.cpu_count() or 1


def _audit(asked: Asked, jobs: int, out: Path | None, progress: Progress) -> Audit:
    begun, looked = time.monotonic(), asked.pairs()
    inside = None if asked.opaque else Inside(asked, looked, progress)
    steps = [Step(*words, reason=OUTSIDE) for words in (SENSITIVITY, CONFORMANCE, TAINT)]
    steps = steps if inside is None else inside.steps()
    claim = _claim(asked, inside.asks if inside else [])
    playing = time.monotonic()
    bounds = Games(asked, looked, jobs, out, progress).bounds(claim)
    if not bounds and inside is None:
        raise InputError(f"the time limit ({asked.setting.seconds:g} s) is too short for any game; give more", asked)
    played = round(time.monotonic() - playing, 1)
    steps.append(Step(*GAME, tuple(map(_judged, bounds)), played, reason="" if bounds else TOO_SHORT))
    steps.append(Step(*CANARIES, reason=OUTSIDE if inside is None else NO_GRADIENTS))
    return Audit(
        asked.name,
        asked.kind,
        asked.setting.name,
        claim,
        asked.level,
        tuple(p.facts for p in looked),
        tuple(steps),
        tuple(bounds),
        inside.power() if inside else None,
        round(time.monotonic() - begun, 1),
        datetime.now(UTC).isoformat(timespec="seconds"),
        versions(),
    )


def _audit_training(method: str, claim: Claim, setting: str, level: float, mutant: str | None) -> Audit:
    """From inside, and in one run: see `training`."""
    begun = time.monotonic()
    found = {c.name: c for c in looks_at(method, Budget(claim.epsilon, claim.delta), mutant)}
    steps = [
        Step(*words, tuple(found[n] for n in names if n in found), reason=reason)
        for words, names, reason in (
            (SENSITIVITY, MOVED, ""),
            (CONFORMANCE, DRAWN, "" if found.keys() & set(DRAWN) else VOTES_ALONE),
            (TAINT, (), TRAINED_BEFORE),
            (GAME, (), TOO_SLOW),
            (CANARIES, (ONE_RUN,), "" if ONE_RUN in found else VOTES_ALONE),
        )
    ]
    name = f"{method} with mutant {mutant}" if mutant else method
    taken, made = round(time.monotonic() - begun, 1), datetime.now(UTC).isoformat(timespec="seconds")
    kind = "mutant" if mutant else "synthesizer"
    return Audit(name, kind, setting, claim, level, (), tuple(steps), (), None, taken, made, versions())


def _claim(asked: Asked, asks: Sequence[Ask]) -> Claim:
    """With ρ where our own accountant claims it, and μ where all noise is Gaussian."""
    budget = asked.budget
    rho = None if asked.opaque or budget.pure else float(budget.capacity.value)
    spends = [s for a in asks for s in a.spends if s.mechanism != "public"]
    gaussian = bool(spends) and all(s.mechanism == "discrete-gaussian" for s in spends)
    mu = (2 * rho) ** 0.5 if rho is not None and gaussian else None
    return Claim(budget.epsilon, budget.delta, asked.neighbours, rho, mu)


def _judged(bound: Bound) -> Check:
    name = f"{bound.view}, pair {bound.pair!r}"
    told = f"the table is told rightly in {100 * bound.accuracy:.1f} % of {bound.runs:,} runs by {bound.statistic}"
    if bound.refutes:
        return Check(name, FAILED, f"{bound.refutes}: {told}.")
    return Check(name, PASSED, f"epsilon is at least {cut(bound.epsilon)}, mu {cut(bound.mu)}: {told}.")


def audit_mutants(
    methods: Sequence[str] | None = None,
    mutants: Sequence[str] | None = None,
    *,
    epsilon: float = 1.0,
    delta: float = DEFAULT_DELTA,
    progress: Progress | None = None,
) -> Matrix:
    """Breaks methods on purpose, and says what caught each mistake. They are caught from inside, without any game."""
    step = progress or (lambda text: None)
    names, broken = tuple(methods or SUBJECTS), tuple(mutants or MUTANTS)
    for name in names:
        if name in TRAINED:
            own = ", ".join(TRAINING_MUTANTS)
            raise MethodError(f"{name} trains, and has mutants of its own; audit it with one of {own}", name)
    cells = {}
    for name in names:
        for mutant in broken:
            step(f"{mutant} in {name}")
            cells[mutant, name] = _caught(name, mutant, Budget(epsilon, delta))
    return Matrix(broken, names, cells)


def _caught(name: str, mutant: str, budget: Budget) -> str:
    if not applies(mutant, name):
        return DOES_NOT_APPLY
    asked = Asked(name, None, mutant, budget, SETTINGS["quick"], LEVEL, sys.executable)
    return Inside(asked, asked.pairs(), lambda text: None).first_violation()
