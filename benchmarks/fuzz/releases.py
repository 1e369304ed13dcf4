"""Release folders, damaged by accident or changed by an attacker who signs them again; then every way to read them.

A certificate is no signature: its digest and its hashes can be made anew by anybody. So damage must be found by
`verify`, and a change of the table or of the report by `verify` or by `replay`, since both follow from the record.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import shutil
import tomllib
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import tomli_w

import understudy as us
from fuzz.case import Case, Target, failed
from fuzz.material import RELEASES
from fuzz.mutation import ODD_TEXTS, spoiled_bytes, spoiled_value
from understudy.releases.certificate import Certificate

CERTIFICATE, MEASUREMENTS, SCHEMA, REPORT = "certificate.json", "measurements.npz", "schema.toml", "report.html"
DAMAGED = 0.35
"""The share of cases that are plain damage."""
EXPRESSIONS = ("age > 40", "job = 'cook' AND smoker", "pay < 50 OR hired > '2020-01-01'", "job IS NULL")


def read(case: Case) -> None:
    """`verify`, `replay`, and of some folders `Release.load` and a count."""
    draw, folder = case.draw, case.folder / "release"
    shutil.copytree(case.base / "releases" / draw.choice(RELEASES), folder)
    honest = json.loads((folder / CERTIFICATE).read_text())
    damaged = draw.random() < DAMAGED
    before = _contents(folder)
    changed = _damage(draw, folder) if damaged else _forge(draw, folder)
    if _contents(folder) == before:
        return
    verified = case.call("verify", us.verify, folder)
    replayed = case.call("replay", us.replay, folder)
    passed = not failed(verified) and not failed(replayed)
    if damaged and not failed(verified):
        case.fail("damage passed verify", changed)
    if passed and _changes(before, _contents(folder)) and not damaged and changed in ("the table", "the report"):
        case.fail(f"{changed} was changed and signed again, and passed verify and replay")
    if passed:
        _check_claim(case, verified, honest, changed)
    if draw.random() < 0.3:
        _load(case, folder, counting=draw.random() < 0.33)


def _check_claim(case: Case, verified: Any, honest: dict[str, Any], changed: str) -> None:
    """What passed both checks claims no less than what was drawn cost."""
    asked = honest["asked"]
    if verified.epsilon < asked["epsilon"] or verified.delta < asked["delta"]:
        case.fail("a smaller claim passed verify and replay", f"{changed}: {verified}")


def _changes(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    """The files but the certificate, which is also another one when it is only written in another layout."""
    return sorted(n for n in before if before[n] != after.get(n) and n != CERTIFICATE)


def _load(case: Case, folder: Path, counting: bool) -> None:
    release = case.call("load", us.Release.load, folder)
    if counting and not failed(release):
        case.call("count", release.count, case.draw.choice(EXPRESSIONS))


def _contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}


# --- damage


def _damage(draw: Random, folder: Path) -> str:
    """A file of the release is spoiled, cut, emptied, exchanged, missing, or something else than a file."""
    path = draw.choice(sorted(folder.iterdir()))
    match draw.randrange(10):
        case 0:
            path.unlink()
        case 1:
            path.write_bytes(b"")
        case 2:
            path.unlink()
            path.mkdir()
        case 3:
            path.write_bytes(draw.choice(sorted(folder.iterdir())).read_bytes())
        case _:
            path.write_bytes(spoiled_bytes(draw, path.read_bytes()))
    return f"damage of {path.name}"


# --- forgery


def _forge(draw: Random, folder: Path) -> str:
    """Something is changed on purpose, and the certificate is made to agree."""
    certificate = json.loads((folder / CERTIFICATE).read_text())
    changed = draw.choice(["the table", "the report", "the schema", *["the record"] * 4, *["the certificate"] * 4])
    match changed:
        case "the table":
            _forge_table(draw, next(folder.glob("synthetic.*")))
        case "the report":
            _forge_report(draw, folder / REPORT)
        case "the schema":
            _forge_schema(draw, folder / SCHEMA)
        case "the record":
            _forge_record(draw, folder / MEASUREMENTS)
        case _:
            certificate = spoiled_value(draw, certificate, deep=draw.random() < 0.1)
    sign(folder, certificate, consistent=draw.random() < 0.7)
    return changed


def _forge_table(draw: Random, path: Path) -> None:
    if path.suffix == ".parquet" or draw.random() < 0.5:
        path.write_bytes(spoiled_bytes(draw, path.read_bytes()))
        return
    lines = path.read_text().splitlines(keepends=True)
    at = draw.randrange(1, len(lines))
    lines[at] = draw.choice([lines[draw.randrange(1, len(lines))], lines[at].replace("cook", "nurse"), ""])
    path.write_text("".join(lines))


def _forge_report(draw: Random, path: Path) -> None:
    text = path.read_text()
    if draw.random() < 0.5:
        path.write_text(text.replace("<body", f"<script>{draw.choice(ODD_TEXTS)}</script><body", 1))
    else:
        path.write_bytes(spoiled_bytes(draw, path.read_bytes()))


def _forge_schema(draw: Random, path: Path) -> None:
    with contextlib.suppress(TypeError, ValueError, AttributeError):  # what TOML can't say stays as it was
        path.write_text(tomli_w.dumps(spoiled_value(draw, tomllib.loads(path.read_text()))))


def _forge_record(draw: Random, path: Path) -> None:
    """Questions and arrays of the record: values, types, shapes, numbers."""
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    for _ in range(draw.randint(1, 2)):
        if draw.random() < 0.4:
            # The array of questions may have been forged in the turn before.
            with contextlib.suppress(ValueError, RecursionError):
                questions = spoiled_value(draw, json.loads(arrays["questions"].tobytes()), deep=draw.random() < 0.1)
                arrays["questions"] = np.frombuffer(_json(questions).encode("utf-8", "replace"), dtype=np.uint8)
            continue
        name = draw.choice(sorted(arrays))
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            arrays[name] = _forged(draw, arrays[name])
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    path.write_bytes(buffer.getvalue())


def _forged(draw: Random, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    made = array.copy()
    match draw.randrange(9):
        case 0 if made.size:
            made.flat[draw.randrange(made.size)] = draw.choice([0, 1, -1, 200, 2**31, -(2**62), 2**62, 127])
        case 1:
            made = made.astype(draw.choice(["float64", "float32", "int8", "uint64", "bool", "U8", "complex64", "S4"]))
        case 2:
            made = np.full(made.shape, draw.choice([np.nan, np.inf, -np.inf, 1e308, -0.5]))
        case 3:
            made = made[:-1] if made.ndim else made
        case 4:
            made = np.concatenate([made.ravel(), made.ravel()[:3]])
        case 5:
            made = made.reshape(1, -1) if draw.random() < 0.5 else made.reshape(-1, 1)
        case 6:
            made = draw.choice([np.zeros(0), np.array(7), np.zeros((0, 3)), np.array("x"), np.zeros(10_000)])
        case 7:
            made = -made
        case _:
            made = made[::-1] if made.ndim else made
    return made


def sign(folder: Path, certificate: Any, consistent: bool = True) -> None:
    """Hashes and digest made anew; and, where the project still reads it, its claim and its prices, too."""
    if isinstance(certificate, dict):
        files = certificate.get("files")
        if isinstance(files, dict):
            for name in files:
                path = folder / str(name)
                # A name may have become a path of any kind by now.
                with contextlib.suppress(OSError, ValueError):
                    files[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        certificate.pop("digest", None)
        with contextlib.suppress(ValueError, RecursionError):
            certificate["digest"] = hashlib.sha256(_written(certificate)).hexdigest()
    try:
        content = _written(certificate)
    except (ValueError, RecursionError):
        # JSON has no such number, or Python's writer does not get so deep.
        content = b'{"digest": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"
    (folder / CERTIFICATE).write_bytes(content)
    if consistent:
        with contextlib.suppress(Exception):
            (folder / CERTIFICATE).write_bytes(Certificate.from_bytes(content).to_bytes())


def _written(body: Any) -> bytes:
    """The layout of the digest, which is one of those that a certificate may have."""
    return (json.dumps(body, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8", "replace")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def check_material(base: Path) -> None:
    for name in RELEASES:
        us.verify(base / "releases" / name)
        us.Release.load(base / "releases" / name).count(EXPRESSIONS[0])


TARGETS = (Target("releases", "release folders, damaged or signed again", 6_400, read, prepare=check_material),)
