"""The parts of a limit: a ceiling for each sum, fixed before the first answer, and what one for all would give."""

from __future__ import annotations

import hashlib
import math
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr, ndtr

from helpers.old_ledgers import before_divisions
from understudy.boundary.privacy.accountant import QUANTUM, round_down, round_up
from understudy.boundary.privacy.budget import GDP, ZCDP, Budget, Cost, claim, covers
from understudy.boundary.privacy.facts import PrivacyUnit, PublicFacts
from understudy.boundary.privacy.ledger import allowance, entries
from understudy.boundary.privacy.ledger.division import Division, rest_of
from understudy.boundary.privacy.ledger.ledger import Ledger
from understudy.boundary.schema.schema import Schema
from understudy.errors import BudgetExhausted, InputError

ROW, LIMIT, ONE = PrivacyUnit(), Budget(3.0, 1e-6), Budget(1.0, 1e-6)
PLAIN = '[columns.x]\ntype = "boolean"\n'
PRIVATE = '[columns.k]\ntype = "categorical"\nvalues = "private"\n' + PLAIN
THREE = "".join(f'[columns.k{i}]\ntype = "categorical"\nvalues = "private"\n' for i in range(3)) + PLAIN
HALF = round_down(Fraction(1e-6) / 2)


def whole(budget: Budget, schema: str = PLAIN, training: tuple[float, float] | None = None) -> Cost:
    """What a release is debited for: by its budget, its schema, and the shares of ε and δ that a training takes."""
    facts = PublicFacts(Schema.loads(schema), budget)
    return facts.whole if training is None else facts.divided(*training).whole


NETWORK = (0.85, 0.9)
KINDS = {
    "counts": (PLAIN, None),
    "private values": (PRIVATE, None),
    "three private columns": (THREE, None),
    "a training": (PLAIN, NETWORK),
    "a training on private values": (PRIVATE, (0.5, 0.5)),
}


def limited(limit: Budget = LIMIT, **parts: float) -> Ledger:
    ledger = Ledger.memory()
    ledger.set_limit(limit, "add-remove", **parts)
    return ledger


def debit(ledger: Ledger, cost: Cost, asked: Budget = ONE) -> int:
    return ledger.debit(cost, asked, "add-remove", "synth", "ada", unit=ROW)


def division_of(ledger: Ledger) -> Division:
    division = ledger.limits()[-1].division
    assert division is not None
    return division


def gaussian(gdp: Fraction | float, delta: Fraction | float = 0, direct: Fraction | float = 0) -> Cost:
    return Cost(round_up(gdp), None, round_up(delta), round_up(direct), gdp=round_up(gdp))


# --- who settles it, and when


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limit", [Budget(1.0, 1e-6), Budget(0.1, 1e-9), Budget(7.3, 3e-5)])
def test_a_first_release_may_take_all_of_a_limit(kind: str, limit: Budget):
    ledger, cost = limited(limit), whole(limit, *KINDS[kind])
    debit(ledger, cost, limit)
    division = division_of(ledger)
    assert (division.failure_delta, division.training_epsilon) == (
        max(cost.delta, Fraction(limit.delta) / 2) if cost.delta else 0,
        cost.direct,
    )
    assert limit.epsilon * 0.97 < ledger.standing().epsilon <= limit.epsilon
    assert ledger.standing().left == pytest.approx(0.0, abs=1e-3 * limit.epsilon)


def test_the_first_release_settles_it():
    for kind, expected in {
        "counts": (HALF, 0),
        "private values": (HALF, 0),
        "a training": (whole(ONE, PLAIN, NETWORK).delta, Fraction(3, 2)),
    }.items():
        ledger = limited()
        assert ledger.limits()[0].division is ledger.standing().division is None
        debit(ledger, whole(ONE, *KINDS[kind]))
        assert division_of(ledger) == Division(*expected)
        with suppress(BudgetExhausted):
            debit(ledger, whole(ONE, *KINDS["a training on private values"]))
        assert division_of(ledger) == ledger.standing().division == Division(*expected)


