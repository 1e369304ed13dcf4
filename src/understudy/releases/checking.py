"""`verify` and `replay`: what anybody can check of a release without a private row.

A release may come from anybody, so all of its files are read by `releases.untrusted`, which bounds them first.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from understudy.boundary.privacy.curator import Curator
from understudy.boundary.schema.schema import Schema
from understudy.errors import CheckFailed, ReleaseError, UnderstudyError, located
from understudy.methods.method import Options
from understudy.methods.parts.prior import Prior
from understudy.methods.registry import AUTO, choose
from understudy.releases.certificate import FIRST_FORMAT, Certificate, versions
from understudy.releases.priors import read_prior
from understudy.releases.release import (
    CERTIFICATE,
    FORMATS,
    MEASUREMENTS,
    PRIOR,
    REPORT,
    SCHEMA,
    Release,
    read_record,
    synthetic_name,
)
from understudy.releases.room import MOST_ROWS
from understudy.releases.synthesis import Plan
from understudy.releases.untrusted import audit_claim
from understudy.releases.untrusted.arrays import check_arrays
from understudy.releases.untrusted.markup import check_page
from understudy.releases.untrusted.reading import check_drawable, parse_schema, read, sha256_of

SIZES = {
    **dict.fromkeys(map(synthetic_name, FORMATS), "table_bytes"),
    CERTIFICATE: "certificate_bytes",
    MEASUREMENTS: "archive_bytes",
    PRIOR: "archive_bytes",
    SCHEMA: "schema_bytes",
    REPORT: "report_bytes",
}
"""The limit on the size of each file."""
ENGINES = ("python", "numpy", "pyarrow")
"""They decide which rows are drawn, and have no part in the words of a report."""


@dataclass(frozen=True)
class Verified:
    """What `verify` found to hold."""

    epsilon: float
    delta: float
    claimed: bool
    spends: int
    files: tuple[str, ...]
    spent: float = 0.0
    """The ε that the recorded spends amount to at δ, recomputed; at most `epsilon`, which was asked for."""
    void: str | None = None
    """Why nothing is claimed, where `claimed` is False."""
    audit: str | None = None
    """Whose word the audit on the certificate is, where there is one."""
    not_compared: str | None = None
    """Why `replay`, too, may be unable to make the report again, in words; None where it can."""


@dataclass(frozen=True)
class Replayed:
    """What `replay` rebuilt."""

    file: str
    rows: int
    answers: int
    not_compared: str | None = None
    """What could not be compared since another version made it, in words; None where all was."""


def verify(directory: str | Path) -> Verified:
    """Recomputes the ε of the recorded spends, which must be within the claim, and the hash of every file.

    Args:
        directory: The folder of a release.

    Returns:
        What was found to hold.

    Raises:
        CheckFailed: Something does not hold.
    """
    folder = Path(directory)
    certificate = read_certificate(folder)
    _check_listed(certificate)
    for name, wanted in certificate.files.items():
        if sha256_of(folder / name, SIZES[name]) != wanted:
            raise CheckFailed(f"{name} was changed: its hash is not the one in {CERTIFICATE}", name)
    spent, _ = certificate.composed
    if spent > certificate.epsilon:
        raise CheckFailed(
            f"the spends in {CERTIFICATE} amount to epsilon {spent:.6g}, above the {certificate.epsilon:g} asked for",
            certificate,
        )
    audit_claim.check_audit(certificate)
    check_page(read_file(folder, REPORT), REPORT)
    _check_sizes(folder, certificate)
    return Verified(
        certificate.epsilon,
        certificate.delta,
        claimed=certificate.guarantee is not None,
        spends=len(certificate.spends),
        files=(*certificate.files, CERTIFICATE),
        spent=spent,
        void=certificate.void,
        audit=None if certificate.audit is None else audit_claim.CLAIMED,
        not_compared=_made_elsewhere(certificate, [REPORT]),
    )


def replay(directory: str | Path) -> Replayed:
    """Rebuilds the synthetic table from the measurements alone and compares it byte for byte, and so the report.

    Args:
        directory: The folder of a release.

    Returns:
        What was rebuilt.

    Raises:
        CheckFailed: It is another table, or the recorded answers are not those that the method asks for.
    """
    folder = Path(directory)
    release, not_compared = _rebuilt(folder)
    file = _synthetic(release.certificate)
    return Replayed(file, release.certificate.rows, len(release.record), not_compared)


def load(folder: Path) -> Release:
    """The release in a folder, rebuilt; what `verify` or `replay` find wrong is raised."""
    verify(folder)
    return _rebuilt(folder)[0]


def _rebuilt(folder: Path) -> tuple[Release, str | None]:
    """The release, and what of it could not be compared, in words."""
    certificate = read_certificate(folder)
    _check_listed(certificate)
    schema, name = parse_schema(read_file(folder, SCHEMA), SCHEMA), _synthetic(certificate)
    _check_rows(certificate, schema, read_file(folder, name))
    record = read_record(read_file(folder, MEASUREMENTS))
    # It has no rows: whatever the method asks is answered from the record, and a question that is not there fails.
    curator = Curator.replaying(
        schema, certificate.asked, record, secure=certificate.secure, federation=certificate.federation
    )
    options = replace(_options(certificate), prior=_prior(folder, certificate))
    try:
        release = _rerun(schema, certificate, curator, options)
    except CheckFailed as error:
        # A method that asks something else than it did then: the version that made the release still asks the same.
        raise CheckFailed(f"{error}{_other_versions(certificate)}", certificate) from error
    # The method decides again what is asked, so a spend that was left out or made cheaper shows here.
    if curator.spends != certificate.spends:
        raise CheckFailed(f"the spends of the replay are not those of {CERTIFICATE}", curator.spends)
    # One answer too many would be data that nothing in the release accounts for.
    if len(curator.record) != len(record):
        raise CheckFailed(f"{MEASUREMENTS} holds answers that the method never asked for", record)
    if release.synthetic_bytes(name.removeprefix("synthetic.")) != read_file(folder, name):
        raise CheckFailed(f"{name} is not what {MEASUREMENTS} and {SCHEMA} give{_other_versions(certificate)}", name)
    _check_same_claim(certificate, release.certificate)
    check_page(read_file(folder, REPORT), REPORT)
    again, release = release.certificate, replace(release, certificate=certificate)
    derived = {
        SCHEMA: schema.dumps().encode() == read_file(folder, SCHEMA),
        f"the parameters in {CERTIFICATE}": _plain(again.parameters) == certificate.parameters,
        f"the reason in {CERTIFICATE}": certificate.reason
        in (again.reason, _chosen(certificate, schema, options, again.reason)),
        REPORT: release.report_bytes() == read_file(folder, REPORT),
    }
    return release, _not_compared(certificate, [name for name, same in derived.items() if not same])


def read_certificate(folder: Path) -> Certificate:
    if not folder.is_dir():
        raise ReleaseError(f"{str(folder)!r} is not a folder; give the folder of a release", folder)
    if not (folder / CERTIFICATE).exists() and not (folder / MEASUREMENTS).exists():
        raise ReleaseError(f"{str(folder)!r} holds no {CERTIFICATE}; give the folder of a release", folder)
    content = read_file(folder, CERTIFICATE)
    certificate = Certificate.from_bytes(content)
    # With its claim, its stamp and every price computed anew.
    if not certificate.is_written_as(content):
        raise CheckFailed(f"{CERTIFICATE} claims something else than its spends amount to", certificate)
    return certificate


def _synthetic(certificate: Certificate) -> str:
    name = next((n for n in map(synthetic_name, FORMATS) if n in certificate.files), None)
    if name is None:
        raise CheckFailed(f"{CERTIFICATE} lists no synthetic table", certificate)
    return name


def _check_listed(certificate: Certificate) -> None:
    # A file that is not listed could be changed unseen; one too many would be taken for a part of the evidence.
    wanted = {_synthetic(certificate), MEASUREMENTS, SCHEMA, REPORT}
    if "prior" in certificate.parameters:
        wanted.add(PRIOR)
    for name in sorted(wanted - certificate.files.keys()):
        raise CheckFailed(f"{CERTIFICATE} holds no hash of {name}", name)
    for name in sorted(certificate.files.keys() - wanted):
        raise CheckFailed(f"{CERTIFICATE} holds the hash of {name}, which is no file of this release", name)


def _check_sizes(folder: Path, certificate: Certificate) -> None:
    """What `replay` would refuse for its size alone, so that nobody hands on such a folder as verified."""
    check_drawable(parse_schema(read_file(folder, SCHEMA), SCHEMA), certificate.rows, CERTIFICATE)
    for name in {MEASUREMENTS, PRIOR} & certificate.files.keys():
        check_arrays(read_file(folder, name), name)


def _check_rows(certificate: Certificate, schema: Schema, table: bytes) -> None:
    """Before anything is fitted or drawn: that the rows on the certificate are few enough, and can be in the file."""
    rows = certificate.rows
    check_drawable(schema, rows, CERTIFICATE)
    # A row of CSV ends with a line break, and so does the header; more of them may stand in texts.
    lines = table.count(b"\n")
    if _synthetic(certificate) == synthetic_name("csv") and not 1 <= rows < lines:
        raise CheckFailed(
            f"rows in {CERTIFICATE} are {rows:,}, and {_synthetic(certificate)} has {lines:,} lines", rows
        )


def _check_same_claim(claimed: Certificate, rebuilt: Certificate) -> None:
    """What a replay settles anew: whom the claim protects, which facts were declared, and how many rows came out."""
    keys = ["neighbours", "unit", "federation", "columns", "rows", "rows_rule"]
    if claimed.format != FIRST_FORMAT:
        keys.append("schema_status")
    for key in keys:
        if getattr(claimed, key) != getattr(rebuilt, key):
            raise CheckFailed(f"{key.replace('_', ' ')} in {CERTIFICATE} is not what the replay gives", key)


# --- what Understudy wrote beside the table: another version may word it otherwise


def _not_compared(certificate: Certificate, other: list[str]) -> str | None:
    """Refuses what is worded otherwise; where another version made the release, as it says, names it instead."""
    if not other:
        return None
    note = _made_elsewhere(certificate, other)
    if note is None:
        raise CheckFailed(f"{other[0]} is not what the rest of the release gives", other[0])
    return note


def _made_elsewhere(certificate: Certificate, names: list[str]) -> str | None:
    """That another version made it, of Understudy or of a method; None where the certificate names the one here.

    Whoever forges a report may name another version, too. So it is never passed over: whoever checks is told.
    """
    here = {name: _version_here(name) for name in certificate.versions if name not in ENGINES}
    other = [f"{n} {certificate.versions[n]} (here {here[n]})" for n in here if here[n] != certificate.versions[n]]
    if not other:
        return None
    return (
        f"made by {', '.join(other)}, as {CERTIFICATE} says, and so not compared word for word: {', '.join(names)}; "
        "check with that version, or don't rely on it"
    )


def _chosen(certificate: Certificate, schema: Schema, options: Options, rebuilt: str) -> str | None:
    """The reason if `auto` would have chosen the method: its own, and what the rebuilt one expects of the table."""
    try:
        choice = choose(AUTO, options, schema, certificate.asked)
        named = choose(certificate.method, options, schema, certificate.asked)
    except UnderstudyError:
        return None
    return choice.reason + rebuilt.removeprefix(named.reason) if choice.method is named.method else None


def _plain(value: Any) -> Any:
    """As JSON gives it back."""
    return json.loads(json.dumps(value))


def _options(certificate: Certificate) -> Options:
    try:
        return Options.from_dict(certificate.parameters)
    except (UnderstudyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise _not_rebuilt(error) from error


def _prior(folder: Path, certificate: Certificate) -> Prior | None:
    """The tables of the prior as the release keeps them; which file they are from is as the certificate says."""
    if "prior" not in certificate.parameters:
        return None
    prior = read_prior(read_file(folder, PRIOR))
    if prior.to_dict() != certificate.parameters["prior"]:
        raise CheckFailed(f"{PRIOR} is not of the prior that {CERTIFICATE} names", prior.name)
    return prior


def _rerun(schema: Schema, certificate: Certificate, curator: Curator, options: Options) -> Release:
    def before_drawing(bought: Schema, rows: int) -> None:
        # The number may be a noisy total: forged measurements may have any, and the model draws as many.
        if rows != certificate.rows:
            raise CheckFailed(f"rows in {CERTIFICATE} are {certificate.rows:,}, and the replay gives {rows:,}", rows)
        check_drawable(bought, rows, CERTIFICATE)

    try:
        plan = Plan.of(
            schema,
            certificate.asked,
            certificate.method,
            options,
            rows=certificate.parameters.get("rows"),
            seed=certificate.seed,
            accept_draft=True,  # whoever made the release did; its certificate claims nothing then
            given=certificate.parameters.get("given"),
            # Earlier releases name none: theirs was that of all releases.
            most_rows=certificate.parameters.get("most_rows", MOST_ROWS),
        )
        return replace(plan, before_drawing=before_drawing).release(curator, "pyarrow")
    except CheckFailed:
        raise
    # Answers have the form of their questions (`Ask.fits`) and options their bounds. What a forged value still breaks
    # further on, in a model or in numpy, is a release that can't be rebuilt, and no bug of ours.
    except Exception as error:
        raise _not_rebuilt(error) from error


def _not_rebuilt(error: Exception) -> CheckFailed:
    said = str(error) if isinstance(error, UnderstudyError) else located(error)
    return CheckFailed(f"the release can't be rebuilt from {MEASUREMENTS} and {SCHEMA}: {said}", error)


def read_file(folder: Path, name: str) -> bytes:
    """A file of a release, if it is no larger than it may be."""
    return read(folder / name, SIZES[name])


def _version_here(name: str) -> str:
    """That of Python, of this package or of another one, whose method may have made the release."""
    try:
        return versions()[name] if name in versions() else version(name)
    except (PackageNotFoundError, ValueError):  # a name that no package can have
        return "not installed"


def _other_versions(certificate: Certificate) -> str:
    """A likely reason: random streams and Parquet files may change from one version of a package to the next."""
    here = {name: _version_here(name) for name in certificate.versions}
    other = [f"{k} {v} (here {here[k]})" for k, v in certificate.versions.items() if here[k] != v]
    if not other:
        return ""
    return f"; it was made with {', '.join(other)}"
