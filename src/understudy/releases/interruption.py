"""What a release needs to go on after an interruption: its journal, and the proof that the same thing is asked for."""

from __future__ import annotations

import dataclasses
import hashlib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.boundary.privacy.journal import Journal
from understudy.boundary.privacy.ledger.ledger import Ledger
from understudy.errors import InputError
from understudy.releases.imprint import Imprint

if TYPE_CHECKING:
    from understudy.releases.synthesis import Plan

POSTPROCESSING = ("rows", "given", "imprint")
"""Of the facts of a release: what may be another when it goes on, since nothing is asked of the private rows for it.

The seed may not. Rows are drawn by it, but some methods also choose by it what they ask next: another one would ask
questions to which the journal has no answers."""
TRAINS = "torch"
"""The package whose arithmetic a training depends on."""


def journal_at(path: str | Path | None, ledger: Ledger | Path | None, resume: bool) -> Journal | None:
    """The journal of a new release, or of one that goes on; none where none is wanted."""
    if path is None and not resume:
        return None
    if ledger is None:
        raise without_ledger(path)
    if path is None:
        raise InputError("what is resumed must be said; name the journal of the interrupted release too", path)
    if resume:
        return Journal.resumed(Path(path), ledger)
    return Journal.fresh(Path(path), ledger)


def without_ledger(path: str | Path | None) -> InputError:
    return InputError("a journal needs a ledger, which alone knows what was drawn; name the ledger too", path)


def continued(plan: Plan, journal: Journal | None, **asked: object) -> Plan:
    """The plan with what the release that goes on was asked for, where nothing else is `asked`."""
    if journal is None:
        return plan
    earlier = {name: journal.facts[name] for name, value in asked.items() if value is None and name in journal.facts}
    if "imprint" in earlier:
        earlier["imprint"] = Imprint(**earlier["imprint"])
    return dataclasses.replace(plan, **earlier)


def facts(plan: Plan, data: str, secure: bool, versions: dict[str, str]) -> dict[str, Any]:
    """All that the answers and what is made of them depend on, but for the private rows and the noise.

    Noise of a test's seed and noise that hides people must not be mixed: the certificate speaks of all answers.
    """
    return {
        "method": plan.choice.method.name,
        "epsilon": plan.budget.epsilon,
        "delta": plan.budget.delta,
        "neighbours": plan.schema.neighbours,
        "seed": plan.seed,
        "noise": "secure" if secure else "seeded, for tests",
        "rows": plan.rows,
        "given": dict(plan.given),
        "imprint": plan.imprint.stated,
        **plan.options.to_dict(),
        "data": data,
        "schema": hashlib.sha256(plan.schema.dumps().encode()).hexdigest(),
        "draft accepted": plan.draft_accepted,
        # Another version may ask other questions or draw other rows, and the answers on record would not fit them.
        **{f"version of {name}": number for name, number in (versions | _training()).items()},
    }


def _training() -> dict[str, str]:
    # Looked up in the metadata: importing torch takes seconds, and most releases train nothing.
    try:
        return {TRAINS: version(TRAINS)}
    except PackageNotFoundError:
        return {}
