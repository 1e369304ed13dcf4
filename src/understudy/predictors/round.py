"""One round of learning: the curator's answers, the claim that they were given under, and what they were for."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.measurement import Answer
from understudy.boundary.privacy.unit import PrivacyUnit
from understudy.boundary.schema.schema import DRAFT, Schema
from understudy.errors import CheckFailed, InputError
from understudy.releases.certificate import (
    BOUGHT,
    FIRST_FORMAT,
    NEVER_READ,
    READ_TO_CAP,
    UNCONFIRMED,
    Certificate,
)

if TYPE_CHECKING:
    from understudy.predictors.predictor import PrivatePredictor

FIT, UPDATE = "fit", "update"
NO_ROWS = "none: a predictor releases counts, and no rows"
PRIVATE_PARAMETERS = ("ledger", "analyst", "schema", "seed", "noise_seed", "epsilon", "delta")
"""Parameters that say nothing about the predictor, or that a certificate has elsewhere."""


@dataclass(frozen=True)
class Round:
    """A fit, or an update of it. `again` says that an update counted rows that had been counted before."""

    record: tuple[Answer, ...]
    certificate: Certificate
    again: bool = False

    @property
    def keys(self) -> tuple[str, ...] | None:
        """The columns whose private values were asked for: all in a fit (None), and none in an update.

        An update of the first format set δ aside for keys all the same, and its record holds what was left.
        """
        certificate = self.certificate
        later = certificate.parameters.get("round") == UPDATE and certificate.format != FIRST_FORMAT
        return () if later else None

    def curator(self, schema: Schema) -> Curator:
        """One that has no rows, and gives the recorded answers."""
        asked, secure = self.certificate.asked, self.certificate.secure
        return Curator.replaying(schema, asked, self.record, secure=secure, keys=self.keys)

    def check(self, again: Round) -> None:
        """Compares with the same round, learned again from this one's record."""
        if again.certificate.spends != self.certificate.spends or len(again.record) != len(self.record):
            raise CheckFailed("the recorded answers and spends are not those that the predictor asks for", again)

    def to_dict(self) -> dict[str, Any]:
        return {
            "again": self.again,
            "record": [
                {"question": a.question, "kind": a.value.dtype.kind, "value": a.value.tolist()} for a in self.record
            ],
            "certificate": self.certificate.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Round:
        return cls(
            tuple(Answer(a["question"], _values(a["kind"], a["value"])) for a in data["record"]),
            Certificate.from_bytes(canonical(data["certificate"])),
            bool(data["again"]),
        )


def canonical(body: dict[str, Any]) -> bytes:
    """As certificates are written."""
    import json

    return (json.dumps(body, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _values(kind: str, values: Sequence[Any]) -> Any:
    types = {"i": np.int64, "f": np.float64, "U": np.str_}
    if kind not in types:
        raise CheckFailed(f"an answer of kind {kind!r} can't be read; the file was changed", kind)
    return np.array(values, dtype=types[kind])


def certificate_of(predictor: PrivatePredictor, curator: Curator, what: str) -> Certificate:
    """What a round claims: the spends, and everything that is needed to compose them again."""
    schema = predictor.schema_
    settled = {n: v for n, v in predictor.get_params().items() if n not in PRIVATE_PARAMETERS}
    return Certificate(
        method=type(predictor).__name__,
        parameters=settled | {"target": predictor.target_, "round": what},
        reason="as asked",
        asked=curator.budget,
        neighbours=schema.neighbours,
        unit=PrivacyUnit.of(schema).to_dict(),
        spends=curator.spends,
        columns=_provenance(schema),
        rows=0,
        rows_rule=NO_ROWS,
        seed=predictor.seed_,
        secure=curator.secure,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions={"python": platform.python_version()} | _versions(),
        ledger=curator.receipt,
        schema_status=schema.status,
    )


@cache
def _versions() -> dict[str, str]:
    """Looked up once: it reads the metadata of the packages."""
    return {name: version(name) for name in ("understudy", "numpy")}


def _provenance(schema: Schema) -> dict[str, str]:
    status = UNCONFIRMED if schema.status == DRAFT else schema.status
    origins = {c.name: BOUGHT if c.private else status if c.modelled else NEVER_READ for c in schema}
    if schema.unit and not schema[schema.unit.column].modelled:
        origins[schema.unit.column] = READ_TO_CAP
    return origins


def check_seed(seed: Any) -> int | None:
    """A seed of a generator, or None. Generators of numpy's old kind are not taken: a seed has to be recorded."""
    if seed is None:
        return None
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**63:
        raise InputError(f"seed ({seed}) must be a whole number from 0 to 2^63 - 1", seed)
    return int(seed)
