"""The certificate: what a release claims, and everything that is needed to check the claim without the rows."""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.metadata import version
from typing import Any, Protocol

from understudy.boundary.privacy.accountant import upper_float
from understudy.boundary.privacy.budget import GDP, ZCDP, Budget, Spend, compose, covers, total
from understudy.boundary.privacy.facts import PrivacyUnit
from understudy.boundary.privacy.ledger.ledger import Receipt
from understudy.boundary.schema.federation import Federation
from understudy.boundary.schema.schema import DRAFT, Schema
from understudy.card import Card
from understudy.errors import CheckFailed, UnderstudyError
from understudy.methods.parts.prior import EARLIER
from understudy.releases.imprint import Imprint
from understudy.releases.untrusted.reading import parse_json
from understudy.releases.untrusted.shape import misfit_of_certificate

FIRST_FORMAT, FORMAT = "understudy-certificate/1", "understudy-certificate/2"
"""The first said neither which ledger paid nor where the schema came from, claimed the sum of the spends, and claimed
it for drafts too. Releases that have it stay readable: they are written as they were, and read by today's rules."""
FILE = "certificate.json"
TEST_ONLY, UNCONFIRMED_DRAFT = "TEST-ONLY", "UNCONFIRMED-DRAFT"
SEEDED_REASON = "the noise was drawn from a seed, and whoever knows the seed can take it off again"
DRAFT_REASON = "the schema is a draft that was read off the rows, and nobody confirmed that its facts are public"
BOUGHT = "bought"
UNCONFIRMED = "draft accepted as public"
NEVER_READ = "never read"
REBUILT = "rebuilt from other columns"
ARITHMETIC = (
    "gradients clipped and summed in float64, rounded to a grid; discrete Gaussian noise on the grid, drawn exactly; "
    "batches by exact coins; all from one source of random bits"
)
"""How the noise of a training is made; `secure_randomness` says which source the bits came from."""
READ_TO_CAP = "read only to cap the rows of a person"
LONG_LINE = 100
"""Part of the format, as the order of keys is: another value writes other bytes, which nothing would accept."""


class AuditedClaim(Protocol):
    """The claim that was tried."""

    @property
    def epsilon(self) -> float: ...

    @property
    def delta(self) -> float: ...

    @property
    def neighbours(self) -> str: ...


class Audited(Protocol):
    """The result of an audit, as far as a certificate carries it; `understudy.audit` makes them."""

    @property
    def subject(self) -> str: ...

    @property
    def claim(self) -> AuditedClaim: ...

    @property
    def violated(self) -> bool: ...

    def for_certificate(self) -> dict[str, Any]: ...


