"""The report of an audit: the verdict, the claim beside what was proved against it, every step with every check."""

from __future__ import annotations

import math
from dataclasses import dataclass

from understudy.lab.audits.bound_figures import at_least, claim_parameters, claimed_curve, exactly, reached
from understudy.lab.audits.result import (
    DOES_NOT_APPLY,
    FAILED,
    LIMITS,
    PASSED,
    SKIPPED,
    Audit,
    AuditStep,
    Bound,
    Check,
    Claim,
    MutantMatrix,
)
from understudy.pages.figure import Figure
from understudy.pages.formatting import counted, duration, percent
from understudy.pages.page import fill

MUCH_POWER = 0.8
"""From which on an audit that finds nothing is said to have looked hard."""
MOST_CHECKS = 16
"""Of a step that are shown at once; violations always are."""
NOTHING = "–"
BADGES = {PASSED: "passed", FAILED: "failed", SKIPPED: "skipped"}


@dataclass(frozen=True)
class Verdict:
    """What the page says first, and in which tone: "bad", "weak" or "none"."""

    tone: str
    words: str
    reason: str


@dataclass(frozen=True)
class KeyFigure:
    """A figure that stands out."""

    title: str
    value: str
    words: str


@dataclass(frozen=True)
class StepSection:
    """A step as the page tells it."""

    number: int
    step: AuditStep
    shown: tuple[Check, ...]
    rest: tuple[Check, ...]
    """Passed ones that would make the page long."""


def render(audit: Audit) -> str:
    """One self-contained page; same input, same bytes."""
    return fill(
        "audit.html.j2",
        audit=audit,
        limits=LIMITS,
        verdict=_verdict(audit),
        claim=claimed(audit.claim),
        neighbours=_neighbours(audit.claim),
        headlines=_headlines(audit),
        figures=pictures(audit),
        chapters=[_section(i, step) for i, step in enumerate(audit.steps, 1)],
        pairs=[(p.name, p.difference, _best_of(audit, p.name)) for p in audit.pairs],
        bounds=audit.bounds,
        power=_power(audit),
        false_alarms=f"{100 * audit.level:g}\N{NO-BREAK SPACE}%",
        took=duration,
        at_least=at_least,
        exactly=exactly,
        badges=BADGES,
    )


def render_brief(audit: Audit) -> str:
    """The verdict with the outcome of every step, for a notebook."""
    rows = [(s.title, s.outcome, _in_short(s)) for s in audit.steps]
    verdict = _verdict(audit)
    return fill("audit-brief.html.j2", audit=audit, verdict=verdict, summary=summary(audit), rows=rows, limits=LIMITS)


def pictures(audit: Audit) -> list[Figure]:
    """Every picture of the report, in its order; where no game was played, the claimed curve alone."""
    games = [reached(audit.bounds, parameter) for parameter in claim_parameters(audit.claim)] if audit.bounds else []
    return [claimed_curve(audit.claim, audit.bounds), *games]


def summary(audit: Audit) -> str:
    """The verdict in one sentence."""
    made = sum(c.outcome != SKIPPED for s in audit.steps for c in s.checks)
    claim = claimed(audit.claim)
    if audit.violated:
        names = ", ".join(s.title.lower() for s in audit.steps if s.outcome == FAILED)
        found = f"{len(audit.violations)} of {counted(made, 'check')} found a violation ({names})"
        return f"{audit.subject} does not keep its claim of {claim}: {found}."
    if not made:
        return f"Nothing could be checked of the claim of {audit.subject}, {claim}."
    return f"{audit.subject} claims {claim}, and {counted(made, 'check')} found no violation; {_proved(audit)}."


def _proved(audit: Audit) -> str:
    """What the games come to, in words."""
    if not audit.bounds:
        return "no game was played"
    best = _best(audit).epsilon
    return f"the largest ε that was proved is {at_least(best)}" if best > 0 else "its games proved nothing"


def claimed(claim: Claim) -> str:
    """ε and δ of a claim, in words.

    >>> claimed(Claim(1.0, 1e-6, "add-remove")), claimed(Claim(0.5, 0.0, "add-remove"))
    ('ε = 1 at δ = 1e-6', 'pure ε = 0.5')
    """
    epsilon = f"ε = {exactly(claim.epsilon)}"
    return f"{epsilon} at δ = {exactly(claim.delta)}" if claim.delta else f"pure {epsilon}"


