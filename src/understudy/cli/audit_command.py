"""`understudy audit`."""

from __future__ import annotations

import dataclasses
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from understudy.boundary.privacy.budget import DEFAULT_DELTA
from understudy.boundary.schema.schema import ADD_REMOVE
from understudy.cli.screen import Output, print_facts, print_json, print_table, progress, tell
from understudy.errors import CheckFailed, InputError
from understudy.files import write_atomically
from understudy.lab.audits.audit import CANARIES, audit, audit_mutants
from understudy.lab.audits.audit_plan import LEVEL
from understudy.lab.audits.mutants.mutants import MUTANTS
from understudy.lab.audits.report import at_least, claim_parameters, claimed, matrix_summary, render_matrix, summary
from understudy.lab.audits.result import DOES_NOT_APPLY, LIMITS, PASSED, Audit, AuditStep, Bound, MutantMatrix
from understudy.lab.audits.subjects import mutants_of, subjects, trained
from understudy.pages.formatting import percent
from understudy.pages.page import report_writer
from understudy.parameters import known_name

QUICK = "quick"


@dataclass(frozen=True)
class AuditRequest:
    """What was typed: the method or function, the claim, and how long to look."""

    methods: tuple[str, ...] = ()
    epsilon: float = 1.0
    delta: float = DEFAULT_DELTA
    setting: str = QUICK
    mutant: str | None = None
    function: str | None = None
    python: Path | None = None
    level: float = LEVEL
    time_limit: float | None = None
    out: Path | None = None
    jobs: int | None = None
    neighbours: str = ADD_REMOVE
    postgres: str | None = None
    sites: str | None = None

    @property
    def only_for_one(self) -> dict[str, bool]:
        """The options that speak of a single audit, and whether they were given."""
        optional = {"callable": self.function, "python": self.python, "time-limit": self.time_limit}
        optional |= {"out": self.out, "jobs": self.jobs, "postgres": self.postgres, "sites": self.sites}
        changed = {"setting": self.setting != QUICK, "level": self.level != LEVEL}
        changed |= {"neighbours": self.neighbours != ADD_REMOVE}
        return {name: value is not None for name, value in optional.items()} | changed


def run_audit(request: AuditRequest, mutants: bool, output: Output) -> None:
    """Audits one method or function, or the auditor itself; a violation and a survivor are failed checks."""
    if request.mutant is not None:
        # A method that trains has mistakes of its own.
        possible = MUTANTS if mutants or not request.methods else mutants_of(request.methods[0])
        known_name("mutant", request.mutant, possible)
    # All that can be refused is refused first: an audit takes minutes.
    if mutants:
        _check_mutants(request)
        output.check()
        _run_mutants(request, output)
    else:
        _check_one(request)
        output.check()
        _run_one(request, output)


def _check_mutants(request: AuditRequest) -> None:
    for method in request.methods:
        known_name("method", method, (*subjects(), *trained()))
    wrong = [name for name, given in request.only_for_one.items() if given]
    if wrong:
        raise InputError(f"--{wrong[0]} is for a single audit; leave it or --mutants out", wrong[0])


def _check_one(request: AuditRequest) -> None:
    if not request.methods and request.function is None:
        raise InputError("name a method, as in `understudy audit mst`, or a function with --callable", None)
    if request.methods and request.function is not None:
        raise InputError(
            f"method {request.methods[0]!r} and --callable can't be audited together; leave one out", request
        )
    if len(request.methods) > 1:
        raise InputError(
            f"one method is audited at a time, not {len(request.methods)}; name several with --mutants", request
        )
    if request.function is None and request.python is not None:
        raise InputError(f"--python ({str(request.python)!r}) says where a --callable runs; name one", request.python)
    if request.python is not None and shutil.which(request.python) is None:
        raise InputError(f"--python ({str(request.python)!r}) must be a Python that can be run", request.python)
    if request.function is not None and request.mutant is not None:
        raise InputError(f"mutant {request.mutant!r} is of our own methods; leave it or --callable out", request.mutant)


# --- one audit


