"""The curator: the one object through which anything is learned of private rows.

Every ask follows the same order: dry-run the debit, compute the exact answer behind the boundary, debit, draw the
noise, record. A refusal or an unreadable table therefore costs nothing, and no noise is ever drawn unpaid.
A curator that replays gets its answers from a record instead of rows; strategies can't tell the difference, which is
how a release proves that it depends on the rows through its measurements alone.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.accountant import lower_float, rho_from_epsilon, rho_from_pure, round_up
from understudy.boundary.privacy.budget import Amount, Budget, Cost, Meter, Spend, claim
from understudy.boundary.privacy.budget import total as composed
from understudy.boundary.privacy.ledger.ledger import Ledger, Receipt
from understudy.boundary.privacy.measurement import Answer, Keys, Measurement, frozen
from understudy.boundary.privacy.mechanisms.admission import Admission, first_admissible
from understudy.boundary.privacy.mechanisms.gradient import Groups
from understudy.boundary.privacy.mechanisms.noise import LARGEST_SCALE
from understudy.boundary.privacy.mechanisms.posterior import Prior, check_leaves
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness, Randomness
from understudy.boundary.privacy.mechanisms.rank import Rank, rank_exponent, rank_sensitivity
from understudy.boundary.privacy.mechanisms.score import GRID_BITS, Scored, rank_scores
from understudy.boundary.privacy.mechanisms.subsampling import Course, check_trainable
from understudy.boundary.privacy.mechanisms.teachers import Teachers, votes_sensitivity
from understudy.boundary.privacy.mechanisms.threshold import key_threshold
from understudy.boundary.privacy.mechanisms.training import Keep, Shape, Training, at_once, check_rows
from understudy.boundary.privacy.unit import PrivacyUnit
from understudy.boundary.schema.column import Categorical
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.partition import Grid, Partition, shape_of
from understudy.boundary.schema.schema import REPLACE_ONE, Schema
from understudy.boundary.tables.cache import CachedTable
from understudy.boundary.tables.counting import is_bundle
from understudy.boundary.tables.table import Table, checked_codes, read_codes
from understudy.boundary.tables.tally import Setting, Summand, Tally
from understudy.errors import BudgetExhausted, CheckFailed, InternalError, MethodError, TableError

FEWEST_ROWS = 2
"""A table of fewer rows is refused unread. That tables have at least this many is a public promise of every claim."""
MOST_CELLS = 20_000_000
"""The most cells that one marginal may have: each of them gets noise, and memory."""
MOST_SUMMED = 2.0 ** (63 - GRID_BITS)
"""Rows that the noise of one marginal may add up to."""

Exact = TypeVar("Exact")


class Gate(Protocol):
    """Where answers come from: rows, or a record."""

    @property
    def secure(self) -> bool: ...

    def answer(
        self,
        questions: Sequence[dict[str, Any]],
        exact: Callable[[Table], Exact],
        draw: Callable[[Exact, Randomness], list[NDArray[Any]]],
        debit: Callable[[], None],
    ) -> list[NDArray[Any]]: ...


class RowGate:
    """Answers from rows. The whole budget of the curator is debited from the ledger before the first draw."""

    def __init__(
        self,
        table: Table,
        budget: Budget,
        ledger: Ledger | Path | None,
        purpose: str,
        analyst: str,
        randomness: Randomness,
    ) -> None:
        if not table.has_rows(FEWEST_ROWS):
            raise TableError(f"{table.name} must have at least {FEWEST_ROWS} rows to hide one of them", table.name)
        self._table, self._budget, self._ledger = table, budget, ledger
        self._purpose, self._analyst, self._randomness = purpose, analyst, randomness
        self._paid = False
        self.whole = whole_cost(budget, table.schema)
        """What the ledger is debited before the first draw; a curator that trains divides its budget otherwise."""
        self._receipt: Receipt | None = None

    @property
    def secure(self) -> bool:
        return self._randomness.secure

    def answer(
        self,
        questions: Sequence[dict[str, Any]],
        exact: Callable[[Table], Exact],
        draw: Callable[[Exact, Randomness], list[NDArray[Any]]],
        debit: Callable[[], None],
    ) -> list[NDArray[Any]]:
        hidden = exact(self._table)
        self._pay()
        debit()
        return draw(hidden, self._randomness)

    @property
    def receipt(self) -> Receipt | None:
        """Which debit paid, once one did."""
        return self._receipt

    def keep(self, draw: Callable[[], NDArray[np.int64]]) -> NDArray[np.int64]:
        """The noisy sums of one step of an answer; a gate with a journal keeps them before anybody sees them."""
        return draw()

    def demand_codes(self) -> None:
        checked_codes(self._table.uncached if isinstance(self._table, CachedTable) else self._table)

    def _pay(self) -> None:
        """One entry for the whole budget, on disk before any draw: concurrent curators can't run dry half-way."""
        if not self._paid:
            self._table.check_readable()
            if self._ledger is not None:
                self._debit(Ledger.at(self._ledger, create=True))
            self._paid = True

    def _debit(self, ledger: Ledger) -> None:
        self._receipt = ledger.receipt(self._write_down(ledger))

    def _write_down(self, ledger: Ledger, journal: str = "") -> int:
        schema = self._table.schema
        return ledger.debit(
            self.whole,
            self._budget,
            schema.neighbours,
            self._purpose,
            self._analyst,
            unit=PrivacyUnit.of(schema),
            journal=journal,
        )