def test_it_can_be_stated_beforehand():
    ledger = limited(failure_delta=9e-7, training_epsilon=1.5)
    before = division_of(ledger)
    debit(ledger, whole(ONE))
    debit(ledger, whole(ONE, PLAIN, NETWORK))
    assert division_of(ledger) == before
    (row, *_) = ledger.export()
    assert (row["failure_delta"], row["training_epsilon"]) == (9e-7, 1.5)


def test_a_part_that_is_not_stated_is_half_of_delta_or_no_epsilon():
    assert division_of(limited(training_epsilon=2.0)).failure_delta == pytest.approx(5e-7, rel=1e-14)
    assert division_of(limited(failure_delta=1e-7)).training_epsilon == 0


@pytest.mark.parametrize("columns", [1, 3, 7])
def test_stated_parts_are_read_as_they_were_typed(columns: int):
    """A seventh of δ, seven times, may be above δ by the last bit of a float."""
    schema = "".join(f'[columns.k{i}]\ntype = "categorical"\nvalues = "private"\n' for i in range(columns))
    ledger = limited(failure_delta=5e-7, training_epsilon=0.3)
    debit(ledger, whole(ONE, schema))
    ledger = limited(failure_delta=5e-7, training_epsilon=0.3)
    for _ in range(3):
        debit(ledger, gaussian(1e-9, 1e-9, Fraction(0.1)))
    assert covers(LIMIT, ledger.spent())


@pytest.mark.parametrize(
    ("limit", "parts", "said"),
    [
        (LIMIT, {"failure_delta": 1e-6}, r"failure delta \(1e-06\) must be a number from 0 up to, .* 1e-06"),
        (LIMIT, {"failure_delta": -1e-9}, r"failure delta \(-1e-09\) must be"),
        (LIMIT, {"training_epsilon": 3.0}, r"training epsilon \(3.0\) must be a number from 0 up to, .* 3"),
        (LIMIT, {"training_epsilon": math.nan}, r"training epsilon \(nan\) must be"),
        (LIMIT, {"training_epsilon": True}, r"training epsilon \(True\) must be"),
        (Budget(1.0, 0.0), {"failure_delta": 0.0}, "must be left out, since the limit .* is pure"),
    ],
)
def test_parts_that_are_none(limit: Budget, parts: dict[str, float], said: str):
    ledger = Ledger.memory()
    with pytest.raises(InputError, match=said):
        ledger.set_limit(limit, "add-remove", **parts)
    assert ledger.limits() == []


def test_a_pure_limit_has_none():
    ledger = limited(Budget(1.0, 0.0))
    debit(ledger, Cost(Fraction(1, 8), Fraction(1, 2), Fraction(0), gdp=Fraction(1, 4)), Budget(0.5, 0.0))
    assert ledger.limits()[0].division is ledger.standing().division is None


# --- what it refuses


def test_no_part_lends_to_another():
    ledger = limited(failure_delta=5e-7, training_epsilon=1.0)
    ceiling = division_of(ledger).counts(LIMIT)
    for cost in (gaussian(ceiling + QUANTUM), gaussian(0, 5.001e-7), gaussian(0, 0, 1.0001)):
        assert covers(LIMIT, cost)
        with pytest.raises(BudgetExhausted):
            debit(ledger, cost)
    debit(ledger, gaussian(ceiling, 5e-7, 1.0))
    assert ledger.standing().left == 0.0


def said_of(ledger: Ledger, cost: Cost, asked: Budget = ONE) -> str:
    with pytest.raises(BudgetExhausted) as refusal:
        debit(ledger, cost, asked)
    assert refusal.value.exit_code == 3
    return str(refusal.value)