def _verdict(audit: Audit) -> Verdict:
    words = audit.verdict[:1].upper() + audit.verdict[1:]
    if audit.violated:
        return Verdict("bad", words, summary(audit))
    return Verdict("none" if (audit.power or 0.0) >= MUCH_POWER else "weak", words, summary(audit))


def _neighbours(claim: Claim) -> str:
    known = {"add-remove": "one unit added or removed", "replace-one": "one unit replaced by another"}
    return f"{claim.neighbours}: {known[claim.neighbours]}" if claim.neighbours in known else claim.neighbours


def _headlines(audit: Audit) -> list[KeyFigure]:
    found = [KeyFigure("Claimed", f"ε = {exactly(audit.claim.epsilon)}", _beside_epsilon(audit.claim))]
    if audit.bounds:
        best = _best(audit)
        where = f"{best.pair}, {best.view}" if best.epsilon > 0 else f"by {counted(len(audit.bounds), 'game')}"
        found.append(KeyFigure("Proved against it", f"ε ≥ {at_least(best.epsilon)}", where))
    if audit.tightness is not None:
        share = f"{math.floor(100 * audit.tightness)}\N{NO-BREAK SPACE}%"
        seen = "more than is claimed" if audit.tightness > 1 else "how much of the loss the auditor sees"
        found.append(KeyFigure("Of the claimed μ", share, f"were proved: {seen}"))
    power = "unknown" if audit.power is None else f"{math.floor(100 * audit.power) / 100:.2f}"
    found.append(KeyFigure("Power", power, "the probability of finding the noise halved"))
    return found


def _beside_epsilon(claim: Claim) -> str:
    """What else is claimed."""
    parts = [f"δ = {exactly(claim.delta)}" if claim.delta else "pure: δ = 0"]
    parts += [f"μ = {exactly(claim.mu)}"] if claim.mu is not None else []
    parts += [f"ρ = {exactly(claim.rho)}"] if claim.rho is not None else []
    return ", ".join(parts)


def _power(audit: Audit) -> str:
    """What the power means, in a sentence."""
    if audit.power is None:
        return "Whether this audit would have found halved noise can't be known: nothing says what noise there is."
    share = percent(math.floor(1000 * audit.power) / 1000)
    found = f"Of methods like this one with half the noise, an audit like this one finds {share}"
    return f"{found}." if audit.power >= MUCH_POWER else f"{found}: it says little that it found nothing."


def _best(audit: Audit) -> Bound:
    return max(audit.bounds, key=lambda b: b.epsilon)


def _best_of(audit: Audit, pair: str) -> str:
    proved = [b.epsilon for b in audit.bounds if b.pair == pair]
    return f"≥ {at_least(max(proved))}" if proved else NOTHING


def _section(number: int, step: AuditStep) -> StepSection:
    """Violations first, then what was passed, then what was not made."""
    order = (FAILED, PASSED, SKIPPED)
    checks = sorted(step.checks, key=lambda c: order.index(c.outcome) if c.outcome in order else len(order))
    shown = max(MOST_CHECKS, len(step.violations))
    return StepSection(number, step, tuple(checks[:shown]), tuple(checks[shown:]))


def _in_short(step: AuditStep) -> str:
    if step.violations:
        return step.violations[0].found
    return counted(len(step.checks), "check") if step.checks else step.reason


# --- mutants


def render_matrix(matrix: MutantMatrix) -> str:
    """One page for all mutants of all methods: what caught each."""
    rows = [(mutant, [(m, _caught(matrix, mutant, m)) for m in matrix.methods]) for mutant in matrix.mutants]
    return fill("audit-matrix.html.j2", matrix=matrix, rows=rows, summary=matrix_summary(matrix))


def matrix_summary(matrix: MutantMatrix) -> str:
    """How many were caught, in one sentence."""
    applied = [c for c in matrix.cells.values() if c != DOES_NOT_APPLY]
    caught = sum(map(bool, applied))
    if not applied:
        return "No mutant applies to any of these methods."
    return f"{caught} of {counted(len(applied), 'mutant')} {'was' if caught == 1 else 'were'} caught."


def _caught(matrix: MutantMatrix, mutant: str, method: str) -> tuple[str, str, str]:
    """A class of the page, the step that caught it, and by which check."""
    found = matrix.cells.get((mutant, method), DOES_NOT_APPLY)
    if found == DOES_NOT_APPLY:
        return "skipped", found, ""
    step, _, check = found.partition(": ")
    return ("passed", step, check) if found else ("failed", "survived", "")