class RecordGate:
    """Answers from a record, in the order in which they were given; a different question is a failed check."""

    def __init__(self, answers: Sequence[Answer], secure: bool) -> None:
        self._answers = list(answers)
        self._next = 0
        self.secure = secure

    @property
    def exhausted(self) -> bool:
        return self._next == len(self._answers)

    def answer(
        self,
        questions: Sequence[dict[str, Any]],
        exact: Callable[[Table], Exact],
        draw: Callable[[Exact, Randomness], list[NDArray[Any]]],
        debit: Callable[[], None],
    ) -> list[NDArray[Any]]:
        debit()
        return [self._take(q) for q in questions]

    def _take(self, question: dict[str, Any]) -> NDArray[Any]:
        if self.exhausted:
            raise CheckFailed(f"the record ends before question {self._next + 1}: {question['ask']}", question)
        recorded = self._answers[self._next]
        if recorded.question != question:
            raise CheckFailed(f"question {self._next + 1} of the record is not the one that the method asks", question)
        self._next += 1
        return recorded.value


class Curator:
    """Metered, noisy answers about one table.

    >>> import pyarrow as pa, understudy as us
    >>> schema = us.Schema.loads('[columns.age]\\ntype = "integer"\\nmin = 0\\nmax = 99')
    >>> curator = Curator.on(us.open(pa.table({"age": [31, 47, 52]}), schema), Budget(1.0, 0.0))
    >>> domain = Domain.of(schema)
    >>> curator.measure(domain, [("age",)], curator.remaining())[0].counts.shape
    (100,)
    >>> curator.guarantee
    (1.0, 0.0)
    """

    def __init__(self, schema: Schema, budget: Budget, gate: Gate, keys: Sequence[str] | None = None) -> None:
        self.schema, self.budget = schema, budget
        self._keys = keys
        self._gate = gate
        self._meter = Meter(budget)
        self._counting = budget
        self._training: Budget | None = None
        self._whole = whole_cost(budget, schema, keys)
        if isinstance(gate, RowGate):
            gate.whole = self._whole
        self._record: list[Answer] = []
        # Reentrant, since a training learns while it is being answered.
        self._asking = threading.RLock()

    @classmethod
    def on(
        cls,
        table: Table,
        budget: Budget,
        *,
        ledger: Ledger | Path | None = None,
        purpose: str = "",
        analyst: str = "",
        randomness: Randomness | None = None,
        keys: Sequence[str] | None = None,
    ) -> Curator:
        """A curator of rows; without a ledger the budget is metered for this curator alone.

        A ledger given by its path is made only when it is first debited, so that a refused request leaves no file.
        `keys` are the columns whose private values will be asked for, which costs a part of δ; by default all that the
        schema has.
        """
        gate = RowGate(CachedTable(table), budget, ledger, purpose, analyst, randomness or ExactRandomness.system())
        return cls(table.schema, budget, gate, keys)

    @classmethod
    def replaying(
        cls,
        schema: Schema,
        budget: Budget,
        answers: Sequence[Answer],
        *,
        secure: bool = True,
        keys: Sequence[str] | None = None,
    ) -> Curator:
        """A curator that has no rows: it hands out recorded answers."""
        return cls(schema, budget, RecordGate(answers, secure), keys)

    @property
    def secure(self) -> bool:
        """Whether the noise comes from a source on which a claim may rest."""
        return self._gate.secure

    @property
    def record(self) -> tuple[Answer, ...]:
        """Every question with its noisy answer so far: all that anything downstream can know of the rows."""
        return tuple(self._record)

    @property
    def spends(self) -> tuple[Spend, ...]:
        return self._meter.spends

    @property
    def receipt(self) -> Receipt | None:
        """Which debit of which ledger paid for the answers; None where nothing was debited."""
        return self._gate.receipt if isinstance(self._gate, RowGate) else None

    @property
    def guarantee(self) -> tuple[float, float]:
        """The (ε, δ) that the spends so far amount to."""
        return self._meter.guarantee()

    def ahead(self) -> Callable[[Spend], float]:
        """From one spend on top of those so far, to the ε of a release that ended with it; for progress."""
        before = composed(s.cost for s in self.spends)
        return lambda spend: claim(before + spend.cost, self.budget.delta)

    @property
    def public_rows(self) -> bool:
        """Whether the row count is public: no neighbour changes it."""
        return self.schema.public_rows

    @property
    def replaced(self) -> bool:
        """Whether neighbours differ by one unit put in place of another, and not by one more or less."""
        return self.schema.neighbours == REPLACE_ONE

    @property
    def trained(self) -> Budget | None:
        """What was set aside for a training, if anything was."""
        return self._training

    def reserve(self, epsilon_share: float, delta_share: float) -> Budget:
        """Sets these shares of ε and δ aside for one training, before anything is asked; the rest is for counting.

        The claim is that of both together: (ε_t + ε_c, δ_t + δ_c).
        """
        check_trainable(self.budget.pure, self.schema)
        self.demand_codes()
        if self._record or self._training:
            raise MethodError("the budget must be divided once, and before anything is asked of the rows", self)
        self._counting, self._training = divided(self.budget, epsilon_share, delta_share)
        self._whole = whole_cost(self._counting, self.schema, self._keys) + trained_cost(self._training)
        if isinstance(self._gate, RowGate):
            self._gate.whole = self._whole
        return self._training

    def demand_codes(self) -> None:
        """Refuses a table that hands out counts only; a method that trains calls it before anything is spent."""
        if isinstance(self._gate, RowGate):
            self._gate.demand_codes()

    def remaining(self) -> Amount:
        """What is left of the budget, to be split by shares; never more than a ledger is debited for it."""
        left = self._meter.remaining()
        if self.budget.pure:
            return left
        room = self._whole.rho - self._meter.spent.rho
        if room <= 0:
            raise BudgetExhausted(f"nothing is left of the budget ({self.budget}); ask for a larger one", self)
        return Amount(min(left.value, room), pure=False)

    def measure(
        self, domain: Domain, sets: Sequence[ColumnSet], amount: Amount, weights: Sequence[float] | None = None
    ) -> list[Measurement]:
        """Noisy contingency tables of sets of columns, in one pass; `amount` is split by `weights`, else evenly."""
        for columns in sets:
            check_cells(columns, domain.cells(columns))
        scales = self._scales(amount, len(sets), weights)
        questions = [{"ask": "marginal", "columns": list(c), "scale": s} for c, s in zip(sets, scales, strict=True)]
        spends = [
            self._count_spend(amount, s, f"counts by {', '.join(c)}", domain.cells(c))
            for c, s in zip(sets, scales, strict=True)
        ]
        counts = self._noisy(questions, spends, lambda table: table.count_by(domain, sets))
        return [Measurement(tuple(c), n, s.mechanism, s.scale) for c, n, s in zip(sets, counts, spends, strict=True)]

    def partition(
        self, domain: Domain, partitions: Sequence[Partition], amount: Amount, weights: Sequence[float] | None = None
    ) -> list[Measurement]:
        """Noisy histograms over public partitions (a tree's leaves, a merged marginal), in one pass."""
        for part in partitions:
            check_cells(part.columns, part.cells)
        scales = self._scales(amount, len(partitions), weights)
        questions = [{"ask": "partition", **p.describe(), "scale": s} for p, s in zip(partitions, scales, strict=True)]
        spends = [
            self._count_spend(amount, s, f"counts of {p.cells} cells over {', '.join(p.columns)}", p.cells)
            for p, s in zip(partitions, scales, strict=True)
        ]
        counts = self._noisy(questions, spends, lambda table: table.count_cells(domain, partitions))
        return [
            Measurement(p.columns, n, s.mechanism, s.scale, p)
            for p, n, s in zip(partitions, counts, spends, strict=True)
        ]

    def draws(
        self, domain: Domain, partitions: Sequence[Partition], priors: Sequence[Prior], draws: int
    ) -> list[NDArray[np.int64]]:
        """For each public partition, how many of `draws` draws from the posterior of its cells fall into each cell.

        The cells are the leaves of a tree with these pseudo-counts per level. Its price is exact, and pure.
        """
        pairs = list(zip(partitions, priors, strict=True))
        for part, prior in pairs:
            check_cells(part.columns, part.cells)
            check_leaves(part.cells, prior)
        questions = [{"ask": "draws", **p.describe(), "prior": list(a), "draws": draws} for p, a in pairs]
        rows = float(self.schema.rows_per_unit)
        spends = [
            Spend("posterior-draws", f"{draws} draws over {', '.join(p.columns)}", rows, draws, cells=p.cells, prior=a)
            for p, a in pairs
        ]

        def draw(hidden: list[NDArray[np.int64]], randomness: Randomness) -> list[NDArray[Any]]:
            return [randomness.draw(n, prior, draws) for n, prior in zip(hidden, priors, strict=True)]

        return self._ask(questions, spends, lambda table: table.count_cells(domain, partitions), draw)

    def total(self, amount: Amount | None = None) -> Measurement:
        """The number of rows: noisy for an amount of budget, or exact and free where it is public (replace-one)."""
        if self.public_rows:
            spend = Spend("public", "number of rows, public under replace-one", 0.0, 0.0)
        elif amount is None:
            raise MethodError("the number of rows is private: it needs a part of the budget", self)
        else:
            spend = self._total_spend(amount)
        question = {"ask": "total", "scale": spend.scale}
        (count,) = self._noisy([question], [spend], lambda table: [np.array([table.count_rows()], dtype=np.int64)])
        return Measurement((), count, spend.mechanism, spend.scale)

    def _total_spend(self, amount: Amount) -> Spend:
        """A person moves the number of rows by their own, in either norm; one put in place of another by one at most,
        since under replace-one a person has one row that counts, or none.
        """
        moved = float(self.schema.rows_per_unit)
        scale = amount.noise_scale(moved)
        _check_scale("number of rows", scale)
        return Spend(amount.mechanism, "number of rows", moved, scale, cells=1)

    def select(
        self,
        domain: Domain,
        candidates: Sequence[Scored],
        amount: Amount,
        k: int = 1,
        rule: Admission | None = None,
    ) -> list[int]:
        """The k candidates (by index, in order) that score highest by the exponential mechanism.

        A candidate of several choices stands for as many indices, one after the other.

        One set of Gumbels gives the law of k draws without replacement (Durfee & Rogers 2019), so k draws are paid.
        `rule` is asked in that order, and passes over a candidate for good (one that closes a cycle, or is too large).
        It may depend on public facts, earlier answers and what was picked before, and what it admits must only shrink:
        then each draw is the exponential mechanism among those that are still admissible, since the race of
        exponential clocks behind the Gumbels has no memory (`privacy.admission`, which checks it).
        """
        choices = sum(c.choices for c in candidates)
        _check_candidates(domain, candidates, k, choices)
        # Every candidate's score has at most this sensitivity, whichever is drawn.
        sensitivity = max(c.sensitivity(self.schema.rows_per_unit, self.replaced) for c in candidates)
        epsilon = amount.split([1.0] * k)[0].selection_epsilon()
        ranked = choices if rule else k
        question = {"ask": "select", "candidates": [list(c.columns) for c in candidates], "k": k, "epsilon": epsilon}
        if choices > len(candidates):
            question["choices"] = [c.choices for c in candidates]
        asked = f"{k} of {choices} {'sets of columns' if choices == len(candidates) else 'splits'}"

        def exact(table: Table) -> NDArray[np.float64]:
            counts = _counts(table, domain, candidates)
            return np.concatenate([c.scores(n) for c, n in zip(candidates, counts, strict=True)])

        def admissible(order: list[int]) -> list[int]:
            return first_admissible(order, rule, k) if rule else order

        return self._choose(question, asked, exact, epsilon, sensitivity, k, choices, ranked, admissible)

    def quantile(self, domain: Domain, column: str, probability: float, amount: Amount) -> float:
        """A cut point of the column's public bins that has about this share of its (not missing) values below it."""
        coding = domain[column]
        if coding.edges is None or not 0 <= probability <= 1:
            raise MethodError(
                f"a quantile ({probability}) of {column!r} needs a column of numbers and a share from 0 to 1", column
            )
        epsilon = amount.selection_epsilon()
        question = {"ask": "quantile", "column": column, "probability": probability, "epsilon": epsilon}

        def exact(table: Table) -> NDArray[np.float64]:
            (counts,) = table.count_by(domain, [(column,)])
            return rank_scores(counts[: coding.levels], probability)

        asked = f"quantile {probability:g} of {column}"
        moved = rank_sensitivity(probability, self.schema.rows_per_unit, replaced=self.replaced)
        (cut,) = self._choose(question, asked, exact, epsilon, moved, 1, len(coding.edges), 1, list)
        return float(coding.edges[cut])

    def keys(self, column: str, amount: Amount) -> Keys:
        """The values of a private column whose noisy counts pass a threshold; seeing any costs a part of δ, too."""
        if amount.pure:
            raise no_pure_keys(column)
        if not (isinstance(self.schema[column], Categorical) and self.schema[column].private):
            raise MethodError(f"{column!r} is not a categorical column with private values; use its schema", column)
        if self._keys is not None and column not in self._keys:
            raise InternalError(f"column ({column!r}) must be one of the keys that the budget was divided for.", column)
        sigma, delta = amount.noise_scale(self._l2), key_delta(self._counting, self.schema, self._keys)
        _check_scale(f"values of {column}", sigma)
        threshold = key_threshold(sigma, delta, self.schema.rows_per_unit, worlds=2 if self.replaced else 1)
        question = {"ask": "keys", "column": column, "scale": sigma, "threshold": threshold}
        spend = Spend("thresholded-gaussian", f"values of {column} above {threshold:,}", self._l2, sigma, delta)

        def draw(hidden: tuple[list[str], NDArray[np.int64]], randomness: Randomness) -> list[NDArray[Any]]:
            values, counts = hidden
            noisy = counts + randomness.noise(spend.mechanism, sigma, len(counts))
            shown = sorted((v, int(n)) for v, n in zip(values, noisy, strict=True) if n > threshold)
            return [np.array([[v, str(n)] for v, n in shown], dtype=np.str_).reshape(len(shown), 2)]

        (pairs,) = self._ask([question], [spend], lambda table: table.count_values(column), draw)
        return Keys(tuple(map(str, pairs[:, 0])), frozen(pairs[:, 1].astype(np.int64)))

    def tally(
        self, domain: Domain, tally: Tally, amount: Amount, weights: Sequence[float] | None = None
    ) -> list[Measurement]:
        """Noisy totals of a tally's summands by group, in one pass; what no neighbour can move is exact and free."""
        cells = domain.cells(tally.by)
        check_cells(tally.by, cells)
        parts = amount.split(weights or [1.0] * len(tally.summands))
        spends = [self._tally_spend(tally, s, part, cells) for s, part in zip(tally.summands, parts, strict=True)]
        questions = [
            {"ask": "tally", **tally.describe(), **summand.describe(), "scale": spend.scale}
            for summand, spend in zip(tally.summands, spends, strict=True)
        ]
        totals = self._noisy(questions, spends, lambda table: table.count_tally(domain, tally))
        return [Measurement(tally.by, n, s.mechanism, s.scale) for n, s in zip(totals, spends, strict=True)]

    def _tally_spend(self, tally: Tally, summand: Summand, amount: Amount, cells: int) -> Spend:
        # With a unit a replacement may have no row that counts, as where it does not satisfy a condition.
        filtered = tally.where is not None or self.schema.unit is not None
        setting = Setting(self.schema.rows_per_unit, self.replaced, cells, filtered)
        sensitivity = summand.sensitivity(setting)[0 if amount.pure else 1]
        asked = " ".join(["sum of", *filter(None, [summand.describe()["add"], summand.looked_at])])
        if sensitivity == 0:
            return Spend("public", f"{asked}, public under replace-one", 0.0, 0.0)
        scale = amount.noise_scale(sensitivity)
        _check_scale(asked, scale)
        return Spend(amount.mechanism, asked, sensitivity, scale, cells=cells)

    def ranks(
        self, domain: Domain, tally: Tally, ranks: Sequence[Rank], amount: Amount, weights: Sequence[float]
    ) -> list[NDArray[np.int64]]:
        """For each wanted rank and each group, the bin of the tally's last column that holds the row of that rank.

        Bins count from 1; 0 and one past the last stand for ranks beyond the rows. Groups are disjoint: a person moves
        the scores of a group in proportion to the rows that they have there, so that by parallel composition the losses
        of all groups add up to those of one group that holds all rows (add-remove), or two with half of it each
        (replace-one).
        """
        *groups, column = tally.by
        coding = domain[column]
        moved = [self._rank_sensitivity(rank.probability, len(groups)) for rank in ranks]
        check_cells(tally.by, domain.cells(tally.by))
        epsilons = [part.selection_epsilon() for part in amount.split(weights)]
        questions = [
            {"ask": "rank", **tally.describe(), **rank.describe(), "epsilon": epsilon}
            for rank, epsilon in zip(ranks, epsilons, strict=True)
        ]
        spends = [
            Spend("exponential", f"rank {r.probability:g} of {column}", m, e, cells=coding.levels + 2)
            for r, m, e in zip(ranks, moved, epsilons, strict=True)
        ]

        def exact(table: Table) -> NDArray[np.int64]:
            (counts,) = table.count_tally(domain, tally)
            return counts.reshape(-1, coding.size)[:, : coding.levels]

        def draw(counts: NDArray[np.int64], randomness: Randomness) -> list[NDArray[Any]]:
            return [
                np.array([randomness.choose(r.scores(n), rank_exponent(e, m), 1)[0] for n in counts])
                for r, m, e in zip(ranks, moved, epsilons, strict=True)
            ]

        return self._ask(questions, spends, exact, draw)

    def train(
        self,
        domain: Domain,
        grid: Grid,
        shape: Shape,
        course: Course,
        question: dict[str, Any],
        parts: Sequence[str],
        learn: Callable[[Training], list[NDArray[Any]]],
    ) -> list[NDArray[Any]]:
        """What `learn` makes of the noisy gradients of a training: one array per named part, which are the answers.

        `learn` meets the rows, by group of the grid, through `Training.gradients` alone. The question is public, and
        whatever `learn` does with the noisy sums is post-processing; so thousands of sums need not be recorded. (A gate
        with a journal keeps each of them until the release is made: `privacy.continuation`.)
        """
        if self._training is None:
            raise MethodError("a training needs a part of the budget; reserve it before anything is asked", self)
        if course.replace_one != self.replaced or shape.sizes != grid.shape:
            raise InternalError(
                "a training must be of the schema's own neighbours, and of the grid's own groups.", grid
            )
        asked = {"ask": "train", **question, **grid.describe(), **asdict(course), **asdict(shape)}
        questions = [asked | {"sizes": list(shape.sizes), "part": part} for part in parts]
        spend = gradients_spend(course, self._training.delta, shape.cells, grid.columns)

        def exact(table: Table) -> NDArray[np.integer[Any]]:
            codes = read_codes(table, domain, grid)
            check_rows(len(codes))  # before the debit; `Training` would refuse them after it
            return codes

        def draw(codes: NDArray[np.integer[Any]], randomness: Randomness) -> list[NDArray[Any]]:
            training = self._begin(codes, shape, course, randomness)
            training.keep = self._keep
            return learn(training)

        return self._ask(questions, [spend], exact, draw)

    def consult(
        self,
        domain: Domain,
        grid: Grid,
        teachers: int,
        votes: int,
        amount: Amount,
        question: dict[str, Any],
        parts: Sequence[str],
        learn: Callable[[Teachers], list[NDArray[Any]]],
    ) -> list[NDArray[Any]]:
        """What `learn` makes of the noisy votes of teachers who share the rows, each row having one teacher."""
        check_trainable(amount.pure, self.schema)
        sensitivity = votes_sensitivity(votes)
        scale = amount.noise_scale(sensitivity)
        _check_scale(f"{votes:,} votes", scale)
        asked = {"ask": "consult", **question, **grid.describe(), "teachers": teachers, "votes": votes, "scale": scale}
        spend = votes_spend(votes, scale, teachers)

        def draw(codes: NDArray[np.integer[Any]], randomness: Randomness) -> list[NDArray[Any]]:
            gathered = self._gather(codes, Groups(grid.shape), teachers, votes, scale, randomness)
            gathered.keep = self._keep
            return learn(gathered)

        questions = [asked | {"part": part} for part in parts]
        return self._ask(questions, [spend], lambda table: read_codes(table, domain, grid), draw)

    def _gather(
        self, codes: NDArray[np.integer[Any]], groups: Groups, teachers: int, votes: int, scale: float, by: Randomness
    ) -> Teachers:
        return Teachers(codes, groups, teachers, votes, scale, by)

    def _begin(self, codes: NDArray[np.integer[Any]], shape: Shape, course: Course, randomness: Randomness) -> Training:
        return Training(codes, shape, course, randomness)

    @property
    def _keep(self) -> Keep:
        return self._gate.keep if isinstance(self._gate, RowGate) else at_once

    def _rank_sensitivity(self, probability: float, groups: int) -> float:
        rows, replaced = self.schema.rows_per_unit, self.replaced
        return rank_sensitivity(probability, rows, replaced=replaced, grouped=groups > 0)

    def rank_exponent(self, amount: Amount, groups: int, probability: float = 1.0) -> float:
        """The exponent with which `ranks` would choose for this amount: how sharp its choice is, per row.

        Without a probability it is that of an extreme, than which no rank is chosen less sharply.
        """
        return rank_exponent(amount.selection_epsilon(), self._rank_sensitivity(probability, groups))

    def _choose(
        self,
        question: dict[str, Any],
        asked: str,
        exact: Callable[[Table], NDArray[np.float64]],
        epsilon: float,
        sensitivity: float,
        k: int,
        choices: int,
        ranked: int,
        admissible: Callable[[list[int]], list[int]],
    ) -> list[int]:
        """Draws the first `ranked` in order, and hands out those of them that are admissible; only these are seen."""
        spends = [Spend("exponential", asked, sensitivity, epsilon, cells=choices) for _ in range(k)]
        exponent = math.nextafter(epsilon / (2.0 * sensitivity), 0.0)  # rounded down: the claim stays above the truth

        def draw(found: NDArray[np.float64], randomness: Randomness) -> list[NDArray[Any]]:
            return [np.array(admissible(randomness.choose(found, exponent, ranked)), dtype=np.int64)]

        (chosen,) = self._ask([question], spends, exact, draw)
        return [int(i) for i in chosen]

    def count_sensitivity(self, amount: Amount) -> float:
        """The sensitivity of any histogram in the norm of the noise that this amount buys: L1 if pure, else L2."""
        return float(self._change) if amount.pure else self._l2

    def _noisy(
        self,
        questions: Sequence[dict[str, Any]],
        spends: Sequence[Spend],
        exact: Callable[[Table], list[NDArray[np.int64]]],
    ) -> list[NDArray[np.int64]]:
        """Integer noise on integer counts, cell by cell; a public fact gets none."""

        def draw(hidden: list[NDArray[np.int64]], randomness: Randomness) -> list[NDArray[Any]]:
            return [
                n if s.mechanism == "public" else n + randomness.noise(s.mechanism, s.scale, n.size).reshape(n.shape)
                for n, s in zip(hidden, spends, strict=True)
            ]

        return self._ask(questions, spends, exact, draw)

    def _ask(
        self,
        questions: Sequence[dict[str, Any]],
        spends: Sequence[Spend],
        exact: Callable[[Table], Exact],
        draw: Callable[[Exact, Randomness], list[NDArray[Any]]],
    ) -> list[NDArray[Any]]:
        """The one way in. One question may have several spends: k draws of one selection are k spends.

        Threads are answered one after the other: between the dry run and the debit, nobody else may spend.
        """
        with self._asking:
            self._check(spends)
            values = self._gate.answer(questions, exact, draw, lambda: self._meter.debit(spends))
            answers = [frozen(np.asarray(v)) for v in values]
            self._record += [Answer(q, v) for q, v in zip(questions, answers, strict=True)]
            return answers

    def _check(self, spends: Sequence[Spend]) -> None:
        """The dry run. The ledger is debited once, for the split between ρ and δ that the schema's private columns
        call for; another split of the same (ε, δ) would be paid by nobody.
        """
        self._meter.check(spends)
        if self.budget.pure:
            return
        cost = composed((self._meter.spent, *(s.cost for s in spends)))
        if cost.rho > self._whole.rho or cost.delta > self._whole.delta:
            raise BudgetExhausted(
                f"rho ({float(cost.rho):.4g}) and delta ({float(cost.delta):.4g}) of all asks together must be at most "
                f"the {float(self._whole.rho):.4g} and {float(self._whole.delta):.4g} that the budget ({self.budget}) "
                "is debited for; ask for less",
                tuple(spends),
            )

    def _scales(self, amount: Amount, parts: int, weights: Sequence[float] | None) -> list[float]:
        sensitivity = self.count_sensitivity(amount)
        return [part.noise_scale(sensitivity) for part in amount.split(weights or [1.0] * parts)]

    def _count_spend(self, amount: Amount, scale: float, asked: str, cells: int) -> Spend:
        _check_scale(asked, scale, cells)
        return Spend(amount.mechanism, asked, self.count_sensitivity(amount), scale, cells=cells)

    @property
    def _change(self) -> int:
        """L1 sensitivity of any histogram: the rows of one person, moved in or out; both when one is replaced."""
        return self.schema.rows_per_unit * (2 if self.replaced else 1)

    @property
    def _l2(self) -> float:
        """L2 sensitivity of any histogram: all rows of a person in one cell, or in two cells when one is replaced."""
        rows = float(self.schema.rows_per_unit)
        return math.nextafter(rows * math.sqrt(2.0), math.inf) if self.replaced else rows


