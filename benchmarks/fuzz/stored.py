"""Predictors that somebody changed and signed again, and journals that were damaged and then resumed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import understudy as us
from fuzz.case import Case, Target, failed
from fuzz.material import JOURNAL, LEDGER, STOPPED_AFTER, SYNTH
from fuzz.mutation import odd_value, spoiled_bytes, spoiled_value
from fuzz.tables import check_material, run_quietly
from understudy.boundary.privacy.journal import FRAME, MAGIC, framed


def predictor(case: Case) -> None:
    """Loaded and used, or refused in one line."""
    draw, path = case.draw, case.folder / "tree.json"
    body = json.loads((case.base / "tree.json").read_text())
    body.pop("digest")
    body = spoiled_value(draw, body, deep=draw.random() < 0.05)
    if draw.random() < 0.4:
        for turn in body.get("rounds", []) if isinstance(body, dict) and isinstance(body.get("rounds"), list) else []:
            _sign_round(draw, turn)
    path.write_text(_signed(body), encoding="utf-8", errors="replace")
    loaded = case.call("load", us.PrivateDecisionTree.load, path)
    if not failed(loaded):
        case.call("describe", repr, loaded)


def _sign_round(draw: Random, turn: Any) -> None:
    """The certificate inside is changed, too, with a digest of its own."""
    if not (isinstance(turn, dict) and isinstance(turn.get("certificate"), dict)):
        return
    certificate = spoiled_value(draw, turn["certificate"], times=1)
    if isinstance(certificate, dict):
        certificate.pop("digest", None)
        with contextlib.suppress(ValueError):
            text = json.dumps(certificate, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
            certificate["digest"] = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    turn["certificate"] = certificate


def _signed(body: Any) -> str:
    try:
        text = json.dumps(body, sort_keys=True, ensure_ascii=False)
        if isinstance(body, dict):
            body["digest"] = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
        return json.dumps(body, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return "[" * 50_000 + "]" * 50_000


def journal(case: Case) -> None:
    """Resumed with the answers that were paid for, or refused; never debited again."""
    desk = case.folder / "desk"
    shutil.copytree(case.base / "stopped", desk)
    os.chdir(desk)
    path = desk / JOURNAL
    path.write_bytes(_damaged(case.draw, path.read_bytes()))
    code = run_quietly(case, [*SYNTH, "--resume"])
    entries = us.Ledger.open(desk / LEDGER, create=False).entries()
    if len(entries) != 1:
        case.fail("a damaged journal was paid for again", f"{len(entries)} debits")
    if code == 0:
        _check_release(case, desk / "out")
    elif (desk / "out").exists():
        case.fail("a refusal left a release")


def _check_release(case: Case, folder: Path) -> None:
    if failed(case.call("verify", us.verify, folder)) or failed(case.call("replay", us.replay, folder)):
        case.fail("a release that was resumed from a damaged journal does not verify or replay")
        return
    with np.load(folder / "measurements.npz") as found, np.load(case.base / "resumed/out/measurements.npz") as honest:
        for number in range(STOPPED_AFTER):
            if not np.array_equal(found[f"answer_{number}"], honest[f"answer_{number}"]):
                case.fail("an answer that was drawn before is another one now", f"answer {number}")


def _damaged(draw: Random, content: bytes) -> bytes:
    """Bytes spoiled, or whole records changed so that their checksums hold."""
    if draw.random() < 0.4:
        return spoiled_bytes(draw, content)
    bodies, start = [], len(MAGIC)
    while start < len(content):
        length, _ = FRAME.unpack(content[start : start + FRAME.size])
        bodies.append(content[start + FRAME.size : start + FRAME.size + length])
        start += FRAME.size + length
    at = draw.randrange(len(bodies))
    match draw.randrange(7):
        case 0:
            del bodies[at]
        case 1:
            bodies.append(bodies[at])
        case 2:
            draw.shuffle(bodies)
        case 3:
            bodies[at] = spoiled_bytes(draw, bodies[at], times=1)
        case 4:
            bodies[0] = _spoiled_json(draw, bodies[0])
        case 5:
            head, _, arrays = bodies[at].partition(b"\n")
            bodies[at] = _spoiled_json(draw, head) + b"\n" + arrays
        case _:
            whole = MAGIC + b"".join(map(framed, bodies))
            return whole[: draw.randrange(len(whole))]
    return MAGIC + b"".join(map(framed, bodies))


def _spoiled_json(draw: Random, content: bytes) -> bytes:
    value = spoiled_value(draw, json.loads(content)) if draw.random() < 0.8 else odd_value(draw)
    try:
        return json.dumps(value).encode()
    except (TypeError, ValueError, RecursionError):
        return b"{"


TARGETS = (
    Target("predictors", "predictor files, changed and signed again", 710, predictor, prepare=check_material),
    Target("journals", "journals, damaged and then resumed", 400, journal, prepare=check_material),
)