def test_a_refusal_says_which_part_ran_out_and_what_to_do():
    ledger = limited()
    debit(ledger, whole(ONE))
    assert said_of(ledger, whole(ONE, PLAIN, NETWORK)) == (
        "training epsilon (0.85) must be 0, since the limit (epsilon 3 at delta 1e-06) in ledger in memory keeps no "
        "epsilon for trainings; choose a method without one, or divide the limit anew with `understudy budget set` and "
        "--failure-delta 9e-07 --training-epsilon 0.85."
    )
    ledger = limited(failure_delta=9.5e-7, training_epsilon=1.0)
    debit(ledger, whole(Budget(1.0, 1e-7), PLAIN, NETWORK))
    assert said_of(ledger, whole(Budget(1.0, 1e-7), PLAIN, NETWORK)) == (
        "training epsilon (0.85) must be at most the 0.15 left of the 1 that the limit (epsilon 3 at delta 1e-06) in "
        "ledger in memory keeps for trainings; ask for less, or divide the limit anew with `understudy budget set` and "
        "--failure-delta 1.8e-07 --training-epsilon 1.7."
    )
    ledger = limited(failure_delta=1e-7)
    assert said_of(ledger, whole(ONE, PRIVATE)) == (
        "delta (1e-06) is too large: what it pays for private values or a training (5e-07) must be at most the 1e-07 "
        "left of the delta 1e-07 that the limit (epsilon 3 at delta 1e-06) in ledger in memory keeps for these; ask "
        "with a smaller delta, or divide the limit anew with `understudy budget set` and --failure-delta 5e-07."
    )
    ledger = limited()
    debit(ledger, whole(ONE))
    assert said_of(ledger, whole(Budget(2.7, 1e-6)), Budget(2.7, 1e-6)).endswith(
        "left of the limit (epsilon 3 at delta 1e-06) in ledger in memory; ask for less, or divide the limit anew with "
        "`understudy budget set` and --failure-delta 0."
    )
    assert said_of(ledger, whole(Budget(3.0, 1e-6)), Budget(3.0, 1e-6)).endswith("ask for less, or raise the limit.")


def test_counts_beside_a_training_are_told_as_such():
    ledger = limited(failure_delta=9e-7, training_epsilon=1.0)
    debit(ledger, gaussian(division_of(ledger).counts(LIMIT)))
    said = said_of(ledger, whole(ONE, PLAIN, NETWORK))
    assert said.startswith("g (") and "beside a training must be at most the 0 left for counts of the limit" in said
    assert said.endswith("`understudy budget set` and --failure-delta 9e-07 --training-epsilon 0.85.")
    said = said_of(ledger, whole(Budget(1.17, 1e-6), PLAIN, NETWORK))
    assert said.endswith(
        "or raise the limit with `understudy budget set` and --failure-delta 9e-07 --training-epsilon 0.9945."
    )


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_refusal_proposes_is_enough(kind: str):
    ledger = limited(failure_delta=0.0)
    debit(ledger, whole(ONE))
    asked = Budget(2.0, 9e-7)
    if kind == "counts":
        ledger.set_limit(LIMIT, "add-remove", failure_delta=9e-7, training_epsilon=1.5)
    said = said_of(ledger, whole(asked, *KINDS[kind]), asked)
    before = len(ledger.entries())
    ledger.set_limit(LIMIT, "add-remove", **proposed(said))
    debit(ledger, whole(asked, *KINDS[kind]), asked)
    assert len(ledger.entries()) == before + 1


def proposed(said: str) -> dict[str, float]:
    """The parts that a refusal names."""
    words = said.removesuffix(".").partition("`understudy budget set` and ")[2].split()
    return {name.removeprefix("--").replace("-", "_"): float(value) for name, value in pairwise(words) if "--" in name}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("failed", [0.0, 6e-7, 9.9e-7])
def test_so_is_a_larger_limit_that_it_proposes(kind: str, failed: float):
    """Where counts have taken all, no other division helps. The parts that are not named are then half of δ and no ε,
    and trainings and private values may need more.
    """
    ledger = limited(failure_delta=failed)
    debit(ledger, gaussian(division_of(ledger).counts(LIMIT), failed))
    said = said_of(ledger, cost := whole(ONE, *KINDS[kind]))
    delta = LIMIT.delta
    if failed + cost.delta >= delta:
        assert "raise the limit, its delta above" in said
        delta = 1.001 * float(said.partition("its delta above ")[2].partition(",")[0])
    assert "or raise the limit" in said
    ledger.set_limit(Budget(30.0, delta), "add-remove", **proposed(said))
    debit(ledger, cost)


