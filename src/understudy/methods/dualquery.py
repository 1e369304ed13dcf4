"""`dualquery`: a game of two players about counting queries (after Gaboardi et al. 2014).

The *query player* holds a distribution over queries by multiplicative weights: each is the likelier, the further the
rows made so far are off it. A few queries are drawn from it by looking at the rows, and this is all that does. The
*data player* answers with rows that satisfy as many of the drawn queries as it can find, without the private rows. The
answers of all rounds are the synthetic table.

A query is about two columns: whether a row has one of some values in both, or has not. A draw by multiplicative weights
is an exponential mechanism whose score is the error of all rounds so far together, so that round t pays in proportion
to t (and by ρ to t²). In print all queries are in play in every round, and an integer program is solved for one row;
here a public random part of the queries is in play, and the best response is sought column by column, from many rows at
once: it may be found or missed, but no row is looked at for it. Also unlike in print, single columns are counted first:
columns of which no drawn query speaks follow them, and so do the weights of the rows in the end.

The curator's asks are the guarantee. A query as a `Candidate`: the cells of a two-by-two table, where one expects no
rows and the others so many that none has more. Then Σ |count − expected| is the count of the one minus that of the
others, up to a constant; were there more rows than that, the choice would be a bad one, and as private as any.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.asks import Select
from understudy.boundary.privacy.budget import Amount
from understudy.boundary.privacy.mechanisms.exponential import OneOfEach
from understudy.boundary.privacy.mechanisms.score import Candidate
from understudy.boundary.privacy.queryable import Queryable
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.partition import Grid
from understudy.inference.model import CodeColumns, Model
from understudy.inference.network import IndependentModel
from understudy.inference.noisy_table import estimate_total, keep_every_value
from understudy.inference.particles.particles import Particles
from understudy.inference.particles.rounding import PlainDraws
from understudy.inference.sampling import CODE, draw_rows
from understudy.methods.method import CHOOSES_SEVERAL, Method, Options, Variant
from understudy.methods.params import Params, parameter
from understudy.methods.parts.one_ways import denoised, measure_columns, public_rows

ROUNDS, DRAWN, ROWS = 100, 8, 250
"""Rounds; queries drawn in each; rows in each answer. With 32 queries in fifty rounds strong relations come out better,
and weak ones, as in most tables, far too strong: pairs of nursery erred by more than with unrelated columns."""
IN_PLAY = 100
"""Queries that may be drawn in a round, each with its negation."""
SWEEPS = 3
"""Over the columns of the drawn queries, in search of a best response; after two, little changes."""
LEAST = 1e-9
"""The weight of a value that has none: it must be possible, where a query is about nothing else."""
MANY = 2.0**29
"""More rows than any cell has. Six times as many still have exact scores (`score.MOST_EXPECTED`)."""


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class DualQueryParams(Params):
    """The options of `dualquery`."""

    rounds: int = parameter(ROUNDS, "answers of the data player", low=1, high=2_000)
    drawn: int = parameter(DRAWN, "queries that are drawn in a round", low=1, high=IN_PLAY)


@dataclass(frozen=True)
class DualQuery:
    """The recipe."""

    params: DualQueryParams = DualQueryParams()

    def calibrate(self, domain: Domain, amount: Amount) -> CalibratedDualQuery:
        return CalibratedDualQuery(domain, amount, self.params)


@dataclass(frozen=True)
class Query:
    """Whether a row has marked values in both columns (or, negated, has not in at least one)."""

    columns: tuple[str, str]
    marked: tuple[NDArray[np.bool_], NDArray[np.bool_]]
    negated: bool = False

    @cached_property
    def grid(self) -> Grid:
        # The first cell holds the rows that have marked values in both.
        return Grid(self.columns, tuple(tuple(np.where(m, 0, 1).tolist()) for m in self.marked))

    def holds(self, codes: CodeColumns) -> NDArray[np.bool_]:
        """Of each row, whether it has marked values in both."""
        one, other = (m[codes[c]] for c, m in zip(self.columns, self.marked, strict=True))
        return np.asarray(one & other)

    def candidate(self, share: float, total: float) -> Candidate:
        """Scored by the rows that satisfy it minus those that don't, less what a table with this share would have."""
        expected = np.zeros((2, 2)) if self.negated else np.full((2, 2), MANY)
        expected[0, 0] = MANY if self.negated else 0.0
        # Σ |count − expected| is ±(2·count − rows), plus as many times MANY as cells expect so many.
        offset = -float(expected.sum()) - (1.0 if not self.negated else -1.0) * total * (2.0 * share - 1.0)
        return Candidate(self.columns, expected, offset=offset, grid=self.grid)


def satisfied(codes: CodeColumns, queries: Sequence[Query]) -> NDArray[np.intp]:
    """How many of the queries each row satisfies."""
    return np.sum([q.holds(codes) != q.negated for q in queries], axis=0)


@dataclass(frozen=True)
class CalibratedDualQuery:
    domain: Domain
    amount: Amount
    params: DualQueryParams

    def fit(self, curator: Queryable, rng: np.random.Generator) -> Model:
        rows = public_rows(curator)
        one_ways = measure_columns(self.domain, curator, self.amount, rows)
        total = estimate_total([*rows, *one_ways])
        weights = {}
        for m in one_ways:
            (name,) = m.columns
            counts = denoised(m.counts.astype(np.float64), m.variance, self.domain[name])
            weights[name] = keep_every_value(counts, total, m.variance)
        columns = IndependentModel(weights, total)
        varied = [c for c in self.domain.names if self.domain.size(c) > 1]
        if len(varied) < 2:
            return columns
        game = Game(self.domain, curator, columns, varied, rng)
        game.play(self.params)
        return game.finish()


