"""What a predictor rests on, and its file: every round of learning with the curator's answers and the claim.

The file is JSON: the parameters, the schema and the record of every answer. No pickle, and no row.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.facts import PrivacyUnit
from understudy.boundary.privacy.measurement import RecordedAnswer
from understudy.boundary.schema.schema import Schema
from understudy.errors import CheckFailed, ReleaseError
from understudy.releases.certificate import FIRST_FORMAT, Certificate, provenance, versions

if TYPE_CHECKING:
    from understudy.predictors.predictor import PrivatePredictor

FORMAT = "understudy-predictor/1"
NOT_SAVED = ("ledger", "analyst", "schema")
"""Parameters that belong to the person who fitted, or that the file has elsewhere."""
NOT_CERTIFIED = (*NOT_SAVED, "seed", "noise_seed", "epsilon", "delta")
"""Parameters that say nothing about the predictor, or that a certificate has elsewhere."""
FIT, UPDATE = "fit", "update"
NO_ROWS = "none: a predictor releases counts, and no rows"


@dataclass(frozen=True)
class TrainingRound:
    """A fit, or an update of it. `again` says that an update counted rows that had been counted before."""

    record: tuple[RecordedAnswer, ...]
    certificate: Certificate
    again: bool = False

    @property
    def keys(self) -> tuple[str, ...] | None:
        """The columns whose private values were asked for: all in a fit (None), and none in an update.

        An update of the first format set δ aside for keys all the same, and its record holds what was left.
        """
        certificate = self.certificate
        if certificate.parameters.get("round") == UPDATE and certificate.format != FIRST_FORMAT:
            return ()
        return None

    def curator(self, schema: Schema) -> Curator:
        """One that has no rows, and gives the recorded answers."""
        asked, secure = self.certificate.asked, self.certificate.secure
        return Curator.replaying(schema, asked, self.record, secure=secure, keys=self.keys)

    def check(self, again: TrainingRound) -> None:
        """Compares with the same round, learned again from this one's record."""
        if again.certificate.spends != self.certificate.spends or len(again.record) != len(self.record):
            raise CheckFailed("the recorded answers and spends are not those that the predictor asks for", again)

    def to_dict(self) -> dict[str, Any]:
        return {
            "again": self.again,
            "record": [a.to_dict() for a in self.record],
            "certificate": self.certificate.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TrainingRound:
        # Certificates are read from the bytes that they are written as.
        written = json.dumps(data["certificate"], indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        return cls(
            tuple(map(RecordedAnswer.from_dict, data["record"])),
            Certificate.from_bytes(written.encode()),
            bool(data["again"]),
        )


def certificate_of(predictor: PrivatePredictor, curator: Curator, what: str) -> Certificate:
    """What a round claims: the spends, and everything that is needed to compose them again."""
    schema = predictor.schema_
    settled = {n: v for n, v in predictor.get_params().items() if n not in NOT_CERTIFIED}
    return Certificate(
        method=type(predictor).__name__,
        parameters=settled | {"target": predictor.target_, "round": what},
        reason="as asked",
        asked=curator.budget,
        neighbours=schema.neighbours,
        unit=PrivacyUnit.of(schema).to_dict(),
        spends=curator.spends,
        columns=provenance(schema),
        rows=0,
        rows_rule=NO_ROWS,
        seed=predictor.seed_,
        secure=curator.secure,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions("understudy", "numpy"),
        ledger=curator.receipt,
        schema_status=schema.status,
    )


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
        "parameters": {n: v for n, v in predictor.get_params().items() if n not in NOT_SAVED},
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
        # The digest finds damage and slips of an editor. It is no signature: whoever can edit can compute it again.
        sound = body.pop("digest") == _digest(body) and body["format"] == FORMAT
        rounds = [TrainingRound.from_dict(r) for r in body["rounds"]]
    except (ValueError, KeyError, TypeError, AttributeError):
        sound = False
    if not sound:
        raise CheckFailed("the file is not a predictor, or was changed: its content does not match its digest", content)
    # Only names of this table become classes: a file can't name any other.
    predictor = KINDS[body["kind"]](**body["parameters"])
    predictor.schema_, predictor.target_ = Schema.loads(body["schema"]), body["target"]
    predictor.seed_, predictor.n_features_in_ = body["seed"], body["features"]
    predictor._replay(rounds)
    return predictor


def _digest(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