def test_what_is_left_of_a_part_that_is_used_up_is_nothing():
    """A part is read as it was typed, with a tolerance that no sentence should offer."""
    ledger = limited(failure_delta=9e-7, training_epsilon=0.85)
    debit(ledger, cost := whole(ONE, PLAIN, NETWORK))
    division, spent = division_of(ledger), ledger.spent()
    assert division.training_epsilon > spent.direct
    assert rest_of(division.training_epsilon, spent.direct) == rest_of(division.failure_delta, spent.delta) == 0
    assert "must be at most the 0 left of the 0.85 that" in said_of(ledger, cost)
    assert "must be at most the 0 left of the delta 9e-07 that" in said_of(ledger, whole(ONE, PRIVATE))


def test_what_costs_nothing_has_room_and_settles_nothing():
    ledger = limited()
    debit(ledger, Cost.zero())
    assert ledger.limits()[0].division is None
    debit(ledger, whole(ONE, PLAIN, NETWORK))
    assert division_of(ledger).training_epsilon == Fraction(3, 2)


def test_a_first_release_above_the_limit_is_told_as_before():
    larger = Budget(4.0, 1e-6)
    assert said_of(limited(), whole(larger), larger).endswith(
        "must be at most the epsilon 2.999 at delta 1e-06 left of the limit (epsilon 3 at delta 1e-06) in ledger in "
        "memory; ask for less, or raise the limit."
    )
    assert said_of(limited(), whole(larger, PLAIN, NETWORK), larger) == (
        "epsilon 4 at delta 1e-06 must be less, since it would reach epsilon 4 at delta 1e-06, above the limit "
        "(epsilon 3 at delta 1e-06) in ledger in memory; ask for less, or raise the limit."
    )
    assert "must be less than the delta 1e-06 of the limit" in said_of(
        limited(), whole(Budget(1.0, 1e-5), PRIVATE), Budget(1.0, 1e-5)
    )


def test_a_refusal_settles_nothing(tmp_path: Path):
    ledger = Ledger.open(tmp_path / "ledger")
    ledger.set_limit(LIMIT, "add-remove")
    before = hashlib.sha256(ledger.path.read_bytes()).hexdigest()
    with pytest.raises(BudgetExhausted):
        debit(ledger, whole(Budget(3.1, 1e-6), PRIVATE))
    assert hashlib.sha256(ledger.path.read_bytes()).hexdigest() == before


# --- limits that are set with answers known


def test_a_limit_can_be_divided_anew_where_what_is_spent_fits():
    ledger = limited()
    debit(ledger, whole(ONE, PRIVATE))
    spent = ledger.spent()
    for parts, said in [
        ({"failure_delta": 4e-7}, r"failure delta \(4e-07\) must be at least the 5e-07 already spent in ledger"),
        ({"training_epsilon": 2.9}, "must be less, to leave what is already spent on counts"),
    ]:
        with pytest.raises(InputError, match=said):
            ledger.set_limit(LIMIT, "add-remove", **parts)
    ledger.set_limit(LIMIT, "add-remove", failure_delta=9.5e-7, training_epsilon=1.0)
    assert len(ledger.limits()) == 2 and ledger.spent() == spent
    debit(ledger, whole(Budget(1.0, 4e-7), PLAIN, NETWORK))
    with pytest.raises(InputError, match=r"training epsilon \(0.5\) must be at least the 0.85 already spent"):
        ledger.set_limit(LIMIT, "add-remove", failure_delta=9.5e-7, training_epsilon=0.5)


def test_a_limit_that_is_raised_is_divided_by_what_is_spent():
    ledger = limited(ONE)
    debit(ledger, whole(ONE))
    assert division_of(ledger) == Division(Fraction(0), Fraction(0))
    ledger.set_limit(LIMIT, "add-remove")
    assert division_of(ledger) == Division(HALF, Fraction(0))
    debit(ledger, whole(ONE, PRIVATE))


def test_so_is_the_first_limit_of_a_ledger_that_has_debits():
    ledger = Ledger.memory()
    debit(ledger, whole(ONE, PLAIN, NETWORK))
    ledger.set_limit(LIMIT, "add-remove")
    assert division_of(ledger) == Division(whole(ONE, PLAIN, NETWORK).delta, Fraction(3, 2))
    with pytest.raises(InputError, match="at least what is already spent"):
        ledger.set_limit(Budget(0.9, 1e-6), "add-remove")


# --- ledgers of earlier versions


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.ledger"