def key_delta(budget: Budget, schema: Schema, keys: Sequence[str] | None = None) -> float:
    """The δ that the keys of one private column may cost: half of the budget's δ, shared by all that are asked for."""
    columns = _key_columns(schema, keys)
    return budget.delta / 2 / columns if columns else 0.0


def _key_columns(schema: Schema, keys: Sequence[str] | None) -> int:
    """How many columns have keys to ask for: those that are named, or all with private values."""
    return sum(isinstance(c, Categorical) for c in schema.private) if keys is None else len(keys)


def divided(budget: Budget, epsilon_share: float, delta_share: float) -> tuple[Budget, Budget]:
    """What is left for counting, and what goes to training; both rounded down."""
    if not (0 < epsilon_share < 1 and 0 < delta_share < 1):
        raise MethodError(f"shares ({epsilon_share}, {delta_share}) of a training must be between 0 and 1", budget)
    trained = Budget(budget.epsilon * epsilon_share, budget.delta * delta_share)
    epsilon = lower_float(Fraction(budget.epsilon) - Fraction(trained.epsilon))
    delta = lower_float(Fraction(budget.delta) - round_up(trained.delta))
    return Budget(epsilon, delta), trained


def gradients_spend(course: Course, delta: float, cells: int, columns: ColumnSet) -> Spend:
    """The noisy gradients of a training, as far as the course goes."""
    return Spend(
        "sampled-gaussian",
        f"{course.steps:,} noisy gradients over {', '.join(columns)}",
        2.0 if course.replace_one else 1.0,
        course.noise,
        delta,
        cells,
        rate=course.rate,
        steps=course.steps,
    )


