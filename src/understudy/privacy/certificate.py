"""The certificate: what a release claims, and everything that is needed to check the claim without the rows."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from understudy.errors import CheckFailed
from understudy.privacy.accountant import upper_float
from understudy.privacy.budget import Budget, Spend, compose

FORMAT = "understudy-certificate/1"
TEST_ONLY = "TEST-ONLY"
BOUGHT = "bought"
UNCONFIRMED = "draft accepted as public"
NEVER_READ = "never read"
ARITHMETIC = (
    "gradients clipped and summed in float64, rounded to a grid; discrete Gaussian noise on the grid, drawn exactly; "
    "batches by exact coins; all from one source of random bits"
)
"""How the noise of a training is made; `secure_randomness` says which source the bits came from."""
READ_TO_CAP = "read only to cap the rows of a person"


@dataclass(frozen=True)
class Certificate:
    """Claim and evidence of one release. `guarantee` is None where there is none: a seeded run, a specimen."""

    method: str
    parameters: dict[str, Any]
    reason: str
    asked: Budget
    neighbours: str
    unit: dict[str, Any]
    spends: tuple[Spend, ...]
    columns: dict[str, str]
    rows: int
    rows_rule: str
    seed: int
    secure: bool
    created: str
    versions: dict[str, str]
    files: dict[str, str] = field(default_factory=dict)
    audit: dict[str, Any] | None = None
    """What an audit of the method found before the release was made, where one was asked for."""

    @property
    def composed(self) -> tuple[float, float]:
        """(ε, δ), recomputed from the recorded spends."""
        return compose(self.spends, self.asked.delta)

    @property
    def epsilon(self) -> float:
        return self.composed[0]

    @property
    def delta(self) -> float:
        return self.composed[1]

    @property
    def accountant(self) -> str:
        if self.asked.pure:
            return "pure epsilon, summed"
        counted = "zCDP, summed, then converted at delta"
        trained = any(s.steps for s in self.spends)
        return f"{counted}; plus the privacy loss distribution of the training" if trained else counted

    @property
    def stamp(self) -> str | None:
        return None if self.secure else TEST_ONLY

    @property
    def guarantee(self) -> dict[str, Any] | None:
        """The claim, in a form for programs; null for a run whose noise anybody could repeat."""
        if not self.secure:
            return None
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "neighbours": self.neighbours,
            "unit": self.unit,
            "accountant": self.accountant,
            "assumes": "the table has at least 2 rows, and the schema holds public facts only",
        }

    def to_dict(self) -> dict[str, Any]:
        body = {
            "format": FORMAT,
            "stamp": self.stamp,
            "guarantee": self.guarantee,
            "asked": {"epsilon": self.asked.epsilon, "delta": self.asked.delta},
            "method": {"name": self.method, "parameters": self.parameters, "reason": self.reason},
            "neighbours": self.neighbours,
            "unit": self.unit,
            "spends": [_spend_record(s) for s in self.spends],
            "columns": self.columns,
            "rows": {"synthetic": self.rows, "rule": self.rows_rule},
            "postprocessing_seed": self.seed,
            "secure_randomness": self.secure,
            "created": self.created,
            "versions": self.versions,
            "files": self.files,
        }
        body |= {} if self.audit is None else {"audit": self.audit}
        return body | {"digest": digest(body)}

    def to_bytes(self) -> bytes:
        return _canonical(self.to_dict())

    @classmethod
    def from_bytes(cls, content: bytes) -> Certificate:
        """Reads a certificate back; a single changed byte is a failed check."""
        try:
            raw = json.loads(content)
            body = {k: v for k, v in raw.items() if k != "digest"}
            sound = raw["format"] == FORMAT and raw["digest"] == digest(body) and content == _canonical(raw)
        except (ValueError, KeyError, TypeError, AttributeError):
            sound = False
        if not sound:
            raise CheckFailed("certificate.json was changed: its content does not match its own digest", content)
        return cls._from_dict(raw)

    @classmethod
    def _from_dict(cls, raw: dict[str, Any]) -> Certificate:
        return cls(
            method=raw["method"]["name"],
            parameters=raw["method"]["parameters"],
            reason=raw["method"]["reason"],
            asked=Budget(raw["asked"]["epsilon"], raw["asked"]["delta"]),
            neighbours=raw["neighbours"],
            unit=raw["unit"],
            spends=tuple(Spend.from_dict(s) for s in raw["spends"]),
            columns=raw["columns"],
            rows=raw["rows"]["synthetic"],
            rows_rule=raw["rows"]["rule"],
            seed=raw["postprocessing_seed"],
            secure=raw["secure_randomness"],
            created=raw["created"],
            versions=raw["versions"],
            files=raw["files"],
            audit=raw.get("audit"),
        )


def digest(body: dict[str, Any]) -> str:
    """SHA-256 of the certificate's content. It detects accidents and careless edits; it is not a signature."""
    return hashlib.sha256(_canonical(body)).hexdigest()


def _canonical(body: dict[str, Any]) -> bytes:
    return (json.dumps(body, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _spend_record(spend: Spend) -> dict[str, Any]:
    cost = spend.cost
    price = {"rho": float(cost.rho)} | ({} if cost.epsilon is None else {"epsilon": float(cost.epsilon)})
    trained = {"epsilon_at_delta": upper_float(cost.direct), "arithmetic": ARITHMETIC} if spend.steps else {}
    return spend.to_dict() | price | trained