@pytest.mark.parametrize("kind", KINDS)
def test_an_old_ledger_is_divided_by_what_is_spent_at_the_next_debit(path: Path, kind: str):
    with Ledger.open(path) as ledger:
        ledger.set_limit(LIMIT, "add-remove")
        debit(ledger, whole(Budget(1.0, 5e-7), *KINDS[kind]))
        spent = ledger.spent()
    before_divisions(path)
    before = path.read_bytes()
    ledger = Ledger.open(path)
    expected = Division.following(LIMIT, spent)
    assert ledger.limits()[0].division is None and ledger.standing().division == expected
    left = ledger.standing().left
    assert path.read_bytes() == before
    asked = Budget(left, 1e-6)
    debit(ledger, whole(asked), asked)
    assert division_of(ledger) == expected
    assert claim(ledger.spent(), 1e-6) <= 3.0


def test_an_old_ledger_that_has_spent_its_delta_keeps_it(path: Path):
    """By one ceiling for all, 9 tenths of δ may be gone: no half of it is left to keep, and counts have the rest."""
    Ledger.open(path).set_limit(LIMIT, "add-remove")
    debit(Ledger.open(path), gaussian(0.05, 9e-7))
    before_divisions(path)
    ledger = Ledger.open(path)
    debit(ledger, whole(Budget(0.5, 1e-6)))
    assert division_of(ledger) == Division(round_up(9e-7), Fraction(0))


def test_an_old_ledger_without_debits_is_as_a_new_one(path: Path):
    Ledger.open(path).set_limit(ONE, "add-remove")
    before_divisions(path)
    debit(Ledger.open(path), whole(ONE, PLAIN, NETWORK))
    assert division_of(Ledger.open(path)).training_epsilon == round_up(0.85)


def test_an_old_ledger_of_zcdp_is_divided_by_rho(path: Path, monkeypatch: pytest.MonkeyPatch):
    ledger = Ledger.open(path)
    with monkeypatch.context() as then:
        then.setattr(entries, "ACCOUNTING", ZCDP)
        ledger.set_limit(LIMIT, "add-remove")
        debit(ledger, whole(Budget(1.0, 1e-6, ZCDP)))
    before_divisions(path)
    ledger = Ledger.open(path)
    limit = ledger.limits()[0].budget
    assert limit.accounting == ZCDP
    debit(ledger, whole(Budget(0.5, 1e-6)))
    assert division_of(ledger) == Division(HALF, Fraction(0))
    rest = division_of(ledger).counts(limit) - ledger.spent().rho
    with pytest.raises(BudgetExhausted):
        debit(ledger, gaussian(rest + QUANTUM))
    debit(ledger, gaussian(rest))
    assert claim(ledger.spent(), 1e-6, ZCDP) <= 3.0


def test_older_programs_are_shut_out_once_a_limit_is_divided(path: Path):
    ledger = Ledger.open(path)
    ledger.set_limit(LIMIT, "add-remove")
    before_divisions(path)
    debit(Ledger.open(path), whole(ONE))
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (5,)


@pytest.mark.parametrize(
    "attempt",
    [
        "UPDATE divisions SET failure_delta = '0/2^80'",
        "DELETE FROM divisions",
        "REPLACE INTO divisions VALUES (1, '', 1, '0/2^80', '0/2^80')",
        "INSERT INTO divisions VALUES (2, '', 1, '0/2^80', '0/2^80')",
        "INSERT OR REPLACE INTO divisions VALUES (2, '', 1, '0/2^80', '0/2^80')",
    ],
)
def test_a_division_is_never_changed(path: Path, attempt: str):
    ledger = Ledger.open(path)
    ledger.set_limit(LIMIT, "add-remove")
    debit(ledger, whole(ONE))
    with closing(sqlite3.connect(path)) as database, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        database.execute(attempt)
    assert division_of(ledger) == Division(HALF, Fraction(0))


# --- any sequence of debits