@dataclass(frozen=True, repr=False)
class Certificate(Card):
    """Claim and evidence of one release. `guarantee` is None where there is none: a seeded run, a draft, a specimen."""

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
    ledger: Receipt | None = None
    """Which debit of which ledger paid; None where none did."""
    schema_status: str | None = None
    """Whether the schema was declared, confirmed or a draft; None in the first format, which left it to `columns`."""
    confirmation: dict[str, str] | None = None
    """Who confirmed the schema, and by which source, where it says so."""
    imprint: Imprint = field(default_factory=Imprint)
    """Title and publisher, where the publisher said them."""
    federation: Federation | None = None
    """Of a table whose rows several sites hold: the trust model between them."""
    format: str = FORMAT

    @property
    def composed(self) -> tuple[float, float]:
        """What the recorded spends amount to, recomputed: for information, and at most what is claimed."""
        spent, delta = compose(self.spends, self.asked.delta, self.asked.accounting)
        # The curve of ε grows with the cost, but it is computed with an error, which at budgets of a millionth may lift
        # the sum above what was asked for. What costs no more than the ε buys is within it.
        if covers(self.asked, total(spend.cost for spend in self.spends)):
            spent = min(spent, self.asked.epsilon)
        return spent, delta

    @property
    def epsilon(self) -> float:
        """The claimed ε: what was asked for.

        The curator is a filter that stops before the sum passes it, which is a theorem however the prices were chosen
        (docs/mechanisms/composition.md). The sum itself is one only where no price depended on an answer; that of a
        training, or of a tree whose size follows the noisy total, does.
        """
        return self.asked.epsilon

    @property
    def delta(self) -> float:
        """The claimed δ."""
        return self.asked.delta

    @property
    def protects(self) -> str:
        """Whom the claim protects, as a person would say it."""
        return PrivacyUnit(self.unit.get("column"), int(self.unit.get("max_rows", 1))).protects

    def card(self) -> tuple[str, list[tuple[str, str]]]:
        claim = f"none: {self.stamp}, {self.void}"
        if self.void is None:
            claim = f"({self.epsilon:.6g}, {self.delta:g})-differential privacy, neighbours {self.neighbours}"
        paid = "no ledger was debited" if self.ledger is None else str(self.ledger)
        facts = [("method", self.method), ("guarantee", claim), ("protects", self.protects), ("ledger", paid)]
        if self.federation is not None:
            facts.append(("sites", f"{self.federation.sites}: {self.federation.told}"))
        return "Certificate", [
            *self.imprint.stated.items(),
            *facts,
            ("spends", f"{len(self.spends):,}"),
            ("created", self.created),
        ]

    @property
    def accountant(self) -> str:
        if self.asked.pure:
            return "pure epsilon, summed"
        counted = "zCDP, summed, then converted at delta"
        if self.asked.accounting == GDP:
            counted = "Gaussian differential privacy, mu squared summed, then converted at delta"
        if any(s.steps for s in self.spends):
            return f"{counted}; plus the privacy loss distribution of the training"
        return counted

    @property
    def draft(self) -> bool:
        """Whether facts of the schema were read off the rows, and confirmed by nobody."""
        return self.schema_status == DRAFT or UNCONFIRMED in self.columns.values()

    @property
    def stamp(self) -> str | None:
        """A warning in one word, where nothing is guaranteed."""
        if not self.secure:
            return TEST_ONLY
        if self.draft:
            return UNCONFIRMED_DRAFT
        return None

    @property
    def void(self) -> str | None:
        """Why nothing is guaranteed, in words."""
        if not self.secure:
            return SEEDED_REASON
        if self.draft:
            return DRAFT_REASON
        return None

    @property
    def guarantee(self) -> dict[str, Any] | None:
        """The claim, in a form for programs; null where there is none, and `void` says why."""
        if self.void:
            return None
        return self._claim(self.epsilon)

    def _claim(self, epsilon: float) -> dict[str, Any]:
        return {
            "epsilon": epsilon,
            "delta": self.delta,
            "neighbours": self.neighbours,
            "unit": self.unit,
            "accountant": self.accountant,
            "assumes": self._assumptions(),
        }

    def _assumptions(self) -> str:
        basis = self._basis()
        if self.federation is None:
            return basis
        return f"{basis}; {self.federation.whose}; {self.federation.told}"

    def _basis(self) -> str:
        prior = self.parameters.get("prior")
        if prior is None:
            return "the table has at least 2 rows, and the schema holds public facts only"
        basis = "the table has at least 2 rows, the schema holds public facts only"
        if prior["kind"] == EARLIER:
            return f"{basis}, and the claim of the earlier release that was its prior is added to this one"
        return f"{basis}, and so does the file that was taken as public"

    def to_dict(self) -> dict[str, Any]:
        body = self._head() | {
            "asked": self._asked(),
            "method": {"name": self.method, "parameters": self.parameters, "reason": self.reason},
            "neighbours": self.neighbours,
            "unit": self.unit,
            "spends": [self._spend_record(s) for s in self.spends],
            "columns": self.columns,
            "rows": {"synthetic": self.rows, "rule": self.rows_rule},
            "postprocessing_seed": self.seed,
            "secure_randomness": self.secure,
            "created": self.created,
            "versions": self.versions,
            "files": self.files,
        }
        if self.audit is not None:
            body["audit"] = self.audit
        if self.federation is not None:
            body["sites"] = self.federation.to_dict()
        if self.format != FIRST_FORMAT:
            body["schema_status"] = self.schema_status
            if self.confirmation is not None:
                body["schema_confirmed"] = self.confirmation
            if self.imprint.stated:
                body["imprint"] = self.imprint.stated
            # Written as null where nothing was debited: a reader must not take silence for a payment.
            body["ledger"] = None if self.ledger is None else self.ledger.to_dict()
        # The order of the keys is part of the format: digest and file are made of the text in this order.
        return body | {"digest": digest(body)}

    def _spend_record(self, spend: Spend) -> dict[str, Any]:
        cost = spend.cost
        # The prices are for people and other programs: reading one back recomputes them, and compares.
        prices: dict[str, Any] = {"rho": float(cost.rho)}
        if "accounting" in self._asked() and cost.gdp is not None:
            prices = {"gdp": float(cost.gdp)}
        if cost.epsilon is not None:
            prices["epsilon"] = float(cost.epsilon)
        if spend.steps:
            # Rounded up: this one is compared with the ε that is claimed.
            prices |= {"epsilon_at_delta": upper_float(cost.direct), "arithmetic": ARITHMETIC}
        return spend.to_dict() | prices

    def _asked(self) -> dict[str, Any]:
        asked = {"epsilon": self.asked.epsilon, "delta": self.asked.delta}
        # Certificates made before say nothing of it, and mean zCDP.
        return asked if self.asked.pure or self.asked.accounting == ZCDP else asked | {"accounting": GDP}

    def _head(self) -> dict[str, Any]:
        """Format and claim; in the first format as they were then, so that a release of that time still verifies."""
        if self.format == FIRST_FORMAT:
            if not self.secure:
                return {"format": self.format, "stamp": TEST_ONLY, "guarantee": None}
            return {"format": self.format, "stamp": None, "guarantee": self._claim(self.composed[0])}
        spent = {"epsilon": self.composed[0], "delta": self.delta}
        head = {"format": self.format, "stamp": self.stamp, "guarantee": self.guarantee}
        return head | {"no_guarantee_because": self.void, "spent": spent}

    def to_bytes(self) -> bytes:
        """The file `certificate.json`: a fact on each line, and so each spend, each column and each file on its own."""
        return _by_facts(self.to_dict())

    def is_written_as(self, content: bytes) -> bool:
        """Whether a file holds this certificate to the byte, in today's layout or in the one before it."""
        return content in _layouts(self.to_dict())

    @classmethod
    def from_bytes(cls, content: bytes) -> Certificate:
        """Reads a certificate back; a single changed byte is a failed check."""
        raw = parse_json(content, FILE)
        if not isinstance(raw, dict) or not _is_sound(raw, content):
            raise CheckFailed(f"{FILE} was changed: its content does not match its own digest", FILE)
        place = misfit_of_certificate(raw)
        if place is not None:
            raise CheckFailed(
                f"{FILE} is not the certificate of a release: {place} is missing or of another kind", place
            )
        try:
            certificate = cls._from_dict(raw)
            certificate.to_dict()  # with the price of each spend, which may be larger than any number
        # Anybody may have edited the file: what its content breaks is a failed check, and no bug of ours.
        except (UnderstudyError, ArithmeticError, KeyError, TypeError, ValueError) as error:
            raise CheckFailed(f"{FILE} is not the certificate of a release", FILE) from error
        return certificate

    @classmethod
    def _from_dict(cls, raw: dict[str, Any]) -> Certificate:
        return cls(
            method=raw["method"]["name"],
            parameters=raw["method"]["parameters"],
            reason=raw["method"]["reason"],
            asked=Budget(raw["asked"]["epsilon"], raw["asked"]["delta"], raw["asked"].get("accounting", ZCDP)),
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
            ledger=None if raw.get("ledger") is None else Receipt.from_dict(raw["ledger"]),
            schema_status=raw.get("schema_status"),
            confirmation=raw.get("schema_confirmed"),
            imprint=Imprint(**raw.get("imprint", {})),
            federation=None if raw.get("sites") is None else Federation.from_dict(raw["sites"]),
            format=raw["format"],
        )


