"""What an audit of a mechanism found: the claim, every check, every bound that was proved, and the verdict.

An audit reads no private rows: it runs a method on small tables made to betray it. It can find a violation; it can't
prove that there is none.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.boundary.privacy.accountant import delta_from_rho
from understudy.pages.page import Rendered, Report

PASSED, FAILED, SKIPPED = "passed", "violation", "not made"
WHITE_BOX, BLACK_BOX = "white box", "black box"
LIMITS = (
    "An audit that finds nothing certifies nothing: it looked at some pairs of tables, with some statistics. What is "
    "claimed rests on the proofs; what was found here is how hard it was to refute them."
)


@dataclass(frozen=True)
class Claim:
    """What a method says of itself. `mu` is known where costs are counted in g, which is μ²/2 and a ρ, too; `rho` alone
    where they are counted by zCDP."""

    epsilon: float
    delta: float
    neighbours: str
    rho: float | None = None
    mu: float | None = None

    def curve(self, epsilons: Sequence[float]) -> list[tuple[float, float]]:
        """(ε, δ) for each ε: the least δ that is claimed there."""
        return [(e, self._delta(e)) for e in epsilons]

    def _delta(self, epsilon: float) -> float:
        stated = self.delta
        if epsilon < self.epsilon:
            # (ε₀, δ₀) implies (ε, 1 − (1−δ₀)(1+e^ε)/(1+e^ε₀)) below ε₀ (Kairouz, Oh & Viswanath 2015).
            ratio = math.exp(np.logaddexp(0.0, epsilon) - np.logaddexp(0.0, self.epsilon))
            stated = 1.0 - (1.0 - self.delta) * ratio
        if self.mu is not None:
            return min(stated, delta_from_gaussian(self.mu, epsilon))
        if self.rho is not None:
            return min(stated, delta_from_rho(self.rho, epsilon))
        return stated


def delta_from_gaussian(mu: float, epsilon: float) -> float:
    """δ(ε) of a Gaussian mechanism whose worlds are μ deviations apart (Balle & Wang 2018, theorem 8)."""
    below, above = (math.erfc((epsilon / mu + s * mu / 2) / math.sqrt(2)) / 2 for s in (-1, 1))
    if above == 0:  # e^ε may overflow where the other factor has long vanished
        return below
    return max(0.0, below - math.exp(epsilon) * above)


@dataclass(frozen=True)
class Bound:
    """What one distinguishing game proves, at its own level: two worlds that far apart."""

    pair: str
    view: str
    statistic: str
    runs: int
    level: float
    """How rarely a true claim would be refuted by this game alone."""
    accuracy: float
    """How often the world was told rightly, of the runs that test."""
    epsilon: float
    """At least this ε, at the claimed δ."""
    rho: float
    mu: float
    refutes: str = ""
    """The part of the claim that it refutes, in words; empty where it refutes none."""


@dataclass(frozen=True)
class AuditCheck:
    """One thing that was looked at."""

    name: str
    outcome: str
    found: str
    """In one sentence, with its figures."""

    @classmethod
    def of(cls, name: str, holds: bool, found: str) -> AuditCheck:
        return cls(name, PASSED if holds else FAILED, found)


@dataclass(frozen=True)
class AuditStep:
    """One of the six ways of looking."""

    name: str
    title: str
    meaning: str
    checks: tuple[AuditCheck, ...] = ()
    seconds: float = 0.0
    reason: str = ""
    """Why it was not made."""

    @property
    def outcome(self) -> str:
        if not self.checks:
            return SKIPPED
        return FAILED if self.violations else PASSED

    @property
    def violations(self) -> tuple[AuditCheck, ...]:
        return tuple(c for c in self.checks if c.outcome == FAILED)


@dataclass(frozen=True)
class PairFacts:
    """A pair of neighbouring tables, in words."""

    name: str
    difference: str


def power_in_words(power: float | None) -> str:
    """In two digits, never rounded up."""
    if power is None:
        return "unknown"
    return f"{math.floor(100 * power) / 100:.2f}"


@dataclass(frozen=True)
class Audit(Rendered):
    """What one audit found."""

    subject: str
    kind: str
    """"method", "predictor", "query", "specimen", "mutant" or "callable"."""
    setting: str
    claim: Claim
    level: float
    """How rarely a correct method is called a violation by the whole audit."""
    pairs: tuple[PairFacts, ...]
    steps: tuple[AuditStep, ...]
    bounds: tuple[Bound, ...]
    power: float | None
    """The probability that the same audit would find the noise halved; None where that can't be known."""
    seconds: float
    created: str
    versions: dict[str, str]

    @property
    def violated(self) -> bool:
        return any(s.outcome == FAILED for s in self.steps)

    @property
    def violations(self) -> tuple[AuditCheck, ...]:
        return tuple(c for s in self.steps for c in s.violations)

    @property
    def verdict(self) -> str:
        if self.violated:
            return f"violation at {100 * (1 - self.level):g} %"
        return f"no violation found (power {power_in_words(self.power)} against halved noise)"

    @property
    def tightness(self) -> float | None:
        """The largest proved μ as a share of the claimed one, where all noise is Gaussian."""
        proved = [b.mu for b in self.bounds if b.view == WHITE_BOX]
        if not proved or not self.claim.mu:
            return None
        return max(proved) / self.claim.mu

    def to_dict(self) -> dict[str, Any]:
        """For programs, with the verdict."""
        plain = dataclasses.asdict(self)
        steps = [s | {"outcome": step.outcome} for s, step in zip(plain["steps"], self.steps, strict=True)]
        return {"verdict": self.verdict, "violated": self.violated, "limits": LIMITS, **plain, "steps": steps}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def _report(self) -> Report:
        from understudy.lab.audits import report

        return report

    def for_certificate(self) -> dict[str, Any]:
        """The verdict with what it rests on, as a release carries it."""
        plain = dataclasses.asdict(self)
        kept = ("subject", "setting", "claim", "level", "bounds", "power", "seconds", "created", "versions")
        steps = {s.title: s.outcome for s in self.steps}
        steps |= {s.title: f"{s.outcome}: {s.reason}" for s in self.steps if not s.checks}
        return (
            {"verdict": self.verdict, "steps": steps} | {k: plain[k] for k in kept} | {"bounds": list(plain["bounds"])}
        )


DOES_NOT_APPLY = "does not apply"


@dataclass(frozen=True)
class MutantMatrix:
    """Every mutant beside every method, and what caught it."""

    mutants: tuple[str, ...]
    methods: tuple[str, ...]
    cells: dict[tuple[str, str], str]
    """By (mutant, method): what caught it in a few words, empty where nothing did."""

    @property
    def survivors(self) -> tuple[tuple[str, str], ...]:
        return tuple(cell for cell, caught in self.cells.items() if not caught)

    def to_dict(self) -> dict[str, Any]:
        caught = {m: {s: self.cells[m, s] for s in self.methods} for m in self.mutants}
        return {"survivors": [list(cell) for cell in self.survivors], "caught_by": caught}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)


def plotted_epsilons(claim: Claim) -> list[float]:
    """Where a claimed curve is drawn: from 0 to twice the claim."""
    return [float(e) for e in np.linspace(0.0, 2.0 * claim.epsilon, 81)]
