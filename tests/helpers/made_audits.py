"""Audits made by hand, with what may go wrong in a report: violations, no power, pure claims, hostile names."""

from __future__ import annotations

from typing import Any

from understudy.lab.audits.result import (
    BLACK_BOX,
    DOES_NOT_APPLY,
    FAILED,
    PASSED,
    SKIPPED,
    WHITE_BOX,
    Audit,
    AuditCheck,
    AuditStep,
    Bound,
    Claim,
    MutantMatrix,
    PairFacts,
)

GAUSSIAN = Claim(1.0, 1e-6, "add-remove", rho=0.026, mu=0.228)
ZCDP = Claim(1.0, 1e-6, "add-remove", rho=0.026)
PURE = Claim(1.0, 0.0, "replace-one")
STATED = Claim(1.0, 1e-6, "add-remove")
PAIRS = (
    PairFacts("equal rows", "one more row that differs in everything"),
    PairFacts("unique category", "a category that nobody else has"),
)
REASON = "nothing is trained by gradients"
STEPS = (
    ("sensitivity", "Sensitivity", "no exact answer may change by more than was declared."),
    ("noise", "Noise conformance", "the noise has the law that was declared."),
    ("taint", "Taint", "whatever is shown beside the measurements is the same."),
    ("games", "Distinguishing game", "nobody can tell both tables apart too well."),
)


def bound(pair: str = "equal rows", view: str = WHITE_BOX, epsilon: float = 0.8149, **changes: Any) -> Bound:
    mu = 0.2 * epsilon
    plain = {"rho": mu**2 / 2, "mu": mu, "statistic": "log-likelihood ratio", "runs": 7_000, "level": 0.00417}
    return Bound(**({"pair": pair, "view": view, "epsilon": epsilon, "accuracy": 0.5349} | plain | changes))


BOUNDS = (bound(), bound(view=BLACK_BOX, epsilon=0.1), bound("unique category", epsilon=0.5))
REFUTING = bound(epsilon=2.5, mu=0.55, refutes="the claimed ε at its δ")


def steps(*found: AuditCheck) -> tuple[AuditStep, ...]:
    """Four that passed and one that was not made; what is found is found by the second."""
    checks = {name: (AuditCheck(f"check of {name}", PASSED, f"1,240 {name} figures are right."),) for name, *_ in STEPS}
    checks["noise"] += found
    made = tuple(AuditStep(name, title, f"Here {means}", checks[name], 1.5) for name, title, means in STEPS)
    return (*made, AuditStep("canaries", "One run", "Many canaries are put into one training.", reason=REASON))


def audit(**changes: Any) -> Audit:
    whole = {"subject": "mst", "kind": "method", "setting": "quick", "claim": GAUSSIAN, "level": 0.05, "pairs": PAIRS}
    whole |= {"steps": steps(), "bounds": BOUNDS, "power": 0.9987, "seconds": 95.0, "created": "2024-05-06T07:08:09Z"}
    return Audit(**(whole | {"versions": {"understudy": "0.1.0", "numpy": "2.1.0"}} | changes))


HALVED = AuditCheck(
    "discrete Gaussian, scale", FAILED, "the variance of 12,400 residuals is 0.25 times the declared one."
)


def violation(**changes: Any) -> Audit:
    broken = {"subject": "mst with half-noise", "kind": "mutant", "steps": steps(HALVED), "bounds": (REFUTING, *BOUNDS)}
    return audit(**(broken | changes))


def blind(**changes: Any) -> Audit:
    """Of which nothing could be checked."""
    nothing = tuple(AuditStep(s.name, s.title, s.meaning, reason="it is a callable.") for s in steps())
    return audit(**({"steps": nothing, "bounds": (), "pairs": (), "power": None, "claim": STATED} | changes))


def many_checks(number: int) -> tuple[AuditStep, ...]:
    return steps(*(AuditCheck(f"question {i}", PASSED, f"answer {i} is right.") for i in range(number)), HALVED)


def hostile(text: str, **changes: Any) -> Audit:
    """With the text in every place that can hold one."""
    check = AuditCheck(text, FAILED, text)
    skipped = AuditCheck(text, SKIPPED, text)
    broken = (AuditStep(text, text, text, (check, skipped)), AuditStep(text, text, text, reason=text))
    games = (bound(text, text, statistic=text, refutes=text),)
    plain = {"subject": text, "kind": text, "setting": text, "claim": Claim(1.0, 1e-6, text), "created": text}
    whole = plain | {"pairs": (PairFacts(text, text),), "steps": broken, "bounds": games, "versions": {text: text}}
    return audit(**(whole | changes))


METHODS, MUTANTS = ("mst", "aim"), ("half-noise", "index-blocks", "skipped-debit")
CAUGHT = {
    ("half-noise", "mst"): "noise conformance",
    ("half-noise", "aim"): "noise conformance",
    ("index-blocks", "mst"): DOES_NOT_APPLY,
    ("index-blocks", "aim"): "sensitivity",
    ("skipped-debit", "mst"): "sensitivity",
    ("skipped-debit", "aim"): "sensitivity: every answer is paid for",
}


def matrix(survivor: tuple[str, str] | None = None) -> MutantMatrix:
    return MutantMatrix(MUTANTS, METHODS, CAUGHT | ({survivor: ""} if survivor else {}))