def _is_sound(raw: dict[str, Any], content: bytes) -> bool:
    """Whether the digest fits. It is of what was parsed, so spaces or a key given twice need the bytes themselves."""
    body = {k: v for k, v in raw.items() if k != "digest"}
    try:
        sound = raw.get("format") in (FIRST_FORMAT, FORMAT) and raw.get("digest") == digest(body)
        return sound and content in _layouts(raw)
    except (ValueError, TypeError):  # NaN, half a surrogate pair, or a format that is a list
        return False


def provenance(schema: Schema) -> dict[str, str]:
    """How each column's domain came to be known."""
    origins = {}
    for column in schema:
        if column.private:
            origins[column.name] = BOUGHT
        elif getattr(column, "rebuilt_from", None):
            origins[column.name] = REBUILT  # which are read, and may be derived from it
        elif not column.modelled:  # an identifier, unless it tells people apart: see below
            origins[column.name] = NEVER_READ
        elif schema.status == DRAFT:
            origins[column.name] = UNCONFIRMED
        else:
            origins[column.name] = schema.status
    if schema.unit and not schema[schema.unit.column].modelled:
        origins[schema.unit.column] = READ_TO_CAP
    return origins


@cache
def versions(*packages: str) -> dict[str, str]:
    """What made the release; replaying byte for byte may need the same. Looked up once, since it reads files."""
    named = packages or ("understudy", "numpy", "pyarrow")
    return {"python": platform.python_version()} | {name: version(name) for name in named}


def digest(body: dict[str, Any]) -> str:
    """SHA-256 of the certificate's content. It detects accidents and careless edits; it is not a signature."""
    return hashlib.sha256(_canonical(body)).hexdigest()


def _layouts(body: dict[str, Any]) -> tuple[bytes, bytes]:
    """The bytes that a certificate may have: as it is written now, and as it was written before."""
    return _by_facts(body), _canonical(body)


def _canonical(body: dict[str, Any]) -> bytes:
    """The text that the digest is of. Certificates were written like this too, with a line for every number."""
    return (json.dumps(body, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _by_facts(body: dict[str, Any]) -> bytes:
    """A key on each line; where that line would be long, each entry of its value on a line of its own."""
    write = partial(json.dumps, ensure_ascii=False, allow_nan=False)
    facts = []
    for key, value in body.items():
        text = write(value)
        if len(text) > LONG_LINE and isinstance(value, dict):
            text = "{\n    " + ",\n    ".join(f"{write(k)}: {write(v)}" for k, v in value.items()) + "\n  }"
        elif len(text) > LONG_LINE and isinstance(value, list):
            text = "[\n    " + ",\n    ".join(map(write, value)) + "\n  ]"
        facts.append(f"  {write(key)}: {text}")
    return ("{\n" + ",\n".join(facts) + "\n}\n").encode()
