"""What a predictor rests on, and its file: every round of learning with the curator's answers and the claim.

The file is JSON: the parameters, the schema and the record of every answer. No pickle, and no row.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.facts import PrivacyUnit
from understudy.boundary.privacy.measurement import RecordedAnswer
from understudy.boundary.schema.schema import Schema
from understudy.errors import CheckFailed, ReleaseError, UnderstudyError, located
from understudy.parameters import seed_number
from understudy.releases.certificate import FIRST_FORMAT, Certificate, provenance, versions
from understudy.releases.untrusted.limits import Limits
from understudy.releases.untrusted.reading import parse_json, parse_schema, read
from understudy.releases.untrusted.shape import misfit

if TYPE_CHECKING:
    from understudy.predictors.predictor import PrivatePredictor

FORMAT = "understudy-predictor/1"
NOT_SAVED = ("ledger", "analyst", "schema")
"""Parameters that belong to the person who fitted, or that the file has elsewhere."""
NOT_CERTIFIED = (*NOT_SAVED, "seed", "noise_seed", "epsilon", "delta")
"""Parameters that say nothing about the predictor, or that a certificate has elsewhere."""
FIT, UPDATE = "fit", "update"
ROUND = {"again": bool, "record": [{"question": dict, "kind": str, "value": list}], "certificate": dict}
FORM = {
    "format": str,
    "kind": str,
    "parameters": dict,
    "schema": str,
    "target": str,
    "seed": int,
    "features": int,
    "rounds": [ROUND],
}
"""Of the file: of which kind each value must be."""
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
        return Curator.replaying(
            schema, asked, self.record, secure=secure, keys=self.keys, federation=self.certificate.federation
        )

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
        federation=curator.facts.federation,
    )


def load(path: Path) -> PrivatePredictor:
    """Reads a predictor back, and learns it again from its record."""
    if not path.is_file():
        raise ReleaseError(f"{str(path)!r} can't be read; give a file that a predictor was saved to", path)
    return from_json(read(path, "predictor_bytes"))


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


def from_json(content: bytes | str) -> PrivatePredictor:
    """The predictor, learned again from its record; a file that was changed is a failed check."""
    body = parse_json(content, "the file of the predictor")
    if not isinstance(body, dict) or body.pop("digest", None) != _digest(body) or misfit(body, FORM) is not None:
        raise _changed(body)
    schema = parse_schema(body["schema"].encode(), "the schema of the predictor")
    # A file may come from anybody. What its values break further on, of parameters or in a tree, is no bug of ours.
    try:
        return _learned_again(body, schema)
    except CheckFailed:
        raise
    except Exception as error:
        said = str(error) if isinstance(error, UnderstudyError) else located(error)
        raise CheckFailed(f"the predictor can't be learned again from its file: {said}", content) from error


def _learned_again(body: dict[str, Any], schema: Schema) -> PrivatePredictor:
    from understudy.predictors.classifiers import KINDS

    rounds = [TrainingRound.from_dict(r) for r in body["rounds"]]
    if body["format"] != FORMAT or body["kind"] not in KINDS or not rounds:
        raise _changed(body)
    # Only names of this table become classes: a file can't name any other.
    predictor = KINDS[body["kind"]](**body["parameters"])
    _check_size(predictor, rounds)
    predictor.schema_, predictor.target_ = schema, body["target"]
    predictor.seed_, predictor.n_features_in_ = seed_number(body["seed"]), body["features"]
    predictor._replay(rounds)
    return predictor


def _check_size(predictor: PrivatePredictor, rounds: Sequence[TrainingRound]) -> None:
    """Trees are grown before the record is asked about their leaves: no more of them than it has answers for."""
    chosen = predictor.hyperparameters()
    counted = sum(a.value.size for a in rounds[0].record)
    if (chosen.trees or 1) > max(1, counted):
        raise CheckFailed(f"the predictor has {chosen.trees:,} trees, and its record {counted:,} counts", chosen)
    Limits.here().check("the predictor has trees of", (chosen.trees or 1) * (chosen.leaves or 1), "items", "leaves")


def _changed(body: Any) -> CheckFailed:
    return CheckFailed("the file is not a predictor, or was changed: its content does not match its digest", body)


def _digest(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