def sums(accounting: str = GDP) -> st.SearchStrategy[Cost]:
    parts = st.sampled_from([0.0, 1e-9, 0.1, 0.3, 0.5, 0.9, 1.0, 1.1])
    most = LIMIT.capacity.value
    if accounting == ZCDP:
        most = Budget(LIMIT.epsilon, LIMIT.delta, ZCDP).capacity.value

    def cost(gdp: float, delta: float, direct: float) -> Cost:
        return gaussian(Fraction(gdp) * most, delta * LIMIT.delta, direct * LIMIT.epsilon)

    return st.builds(cost, parts, parts, parts)


@given(st.lists(sums(), max_size=8), st.one_of(st.none(), st.tuples(st.floats(0, 0.99), st.floats(0, 0.99))))
@settings(max_examples=60, deadline=None)
def test_no_sequence_of_debits_leaves_the_box(costs: list[Cost], shares: tuple[float, float] | None):
    ledger, accepted = Ledger.memory(), []
    parts = {}
    if shares:
        parts = {"failure_delta": shares[0] * LIMIT.delta, "training_epsilon": shares[1] * LIMIT.epsilon}
    ledger.set_limit(LIMIT, "add-remove", **parts)
    for cost in costs:
        before = ledger.limits()[0].division
        try:
            debit(ledger, cost)
            accepted.append(cost)
        except BudgetExhausted:
            if before is None:  # nothing that one release may have is refused, as long as there was none
                assert not covers(LIMIT, cost)
            else:
                assert not before.covers(LIMIT, ledger.spent() + cost)
        assert before in (None, ledger.limits()[0].division)
    spent, division = ledger.spent(), ledger.limits()[0].division
    assert spent == sum(accepted, Cost.zero())
    if accepted:
        assert division is not None
        assert spent.delta <= division.failure_delta and spent.direct <= division.training_epsilon
        assert spent.gdp <= division.counts(LIMIT)
        # What any list within the box may claim, and the box itself.
        assert claim(spent, LIMIT.delta) <= LIMIT.epsilon
        ceiling = division.counts(LIMIT)
        box = Cost(ceiling, None, division.failure_delta, division.training_epsilon, gdp=ceiling)
        assert claim(box, LIMIT.delta) <= LIMIT.epsilon
    left = ledger.standing().left
    if left and left > 1e-6:
        debit(ledger, whole(Budget(left, LIMIT.delta)))


# --- who decides by the answers what the rest is spent on


def hockey_stick(epsilon: np.ndarray, mu: float) -> np.ndarray:
    """sup P(S) − e^ε·Q(S) for N(μ, 1) and N(0, 1), at any real ε."""
    if mu == 0:
        return np.maximum(0.0, -np.expm1(epsilon))
    return ndtr(-epsilon / mu + mu / 2) - np.exp(epsilon + log_ndtr(-epsilon / mu - mu / 2))


def gain(loss: np.ndarray, epsilon: float, second: Cost) -> np.ndarray:
    """sup P(S) − e^ε·Q(S) per unit of P, of a second release after a first whose log likelihood ratio is `loss`.

    It fails and tells all with its δ; its training is randomised response of its ε, its counts are Gaussian.
    """
    mu, trained, failed = math.sqrt(2 * float(second.gdp)), float(second.direct), float(second.delta)
    right = 1 / (1 + math.exp(-trained))
    kept = right * hockey_stick(epsilon - loss - trained, mu) + (1 - right) * hockey_stick(epsilon - loss + trained, mu)
    return failed + (1 - failed) * kept


def reached(limit: Budget, first: Cost, admits: Callable[[Cost], bool]) -> float:
    """The δ at the limit's ε, if the answer of a first Gaussian release decides which second release it is.

    The choices lie on a grid over all that is admitted after the first one, and use up what they leave for counts.
    """
    choices = []
    for failures in np.linspace(0, 1, 9) * largest(lambda d: admits(first + gaussian(0, d)), limit.delta):
        failed = gaussian(0, failures)
        most = largest(lambda e, failed=failed: admits(first + failed + gaussian(0, 0, e)), limit.epsilon)
        for trainings in np.linspace(0, 1, 5) * most:
            part = failed + gaussian(0, 0, trainings)
            counts = largest(lambda g, part=part: admits(first + part + gaussian(g)), float(limit.capacity.value))
            choices.append(part + gaussian(counts))
    mu = math.sqrt(2 * float(first.gdp))
    loss = np.linspace(mu * mu / 2 - 12 * mu, mu * mu / 2 + 12 * mu, 6001)
    density = np.exp(-(((loss - mu * mu / 2) / mu) ** 2) / 2) / math.sqrt(2 * math.pi) / mu
    best = np.max([gain(loss, limit.epsilon, second) for second in choices], axis=0)
    return float(np.trapezoid(density * best, loss))


