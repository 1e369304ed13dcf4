"""`understudy synth`: a release; or with `--no-privacy` one file of rows that has no guarantee, and is no release."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.boundary.privacy.journal import Journal
from understudy.boundary.privacy.ledger.ledger import Ledger, is_server
from understudy.boundary.schema.column import Categorical, Column
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.sources import open as open_table
from understudy.cli.failures import journal_path, resumable, unpaid
from understudy.cli.locations import beside, check_command, ledger_of, schema_of
from understudy.cli.screen import print_facts, print_json, progress, sparkline, tell
from understudy.errors import InputError, MethodError, ReleaseError
from understudy.files import write_atomically
from understudy.lab.specimens.all_specimens import SPECIMENS, specimen
from understudy.methods.forecast.caution import spoken
from understudy.methods.params import parse_options
from understudy.methods.parts.workload import parse_weight
from understudy.parameters import one_of
from understudy.progress import Listener
from understudy.releases.certificate import Certificate
from understudy.releases.checking import read_certificate, verify
from understudy.releases.interruption import journal_at
from understudy.releases.release import CERTIFICATE, FORMATS, Release, check_writable, synthetic_name, write_folder
from understudy.releases.report_figures import curve_of
from understudy.releases.room import MOST_ROWS
from understudy.releases.synthesis import Plan, steps_of, synthesize
from understudy.releases.synthetic_table import csv_bytes, parquet_bytes

if TYPE_CHECKING:
    from understudy.lab.audits.result import Audit

FORMULAS = ("=", "+", "-", "@", "\t", "\r")
OTHER_FILES = 160 << 10  # report, evidence, ledger and journal, of a small table
BYTES_PER_VALUE = 12  # what one takes in a CSV file, roughly: it only reserves room
NO_LIMIT = "none is set: the ledger records, and refuses nothing; set one with `understudy budget set`"


@dataclass(frozen=True)
class Request:
    """Where the arguments of `synth` say that things are, and what is to be done beside the release itself."""

    data: str
    schema: Path | None
    out: Path | None
    format: str
    ledger: Path | None
    overwrite: bool
    audit: str | None
    resume: bool
    journal: Path | None
    quiet: bool
    as_json: bool
    pushdown: bool = False

    def check(self) -> None:
        one_of("format", self.format, FORMATS, error=ReleaseError)


def run(request: Request, **wishes: Any) -> None:
    """Calls `synthesize` and writes its release; a refusal spends and leaves nothing.

    `wishes` are those of `synthesize` by name, as they were typed where it wants other types.
    """
    with unpaid():
        wishes = _parsed(wishes)
        table = open_table(request.data, schema_of(request.data, request.schema), pushdown=request.pushdown)
        out = request.out or beside(request.data, "-release")
        ledger, kept = ledger_of(request.data, request.ledger), request.journal or journal_path(out)
        if request.resume and not request.overwrite and _is_there(out, kept, ledger):
            _say_done(request, out)
            return
        # Before the ledger and the journal are touched: what can't be written must not be paid for.
        check_writable(out, request.overwrite, expected_bytes=_expected_bytes(request, wishes["rows"], table.schema))
        journal = journal_at(kept, ledger, request.resume)
    # Filled when the release is delivered: its certificate, with the hashes of the files, is printed from here.
    files: dict[str, bytes] = {}
    assert journal is not None  # since it has a path
    parts = steps_of(table.schema) + 1 if request.audit is None else None  # how many an audit has, only the audit knows
    if request.resume and not journal.paid:
        tell("nothing was debited before the interruption: the release begins anew, and is debited now", error=True)
    written: list[str] = []
    with resumable(journal, lambda: "".join(written)), progress(parts, request.quiet) as begin:
        # Called before the journal is deleted, so that a full disk or an interrupt here loses nothing that was paid.
        def deliver(release: Release) -> None:
            begin("writing")
            files.update(release.files(request.format))
            try:
                write_folder(out, files, request.overwrite, private=release.certificate.void is not None)
            except ReleaseError as error:
                # The noise was drawn, so the debit is real, whether or not anybody saw the result.
                # All that was asked for, and not what was used of it (docs/decisions/0001).
                spent = f"the budget was spent all the same: {release.certificate.asked} stay debited in {ledger}"
                raise ReleaseError(f"{error}; {spent}", out) from None
            written.append(str(out))

        audit_first = None
        if request.audit is not None:
            audit_first = partial(_audited, setting=request.audit, begin=begin)
        release = synthesize(
            table,
            ledger=ledger,
            journal=journal,
            audit=audit_first,
            progress=begin,
            deliver=deliver,
            **wishes,
        )
    if request.as_json:
        print_json({"out": str(out), "cautions": release.cautions, **json.loads(files[CERTIFICATE])})
    else:
        _show(release, out, request.data)


def _is_there(out: Path, kept: Path, ledger: Path) -> bool:
    """Whether the folder holds the very release of the journal, which was stopped between the two; then it is ended."""
    if not (out / CERTIFICATE).is_file() or not kept.is_file() or not ledger.is_file():
        return False
    with closing(Journal.resumed(kept, ledger)) as journal:
        paid = read_certificate(out).ledger
        if not journal.paid or paid is None:
            return False
        if (paid.identity, paid.entry) != (Ledger.open(ledger, create=False).identity(), journal.entry):
            return False
        verify(out)
        journal.finish(ledger)
    return True


def _say_done(request: Request, out: Path) -> None:
    if request.as_json:
        print_json({"out": str(out), **json.loads(read_certificate(out).to_bytes())})
        return
    print_facts(
        [
            ("release", f"{out}: it was written whole before the interruption, and nothing was left to do"),
            ("check it", f"understudy verify {out} && understudy replay {out}"),
        ]
    )


def _parsed(wishes: dict[str, Any]) -> dict[str, Any]:
    if wishes["epsilon"] is None:
        raise InputError("a release needs --epsilon, the privacy loss that it may have, such as --epsilon 1", None)
    return wishes | {
        "marginals": [_columns(text) for text in wishes["marginals"]],
        "weights": _weights(wishes["weights"]),
        "given": _given(wishes["given"]),
        "options": parse_options(wishes["options"]),
    }


def _audited(plan: Plan, setting: str, begin: Listener) -> Audit:
    """An audit of the method. A violation ends the command here, before anything is spent."""
    from understudy.lab.audits.audit import audit  # a release without an audit need not wait for it

    return audit(
        plan.choice.method.name,
        epsilon=plan.budget.epsilon,
        delta=plan.budget.delta,
        neighbours=plan.schema.neighbours,
        setting=setting,
        progress=lambda text: begin(f"auditing: {text}"),
    )


def _columns(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise InputError(f"marginal ({text!r}) must be column names with commas between them, such as age,income", text)
    return names


def _weights(texts: Sequence[str]) -> dict[str | tuple[str, ...], float]:
    weights: dict[str | tuple[str, ...], float] = {}
    for columns, weight in map(parse_weight, texts):
        if columns in weights:
            raise MethodError(f"the set ({', '.join(columns)}) is weighted twice; weigh it once", texts)
        weights[columns] = weight
    return weights


def _given(pairs: tuple[str, ...]) -> dict[str, str]:
    """Values by column; an empty one stands for a missing value."""
    given: dict[str, str] = {}
    for pair in pairs:
        # At the first one: a value may hold an equals sign, and a column that does can't be given here.
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise InputError(f"given ({pair!r}) must be a column and its value, such as sex=Female", pair)
        if name.strip() in given:
            raise InputError(f"given names column {name.strip()!r} twice; keep one of its values", pair)
        given[name.strip()] = value
    return given


def _expected_bytes(request: Request, rows: int | None, schema: Schema) -> int:
    """Room to ask the disk for before anything is spent: as much as the rows asked for, or as the data, need."""
    if rows is not None and rows <= MOST_ROWS:  # more are refused in a moment, and not for want of room
        return OTHER_FILES + rows * len(schema.released) * BYTES_PER_VALUE
    if is_server(request.data):
        return OTHER_FILES  # how large the table is, only its server knows
    # How many rows there will be is not known before it is bought; by default it is about as many as the data have.
    return OTHER_FILES + 2 * Path(request.data.partition("::")[0]).stat().st_size


def _show(release: Release, out: Path, data: str) -> None:
    certificate = release.certificate
    claim = f"none: {certificate.stamp}, {certificate.void}"
    if certificate.guarantee:
        pair = f"({certificate.epsilon:.6g}, {certificate.delta:g})"
        claim = f"{pair}-differential privacy, neighbours {certificate.neighbours}"
    # The reason ends with the forecast, which has a line of its own here.
    reason = certificate.reason.partition("; expected: ")[0]
    facts = [("release", str(out)), ("method", f"{certificate.method}: {reason}"), ("guarantee", claim)]
    facts.append(("protects", certificate.protects))
    facts += _payment(certificate)
    if prior := certificate.parameters.get("prior"):
        facts.append(("prior", f"{prior['name']}, {prior['said']}"))
        if prior["left_out"]:
            facts.append(("left out", f"columns of which the prior says nothing: {', '.join(prior['left_out'])}"))
    if certificate.audit:
        facts.append(("audit", str(certificate.audit["verdict"])))
    if curve := curve_of(release.record):
        (first, from_), (last, to) = curve[0], curve[-1]
        ends = f"critic's gap {from_:.3g} at step {first:,.0f}, {to:.3g} at step {last:,.0f}"
        # One character for each report of the training: whether it still learns shows at a glance.
        facts.append(("training", f"{sparkline([gap for _, gap in curve])}  {ends}"))
    if release.expected is not None:
        facts.append(("expected", spoken(release.expected, release.total)))
    facts += [("caution", caution) for caution in release.cautions]
    facts += [
        ("rows", f"{certificate.rows:,} ({certificate.rows_rule})"),
        *_formulas(release, out),
        ("report", str(out / "report.html")),
        ("check it", f"understudy verify {shlex.quote(str(out))} && understudy replay {shlex.quote(str(out))}"),
    ]
    if command := check_command(data):
        facts.append(("the schema", f"{command} says what it did to the rows (internal)"))
    print_facts(facts)


def _formulas(release: Release, out: Path) -> list[tuple[str, str]]:
    """A warning of texts that a spreadsheet takes for formulas; a release has its values as they are."""
    if not (out / synthetic_name("csv")).is_file():
        return []
    named = [c.name for c in release.domain.schema.released if _like_formulas(c)]
    if not named:
        return []
    listed = ", ".join(named)
    return [("spreadsheets", f"values of {listed} begin like formulas; import {synthetic_name('csv')} as text")]


def _like_formulas(column: Column) -> bool:
    """Whether the column's name or one of its texts begins like a formula; numbers may begin with a sign."""
    texts = [column.name]
    if isinstance(column, Categorical) and not column.numeric:
        texts += map(str, column.values or ())
    return any(text.startswith(FORMULAS) for text in texts)


