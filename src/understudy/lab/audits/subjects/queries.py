"""Metered queries, as subjects of an audit."""

from __future__ import annotations

from dataclasses import dataclass

from understudy.boundary.privacy.curator import Curator
from understudy.lab.audits.subjects.harness import RunContext
from understudy.lab.audits.subjects.subject import RunOutput
from understudy.queries.aggregate_query import AggregateQuery
from understudy.queries.answer import Answer, Group
from understudy.queries.query import query
from understudy.queries.query_plan import QueryPlan

CONFIDENCE = 0.95
QUERIES = {
    "query-total": "SELECT count(*) FROM data",
    "query-count": "SELECT count(*) FROM data WHERE weight > 50 OR weight < 1",
    "query-groups": "SELECT colour, count(*), sum(size) FROM data GROUP BY colour",
    "query-average": "SELECT avg(weight) FROM data",
    "query-quantile": "SELECT quantile(weight, 0.9) FROM data",
}
"""One of each kind of question that the curator answers differently."""


@dataclass(frozen=True)
class QuerySubject:
    """A question, as `query` asks it."""

    name: str
    kind: str = "query"
    buys_keys: bool = True

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
