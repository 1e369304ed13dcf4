"""The exact law of every rule of admission in the package, on small cases.

A selection draws one order of all candidates and takes the first k that its rule admits. Here every order is walked,
each with its exact probability (that of the order of noisy scores: Plackett & Luce), through the function that a
curator uses. The law that comes out must be that of k exponential mechanisms in turn, each among what is then
admissible; and between neighbouring scores it must tell no more than the k choices that were paid for. No random number
is drawn.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import understudy
from helpers.selection_law import candidates_of, law_of, schema_of, table_of
from understudy.boundary.privacy.asks import Select
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.mechanisms.exponential import Admission, AskedInOrder, OneOfEach, first_admissible
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.partition import Tree
from understudy.errors import InternalError
from understudy.inference.graphical.graphical_model import JunctionTree
from understudy.methods.dp_arf.dp_arf import TreesAndGrids
from understudy.methods.dp_arf.proxy_trees import CandidateTree, ProxyTree, PrunedTree
from understudy.methods.parts.select_measure import Acyclic, ModelSizeLimit
from understudy.methods.privsyn import BeforeNothing
from understudy.methods.rake.rake import Option, SmallOverlap

Outcome = tuple[int, ...]
Floats = NDArray[np.float64]

PAIRS = list(itertools.combinations("abcd", 2))
SIZES = dict.fromkeys("abcdef", 100) | {"z": 2}
HELD = (*((c,) for c in SIZES), ("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"))
"""A chain of five columns has been measured; `f` and `z` stand alone."""
SETS = [("a", "e", "z"), ("a", "c"), ("a", "d"), ("b", "e"), ("c", "e"), ("a", "f"), ("b", "f")]
"""The first joins a part, so that it is taken whatever its size; the four chords are too large until it is picked."""
ORDERS = (1.01, 2.0, 8.0, 64.0)
ROUNDING = 1e-9
"""For laws that are computed in floats."""


def room() -> ModelSizeLimit:
    tree = JunctionTree.over(HELD, SIZES)
    return ModelSizeLimit(SETS, SIZES, HELD, tree, max(66_000, tree.cells(SIZES)))


def round_of_trees_and_grids() -> TreesAndGrids:
    """Two trees that are offered with more and with fewer leaves, and grids beside them."""
    planted = [CandidateTree(ProxyTree.__new__(ProxyTree)) for _ in range(2)]
    cuts = [PrunedTree(p, Tree.__new__(Tree), np.zeros(1, dtype=np.intp)) for p in planted for _ in range(2)]
    return TreesAndGrids.of([*cuts, Option(("a", "b"), 0), Option(("a", "b"), 1), Option(("b", "c"), 0)])


@dataclass(frozen=True)
class Case:
    rule: Callable[[], Admission]
    candidates: int
    k: int


CASES = {
    "Acyclic": Case(lambda: Acyclic(PAIRS), 6, 3),
    "Acyclic, a pair at two levels": Case(lambda: Acyclic([*PAIRS[:4], *PAIRS[:3]]), 7, 3),
    "SmallOverlap": Case(lambda: SmallOverlap([*PAIRS, ("a", "b", "c")]), 7, 3),
    "SmallOverlap, after the first part of a round": Case(lambda: SmallOverlap(PAIRS, (frozenset("abc"),)), 6, 2),
    "OneOfEach": Case(lambda: OneOfEach([0, 0, 0, 1, 1, 2, 2]), 7, 3),
    "TreesAndGrids": Case(round_of_trees_and_grids, 7, 4),
    "BeforeNothing": Case(lambda: BeforeNothing(5), 6, 3),
    "AskedInOrder": Case(lambda: AskedInOrder(Acyclic(PAIRS), 6), 6, 3),
    "ModelSizeLimit": Case(room, 7, 2),
    "ModelSizeLimit, three picks": Case(room, 7, 3),
}


def test_every_rule_of_the_package_is_among_the_cases():
    """A class that has `admits` and `after` is a rule, wherever it stands; that of a mutant is wrong on purpose."""
    root = Path(understudy.__file__).parent
    found = {
        node.name
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        and {"admits", "after"} <= {f.name for f in node.body if isinstance(f, ast.FunctionDef)}
    }
    assert found - {"Admission", "Hesitant"} == {name.partition(",")[0] for name in CASES}


# --- The law ----------------------------------------------------------------------------------------------------------


Walk = Callable[[Sequence[int], Admission, int], list[int]]


def unchecked(order: Sequence[int], rule: Admission, k: int) -> list[int]:
    """The first k that the rule admits in turn, whatever it refused before."""
    picked: list[int] = []
    for candidate in order:
        if len(picked) < k and rule.admits(candidate):
            picked.append(candidate)
            rule = rule.after(candidate)
    return picked


@dataclass(frozen=True)
class Remembered:
    """A rule that finds the state after the same picks once, for it is walked thousands of times."""

    rule: Admission
    known: dict[int, Remembered] = field(default_factory=dict)

    def admits(self, candidate: int) -> bool:
        return self.rule.admits(candidate)

    def after(self, picked: int) -> Remembered:
        if picked not in self.known:
            self.known[picked] = Remembered(self.rule.after(picked))
        return self.known[picked]


@dataclass(frozen=True)
class Walked:
    """Every order of the candidates, and which outcome it leads to."""

    orders: NDArray[np.intp]
    outcomes: list[Outcome]
    leads_to: NDArray[np.intp]

    @classmethod
    def of(cls, rule: Admission, candidates: int, k: int, walk: Walk) -> Walked:
        orders, remembered = list(itertools.permutations(range(candidates))), Remembered(rule)
        picked = [tuple(walk(order, remembered, k)) for order in orders]
        outcomes = sorted(set(picked))
        place = {outcome: i for i, outcome in enumerate(outcomes)}
        return cls(np.array(orders), outcomes, np.array([place[p] for p in picked]))

    def law(self, logits: Floats) -> Floats:
        """The probability of each outcome, where the noisy scores are these plus standard Gumbels."""
        weights = np.exp(logits - logits.max())[self.orders]
        left = np.cumsum(weights[:, ::-1], axis=1)[:, ::-1]
        return np.bincount(self.leads_to, np.prod(weights / left, axis=1))


@cache
def walked(name: str, walk: Walk = first_admissible) -> Walked:
    case = CASES[name]
    return Walked.of(case.rule(), case.candidates, case.k, walk)


LOGITS = {
    "even": np.zeros(7),
    "steep": np.array([0.0, -1.5, 2.0, -4.0, 3.0, 1.0, -0.5]),
    "the first ahead, the last far behind": np.array([0.0, -3.0, -3.0, -3.0, -3.0, -25.0, -25.0]),
}


@pytest.mark.parametrize("logits", LOGITS)
@pytest.mark.parametrize("name", CASES)
def test_the_law_is_that_of_exponential_mechanisms_among_the_admissible(name: str, logits: str):
    case, scores = CASES[name], LOGITS[logits][: CASES[name].candidates]
    expected = law_of(scores, 1.0, case.k, case.rule())
    found = walked(name)
    assert set(found.outcomes) == set(expected) and math.isclose(sum(expected.values()), 1.0)
    law = found.law(scores)
    assert np.allclose(law, [expected[o] for o in found.outcomes], rtol=1e-9, atol=0.0)


def largest_shares(found: Walked, candidates: int, k: int, epsilon: float) -> tuple[float, float]:
    """The most that neighbouring scores tell, as shares of the k·ε and of the k·ε²/8·α that are paid.

    Each score moves by Δ at most, so that each logit moves by ε/2; all patterns of signs are tried.
    """
    pure = renyi = 0.0
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=candidates)))
    for scores in LOGITS.values():
        laws = [found.law(scores[:candidates] + epsilon / 4 * d) for d in signs]
        for p, q in zip(laws, laws[::-1], strict=True):  # opposite signs
            ratio = np.log(p) - np.log(q)
            pure = max(pure, float(ratio.max()) / (k * epsilon))
            for order in ORDERS:
                top = ratio.max() * (order - 1)
                moment = math.log(float(p @ np.exp((order - 1) * ratio - top))) + top
                renyi = max(renyi, moment / (order - 1) / (order * k * epsilon**2 / 8))
    return pure, renyi


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("name", CASES)
def test_neighbouring_scores_are_told_apart_by_no_more_than_is_paid(name: str, epsilon: float):
    case = CASES[name]
    pure, renyi = largest_shares(walked(name), case.candidates, case.k, epsilon)
    assert 0.2 < pure <= 1 + ROUNDING and 0.2 < renyi <= 1 + ROUNDING


# --- What is refused --------------------------------------------------------------------------------------------------


class Reopening(ModelSizeLimit):
    """Mutant: whatever fits in now is admitted, though it may have been passed over before."""

    def _admits(self, candidate: int) -> bool:
        return self._fits(candidate)

    def after(self, picked: int) -> Reopening:
        return Reopening(**{n: getattr(r, n) for r in [super().after(picked)] for n in r.__dataclass_fields__})


def reopening() -> Reopening:
    return Reopening(SETS, SIZES, HELD, room().tree, room().allowed)


def test_a_room_admits_what_fitted_in_before_every_pick():
    """The chords fit in once the model was made larger, and are still refused; as is nothing that fitted before."""
    start, mutant = room(), reopening()
    fits = [True, False, False, False, False, True, True]
    assert [start.admits(i) for i in range(7)] == fits
    assert [start.after(0).admits(i) for i in range(1, 7)] == fits[1:]
    assert [mutant.after(0).admits(i) for i in range(1, 7)] == [True] * 6


def test_a_room_that_was_enlarged_still_takes_what_adds_nothing():
    """A pick that joined parts may exceed the allowance; sets that lie within it then are free, and fitted before."""
    sets = [("a", "e", "z"), ("a", "z")]
    start = replace(room(), candidates=sets)
    assert start.after(0).allowed > start.allowed and start.after(0).admits(1)


def test_verdicts_of_a_room_do_not_depend_on_what_was_asked():
    asked, silent = room(), room()
    assert [asked.admits(i) for i in range(7)] and asked.after(0).admits(5)
    assert [asked.after(0).admits(i) for i in range(7)] == [silent.after(0).admits(i) for i in range(7)]


def test_mutant_a_room_that_reopens_has_another_law():
    scores = LOGITS["the first ahead, the last far behind"]
    found = Walked.of(reopening(), 7, 2, unchecked)
    expected = law_of(scores, 1.0, 2, reopening())
    law = dict(zip(found.outcomes, found.law(scores), strict=True))
    assert law[0, 5] > 1e5 * expected[0, 5]


def test_mutant_a_room_that_reopens_tells_more_than_is_paid():
    found = Walked.of(reopening(), 7, 2, unchecked)
    pure, renyi = largest_shares(found, 7, 2, 1.0)
    assert pure > 2.0 and renyi > 1.4


@pytest.mark.parametrize("order", [(1, 0, 2), (0, 1, 2)], ids=["passed over", "not yet met"])
def test_a_rule_that_reopens_is_a_bug_that_is_found(order: Outcome):
    """A chord that was passed over would be admitted after the first pick; or is, though it was refused before."""
    with pytest.raises(InternalError, match="must only shrink"):
        first_admissible(order, reopening(), 2)


@pytest.mark.parametrize("name", CASES)
def test_checking_changes_no_outcome(name: str):
    assert walked(name).outcomes == walked(name, unchecked).outcomes
    assert np.array_equal(walked(name).leads_to, walked(name, unchecked).leads_to)


@dataclass(frozen=True)
class Late:
    """Mutant: the first candidate is refused until another was picked."""

    picks: int = 0

    def admits(self, candidate: int) -> bool:
        return candidate != 0 or self.picks > 0

    def after(self, picked: int) -> Late:
        return Late(self.picks + 1)


def test_a_curator_hands_out_nothing_by_a_rule_that_reopens():
    """Wherever the first candidate stands in the order, it is refused and then admitted. The draw stays paid."""
    schema = schema_of(3)
    curator = Curator.on(table_of([(0, 0, 0), (0, 1, 1)], schema), Budget(1.0, 1e-6))
    with pytest.raises(InternalError, match="Late"):
        curator.ask(Select(Domain.of(schema), candidates_of(schema, 2.0), curator.remaining(), k=3, rule=Late()))
    assert not curator.record and len(curator.spends) == 3