def votes_spend(votes: int, scale: float, teachers: int) -> Spend:
    """Noisy votes, never pure (`check_trainable`): each is a count that one row moves by one."""
    asked = f"{votes:,} votes of {teachers:,} teachers"
    return Spend("discrete-gaussian", asked, votes_sensitivity(votes), scale, cells=votes)


def trained_cost(budget: Budget) -> Cost:
    """What a ledger is debited for a training of this (ε, δ)."""
    return Cost(Fraction(0), None, round_up(budget.delta), round_up(budget.epsilon))


def whole_cost(budget: Budget, schema: Schema, keys: Sequence[str] | None = None) -> Cost:
    """What a ledger is debited for a whole (ε, δ) release: all of its ε if pure, else all of its ρ and its keys' δ.

    δ is spent for good only on the `keys` that are asked for (None: on all private values of the schema); what isn't
    spent is there for the conversion of ρ, which all releases of a ledger share.
    """
    columns = _key_columns(schema, keys)
    if budget.pure or not columns:
        value = budget.capacity.value
        return Cost(rho_from_pure(value), value, Fraction(0)) if budget.pure else Cost(value, None, Fraction(0))
    failure = round_up(Fraction(key_delta(budget, schema, keys))) * columns
    return Cost(rho_from_epsilon(budget.epsilon, lower_float(Fraction(budget.delta) - failure)), None, failure)


