"""`understudy.audit`: tries to refute what a method claims, on tables that were made up for it."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from understudy.boundary.privacy.budget import DEFAULT_DELTA, GDP, Budget
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.boundary.schema.federation import AGGREGATOR, TRUSTS
from understudy.boundary.schema.schema import ADD_REMOVE, NEIGHBOURS
from understudy.errors import InputError
from understudy.lab.audits.audit_plan import LEVEL, SETTINGS, AuditPlan
from understudy.lab.audits.checks import sites as site_checks
from understudy.lab.audits.checks.curator_checks import BOUNDARY, CONFORMANCE, SENSITIVITY, TAINT, CuratorChecks
from understudy.lab.audits.checks.paired_gate import PairedExchange
from understudy.lab.audits.checks.training_checks import TrainingChecks
from understudy.lab.audits.games.games import Games, cut
from understudy.lab.audits.mutants.mutants import MUTANTS, OF_TRAINING, harness_of, revealed_by
from understudy.lab.audits.result import (
    DOES_NOT_APPLY,
    FAILED,
    PASSED,
    Audit,
    AuditCheck,
    AuditStep,
    Bound,
    Claim,
    MutantMatrix,
)
from understudy.lab.audits.subjects import SPECIMENS, applies, mutants_of, subject_of, subjects, trained
from understudy.methods.registry import METHODS
from understudy.parameters import known_name, one_of, whole_number
from understudy.progress import Listener, Progress, listening
from understudy.releases.certificate import versions

GAME = ("game", "Distinguishing game", "Can two tables that differ in one person be told apart better than is claimed?")
CANARIES = ("canaries", "Canaries in one run", "Are people who were trained on recognised better than is claimed?")
OUTSIDE = "only its rows can be looked at: it is not run through a curator of ours"
TOO_SHORT = "time was up before a game had enough runs"
TOO_SLOW = "training takes too long for thousands of runs; canaries are looked for in one"


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
    postgres: str | None = None,
    sites: str | None = None,
    progress: Listener | None = None,
) -> Audit:
    """Tries to refute the claim of a method (by its name), or of a function ("module:name", in any Python).

    No private row is read: methods are run on small tables that differ in one person.

    Args:
        method: The name of a method; or
        function: a function, as module:name.
        epsilon: The privacy loss that is claimed.
        delta: The δ that is claimed.
        neighbours: The relation of the claim, "add-remove" or "replace-one".
        setting: How long to look: "quick" or "full".
        mutant: A mistake to break the method by on purpose, to see that the auditor sees it.
        python: The Python that runs the function, where it is another one.
        level: How rarely a correct method is called a violation.
        time_limit: Seconds that the games may take.
        out: A folder that keeps the rounds of the games, so that an audit that was stopped goes on where it was.
        jobs: How many processes play.
        postgres: The address of a server, such as postgresql://host/database, on which made-up tables may be made and
            dropped again, or of Spark Connect, sc://host:15002; then the boundary is looked at there, too.
        sites: A trust model, "aggregator", "secure-sum" or "nobody": the method is then run over three sites, too.
        progress: A function of the name of each part as it begins, or an `understudy.progress.Progress`.

    Returns:
        An `Audit`: whether a violation was found, and what was looked at.

    Raises:
        InputError: What was asked is impossible or contradicts itself.
    """
    if (method is None) == (function is None):
        raise InputError("an audit needs either the name of a method or a function, such as module:name", method)
    if function is not None and (":" not in function or mutant is not None):
        raise InputError(f"function {function!r} must be module:name, and can't have a mutant", function)
    if not 0 < level <= 0.5:
        raise InputError(f"level ({level}) must be above 0 and at most 0.5", level)
    if time_limit is not None and not time_limit > 0:
        raise InputError(f"the time limit ({time_limit}) must be above 0 seconds", time_limit)
    one_of("neighbours", neighbours, NEIGHBOURS)
    chosen = SETTINGS[known_name("setting", setting, SETTINGS)]
    if method in trained():
        # What concerns games, and rows on a server, concerns no method that trains: it is refused, not forgotten.
        for name, value in {"time_limit": time_limit, "out": out, "jobs": jobs, "postgres": postgres}.items():
            if value is not None:
                raise InputError(
                    f"{name} ({value}) is for methods that play games, and {method} is looked at in one process, while "
                    "it trains; leave it out",
                    value,
                )
    if mutant is not None:
        _check_mutant(mutant, method or "")
    if time_limit is not None:
        chosen = dataclasses.replace(chosen, seconds=float(time_limit))
    plan = AuditPlan(
        method,
        function,
        mutant,
        budget=Budget(epsilon, delta),
        setting=chosen,
        level=level,
        python=str(python or sys.executable),
        neighbours=neighbours,
        postgres=postgres,
        sites=sites,
    )
    _check_sites(plan)
    if plan.opaque and postgres is not None:
        raise InputError(f"{plan.name!r} has no curator to look through, on a server or elsewhere", postgres)
    workers = os.cpu_count() or 1
    if jobs is not None:
        workers = whole_number("jobs", jobs, 1)
    return _audit(plan, workers, out, listening(progress))


def _check_sites(plan: AuditPlan) -> None:
    if plan.sites is None:
        return
    one_of("sites", plan.sites, TRUSTS)
    method = plan.method or ""
    if method not in METHODS or plan.trains or plan.neighbours != ADD_REMOVE:
        raise InputError(
            f"sites ({plan.sites}) goes with a method that counts, under add-remove; leave it out", plan.sites
        )
    if plan.sites != AGGREGATOR and not METHODS[method].traits.sums_only:
        raise InputError(f"{plan.method} asks for more than noisy sums; audit it with sites aggregator", plan.sites)


def _check_mutant(mutant: str, method: str) -> None:
    if method in trained():
        known = [m for m in MUTANTS if m in OF_TRAINING or revealed_by(m)]
        if mutant not in known:
            raise InputError(f"mutant {mutant!r} is not one of a training; there are {', '.join(known)}", mutant)
        return
    known_name("mutant", mutant, mutants_of(method))
    if method in SPECIMENS:
        raise InputError(f"{method!r} is a specimen, which is broken already, and can't have a mutant", mutant)


def _audit(plan: AuditPlan, jobs: int, out: str | Path | None, progress: Progress) -> Audit:
    begun, looked, bounds = time.monotonic(), plan.pairs(), []
    steps = [AuditStep(*words, reason=OUTSIDE) for words in (SENSITIVITY, CONFORMANCE, TAINT, BOUNDARY)]
    canaries = AuditStep(*CANARIES, reason=OUTSIDE)
    claim, power, pairs = _claim(plan, []), None, looked
    if not plan.opaque:
        watched = _watched(plan, progress)
        steps = watched.steps()
        heard, unheard = watched.canaries()
        canaries = AuditStep(*CANARIES, tuple(heard), reason=unheard)
        claim, power, pairs = _claim(plan, watched.exchanges), watched.power(), [*looked, *watched.boundary.pairs]
    if plan.sites is not None:
        progress("sites")
        making = site_checks.SiteMaking(ExactRandomness.system())
        found = site_checks.check(subject_of(plan.method or "", plan.budget), plan.budget, plan.sites, making)
        steps = [*steps, AuditStep(*site_checks.SITES, tuple(found))]
    game = AuditStep(*GAME, reason=TOO_SLOW)
    if not plan.trains:
        playing = time.monotonic()
        bounds = Games(plan, looked, jobs, out, progress).bounds(claim)
        game = AuditStep(*GAME, tuple(map(_judged, bounds)), round(time.monotonic() - playing, 1))
        if not bounds:
            game = dataclasses.replace(game, reason=TOO_SHORT)
    # Without a curator the games are all there is: an audit that played none would have looked at nothing.
    if not bounds and plan.opaque:
        raise InputError(f"the time limit ({plan.setting.seconds:g} s) is too short for any game; give more", plan)
    return Audit(
        subject=plan.name,
        kind=plan.kind,
        setting=plan.setting.name,
        claim=claim,
        level=plan.level,
        pairs=tuple(p.facts for p in pairs),
        steps=(*steps, game, canaries),
        bounds=tuple(bounds),
        power=power,
        seconds=round(time.monotonic() - begun, 1),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions(),
    )


def _watched(plan: AuditPlan, progress: Progress) -> CuratorChecks | TrainingChecks:
    """A method that trains is watched while it trains, any other at its curator."""
    if plan.trains:
        return TrainingChecks(plan, progress)
    return CuratorChecks(plan, plan.pairs(), progress)


def _claim(plan: AuditPlan, exchanges: Sequence[PairedExchange]) -> Claim:
    """With ρ where our own accountant claims it, and μ where it counts in g, or all noise is Gaussian."""
    budget, rho, mu = plan.budget, None, None
    if not (plan.opaque or plan.trains or budget.pure):
        rho = float(budget.capacity.value)
        mechanisms = {s.mechanism for a in exchanges for s in a.spends} - {"public"}
        # Gaussian mechanisms compose into one: ρ = μ²/2 (Dong, Roth & Su 2022). By GDP all of them do.
        if budget.accounting == GDP or mechanisms == {"discrete-gaussian"}:
            mu = (2 * rho) ** 0.5
    return Claim(budget.epsilon, budget.delta, plan.neighbours, rho, mu)


def _judged(bound: Bound) -> AuditCheck:
    name = f"{bound.view}, pair {bound.pair!r}"
    told = f"the table is told rightly in {100 * bound.accuracy:.1f} % of {bound.runs:,} runs by {bound.statistic}"
    if bound.refutes:
        return AuditCheck(name, FAILED, f"{bound.refutes}: {told}.")
    return AuditCheck(name, PASSED, f"epsilon is at least {cut(bound.epsilon)}, mu {cut(bound.mu)}: {told}.")


def audit_mutants(
    methods: Sequence[str] | None = None,
    mutants: Sequence[str] | None = None,
    *,
    epsilon: float = 1.0,
    delta: float = DEFAULT_DELTA,
    progress: Listener | None = None,
) -> MutantMatrix:
    """Breaks methods on purpose, and says what caught each mistake. They are caught from inside, without any game.

    Args:
        methods: The names of methods; by default all that can be run here.
        mutants: The names of mistakes; by default all.
        epsilon: The privacy loss that is claimed.
        delta: The δ that is claimed.
        progress: A function of the name of each part as it begins, or an `understudy.progress.Progress`.

    Returns:
        For every mistake and method what caught it, or that it does not apply.

    Raises:
        InputError: A method or a mistake is not known.
    """
    step, budget = listening(progress), Budget(epsilon, delta)
    names = tuple(methods or subjects())
    # Trainings need an extra, which may not be installed.
    if not methods and all(importlib.util.find_spec(m) is not None for m in ("torch", "dp_accounting")):
        names += trained()
    trains = bool(set(names) & set(trained()))
    broken = tuple(mutants or (m for m in MUTANTS if trains or m not in OF_TRAINING))
    for mutant in broken:
        harness_of(mutant)  # an unknown one is refused before the first run
    cells = {}
    for name in names:
        for mutant in broken:
            step(f"{mutant} in {name}")
            cells[mutant, name] = DOES_NOT_APPLY
            if applies(mutant, name):
                plan = AuditPlan(name, None, mutant, budget, SETTINGS["quick"], level=LEVEL, python=sys.executable)
                cells[mutant, name] = _watched(plan, Progress()).first_violation()
    return MutantMatrix(broken, names, cells)
