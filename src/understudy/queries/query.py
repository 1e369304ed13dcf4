"""`understudy.query`: one metered question about a table behind the boundary.

A question is read and checked first. If the ledger has its answer, that is given again, for nothing. Otherwise the
whole budget of the question is debited, the curator answers, and the ledger remembers its noisy totals. The figures are
always made from remembered totals, by a curator that has no rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks.counts import no_pure_keys
from understudy.boundary.privacy.budget import DEFAULT_DELTA, Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.ledger.ledger import Debited, Ledger, Receipt, ledger_for
from understudy.boundary.privacy.measurement import RecordedAnswer
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness, Randomness, randomness_of
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.federation import Federation
from understudy.boundary.schema.grouped_sums import GroupedSums
from understudy.boundary.schema.partition import Partition
from understudy.boundary.schema.schema import DRAFT, Schema
from understudy.boundary.tables.sites.federated import federation_of
from understudy.boundary.tables.table import Table, identity_of, opened
from understudy.errors import InternalError
from understudy.queries.aggregate_query import QUANTILE, AggregateQuery
from understudy.queries.answer import Answer, check_confidence
from understudy.queries.query_plan import QueryPlan


def query(
    table: Table,
    sql: str,
    *,
    epsilon: float,
    delta: float = DEFAULT_DELTA,
    ledger: Debited = None,
    analyst: str = "",
    confidence: float = 0.95,
    accept_draft_as_public: bool = False,
    test_only_noise_seed: int | None = None,
) -> Answer:
    """Answers one question with noise, and with the interval that the noise leaves.

    Asked again, the same question is answered for nothing.

    Args:
        table: What `understudy.open` returned.
        sql: `SELECT [columns,] aggregates FROM table [WHERE …] [GROUP BY columns]`, with the aggregates count(*),
            count(DISTINCT unit), sum(x), avg(x), median(x) and quantile(x, 0.9).
        epsilon: The privacy loss of the whole question.
        delta: The probability that the claim may fail; 0 asks for pure ε.
        ledger: A ledger or its path. By default it is the one beside the file that the table was opened from. False
            debits none, and remembers none.
        analyst: Who is asking: whose share of the budget is debited.
        confidence: The probability with which an interval holds the true figure.
        accept_draft_as_public: Use a schema that is an unconfirmed draft; nothing is guaranteed then.
        test_only_noise_seed: Makes the noise repeatable: the answer is stamped TEST-ONLY and guarantees nothing.

    Returns:
        An `Answer`: the figures of each group, each with its interval.

    Raises:
        InputError: The question can't be read, names what is not there or not declared, or is impossible; nothing was
            spent.
        BudgetExhausted: The ledger has a limit, and this would pass it; nothing was spent.

    >>> import pyarrow as pa, understudy as us
    >>> schema = us.Schema.loads('[columns.age]\\ntype = "integer"\\nmin = 0\\nmax = 99')
    >>> table = us.open(pa.table({"age": [31, 47, 52]}), schema)
    >>> answer = query(table, "SELECT count(*) FROM data WHERE age > 40", epsilon=1.0, delta=0)
    >>> answer.figure.low <= answer.figure.high
    True
    """
    table, budget = opened(table), Budget(epsilon, delta)
    question = AggregateQuery.of(sql, table.schema, names_of(table))
    plan = QueryPlan(question, table.schema, check_confidence(confidence))
    _check(plan, budget, accept_draft_as_public, federation_of(table))
    return query_with(
        table,
        plan,
        budget,
        randomness=randomness_of(test_only_noise_seed),
        ledger=ledger_for(table, ledger),
        analyst=analyst,
    )


def query_with(
    table: Table,
    plan: QueryPlan,
    budget: Budget,
    *,
    randomness: Randomness,
    ledger: Ledger | Path | None = None,
    analyst: str = "",
) -> Answer:
    """Answers a question that was already checked."""
    epsilon, delta, debited = budget.epsilon, budget.delta, ledger
    if plan.public:
        epsilon, delta, debited = 0.0, 0.0, None
    key = record_key(table, plan, budget)
    # Noise that a seed made repeatable is neither kept nor given again: it would pass for the answer that was paid for.
    known = _recalled(ledger, key) if randomness.secure else None
    receipt: Receipt | None = None
    if known is not None:
        answers = known
    else:
        curator = Curator.on(
            table,
            budget,
            ledger=debited,
            purpose=f"query of {table.name}: {plan.question.sql}",
            analyst=analyst,
            randomness=randomness,
            keys=plan.keys,
        )
        plan.ask(curator)
        curator.finish()
        receipt, answers = curator.receipt, curator.record
        if curator.secure and not plan.public:
            answers = _remembered(ledger, key, curator.record)
    # Figures come from the recorded totals on every path, so that an answer is the same the first time and later.
    federation = federation_of(table)
    recorded = Curator.replaying(
        table.schema, budget, answers, secure=randomness.secure, keys=plan.keys, federation=federation
    )
    groups = plan.ask(recorded)
    question = plan.question
    return Answer(
        sql=question.sql,
        keys=question.keys,
        names=tuple(a.name for a in question.aggregates),
        groups=groups,
        confidence=plan.confidence,
        epsilon=epsilon,
        delta=delta,
        recorded=known is not None,
        secure=randomness.secure,
        draft=table.schema.status == DRAFT,
        ledger=receipt,
    )


def names_of(table: Table) -> tuple[str, ...]:
    """What FROM may call the table: its name, and that without the ending of a file."""
    if not table.name:
        return ()
    return tuple(dict.fromkeys((PurePath(table.name).stem, table.name)))


def _check(plan: QueryPlan, budget: Budget, draft_accepted: bool, federation: Federation | None) -> None:
    """Refuses whatever can be refused from public facts, before anything is spent."""
    schema = plan.schema
    schema.check_confirmed(draft_accepted)
    if plan.keys and budget.pure:
        raise no_pure_keys(plan.keys[0])
    # A dry run: asking a table without rows raises whatever asking would raise half-way, as far as public facts decide
    # it. It reads and spends nothing.
    nobody = EmptyTable(plan.schema, federation=federation)
    plan.ask(Curator.on(nobody, budget, randomness=ExactRandomness.seeded(0), keys=plan.keys))


@dataclass(frozen=True)
class EmptyTable:
    """A table without rows, of which every total is zero; implements `tables.table.Table`."""

    schema: Schema
    kind: str = "none"
    name: str = "no rows"
    federation: Federation | None = None

    def count_tally(self, domain: Domain, tally: GroupedSums) -> list[NDArray[np.int64]]:
        return [np.zeros(domain.shape(tally.by), dtype=np.int64) for _ in tally.summands]

    def count_values(self, column: str) -> tuple[list[str], NDArray[np.int64]]:
        return [], np.zeros(0, dtype=np.int64)

    def has_rows(self, at_least: int) -> bool:
        return True  # that there are enough is a promise of every claim, and is checked on the rows themselves

    def check_readable(self) -> None:
        pass

    def count_by(self, domain: Domain, sets: Sequence[ColumnSet]) -> NoReturn:
        raise InternalError("a query asks for tallies only", sets)

    def count_cells(self, domain: Domain, partitions: Sequence[Partition]) -> NoReturn:
        raise InternalError("a query asks for tallies only", partitions)

    def count_rows(self) -> NoReturn:
        raise InternalError("a query asks for tallies only", self)


def record_key(table: Table, plan: QueryPlan, budget: Budget) -> str | None:
    """What makes two questions the same: table, schema, meaning and budget; a quantile's interval is asked for, too.

    The table is known by its full name. Two files of one name, or tables of one name in two schemas of a database, have
    other rows, and frames that nobody named can't be told apart: those are asked each time, and paid for.
    """
    identity = identity_of(table)
    if identity is None:
        return None
    facts = {
        "query": plan.question.sql,
        "table": identity,
        "schema": hashlib.sha256(plan.schema.dumps().encode()).hexdigest(),
        "epsilon": budget.epsilon,
        "delta": budget.delta,
    }
    # The ends of a quantile's interval are ranks that are drawn; those of counts and sums are computed afterwards.
    if any(a.kind == QUANTILE for a in plan.question.aggregates):
        facts["confidence"] = plan.confidence
    # Ledgers written before know a question by these very bytes.
    return json.dumps(facts, ensure_ascii=False, sort_keys=True)


def _recalled(ledger: Ledger | Path | None, key: str | None) -> tuple[RecordedAnswer, ...] | None:
    # Looking up an answer must not leave an empty ledger behind.
    if key is None or ledger is None or (isinstance(ledger, Path) and not ledger.exists()):
        return None
    kept = Ledger.at(ledger).recall(key)
    if kept is None:
        return None
    return _unpacked(kept)


def _remembered(
    ledger: Ledger | Path | None, key: str | None, answers: tuple[RecordedAnswer, ...]
) -> tuple[RecordedAnswer, ...]:
    """What the ledger keeps: of two processes that asked at once, both give the answer that was there first."""
    if key is None or ledger is None:
        return answers
    plain = [a.to_dict() for a in answers]
    return _unpacked(Ledger.at(ledger).remember(key, json.dumps(plain, ensure_ascii=False).encode()))


def _unpacked(content: bytes) -> tuple[RecordedAnswer, ...]:
    return tuple(RecordedAnswer.from_dict(a) for a in json.loads(content))
