"""`verify` and `replay`: what anybody can check of a release without a private row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from understudy.boundary.privacy.curator import Curator
from understudy.boundary.schema.schema import Schema
from understudy.errors import CheckFailed, ReleaseError, UnderstudyError
from understudy.methods.method import Options
from understudy.methods.parts.prior import Prior
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
    sha256,
    synthetic_name,
)
from understudy.releases.synthesis import Plan


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


@dataclass(frozen=True)
class Replayed:
    """What `replay` rebuilt."""

    file: str
    rows: int
    answers: int


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
        if sha256(_read(folder / name)) != wanted:
            raise CheckFailed(f"{name} was changed: its hash is not the one in {CERTIFICATE}", name)
    spent, _ = certificate.composed
    if spent > certificate.epsilon:
        raise CheckFailed(
            f"the spends in {CERTIFICATE} amount to epsilon {spent:.6g}, above the {certificate.epsilon:g} asked for",
            certificate,
        )
    return Verified(
        certificate.epsilon,
        certificate.delta,
        claimed=certificate.guarantee is not None,
        spends=len(certificate.spends),
        files=(*certificate.files, CERTIFICATE),
        spent=spent,
        void=certificate.void,
    )


def replay(directory: str | Path) -> Replayed:
    """Rebuilds the synthetic table from the measurements alone and compares it byte for byte.

    Args:
        directory: The folder of a release.

    Returns:
        What was rebuilt.

    Raises:
        CheckFailed: It is another table, or the recorded answers are not those that the method asks for.
    """
    release = _rebuilt(Path(directory))
    return Replayed(_synthetic(release.certificate), release.certificate.rows, len(release.record))


def load(folder: Path) -> Release:
    """The release in a folder, rebuilt; what `verify` or `replay` find wrong is raised."""
    verify(folder)
    return _rebuilt(folder)


def _rebuilt(folder: Path) -> Release:
    certificate = read_certificate(folder)
    record = read_record(_read(folder / MEASUREMENTS))
    schema = _schema(folder)
    name = _synthetic(certificate)
    # It has no rows: whatever the method asks is answered from the record, and a question that is not there fails.
    curator = Curator.replaying(schema, certificate.asked, record, secure=certificate.secure)
    try:
        release = _rerun(schema, certificate, curator, _prior(folder, certificate))
    except CheckFailed as error:
        # A method that asks something else than it did then: the version that made the release still asks the same.
        raise CheckFailed(f"{error}{_other_versions(certificate)}", certificate) from error
    # The method decides again what is asked, so a spend that was left out or made cheaper shows here.
    if curator.spends != certificate.spends:
        raise CheckFailed(f"the spends of the replay are not those of {CERTIFICATE}", curator.spends)
    # One answer too many would be data that nothing in the release accounts for.
    if len(curator.record) != len(record):
        raise CheckFailed(f"{MEASUREMENTS} holds answers that the method never asked for", record)
    if release.synthetic_bytes(name.removeprefix("synthetic.")) != _read(folder / name):
        raise CheckFailed(f"{name} is not what {MEASUREMENTS} and {SCHEMA} give{_other_versions(certificate)}", name)
    _check_same_claim(certificate, release.certificate)
    return replace(release, certificate=certificate)


def read_certificate(folder: Path) -> Certificate:
    if not folder.is_dir():
        raise ReleaseError(f"{str(folder)!r} is not a folder; give the folder of a release", folder)
    if not (folder / CERTIFICATE).exists() and not (folder / MEASUREMENTS).exists():
        raise ReleaseError(f"{str(folder)!r} holds no {CERTIFICATE}; give the folder of a release", folder)
    content = _read(folder / CERTIFICATE)
    try:
        certificate = Certificate.from_bytes(content)
        same = certificate.is_written_as(content)  # with its claim, its stamp and every price computed anew
    except CheckFailed:
        raise
    # Anybody may have edited the file: whatever its content breaks is a failed check, and no bug of ours.
    except (UnderstudyError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckFailed(f"{CERTIFICATE} is not the certificate of a release", content) from error
    if not same:
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


def _check_same_claim(claimed: Certificate, rebuilt: Certificate) -> None:
    """What a replay settles anew: whom the claim protects, which facts were declared, and how many rows came out."""
    keys = ["neighbours", "unit", "columns", "rows", "rows_rule"]
    if claimed.format != FIRST_FORMAT:
        keys.append("schema_status")
    for key in keys:
        if getattr(claimed, key) != getattr(rebuilt, key):
            raise CheckFailed(f"{key.replace('_', ' ')} in {CERTIFICATE} is not what the replay gives", key)


def _prior(folder: Path, certificate: Certificate) -> Prior | None:
    """The tables of the prior as the release keeps them; which file they are from is as the certificate says."""
    if "prior" not in certificate.parameters:
        return None
    prior = read_prior(_read(folder / PRIOR))
    if prior.to_dict() != certificate.parameters["prior"]:
        raise CheckFailed(f"{PRIOR} is not of the prior that {CERTIFICATE} names", prior.name)
    return prior


def _rerun(schema: Schema, certificate: Certificate, curator: Curator, prior: Prior | None) -> Release:
    try:
        parameters = certificate.parameters
        plan = Plan.of(
            schema,
            certificate.asked,
            certificate.method,
            replace(Options.from_dict(parameters), prior=prior),
            rows=parameters.get("rows"),
            seed=certificate.seed,
            accept_draft=True,  # whoever made the release did; its certificate claims nothing then
            given=parameters.get("given"),
        )
        return plan.release(curator, "pyarrow")
    except CheckFailed:
        raise
    except (UnderstudyError, TypeError, ValueError, AttributeError) as error:
        raise CheckFailed(
            f"the release can't be rebuilt from {MEASUREMENTS} and {SCHEMA}: {error}", certificate
        ) from error


def _schema(folder: Path) -> Schema:
    content = _read(folder / SCHEMA)
    try:
        return Schema.loads(content.decode())
    except (UnderstudyError, UnicodeDecodeError) as error:
        raise CheckFailed(f"{SCHEMA} can't be read: it was changed", folder) from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        raise CheckFailed(f"{path.name} is missing from the release, or can't be read", path) from None


def _version_here(name: str) -> str:
    """That of Python, of this package or of another one, whose method may have made the release."""
    try:
        return versions()[name] if name in versions() else version(name)
    except PackageNotFoundError:
        return "not installed"


def _other_versions(certificate: Certificate) -> str:
    """A likely reason: random streams and Parquet files may change from one version of a package to the next."""
    here = {name: _version_here(name) for name in certificate.versions}
    other = [f"{k} {v} (here {here[k]})" for k, v in certificate.versions.items() if here[k] != v]
    if not other:
        return ""
    return f"; it was made with {', '.join(other)}"
