"""`understudy synth --no-privacy`: one file of rows without any guarantee, and never a release."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from understudy.cli.locations import beside, schema_of
from understudy.cli.screen import print_facts, print_json, progress
from understudy.errors import InputError, ReleaseError
from understudy.files import write_atomically
from understudy.lab.specimens.all_specimens import SPECIMENS, specimen
from understudy.lab.specimens.specimen_result import Specimen
from understudy.methods.params import parse_options
from understudy.releases.release import check_writable
from understudy.releases.synthetic_table import csv_bytes, parquet_bytes


def run(
    data: str,
    method: str,
    epsilon: float | None,
    schema: Path | None,
    rows: int | None,
    out: Path | None,
    *,
    format: str,
    seed: int | None,
    overwrite: bool,
    options: Sequence[str],
    quiet: bool,
    as_json: bool,
) -> None:
    """The rows of a method without a guarantee; no ledger is touched, since nothing is claimed."""
    known = schema_of(data, schema)
    target = out or beside(data, f"-{method}-no-privacy.{format}")
    _check_target(target, overwrite)
    with progress(2, quiet) as begin:
        begin("learning, without privacy")
        named = 1.0 if epsilon is None else epsilon
        made = specimen(data, known, method=method, epsilon=named, rows=rows, seed=seed, options=parse_options(options))
        begin("writing")
        content = csv_bytes(made.arrow, known) if format == "csv" else parquet_bytes(made.table)
        write_atomically(target, content)
    _show(made, target, as_json)


def _check_target(target: Path, overwrite: bool) -> None:
    if target.is_dir():
        raise ReleaseError(f"{str(target)!r} is a folder; rows without privacy are one file, so name a file", target)
    if target.exists() and not overwrite:
        raise ReleaseError(f"{str(target)!r} exists already; choose another file, or overwrite it", target)
    if not target.parent.is_dir():
        raise ReleaseError(f"the folder {str(target.parent)!r} of --out does not exist; make it first", target)
    if not target.exists():
        check_writable(target, overwrite)


def check_wish(method: str, no_privacy: bool) -> bool:
    """Whether rows without privacy are wanted; a name without the flag, or the flag without the name, is refused."""
    if method in SPECIMENS and not no_privacy:
        raise InputError(f"method {method} has no privacy guarantee; say --no-privacy if that is what you want", method)
    if no_privacy and method not in SPECIMENS:
        raise InputError(
            f"--no-privacy goes with --method {' or '.join(SPECIMENS)}, and method {method} is private; leave it out",
            method,
        )
    return no_privacy


def _show(made: Specimen, target: Path, as_json: bool) -> None:
    if as_json:
        print_json({"out": str(target), **made.certificate})
        return
    print_facts(
        [
            ("rows", f"{made.arrow.num_rows:,} in {target}"),
            ("method", made.method),
            ("guarantee", "none: treat this file like the table it was made from"),
        ]
    )
