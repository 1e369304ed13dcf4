"""Differentially private stand-ins for tables that may not be shared.

import understudy as us
schema = us.Schema.load("adult.toml")
table = us.open("adult.csv", schema)
release = us.synthesize(table, epsilon=1.0, target="income")
release.save("out/")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from understudy.errors import (
    BudgetExhausted,
    CheckFailed,
    InputError,
    InternalError,
    MethodError,
    ReleaseError,
    SchemaError,
    SiteError,
    TableError,
    UnderstudyError,
)

if TYPE_CHECKING:
    from understudy.boundary.privacy.budget import Amount, Budget, Spend
    from understudy.boundary.privacy.curator import Curator
    from understudy.boundary.privacy.ledger.ledger import Ledger
    from understudy.boundary.privacy.measurement import Measurement
    from understudy.boundary.privacy.sites.federate import federate
    from understudy.boundary.schema.domain import Domain
    from understudy.boundary.schema.schema import Schema
    from understudy.boundary.tables.draft import draft_schema
    from understudy.boundary.tables.sources import open
    from understudy.boundary.tables.table import Table
    from understudy.lab.attacks.attacks import Attacks, attack
    from understudy.lab.audits.audit import audit, audit_mutants
    from understudy.lab.audits.result import Audit
    from understudy.lab.evaluation.evaluation import Evaluation, evaluate
    from understudy.lab.evaluation.measures.anonymity import anonymity
    from understudy.lab.intake.check import check
    from understudy.lab.intake.findings import Check
    from understudy.lab.specimens.all_specimens import specimen
    from understudy.lab.studies.method_comparison import compare
    from understudy.lab.studies.study import Study
    from understudy.methods.registry import METHODS
    from understudy.predictors.boosting_predictors import PrivateBoosting, PrivateBoostingRegressor
    from understudy.predictors.classifiers import PrivateDecisionTree, PrivateForest, PrivateGreedyTree
    from understudy.queries.answer import Answer
    from understudy.queries.query import query
    from understudy.releases.certificate import Certificate
    from understudy.releases.checking import replay, verify
    from understudy.releases.planning import plan
    from understudy.releases.release import Release
    from understudy.releases.synthesis import synthesize

__version__ = "0.3.0"

_LATE = {
    "boundary.privacy.budget": ("Amount", "Budget", "Spend"),
    "boundary.privacy.curator": ("Curator",),
    "boundary.privacy.ledger.ledger": ("Ledger",),
    "boundary.privacy.measurement": ("Measurement",),
    "boundary.privacy.sites.federate": ("federate",),
    "boundary.schema.domain": ("Domain",),
    "boundary.schema.schema": ("Schema",),
    "boundary.tables.draft": ("draft_schema",),
    "boundary.tables.sources": ("open",),
    "boundary.tables.table": ("Table",),
    "lab.attacks.attacks": ("Attacks", "attack"),
    "lab.audits.audit": ("audit", "audit_mutants"),
    "lab.audits.result": ("Audit",),
    "lab.evaluation.evaluation": ("Evaluation", "evaluate"),
    "lab.evaluation.measures.anonymity": ("anonymity",),
    "lab.specimens.all_specimens": ("specimen",),
    "lab.intake.check": ("check",),
    "lab.intake.findings": ("Check",),
    "lab.studies.method_comparison": ("compare",),
    "lab.studies.study": ("Study",),
    "methods.registry": ("METHODS",),
    "predictors.boosting_predictors": ("PrivateBoosting", "PrivateBoostingRegressor"),
    "predictors.classifiers": ("PrivateDecisionTree", "PrivateForest", "PrivateGreedyTree"),
    "queries.answer": ("Answer",),
    "queries.query": ("query",),
    "releases.certificate": ("Certificate",),
    "releases.checking": ("replay", "verify"),
    "releases.planning": ("plan",),
    "releases.release": ("Release",),
    "releases.synthesis": ("synthesize",),
}
"""Imported when they are first asked for: no use needs them all, and the command line can answer Ctrl-C at once."""


def __getattr__(name: str) -> Any:
    for module, names in _LATE.items():
        if name in names:
            globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "METHODS",
    "Amount",
    "Answer",
    "Attacks",
    "Audit",
    "Budget",
    "BudgetExhausted",
    "Certificate",
    "Check",
    "CheckFailed",
    "Curator",
    "Domain",
    "Evaluation",
    "InputError",
    "InternalError",
    "Ledger",
    "Measurement",
    "MethodError",
    "PrivateBoosting",
    "PrivateBoostingRegressor",
    "PrivateDecisionTree",
    "PrivateForest",
    "PrivateGreedyTree",
    "Release",
    "ReleaseError",
    "Schema",
    "SchemaError",
    "SiteError",
    "Spend",
    "Study",
    "Table",
    "TableError",
    "UnderstudyError",
    "__version__",
    "anonymity",
    "attack",
    "audit",
    "audit_mutants",
    "check",
    "compare",
    "draft_schema",
    "evaluate",
    "federate",
    "open",
    "plan",
    "query",
    "replay",
    "specimen",
    "synthesize",
    "verify",
]