def _payment(certificate: Certificate) -> list[tuple[str, str]]:
    """Which debit paid, and whether anything limits the next ones."""
    paid = certificate.ledger
    if paid is None:
        return [("ledger", "no ledger was debited")]
    limit = f"all releases together may reach {paid.limit}" if paid.limit else NO_LIMIT
    return [("ledger", str(paid)), ("limit", limit)]


# --- without privacy


def check_no_privacy(method: str, no_privacy: bool) -> None:
    """Refuses the name of a method without privacy where the flag is missing, and the flag where it is private."""
    if method in SPECIMENS and not no_privacy:
        raise InputError(f"method {method} has no privacy guarantee; say --no-privacy if that is what you want", method)
    if no_privacy and method not in SPECIMENS:
        raise InputError(
            f"--no-privacy goes with --method {' or '.join(SPECIMENS)}, and method {method} is private; leave it out",
            method,
        )


def run_without_privacy(
    request: Request, method: str, *, epsilon: float | None, rows: int | None, seed: int | None, options: Sequence[str]
) -> None:
    """Writes the rows of a method without a guarantee; no ledger is touched, since nothing is claimed."""
    schema = schema_of(request.data, request.schema)
    target = request.out or beside(request.data, f"-{method}-no-privacy.{request.format}")
    _check_file(target, request.overwrite)
    asked: dict[str, Any] = {"rows": rows, "seed": seed, "options": parse_options(options)}
    if epsilon is not None:
        asked["epsilon"] = epsilon
    with progress(2, request.quiet) as begin:
        begin("learning, without privacy")
        made = specimen(request.data, schema, method=method, **asked)
        begin("writing")
        content = csv_bytes(made.arrow, schema) if request.format == "csv" else parquet_bytes(made.table)
        write_atomically(target, content, private=True)
    if request.as_json:
        print_json({"out": str(target), **made.certificate})
        return
    print_facts(
        [
            ("rows", f"{made.arrow.num_rows:,} in {target}"),
            ("method", made.method),
            ("guarantee", "none: treat this file like the table it was made from"),
        ]
    )


def _check_file(target: Path, overwrite: bool) -> None:
    if target.is_dir():
        raise ReleaseError(f"{str(target)!r} is a folder; rows without privacy are one file, so name a file", target)
    if target.exists() and not overwrite:
        raise ReleaseError(f"{str(target)!r} exists already; choose another file, or say --overwrite", target)
    if not target.parent.is_dir():
        raise ReleaseError(f"the folder {str(target.parent)!r} of --out does not exist; make it first", target)
    if not target.exists():
        check_writable(target, overwrite)
