"""A predictor as a JSON file: its parameters, its schema, and the record of every answer. No pickle, and no row."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.boundary.schema.schema import Schema
from understudy.errors import CheckFailed, ReleaseError
from understudy.files import write_atomically
from understudy.predictors.round import Round

if TYPE_CHECKING:
    from understudy.predictors.predictor import PrivatePredictor

FORMAT = "understudy-predictor/1"
NOT_KEPT = ("ledger", "analyst", "schema")


def save(predictor: PrivatePredictor, path: Path) -> None:
    """Writes the file whole or not at all."""
    write_atomically(path, to_json(predictor).encode())


def load(path: Path) -> PrivatePredictor:
    """Reads a predictor back, and learns it again from its record."""
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ReleaseError(f"{str(path)!r} can't be read; give a file that a predictor was saved to", path) from None
    return from_json(content)


def to_json(predictor: PrivatePredictor) -> str:
    body = {
        "format": FORMAT,
        "kind": type(predictor).__name__,
        "parameters": {n: v for n, v in predictor.get_params().items() if n not in NOT_KEPT},
        "schema": predictor.schema_.dumps(),
        "target": predictor.target_,
        "seed": predictor.seed_,
        "features": predictor.n_features_in_,
        "rounds": [r.to_dict() for r in predictor.rounds_],
    }
    return json.dumps(body | {"digest": _digest(body)}, ensure_ascii=False, allow_nan=False)


def from_json(content: str) -> PrivatePredictor:
    """The predictor, learned again from its record; a file that was changed is a failed check."""
    from understudy.predictors.classifiers import KINDS

    try:
        body = json.loads(content)
        sound = body.pop("digest") == _digest(body) and body["format"] == FORMAT
        rounds = [Round.from_dict(r) for r in body["rounds"]]
    except (ValueError, KeyError, TypeError, AttributeError):
        sound = False
    if not sound:
        raise CheckFailed("the file is not a predictor, or was changed: its content does not match its digest", content)
    predictor = KINDS[body["kind"]](**body["parameters"])
    predictor.schema_, predictor.target_ = Schema.loads(body["schema"]), body["target"]
    predictor.seed_, predictor.n_features_in_ = body["seed"], body["features"]
    predictor._replay(rounds)
    return predictor


def _digest(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
