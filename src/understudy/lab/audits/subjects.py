"""What can be audited by its name (methods, predictors, queries, specimens), and the mistakes that it can make."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.schema.schema import DRAFT
from understudy.errors import MethodError
from understudy.lab.audits.harness import RunContext, RunOutput, Subject
from understudy.lab.audits.mutants.mutants import MUTANTS, OF_TRAINING
from understudy.lab.audits.pairs import EQUAL, OTHER, TARGET
from understudy.lab.specimens.all_specimens import SPECIMENS as SPECIMEN_KINDS
from understudy.methods.method import Method, Variant
from understudy.methods.registry import METHODS
from understudy.parameters import suggestion
from understudy.predictors.boosting_predictors import PrivateBoosting
from understudy.predictors.classifiers import PrivateDecisionTree, PrivateForest, PrivateGreedyTree
from understudy.predictors.predictor import PrivateClassifier
from understudy.predictors.storage import certificate_of
from understudy.queries.aggregate_query import AggregateQuery
from understudy.queries.answer import Answer, Group
from understudy.queries.query import query
from understudy.queries.query_plan import QueryPlan
from understudy.releases.certificate import Certificate
from understudy.releases.release import Release
from understudy.releases.synthesis import Plan

if TYPE_CHECKING:
    pass


def variants() -> dict[str, tuple[Method, Variant]]:
    """Every way to run a method that is audited by itself, by its name."""
    return {f"{m.name}{v.ending}": (m, v) for m in METHODS.values() for v in m.variants}


class SynthesisSubject(Subject):
    """A method of the registry, as `synthesize` runs it."""

    kind = "method"

    def learn(self, context: RunContext, curator: Curator, seed: int) -> None:
        self._plan(context, seed).learn(curator)

    def show(self, context: RunContext, curator: Curator, seed: int) -> RunOutput:
        release = self._plan(context, seed).release(curator, "pyarrow")
        return RunOutput(outside(release), release.arrow)

    def claim(self, context: RunContext, curator: Curator) -> Certificate:
        return self._plan(context, 0).certificate(curator, rows=1)  # of any number of rows: only the guarantee is read

    def _plan(self, context: RunContext, seed: int) -> Plan:
        schema, (method, variant) = context.schema, variants()[self.name]
        options = variant.options([c.name for c in schema.modelled])
        draft = schema.status == DRAFT
        return Plan.of(schema, self.budget, method.name, options, context.rows, seed, accept_draft=draft)


def outside(release: Release) -> dict[str, Any]:
    """Everything that a release shows, but for the values of its measurements and of its synthetic rows."""
    from understudy.releases.synthesis import EXPECTED
    from understudy.releases.synthetic_table import to_native

    files = release.files("csv")
    with np.load(io.BytesIO(files["measurements.npz"]), allow_pickle=False) as arrays:
        shapes: dict[str, Any] = {name: (arrays[name].shape, str(arrays[name].dtype)) for name in arrays.files}
        shapes["questions"] = arrays["questions"].tobytes()
    # The time of a run, and the hashes of files that hold it or noise, differ between any two runs.
    certificate = json.loads(files["certificate.json"])
    certificate = {k: v for k, v in certificate.items() if k not in ("created", "digest")}
    certificate["files"] = sorted(certificate["files"])
    # What a table of so many rows leads to expect follows from the noisy answers.
    certificate["method"] = certificate["method"] | {"reason": certificate["method"]["reason"].partition(EXPECTED)[0]}
    return {
        "files": sorted(files),
        "schema.toml": files["schema.toml"],
        "header": files["synthetic.csv"].split(b"\n")[0],
        "measurements": shapes,
        "certificate": certificate,
        "arrow": [(f.name, str(f.type), f.nullable) for f in release.arrow.schema],
        "kind of frame": type(to_native(release.arrow, "pyarrow")).__module__,
        "rows": release.arrow.num_rows,
        "domain": repr(release.domain.codings),
    }


PREDICTORS: dict[str, Callable[[Budget], PrivateClassifier]] = {
    "private-tree": lambda b: PrivateDecisionTree(b.epsilon, b.delta),
    "private-boosting": lambda b: PrivateBoosting(b.epsilon, b.delta, rounds=2, depth=1),
    "private-forest": lambda b: PrivateForest(b.epsilon, b.delta),
    "private-greedy-tree": lambda b: PrivateGreedyTree(b.epsilon, b.delta),
    "private-id3": lambda b: PrivateGreedyTree(b.epsilon, b.delta, splits="noisy"),
}


class PredictorSubject(Subject):
    """A predictor that learns which rows are ripe."""

    kind = "predictor"

    def learn(self, context: RunContext, curator: Curator, seed: int) -> None:
        self._fitted(context, curator, seed)

    def show(self, context: RunContext, curator: Curator, seed: int) -> RunOutput:
        import pyarrow as pa

        fitted = self._fitted(context, curator, seed)
        # A row that is common in most pairs, and one that is not; where a pair has more columns, nothing is known.
        names = [name for name in context.schema.names if name != TARGET]
        shares = fitted.predict_proba(pa.table({name: [EQUAL.get(name), OTHER.get(name)] for name in names}))
        numbers = {f"share {i} of row {j}": float(p) for j, row in enumerate(shares) for i, p in enumerate(row)}
        answers = [(q.question, q.value.shape) for q in curator.record]
        trees = [repr(tree) for tree in fitted.trees_]
        outside = {"classes": fitted.classes_.tolist(), "questions": answers, "trees": trees}
        return RunOutput(outside, numbers=numbers)

    def claim(self, context: RunContext, curator: Curator) -> Certificate:
        return certificate_of(self._settled(context, 0), curator, "fit")

    def _fitted(self, context: RunContext, curator: Curator, seed: int) -> PrivateClassifier:
        predictor = self._settled(context, seed)
        predictor._learn(curator, predictor.hyperparameters())
        return predictor

    def _settled(self, context: RunContext, seed: int) -> PrivateClassifier:
        predictor = PREDICTORS[self.name](self.budget)
        predictor.schema_, predictor.target_, predictor.seed_ = context.schema, TARGET, seed
        return predictor


CONFIDENCE = 0.95
# One of each kind of question that the curator answers differently.
QUERIES = {
    "query-total": "SELECT count(*) FROM data",
    "query-count": "SELECT count(*) FROM data WHERE weight > 50 OR weight < 1",
    "query-groups": "SELECT colour, count(*), sum(size) FROM data GROUP BY colour",
    "query-average": "SELECT avg(weight) FROM data",
    "query-quantile": "SELECT quantile(weight, 0.9) FROM data",
}


class QuerySubject(Subject):
    """A question, as `query` asks it."""

    kind = "query"

    def learn(self, context: RunContext, curator: Curator, seed: int) -> None:
        self._groups(context, curator)

    def show(self, context: RunContext, curator: Curator, seed: int) -> RunOutput:
        groups = self._groups(context, curator)
        values = {f"{g.keys} {i}": f.value for g in groups for i, f in enumerate(g.figures)}
        figures = {name: float(v) for name, v in values.items() if isinstance(v, int | float)}
        answers = [(q.question, q.value.shape) for q in curator.record]
        return RunOutput({"groups": [g.keys for g in groups], "questions": answers}, numbers=figures)

    def claim(self, context: RunContext, curator: Curator) -> Answer:
        """Of the whole question, since an answer is all that a query hands out."""
        budget = curator.budget
        return query(
            context.here, QUERIES[self.name], epsilon=budget.epsilon, delta=budget.delta, accept_draft_as_public=True
        )

    def _groups(self, context: RunContext, curator: Curator) -> tuple[Group, ...]:
        question = AggregateQuery.of(QUERIES[self.name], context.schema)
        return QueryPlan(question, context.schema, CONFIDENCE).ask(curator)


# Those that claim an ε; a method that claims nothing has nothing to refute.
SPECIMENS = tuple(kind.name for kind in SPECIMEN_KINDS.values() if kind.claims)
# What is no method and is audited from both sides of a curator, too.
LOOKED_AT = (*PREDICTORS, *QUERIES)
# Those of them that make private choices.
CHOOSING = ("private-boosting", "private-forest", "private-greedy-tree", "query-quantile")
# What a mistake can't touch: a question that looks at no category, at no bound or at no column; one rank, which moves
# by one; and what never asks for the number of all rows. What it can't touch of a method, the method says.
BLIND = {
    "domain-from-data": ("query-total", "query-count", "query-average", "query-quantile"),
    "bins-from-data": ("query-total", "query-count"),
    "index-blocks": ("query-total", "query-count", "query-quantile"),
    "storage-types": ("query-total",),
    "free-total": ("query-count", "query-groups", "query-average", "query-quantile"),
}


def trained() -> tuple[str, ...]:
    """Methods that train, which takes too long for games: `training` looks at them from inside, in one run."""
    return tuple(m.name for m in METHODS.with_trait("trains"))


def syntheses() -> tuple[str, ...]:
    """Methods, each in every way to run it, but for those that train."""
    return tuple(name for name, (method, _) in variants().items() if not method.traits.trains)


def subjects() -> tuple[str, ...]:
    """Those that learn through a curator, and are audited from both sides of it."""
    return (*syntheses(), *LOOKED_AT)


def subject_of(name: str, budget: Budget) -> Subject:
    if name in (*syntheses(), *trained()):
        return SynthesisSubject(name, budget)
    if name in PREDICTORS:
        return PredictorSubject(name, budget)
    if name in QUERIES:
        return QuerySubject(name, budget)
    known = (*subjects(), *trained(), *SPECIMENS)
    raise MethodError(f"{name!r} can't be audited: it is not known; {suggestion(name, known)}", name)


def mutants_of(name: str) -> tuple[str, ...]:
    """All that may be asked for of a method by its name."""
    if name in trained():
        return tuple(m for m in MUTANTS if applies(m, name))
    return tuple(m for m in MUTANTS if m not in OF_TRAINING)


# Mistakes that a method makes only where it says so.
SOME = ("monotone-constant", "late-admission")


def applies(mutant: str, name: str) -> bool:
    """Whether a subject can make that mistake at all."""
    if name in LOOKED_AT:  # draws no rows, and picks one candidate at a time
        if mutant == "monotone-constant":
            return name in CHOOSING
        never = ("late-admission", "exact-row-count", *OF_TRAINING)
        return mutant not in never and name not in BLIND.get(mutant, ())
    method, variant = variants()[name]
    if mutant in (*SOME, *OF_TRAINING):
        return mutant in variant.mutants
    if method.traits.trains and not MUTANTS[mutant].boundary:
        return False  # the parts that count and debit are those of all methods, and broken there
    return mutant not in variant.immune


def selects_wide(name: str) -> bool:
    """Whether it picks several sets in one selection only of wide tables."""
    return name in variants() and variants()[name][1].selects_wide