def no_pure_keys(column: str) -> MethodError:
    """Seeing a value at all may tell that its one holder is there: that has no pure form."""
    return MethodError(
        f"the values of {column!r} are private, and learning them needs a delta above 0; "
        "list them in the schema, or ask with a delta",
        column,
    )


def check_cells(columns: Sequence[str], cells: int) -> None:
    """Refuses a marginal that is too large; strategies call it early, so that nothing is spent before the refusal."""
    if cells > MOST_CELLS:
        raise MethodError(
            f"the marginal of {', '.join(columns)} has {cells:,} cells and may have at most {MOST_CELLS:,}; "
            "leave a column out, or give one fewer bins",
            columns,
        )


def _check_candidates(domain: Domain, candidates: Sequence[Scored], k: int, choices: int) -> None:
    if not 1 <= k <= choices:
        raise MethodError(f"k ({k}) of a selection must be from 1 to its {choices} candidates; ask for fewer", k)
    for candidate in candidates:
        grid = candidate.grid
        parts = grid.parts if is_bundle(grid) else [cast(Partition, grid)] if grid else []
        for part in parts:
            check_cells(part.columns, part.cells)
        if not parts:
            check_cells(candidate.columns, domain.cells(candidate.columns))


def _counts(table: Table, domain: Domain, candidates: Sequence[Scored]) -> Iterator[Any]:
    """The exact counts of each candidate, by group where it merges values, by cell where it has a partition."""
    merged = [cast(Partition, c.grid) for c in candidates if c.grid and not is_bundle(c.grid)]
    whole = [c.columns for c in candidates if not c.grid]
    by_group = iter(zip(merged, table.count_cells(domain, merged) if merged else (), strict=True))
    by_code = iter(table.count_by(domain, whole) if whole else ())
    for candidate in candidates:
        if is_bundle(candidate.grid):
            yield _remembering(table).count_bundle(domain, candidate.grid)
        elif candidate.grid:
            grid, counts = next(by_group)
            yield counts.reshape(shape_of(grid))
        else:
            yield next(by_code).reshape(domain.shape(candidate.columns))


def _remembering(table: Table) -> CachedTable:
    return table if isinstance(table, CachedTable) else CachedTable(table)


def _check_scale(asked: str, scale: float, cells: int = 1) -> None:
    """The samplers are exact up to a bound; beyond it they would refuse, but only after the debit.

    And noise that adds up to more than 2^43 rows would not fit into the 64 bits of a score, whose step is 2^-20 rows.
    """
    most = min(LARGEST_SCALE, MOST_SUMMED / cells)
    if scale > most:
        raise MethodError(
            f"the noise scale ({scale:.4g}) for {asked} must be at most {most:.4g}; ask with a larger epsilon", asked
        )