def _run_one(request: AuditRequest, output: Output) -> None:
    asked = dataclasses.asdict(request)  # its fields are named as the parameters of `audit`
    (method,) = asked.pop("methods") or (None,)
    with progress(None, output.silent) as told:
        found = audit(method, progress=told, **asked)
        output.save(found)
    if output.as_json:
        print_json(json.loads(found.to_json()))
    else:
        _print(found)
        output.print_paths()
    # Only now, when the report is written: it says what the exit code can't.
    if found.violated:
        raise CheckFailed(summary(found), found)


def _print(found: Audit) -> None:
    tell(f"{found.subject} ({found.kind}), at the {found.setting} setting")
    print_facts(_facts(found))
    steps = [(s.title, s.outcome, str(len(s.checks)), f"{s.seconds:.1f}") for s in found.steps]
    print_table("Steps", ("step", "outcome", "checks", "seconds"), steps)
    for step in found.steps:
        _print_step(step)
    if found.bounds:
        symbols = [c.symbol for c in claim_parameters(found.claim)]
        heads = ("pair", "view", "statistic", "runs", "told rightly", *symbols, "refutes")
        print_table("Proved lower bounds", heads, [_bound_row(found, b) for b in found.bounds])
    if not found.violated:
        tell(summary(found))
    tell(f"Verdict: {found.verdict}.")
    tell(LIMITS)


def _facts(found: Audit) -> list[tuple[str, str]]:
    claim = found.claim
    others = [f"{name} = {value:.4g}" for name, value in (("ρ", claim.rho), ("μ", claim.mu)) if value is not None]
    facts = [("claim", ", ".join([claimed(claim), *others])), ("neighbours", claim.neighbours)]
    facts.append(("false alarms", f"at most {100 * found.level:g} % of audits of a correct method"))
    if found.tightness is not None:
        facts.append(("tightness", f"{percent(found.tightness)} of the claimed μ proved"))
    return [*facts, ("seconds", f"{found.seconds:.1f}")]


def _print_step(step: AuditStep) -> None:
    """Every violation, what canaries prove, and why something was not looked at."""
    if not step.checks:
        tell(f"{step.title}, {step.outcome}: {step.reason.rstrip('.') or 'no reason is recorded'}.")
    for check in step.checks:
        # What canaries prove is a finding, also where it refutes nothing.
        if step.name == CANARIES[0] or check.outcome != PASSED:
            tell(f"{step.title}, {check.outcome}: {check.name}: {check.found}")


def _bound_row(found: Audit, bound: Bound) -> tuple[str, ...]:
    proved = [f"≥ {at_least(c.of(bound))}" for c in claim_parameters(found.claim)]
    runs = f"{bound.runs:,}"
    return bound.pair, bound.view, bound.statistic, runs, percent(bound.accuracy), *proved, bound.refutes or "nothing"


# --- the auditor itself


def _run_mutants(request: AuditRequest, output: Output) -> None:
    some = None if request.mutant is None else (request.mutant,)
    with progress(None, output.silent) as told:
        matrix = audit_mutants(
            request.methods or None, some, epsilon=request.epsilon, delta=request.delta, progress=told
        )
    if output.report is not None:
        writers = {".html": lambda: render_matrix(matrix), ".json": matrix.to_json}
        write_atomically(output.report, report_writer(output.report, writers)().encode(), private=True)
    if output.as_json:
        print_json(json.loads(matrix.to_json()))
    else:
        rows = [(m, *(_cell(matrix, m, method) for method in matrix.methods)) for m in matrix.mutants]
        print_table("What caught each mutant", ("mutant", *matrix.methods), rows)
        tell(matrix_summary(matrix))
        output.print_paths()
    if matrix.survivors:
        names = ", ".join(f"{mutant} of {method}" for mutant, method in matrix.survivors)
        raise CheckFailed(f"the auditor misses {len(matrix.survivors)} of its mutants: {names}", matrix)


def _cell(matrix: MutantMatrix, mutant: str, method: str) -> str:
    """The step that caught it; by which check is in the report."""
    return matrix.cells.get((mutant, method), DOES_NOT_APPLY).partition(":")[0] or "SURVIVED"
