"""Asks that a careless or a hostile method might make: each must be refused before anything is counted or drawn."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from understudy.boundary.privacy.asks import Consult, Marginals, Partitions, Ranks, Select, Tally, Train
from understudy.boundary.privacy.asks.checks import OUTSIDE_KINDS, is_known
from understudy.boundary.privacy.budget import Budget, Spend
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.facts import PublicFacts
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.boundary.privacy.mechanisms.score import Candidate, Departure, Rank
from understudy.boundary.privacy.mechanisms.subsampling import Course
from understudy.boundary.privacy.mechanisms.training import Deep, GradientShape, GradientSums
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.grouped_sums import GroupedSums, RowCount, SumNeighbours, ValueSum
from understudy.boundary.schema.partition import Crossed, CrossTable, Grid, Partition, Split, Tree
from understudy.boundary.tables.counting import count_partitions, group_rows
from understudy.errors import BudgetExhausted, InternalError, MethodError
from understudy.inference.polya.dyadic import Dyadic
from understudy.predictors.decision_tree import LEAF, DecisionTree, LeafClasses
from understudy.predictors.splits import ColumnSplit

SCHEMA = us.Schema.loads(
    '[columns.a]\ntype = "integer"\nmin = 0\nmax = 9\n[columns.b]\ntype = "integer"\nmin = 0\nmax = 3\n'
)
DOMAIN = Domain.of(SCHEMA)
ROWS = [(i % 5, i % 4) for i in range(20)]


def curator_of(rows: list[tuple[int, int]], budget: Budget | None = None, **more: Any) -> Curator:
    table = us.open(pa.table({"a": [a for a, _ in rows], "b": [b for _, b in rows]}), SCHEMA)
    return Curator.on(table, budget or Budget(1.0, 0.0), **more)


# --- selections


def test_an_estimate_of_another_shape_is_refused() -> None:
    """numpy would stretch the counts, and one row would move the score a hundredfold."""
    curator = curator_of(ROWS)
    with pytest.raises(InternalError, match=r"must have the shape \(10,\)"):
        curator.ask(Select(DOMAIN, [Candidate(("a",), np.zeros((100, 10)))], curator.remaining()))
    assert curator.spends == ()


def test_an_estimate_that_is_changed_after_its_check_changes_no_candidate() -> None:
    mine = np.zeros(10)
    candidate = Candidate(("a",), mine)
    before = candidate.score(np.ones(10, dtype=np.int64))
    mine[:] = np.nan
    assert candidate.score(np.ones(10, dtype=np.int64)) == before
    with pytest.raises(ValueError, match="read-only"):
        candidate.estimate[0] = 1.0


def test_a_table_of_shares_is_refused() -> None:
    """numpy would count a row once for each of its columns."""
    with pytest.raises(InternalError, match="must be a list"):
        Departure(("a",), np.full((1, 100), 0.001), Grid(("a",), (tuple(range(10)),)))


@pytest.mark.parametrize("share", [2.0**43, 2.0, float("nan"), float("inf")])
def test_shares_that_64_bits_do_not_hold_are_refused(share: float) -> None:
    """Their products wrap, so that a row moved the score by any number at a declared sensitivity of 1."""
    with pytest.raises(InternalError, match="the shares of"):
        Departure(("a",), np.array([share, share]), Grid(("a",), ((0,) * 9 + (1,),)))


# --- partitions

TREE = Tree(("b",), (4,), (Split(0, 0b10, -1, -2),))
TOO_FEW: dict[str, Partition] = {
    "a grid of too few codes": Grid(("a",), ((0, 1, 1, 0, 0),)),
    "a crossed tree of too few codes": Crossed(TREE, "a", (0, 0, 0, 0, 1)),
    "a cross table of too few values": CrossTable(Grid(("b",), ((0, 0, 0, 0),)), "a", 5, "b", 4),
    "a cross table on a base of too few codes": CrossTable(Grid(("b",), ((0, 0),)), "a", 10, "b", 4),
}
UNFIT = TOO_FEW | {
    "a grid of negative groups": Grid(("b",), ((0, 1, -1, 0),)),
    "a tree of too few codes": Tree(("a",), (5,), (Split(0, 0b10, -1, -2),)),
    "a tree with a child too many": Tree(("b",), (4,), (Split(0, 0b10, -1, 7),)),
    "a tree that goes round in circles": Tree(("b",), (4,), (Split(0, 0b10, -1, 1), Split(0, 0b100, -2, 0))),
    "a tree that reads the next row": Tree(("b",), (4,), (Split(1, 0b10, -1, -2),)),
    "a tree that sends more codes than there are": Tree(("b",), (4,), (Split(0, 0b10000, -1, -2),)),
    "a line of too few codes": Dyadic("a", 9, 1),
    "a line whose missing values are in another cell": Dyadic("a", 9, 5, apart=1),
    "leaves of another domain": DecisionTree((ColumnSplit("b", (0, 1)),), (0, LEAF, LEAF)),
    "leaves without a parent": DecisionTree((ColumnSplit("b", (0, 1, 1, 1)),), (LEAF, 0, LEAF)),
    "leaves by another number of classes": LeafClasses(DecisionTree.single_leaf(), "b", 3),
}


@pytest.mark.parametrize("partition", UNFIT.values(), ids=UNFIT.keys())
@pytest.mark.parametrize("rows", [ROWS, [*ROWS, (9, 3)]], ids=["rows inside", "a row outside"])
def test_a_partition_that_is_not_of_the_domain_is_refused_whatever_the_rows(
    partition: Partition, rows: list[tuple[int, int]]
) -> None:
    """An error, or a longer histogram, told for nothing whether some row is in none of its cells."""
    curator = curator_of(rows)
    with pytest.raises(InternalError, match="must have a cell for each of the domain's codes"):
        curator.ask(Partitions(DOMAIN, [partition], curator.remaining()))
    assert curator.spends == ()


@pytest.mark.parametrize("partition", TOO_FEW.values(), ids=TOO_FEW.keys())
def test_a_partition_of_too_few_codes_gives_every_row_a_cell(partition: Partition) -> None:
    """The second line of defence, should such a partition reach the counting."""
    for rows in (ROWS, [*ROWS, (9, 3)]):
        codes = {"a": np.array([a for a, _ in rows]), "b": np.array([b for _, b in rows])}
        (counts,) = count_partitions([partition], [codes])
        assert counts.size == partition.cells and counts.sum() == len(rows)


def test_a_foreign_partition_shows_as_many_cells_as_it_says() -> None:
    class Narrow:
        columns, cells = ("a",), 3

        def assign(self, codes: Any) -> Any:
            return codes["a"]

        def describe(self) -> dict[str, Any]:
            return {}

    counted = [count_partitions([Narrow()], [{"a": np.array(a)}])[0].tolist() for a in ([0, 1, 2], [0, 1, 9])]
    assert counted == [[1, 1, 1], [1, 1, 1]]


# --- sums and ranks


@pytest.mark.parametrize("bounds", [(5, -5), (-5.5, 5.5), (0.6, 0.6)])
def test_bounds_that_are_not_whole_or_not_in_order_are_refused(bounds: tuple[float, float]) -> None:
    """In the wrong order they had no sensitivity under replace-one, and the exact sum was free."""
    with pytest.raises(InternalError, match="must have whole bounds"):
        ValueSum("b", 0.0, 1.0, *bounds)  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_sum_needs_a_finite_centre_and_step(number: float) -> None:
    for centre, steps in ((number, 1.0), (0.0, number)):
        with pytest.raises(InternalError, match="the sum of 'b'"):
            ValueSum("b", centre, steps, 0, 3)


def test_a_summand_with_a_sensitivity_of_its_own_is_refused() -> None:
    class Light(RowCount):
        def sensitivity(self, neighbours: SumNeighbours) -> tuple[float, float]:
            return 0.0, 0.0

    curator = curator_of(ROWS)
    with pytest.raises(InternalError, match="a Light is of no kind that the boundary knows"):
        curator.ask(Tally(DOMAIN, GroupedSums((), None, (Light(),)), curator.remaining()))


def test_ranks_are_of_rows_alone() -> None:
    """A row moves a sum of values by as much as its value: a hundredfold of what a rank is paid for."""
    curator = curator_of(ROWS)
    sums = GroupedSums(("a",), None, (ValueSum("b", 0.0, 1.0, 0, 100),))
    with pytest.raises(InternalError, match="a rank of 'a' must be one of rows"):
        curator.ask(Ranks(DOMAIN, sums, [Rank(0.5)], curator.remaining(), [1.0]))


@pytest.mark.parametrize(
    ("probability", "moved"), [(0.5, -(2**43)), (0.5, 2**50), (-0.5, 0), (1.5, 0), (float("nan"), 0), (0.5, 2.5)]
)
def test_a_rank_without_exact_scores_is_refused(probability: float, moved: int) -> None:
    with pytest.raises(MethodError, match="a rank must be a share from 0 to 1, moved by at most"):
        Rank(probability, moved)


# --- the curator


class Free(Marginals):
    def spends(self, facts: PublicFacts) -> list[Spend]:
        return [Spend("public", "counts", 0.0, 0.0) for _ in self.sets]


def test_a_subclass_of_an_ask_names_no_price_of_its_own() -> None:
    curator = curator_of(ROWS)
    with pytest.raises(InternalError, match="a Free must be one of the asks of the boundary"):
        curator.ask(Free(DOMAIN, [("a",)], curator.remaining()))
    assert curator.record == ()


def training(course: Course, learn: Any) -> Train:
    grid = Grid(("a", "b"), (tuple(range(10)), tuple(range(4))))
    return Train(DOMAIN, grid, GradientShape((10, 4)), course, {}, ["pairs"], learn)


def test_a_training_costs_no_more_than_the_ledger_is_debited_for_it(tmp_path: Path) -> None:
    """Its ε is added up as it is, and that of counts by ρ: room of the one is no room of the other."""
    pytest.importorskip("dp_accounting")
    pytest.importorskip("torch")
    ledger = tmp_path / "ledger"
    curator = curator_of(ROWS, Budget(1.0, 1e-6), ledger=ledger)
    curator.reserve(0.01, 0.5)
    with pytest.raises(BudgetExhausted, match=r"\(0, 5e-07 and 0.9144\) of all asks .* 5e-07 and 0.01 that"):
        curator.ask(training(Course(0.1, 2.6, 20), lambda t: [t.gradients().pairs]))
    assert not ledger.exists()


def test_nothing_is_asked_while_an_ask_is_answered() -> None:
    """A replay does not train: it would never ask what a learner asks, and could not be compared."""
    pytest.importorskip("dp_accounting")
    pytest.importorskip("torch")
    curator = curator_of(ROWS, Budget(2.0, 1e-6))
    curator.reserve(0.6, 0.5)

    def learn(access: Any) -> list[Any]:
        return [m.counts for m in curator.ask(Marginals(DOMAIN, [("a",)], curator.remaining()))]

    with pytest.raises(InternalError, match="nothing can be asked while another ask is being answered"):
        curator.ask(training(Course(0.1, 2.6, 20), learn))


# --- code of other packages


class TellingCandidate(Candidate):
    def score(self, counts: Any) -> float:
        raise AssertionError(f"saw {counts}")


class TellingGrid(Grid):
    def assign(self, codes: Any) -> Any:
        raise AssertionError(f"saw {codes}")


def test_a_candidate_a_partition_or_a_rank_of_another_kind_sees_no_counts() -> None:
    class TellingRank(Rank):
        def scores(self, counts: Any) -> Any:
            raise AssertionError(f"saw {counts}")

    curator = curator_of(ROWS)
    grid, counted = TellingGrid(("b",), ((0, 0, 1, 1),)), GroupedSums(("a",), None, (RowCount(),))
    asks = [
        Select(DOMAIN, [TellingCandidate(("a",), np.zeros(10))], curator.remaining()),
        Select(DOMAIN, [Candidate(("b",), np.zeros(2), grid=grid)], curator.remaining()),
        Partitions(DOMAIN, [grid], curator.remaining()),
        Partitions(DOMAIN, [CrossTable(grid, "a", 10, "b", 4)], curator.remaining()),
        Ranks(DOMAIN, counted, [TellingRank(0.5)], curator.remaining(), [1.0]),
    ]
    for ask in asks:
        with pytest.raises(InternalError, match=r"Telling.* is of no kind that the boundary knows"):
            curator.ask(ask)
    assert curator.spends == ()


def test_every_kind_outside_the_boundary_is_where_the_list_says() -> None:
    for name in OUTSIDE_KINDS:
        module, _, kind = name.rpartition(".")
        found = getattr(importlib.import_module(module), kind)
        assert is_known(found) and not is_known(type(kind, (found,), {}))


def test_a_rule_of_another_package_is_asked_about_all_candidates_by_index() -> None:
    """Else it could remember, for nothing, which of them came first in the order that is private."""
    asked: list[int] = []

    class Curious:
        def admits(self, candidate: int) -> bool:
            asked.append(candidate)
            return True

        def after(self, picked: int) -> Curious:
            return self

    candidates = [Candidate(("a",), np.full(10, float(i))) for i in range(5)]
    curator = curator_of(ROWS)
    assert len(curator.ask(Select(DOMAIN, candidates, curator.remaining(), 2, Curious()))) == 2
    assert asked == [*range(5)] * 3


def test_what_an_ask_holds_can_not_be_changed_after_its_check() -> None:
    sets, weights, question = [("a",)], [1.0], {"of": [1]}
    ask = Marginals(DOMAIN, sets, curator_of(ROWS).remaining(), weights)
    sets.append(("b",))
    weights[0] = 5.0
    assert ask.sets == (("a",),) and ask.weights == (1.0,)
    grid = Grid(("a", "b"), (tuple(range(10)), tuple(range(4))))
    train = Train(DOMAIN, grid, GradientShape((10, 4)), Course(0.1, 2.6, 20), question, ["pairs"], lambda t: [])
    question["of"].append(2)
    assert train.question == {"of": [1]}


# --- learners


def test_a_critic_of_another_kind_or_shape_sees_no_row() -> None:
    class TellingCritic(Deep):
        def clipped_sum(self, rows: Any, longest: float) -> Any:
            raise AssertionError(f"saw {rows}")

    shape = GradientShape((10, 4), hidden=2, deep_share=0.5)
    codes = np.zeros((50, 2), dtype=np.int64)
    sums = GradientSums(codes, shape, Course(0.5, 2.6, 20), ExactRandomness.seeded(0))
    good = Deep(np.ones((14, 2)), np.ones(2), np.ones(2))
    assert sums.sums(codes, good).size == shape.cells
    with pytest.raises(ValueError, match="read-only"):
        good.first[0, 0] = np.nan
    others = [TellingCritic(np.ones((14, 2)), np.ones(2), np.ones(2))]
    others += [Deep(np.ones((14, 0)), np.ones(0), np.ones(1)), Deep(np.ones((14, 2)), np.ones((50, 1)), np.ones(2))]
    for critic in others:
        with pytest.raises(InternalError, match="a critic must be a Deep of the shape"):
            sums.sums(codes, critic)


@pytest.mark.parametrize("kind", [Train, Consult])
def test_rows_outside_of_a_grid_do_not_show_in_a_training(kind: Any) -> None:
    curator = curator_of(ROWS, Budget(1.0, 1e-6))
    grid = Grid(("a", "b"), ((0, 1, 1, 0, 0), tuple(range(4))))
    ask: Any
    if kind is Train:
        curator.reserve(0.6, 0.5)
        ask = Train(DOMAIN, grid, GradientShape((2, 4)), Course(0.1, 2.6, 20), {}, ["pairs"], lambda t: [])
    else:
        ask = Consult(DOMAIN, grid, 2, 5, curator.remaining(), {}, ["votes"], lambda t: [])
    with pytest.raises(InternalError, match="must have a cell for each of the domain's codes"):
        curator.ask(ask)
    outside = group_rows(grid, [{"a": np.array([0, 9]), "b": np.array([0, 3])}])
    assert outside.tolist() == [[0, 0], [0, 3]]


def test_a_learner_may_have_more_cells_than_could_be_counted() -> None:
    """It meets each column's groups by themselves: a table of twenty columns has no marginal of all of them."""
    known = us.Schema.loads("".join(f'[columns.c{i}]\ntype = "integer"\nmin = 0\nmax = 9\n' for i in range(20)))
    wide = Domain.of(known)
    grid = Grid(wide.names, (tuple(range(10)),) * 20)
    curator = Curator.on(us.open(pa.table({c: [1, 2] for c in wide.names}), known), Budget(1.0, 1e-6))
    curator.reserve(0.6, 0.5)
    train = Train(wide, grid, GradientShape(grid.shape), Course(0.1, 2.6, 20), {}, ["pairs"], lambda t: [])
    assert len(curator.price(train).spends) == 1
    consult = Consult(wide, grid, 2, 5, curator.remaining(), {}, ["votes"], lambda t: [])
    assert len(curator.price(consult).spends) == 1
    with pytest.raises(MethodError, match="cells and may have at most"):
        curator.price(Partitions(wide, [grid], curator.remaining()))
