"""Differentially private stand-ins for tables that may not be shared.

import understudy as us
schema = us.Schema.load("adult.toml")
table = us.open("adult.csv", schema)
release = us.synthesize(table, epsilon=1.0, target="income")
release.save("out/")
"""

from understudy.audits.auditing import Audit, audit, audit_mutants
from understudy.errors import (
    BudgetExhausted,
    CheckFailed,
    InputError,
    InternalError,
    MethodError,
    ReleaseError,
    SchemaError,
    TableError,
    UnderstudyError,
)
from understudy.evaluation.anonymity import anonymity
from understudy.predictors.classifiers import PrivateDecisionTree, PrivateForest, PrivateGreedyTree
from understudy.privacy.budget import Amount, Budget, Spend
from understudy.privacy.certificate import Certificate
from understudy.privacy.curator import Curator
from understudy.privacy.ledger import Ledger
from understudy.privacy.measurement import Measurement
from understudy.queries.answer import Answer
from understudy.queries.asking import query
from understudy.releases.checking import replay, verify
from understudy.releases.planning import plan
from understudy.releases.release import Release
from understudy.releases.synthesis import synthesize
from understudy.schema.domain import Domain
from understudy.schema.schema import Schema
from understudy.specimens.registry import specimen
from understudy.studies.attacking import Attacks, attack
from understudy.studies.comparing import compare
from understudy.studies.evaluating import evaluate
from understudy.studies.result import Evaluation, Study
from understudy.synthesizers.registry import METHODS
from understudy.tables.draft import draft_schema
from understudy.tables.opening import open
from understudy.tables.table import Table

__version__ = "0.1.0"

__all__ = [
    "METHODS",
    "Amount",
    "Answer",
    "Attacks",
    "Audit",
    "Budget",
    "BudgetExhausted",
    "Certificate",
    "CheckFailed",
    "Curator",
    "Domain",
    "Evaluation",
    "InputError",
    "InternalError",
    "Ledger",
    "Measurement",
    "MethodError",
    "PrivateDecisionTree",
    "PrivateForest",
    "PrivateGreedyTree",
    "Release",
    "ReleaseError",
    "Schema",
    "SchemaError",
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
    "compare",
    "draft_schema",
    "evaluate",
    "open",
    "plan",
    "query",
    "replay",
    "specimen",
    "synthesize",
    "verify",
]