@dataclass
class Game:
    """The rows of all answers so far, and who is asked for the next queries."""

    domain: Domain
    curator: Queryable
    columns: IndependentModel
    varied: Sequence[str]
    rng: np.random.Generator
    answers: list[CodeColumns] = field(default_factory=list)

    def play(self, params: DualQueryParams) -> None:
        # Before the first answer every query is as likely as any other: these are drawn without a look at the rows.
        first = self._in_play()
        self._answer([first[i] for i in self.rng.permutation(len(first))[: params.drawn]])
        left = self.curator.remaining()
        rounds = np.arange(1, params.rounds + 1, dtype=np.float64)
        for amount in left.split([*(rounds if left.pure else rounds**2)]):
            queries = self._in_play()
            made = self._made()
            candidates = [q.candidate(float(q.holds(made).mean()), self.columns.total) for q in queries]
            # Of a query and its negation, next to each other in `_in_play`, one at most: to draw both says nothing.
            rule = OneOfEach([i // 2 for i in range(len(queries))])
            drawn = self.curator.ask(Select(self.domain, candidates, amount, k=params.drawn, rule=rule))
            self._answer([queries[i] for i in drawn])

    def finish(self) -> Model:
        """All answers alike but for weights, by which single columns are as they were counted."""
        codes = self._made()
        count, total = len(next(iter(codes.values()))), self.columns.total
        sizes = {c: self.domain.size(c) for c in self.domain.names}
        particles = Particles(sizes, total, codes, np.full(count, total / count))
        particles.fit_columns(self.columns.weights)
        return PlainDraws(particles)

    def _made(self) -> CodeColumns:
        return {c: np.concatenate([a[c] for a in self.answers]) for c in self.domain.names}

    def _in_play(self) -> list[Query]:
        """Queries at random, each and its negation: by public facts and earlier answers, as all that rows are not."""
        found = []
        for _ in range(IN_PLAY):
            one, other = (self.varied[i] for i in self.rng.choice(len(self.varied), 2, replace=False))
            marked = self._marked(one), self._marked(other)
            found += [Query((one, other), marked, negated) for negated in (False, True)]
        return found

    def _marked(self, column: str) -> NDArray[np.bool_]:
        """One value, by its noisy share; along a line, all up to it. Never all values, and never none."""
        coding, size = self.domain[column], self.domain.size(column)
        value = int(draw_rows(self.columns.weights[column], 1, self.rng)[0])
        if coding.edges is None or value >= coding.levels:
            return np.arange(size) == value
        return np.arange(size) <= min(value, size - 2)

    def _answer(self, queries: Sequence[Query]) -> None:
        """Rows that satisfy as many of these queries as a search finds; what is left open is as single columns are."""
        codes = self.columns.sample(ROWS, self.rng)
        logs = {c: np.log(np.maximum(self.columns.weights[c], LEAST)) for c in self.varied}
        spoken = dict.fromkeys(c for q in queries for c in q.columns)
        for _ in range(SWEEPS):
            # Two columns at once first: where neither has a marked value, to change one of them gains nothing.
            for query in (q for q in queries if not q.negated):
                codes = self._met(codes, query, queries, logs)
            for column in spoken:
                codes[column] = self._best(codes, column, queries, logs[column])
        self.answers.append({c: np.asarray(v, dtype=CODE) for c, v in codes.items()})

    def _met(
        self, codes: CodeColumns, query: Query, queries: Sequence[Query], logs: Mapping[str, Floats]
    ) -> CodeColumns:
        """The rows with marked values in both columns of a query, where they satisfy no fewer queries so."""
        moved = dict(codes)
        for column, marked in zip(query.columns, query.marked, strict=True):
            rows = len(codes[column])
            drawn = np.where(marked, logs[column] + self.rng.gumbel(size=(rows, len(marked))), -math.inf).argmax(axis=1)
            moved[column] = np.where(marked[codes[column]], codes[column], drawn)
        better = satisfied(moved, queries) >= satisfied(codes, queries)
        return codes | {c: np.where(better, moved[c], codes[c]) for c in query.columns}

    def _best(self, codes: CodeColumns, column: str, queries: Sequence[Query], log: Floats) -> NDArray[np.integer]:
        """For each row the value of a column by which it satisfies most queries; its own, if that is among them."""
        gain = np.zeros((len(codes[column]), len(log)))
        for q in (q for q in queries if column in q.columns):
            own = q.columns.index(column)
            other = q.marked[1 - own][codes[q.columns[1 - own]]]
            gain += (-1.0 if q.negated else 1.0) * np.outer(other, q.marked[own])
        best = gain == gain.max(axis=1, keepdims=True)
        # The Gumbel-max trick: of the best values one by its noisy share.
        drawn = np.where(best, log + self.rng.gumbel(size=gain.shape), -math.inf).argmax(axis=1)
        return np.where(best[np.arange(len(drawn)), codes[column]], codes[column], drawn)


METHOD = Method(
    name="dualquery",
    guarantee="pure ε with delta = 0, else Gaussian differential privacy",
    good_for="a baseline: a game between queries and rows, in which no table of all queries is ever measured",
    limits="relations are found slowly, by a few queries in a round; each round is paid",
    build=lambda options, params: DualQuery(params),
    params=DualQueryParams,
    # Audits run it thousands of times.
    variants=(Variant(options=lambda names: Options(own={"rounds": 3, "drawn": 2}), mutants=CHOOSES_SEVERAL),),
)