def largest(admitted: Callable[[float], bool], most: float) -> float:
    if admitted(most):
        return most
    low, high = 0.0, most
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if admitted(middle) else (low, middle)
    return low


@pytest.mark.parametrize("parts", [{}, {"failure_delta": 2e-7}, {"failure_delta": 5e-7, "training_epsilon": 0.3}])
@pytest.mark.parametrize("share", [0.2, 2 / 3])
def test_answers_that_decide_what_the_rest_is_spent_on_gain_nothing(parts: dict[str, float], share: float):
    ledger = limited(ONE, **parts)
    ceiling = division_of(ledger).counts(ONE) if parts else ONE.capacity.value
    first = gaussian(share * ceiling)
    debit(ledger, first)
    division = division_of(ledger)
    delta = reached(ONE, first, lambda cost: allowance.fits(ONE, division, cost))
    assert 0.75e-6 < delta <= 1e-6


@pytest.mark.parametrize(("share", "trainings", "delta"), [(2 / 3, False, 1.97e-6), (0.2, True, 2.5e-6)])
def test_with_one_ceiling_for_all_sums_they_would_gain(share: float, trainings: bool, delta: float):
    """The mutant: what a ledger did before limits were divided."""
    first = gaussian(share * ONE.capacity.value)
    assert reached(ONE, first, lambda cost: covers(ONE, cost) and (trainings or not cost.direct)) > delta


# --- first debits at once


FIRST = """
import sys
from pathlib import Path
from fractions import Fraction
from understudy.errors import BudgetExhausted
from understudy.boundary.privacy.budget import Budget, Cost
from understudy.boundary.privacy.facts import PrivacyUnit
from understudy.boundary.privacy.ledger.ledger import Ledger
gdp, delta, direct = (Fraction(text) for text in sys.argv[2:])
ledger, cost = Ledger.open(Path(sys.argv[1])), Cost(gdp, None, delta, direct, gdp=gdp)
print("ready", flush=True)
sys.stdin.readline()
try:
    ledger.debit(cost, Budget(1.0, 1e-6), "add-remove", "race", unit=PrivacyUnit())
except BudgetExhausted:
    pass
"""


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("old", [False, True])
def test_first_debits_at_once_agree_on_one_division(path: Path, old: bool):
    ledger = Ledger.open(path)
    ledger.set_limit(LIMIT, "add-remove")
    if old:
        ledger = Ledger.open(before_divisions(path))
    costs = [whole(Budget(1.0, 4e-7), *KINDS[kind]) for kind in ("counts", "private values", "a training")]
    racers = []
    for cost in costs:
        texts = (str(part) for part in (cost.gdp, cost.delta, cost.direct))
        command = [sys.executable, "-c", FIRST, str(path), *texts]
        racers.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    for racer in racers:
        racer.communicate(timeout=600)
        assert racer.returncode == 0
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT count(*) FROM divisions").fetchone() == (1,)
    assert division_of(ledger) == Division.following(LIMIT, ledger.entries()[0].cost)
    assert division_of(ledger).covers(LIMIT, ledger.spent())


def test_whoever_is_refused_a_pure_epsilon_learns_that_a_delta_would_have_room():
    ledger, pure = limited(), Budget(1.0, 0.0)
    debit(ledger, whole(ONE))
    said = said_of(ledger, whole(pure), pure)
    offered = re.fullmatch(
        r"epsilon 1 at delta 0 must be at most the epsilon 0\.\d+ at delta 0 left of the limit \(epsilon 3 at delta "
        r"1e-06\) in ledger in memory; ask for less, ask with delta 1e-06, at which epsilon (2\.\d+) is left, or .+\.",
        said,
    )
    assert offered
    debit(ledger, whole(Budget(float(offered[1]), 1e-6)))  # as it says
    assert "ask with delta" not in said_of(ledger, whole(pure), pure)
