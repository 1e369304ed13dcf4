"""`understudy.attack`: every attack on a synthetic table, and on a method by its shadow models."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.boundary.schema.schema import Schema
from understudy.errors import InputError
from understudy.lab.attacks.confidence import LEVEL
from understudy.lab.attacks.identification import INFERENCE, LINKABILITY, SINGLING_OUT
from understudy.lab.attacks.membership import COPIES, MEMBERSHIP, RECONSTRUCTION
from understudy.lab.attacks.shadow_models import SHADOW, Shadows
from understudy.lab.attacks.threat import ADVANTAGE, Attack, Finding, Threat
from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.evaluation import NOTICE
from understudy.pages.page import Rendered, Report
from understudy.progress import Listener, listening

NO_PROOF = (
    "Attacks that find nothing prove nothing: there may be better ones. Only a differential-privacy guarantee speaks "
    "about all of them."
)

ATTACKS: tuple[Attack, ...] = (*MEMBERSHIP, *RECONSTRUCTION, *COPIES, *INFERENCE, *SINGLING_OUT, *LINKABILITY)
"""On a table, in the order in which a report shows them."""
KNOWN: tuple[Attack, ...] = (*ATTACKS, SHADOW)
"""With the one that is made only where a method is named."""


@dataclass(frozen=True)
class AttackFacts:
    """What was attacked, and with what."""

    train: str
    holdout: str
    synthetic: str
    train_rows: int
    holdout_rows: int
    synthetic_rows: int
    columns: tuple[str, ...]
    left_out: tuple[str, ...]
    secrets: tuple[str, ...]
    drafted: bool
    """Whether the schema was drafted from the training rows, because none was given."""
    seed: int
    level: float = LEVEL
    """Of every interval."""


@dataclass(frozen=True)
class Attacks(Rendered):
    """The findings of all attacks on a synthetic table. It is internal: it was computed from real rows."""

    facts: AttackFacts
    findings: dict[str, Finding]

    def __getitem__(self, name: str) -> Finding:
        try:
            return self.findings[name]
        except KeyError:
            known = ", ".join(self.findings)
            raise InputError(f"attack {name!r} is not known; the attacks are {known}", name) from None

    @property
    def attacks(self) -> tuple[Attack, ...]:
        return tuple(a for a in KNOWN if a.name in self.findings)

    @property
    def successful(self) -> tuple[Attack, ...]:
        """Those that do better on rows of the training table than on others."""
        return tuple(a for a in self.attacks if self.findings[a.name].verdict == ADVANTAGE)

    def to_dict(self) -> dict[str, Any]:
        """For programs: the facts, and every finding with its parts."""
        findings = {name: finding.to_dict() for name, finding in self.findings.items()}
        return {"notice": NOTICE, "limits": NO_PROOF, "facts": dataclasses.asdict(self.facts), "findings": findings}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def _report(self) -> Report:
        from understudy.lab.attacks import report

        return report


def attack(
    train: Any,
    holdout: Any,
    synthetic: Any,
    *,
    schema: Schema | str | Path | None = None,
    secrets: Sequence[str] | None = None,
    method: str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    shadows: int | None = None,
    seed: int = 0,
    progress: Listener | None = None,
) -> Attacks:
    """Attacks a synthetic table as somebody would who wants to learn about people. The result is internal.

    Tables are frames, paths, or what `understudy.open` returned.

    Args:
        train: The rows that the synthetic table was made from.
        holdout: Real rows from the same population that it was not made from.
        synthetic: The table itself.
        schema: The public facts; by default those of the training table, or a draft.
        secrets: Columns that an attacker would like to learn; by default every column is one in its turn.
        method: A method that is attacked too: it runs on some of the training rows, half of the time without the person
            most at risk, and its outputs are told apart.
        epsilon: The privacy loss of each of these runs.
        delta: Their δ, by default 1e-6.
        shadows: How many runs there are, by default 40.
        seed: Of the rows that are drawn, and of the runs.
        progress: A function of the name of each part as it begins, or an `understudy.progress.Progress`.

    Returns:
        `Attacks`, with what each of them found.

    Raises:
        InputError: A table can't be read, a secret is not known, or what belongs to `method` is given without it.

    >>> import pyarrow as pa
    >>> people, others = pa.table({"age": range(20, 60)}), pa.table({"age": range(60, 100)})
    >>> attack(people, others, people)["copies"].verdict
    'advantage'
    """
    told, more = listening(progress), tuple[Attack, ...]()
    if method is None:
        _check_nothing_asked(epsilon=epsilon, delta=delta, shadows=shadows)
    else:
        models = Shadows.of(train, schema, method=method, epsilon=epsilon, delta=delta, shadows=shadows, progress=told)
        # A schema is drafted once, so that the table and its shadows are read alike.
        schema, more = models.schema, (dataclasses.replace(SHADOW, compute=models.found),)
    return attack_tables(train, holdout, synthetic, schema=schema, secrets=secrets, seed=seed, more=more, progress=told)


def _check_nothing_asked(**asked: object) -> None:
    name = next((n for n, value in asked.items() if value is not None), None)
    if name is not None:
        raise InputError(f"{name} ({asked[name]}) is that of shadow models; name their method too, such as mst", name)


def attack_tables(
    train: Any,
    holdout: Any,
    synthetic: Any,
    *,
    schema: Schema | str | Path | None = None,
    secrets: Sequence[str] | None = None,
    seed: int = 0,
    more: Sequence[Attack] = (),
    progress: Listener | None = None,
) -> Attacks:
    """Attacks a synthetic table with the rows it was made from, and others that never were in it.

    `more` are attacks that are made after all others.
    """
    step = listening(progress)
    step("reading")
    if holdout is None:
        raise InputError("the attacks need a hold-out: real rows that the method never saw", holdout)
    compared = Comparison.of(train, synthetic, holdout=holdout, schema=schema, seed=seed)
    threat = Threat.of(compared, secrets)
    findings = {}
    for attack in (*ATTACKS, *more):
        step(attack.title)
        findings[attack.name] = attack.of(threat)
    return Attacks(_facts(threat), findings)


def _facts(threat: Threat) -> AttackFacts:
    compared = threat.comparison
    return AttackFacts(
        threat.train.name,
        threat.holdout.name,
        synthetic=threat.synthetic.name,
        train_rows=threat.train.rows,
        holdout_rows=threat.holdout.rows,
        synthetic_rows=threat.synthetic.rows,
        columns=tuple(v.name for v in threat.variables),
        left_out=compared.left_out,
        secrets=threat.secrets,
        drafted=compared.drafted,
        seed=compared.seed,
    )
