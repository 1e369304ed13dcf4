"""`understudy synth`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.continuation import finish, resumed
from understudy.boundary.privacy.journal import Journal
from understudy.boundary.privacy.ledger.beside import is_server
from understudy.boundary.privacy.mechanisms.randomness import randomness_of
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.sources import open as open_table
from understudy.cli.failures import journal_path, resumable
from understudy.cli.locations import beside, ledger_of, schema_of
from understudy.cli.screen import print_facts, print_json, progress, sparkline
from understudy.errors import InputError, ReleaseError
from understudy.lab.audits.auditing import audit
from understudy.methods.method import Options
from understudy.methods.parts.workload import parse_weight, stated_targets
from understudy.parameters import one_of
from understudy.releases.certificate import Certificate
from understudy.releases.interruption import continued
from understudy.releases.release import CERTIFICATE, FORMATS, Release, check_writable, write_folder
from understudy.releases.synthesis import STEPS, Plan, synthesize_with
from understudy.releases.training_curve import curve_of

BYTES_PER_VALUE = 12
NO_LIMIT = "none is set: the ledger records, and refuses nothing; set one with `understudy budget set`"


@dataclass(frozen=True)
class Request:
    """The arguments of `synth`, as they were typed."""

    data: str
    epsilon: float
    delta: float
    schema: Path | None
    method: str
    targets: tuple[str, ...]
    marginals: tuple[str, ...]
    rows: int | None
    out: Path | None
    format: str
    seed: int | None
    ledger: Path | None
    analyst: str
    overwrite: bool
    accept_draft: bool
    noise_seed: int | None
    weights: tuple[str, ...]
    workload: str
    given: tuple[str, ...]
    audit: str | None
    by: str
    draws: int | None
    pool: str
    numeric: str
    resume: bool = False


def check_format(format: str) -> None:
    one_of("format", format, FORMATS, error=ReleaseError)


def demanded(epsilon: float | None) -> float:
    """The ε of a release: only rows without privacy do without one."""
    if epsilon is None:
        raise InputError("a release needs --epsilon, the privacy loss that it may have, such as --epsilon 1", epsilon)
    return epsilon


def run(request: Request, *, quiet: bool, as_json: bool) -> None:
    """Checks everything that can be checked, then synthesizes, then writes; a refusal spends and leaves nothing."""
    budget = Budget(request.epsilon, request.delta)
    randomness = randomness_of(request.noise_seed)
    schema = schema_of(request.data, request.schema)
    options = Options(
        stated_targets(request.targets),
        tuple(_columns(m) for m in request.marginals),
        tuple(parse_weight(w) for w in request.weights),
        request.workload,
        request.by,
        request.draws,
        request.pool,
        request.numeric,
    )
    given = _given(request.given)
    plan = Plan.of(schema, budget, request.method, options, request.rows, request.seed, request.accept_draft, given)
    plan.check()
    table = open_table(request.data, schema)
    out = request.out or beside(request.data, "-release")
    check_writable(out, request.overwrite, expected_bytes=_expected_bytes(request, schema))
    ledger = ledger_of(request.data, request.ledger)
    journal = resumed(journal_path(out), ledger) if request.resume else Journal.fresh(journal_path(out))
    plan = continued(plan, journal, request.seed)
    with resumable(journal):
        plan = plan if request.audit is None else _audited(plan, request.audit, quiet)
        with progress(len(STEPS) + 1, quiet) as begin:
            release = synthesize_with(
                table,
                plan,
                randomness=randomness,
                ledger=ledger,
                analyst=request.analyst,
                progress=begin,
                journal=journal,
            )
            begin("writing")
            files = release.files(request.format)
            _write(out, files, request.overwrite, budget, ledger)
    finish(journal, ledger)
    _show(release, out, json.loads(files[CERTIFICATE]) if as_json else None)


def _audited(plan: Plan, setting: str, quiet: bool) -> Plan:
    """The plan with an audit of its method. A violation ends the command here, before anything is spent."""
    budget = plan.budget
    with progress(1, quiet) as begin:
        found = audit(
            plan.choice.method.name,
            epsilon=budget.epsilon,
            delta=budget.delta,
            neighbours=plan.schema.neighbours,
            setting=setting,
            progress=lambda text: begin(f"auditing: {text}"),
        )
    return plan.audited(found)


def _write(out: Path, files: dict[str, bytes], overwrite: bool, budget: Budget, ledger: Path) -> None:
    try:
        write_folder(out, files, overwrite)
    except ReleaseError as error:
        # The noise was drawn, so the debit is real, whether or not anybody saw the result.
        raise ReleaseError(
            f"{error}; the budget was spent all the same: {budget} stay debited in {ledger}", out
        ) from None


def _columns(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise InputError(f"marginal ({text!r}) must be column names with commas between them, such as age,income", text)
    return names


def _given(pairs: tuple[str, ...]) -> dict[str, str]:
    """Values by column; an empty one stands for a missing value."""
    given: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise InputError(f"given ({pair!r}) must be a column and its value, such as sex=Female", pair)
        if name.strip() in given:
            raise InputError(f"given names column {name.strip()!r} twice; keep one of its values", pair)
        given[name.strip()] = value
    return given


def _expected_bytes(request: Request, schema: Schema) -> int:
    """Room to ask the disk for before anything is spent: as much as the rows asked for, or as the data, need."""
    if request.rows is not None:
        return 4096 + request.rows * len(schema.released) * BYTES_PER_VALUE
    if is_server(request.data):
        return 4096  # how large the table is, only its server knows
    return 4096 + 2 * Path(request.data.partition("::")[0]).stat().st_size


def _show(release: Release, out: Path, written: dict[str, Any] | None) -> None:
    if written is not None:
        print_json({"out": str(out), **written})
        return
    certificate = release.certificate
    claim = (
        f"({certificate.epsilon:.6g}, {certificate.delta:g})-differential privacy, neighbours {certificate.neighbours}"
    )
    void = f"none: {certificate.stamp}, {certificate.void}"
    print_facts(
        [
            ("release", str(out)),
            ("method", f"{certificate.method} ({certificate.reason})"),
            ("guarantee", claim if certificate.guarantee else void),
            *_payment(certificate),
            *([("audit", str(certificate.audit["verdict"]))] if certificate.audit else []),
            *_training(release),
            ("rows", f"{certificate.rows:,} ({certificate.rows_rule})"),
            ("report", str(out / "report.html")),
            ("check it", f"understudy verify {out} && understudy replay {out}"),
        ]
    )


def _payment(certificate: Certificate) -> list[tuple[str, str]]:
    """Which debit paid, and whether anything limits the next ones."""
    paid = certificate.ledger
    if paid is None:
        return [("ledger", "no ledger was debited")]
    limit = f"all releases together may reach {paid.limit}" if paid.limit else NO_LIMIT
    return [("ledger", str(paid)), ("limit", limit)]


def _training(release: Release) -> list[tuple[str, str]]:
    """The curve of a training in one line, where there is one."""
    curve = curve_of(release.record)
    if not curve:
        return []
    (first, from_), (last, to) = curve[0], curve[-1]
    gap = f"critic's gap {from_:.3g} at step {first:,.0f}, {to:.3g} at step {last:,.0f}"
    return [("training", f"{sparkline([gap for _, gap in curve])}  {gap}")]
