"""The steps that watch a subject at the curator: what it asks, what it draws, and what it shows."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from understudy.lab.audits.audit_plan import AuditPlan
from understudy.lab.audits.checks import conformance, sensitivity, taint
from understudy.lab.audits.checks.boundary import Boundary
from understudy.lab.audits.checks.conformance import LAWS
from understudy.lab.audits.checks.paired_gate import PairedExchange
from understudy.lab.audits.harness import Harness, RunContext, Subject
from understudy.lab.audits.mutants.mutants import halved, harness_of, revealed_by
from understudy.lab.audits.pairs import Pair
from understudy.lab.audits.result import FAILED, AuditCheck, AuditStep
from understudy.lab.audits.subjects import selects_wide, subject_of
from understudy.progress import Progress

POWER_TRIALS = 20
SENSITIVITY = ("sensitivity", "Sensitivity", "Does one person change any exact answer by more than was declared?")
CONFORMANCE = ("conformance", "Noise conformance", "Is the noise as large, as centred and as fresh as it says?")
TAINT = ("taint", "Taint", "Does anything but the measurements depend on a row?")
BOUNDARY = (
    "boundary",
    "Boundary",
    "Is every row read alone, every person told apart, every unit debited apart, and no row left anywhere?",
)


@dataclass
class CuratorChecks:
    """A subject in its harness; the exchanges of its runs are kept, each run with the name of its pair."""

    plan: AuditPlan
    pairs: Sequence[Pair]
    progress: Progress
    runs: list[tuple[str, list[PairedExchange]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._opened: dict[str, tuple[RunContext, RunContext]] = {}
        self.harness: Harness = harness_of(self.plan.mutant)
        self.subject: Subject = subject_of(self.plan.method or "", self.plan.budget)
        self.boundary = Boundary(
            self.subject,
            self.harness,
            self.plan.budget,
            self.plan.neighbours,
            wide=selects_wide(self.subject.name),
            postgres=self.plan.postgres,
        )

    def steps(self) -> list[AuditStep]:
        return [
            self._step(SENSITIVITY, self._sensitivity),
            self._step(CONFORMANCE, self._conformance),
            self._step(TAINT, lambda: [self._tainted(pair) for pair in self.pairs]),
            self._step(BOUNDARY, lambda: list(self.boundary.checks())),
        ]

    @property
    def exchanges(self) -> list[PairedExchange]:
        """Of a run on the worst pair."""
        return self.runs[0][1]

    def power(self) -> float | None:
        """How often noise of this kind, halved, fails the second step."""
        spends = [s for a in self.exchanges for s in a.spends if s.mechanism in LAWS]
        if not spends:
            return None
        noise = spends[0].mechanism, spends[0].scale
        return sum(bool(conformance.noise_complaints(*noise, halved)) for _ in range(POWER_TRIALS)) / POWER_TRIALS

    def canaries(self) -> tuple[list[AuditCheck], str]:
        return [], "it trains nothing by gradients"

    def _step(self, words: tuple[str, str, str], look: Callable[[], list[AuditCheck]]) -> AuditStep:
        self.progress(words[1].lower())
        begun = time.monotonic()
        checks = tuple(look())
        return AuditStep(*words, checks, round(time.monotonic() - begun, 1))

    def first_violation(self) -> str:
        """What catches a mutant first, in a few words; empty where nothing does."""
        looks = revealed_by(self.plan.mutant)
        inside, beside = self._by_pair(), ((BOUNDARY, [check]) for check in self.boundary.checks(looks))
        # First where the mistake is, if it is one of reading and keeping; both parts are always looked at.
        for words, checks in itertools.chain(*((beside, inside) if looks else (inside, beside))):
            failed = [c for c in checks if c.outcome == FAILED]
            if failed:
                return f"{words[1].lower()}: {failed[0].name}"
        return ""

    def _by_pair(self) -> Iterator[tuple[tuple[str, str, str], list[AuditCheck]]]:
        """The noise is looked at early, and once more when all of it was seen."""
        for place, pair in enumerate(self.pairs):
            yield SENSITIVITY, sensitivity.check(self._learn(pair), self.plan.budget)
            if place == 0:  # what is wrong with the noise shows in one pair: no need to run the others
                yield CONFORMANCE, self._conformance()
            yield TAINT, [self._tainted(pair)]
        yield CONFORMANCE, self._conformance()

    def _sensitivity(self) -> list[AuditCheck]:
        for pair in self.pairs:
            self._learn(pair)
        return sensitivity.check(self.runs, self.plan.budget)

    def _learn(self, pair: Pair) -> list[tuple[str, list[PairedExchange]]]:
        """Runs on both tables of a pair."""
        before = len(self.runs)
        for context in self._contexts(pair):
            for seed in range(self.plan.setting.learners):
                curator, gate = context.curator(self.plan.budget)
                self.subject.learn(context, curator, seed)
                self.runs.append((pair.name, gate.exchanges))
        return self.runs[before:]

    def _conformance(self) -> list[AuditCheck]:
        return conformance.check([e for _, exchanges in self.runs for e in exchanges], self.harness.randomness)

    def _tainted(self, pair: Pair) -> AuditCheck:
        return taint.check(self.subject, pair.name, *self._contexts(pair), self.plan.budget)

    def _contexts(self, pair: Pair) -> tuple[RunContext, RunContext]:
        if pair.name not in self._opened:
            self._opened[pair.name] = self.harness.context(pair, second=False), self.harness.context(pair, second=True)
        return self._opened[pair.name]
