"""Analysts with shares of one limit: what is refused, what is left, and that processes can't overspend a share."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sqlite3
import sys
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.old_ledgers import old_ledger
from understudy.boundary.privacy.accountant import round_up
from understudy.boundary.privacy.budget import Budget, Cost, pure_cost
from understudy.boundary.privacy.facts import PrivacyUnit
from understudy.boundary.privacy.gaussian_dp import gdp_from_epsilon
from understudy.boundary.privacy.ledger.allowance import share_fits
from understudy.boundary.privacy.ledger.chain import insert
from understudy.boundary.privacy.ledger.ledger import Ledger
from understudy.errors import BudgetExhausted, InputError

PURE, GAUSSIAN = Budget(1.0, 0.0), Budget(1.0, 1e-6)


def cost_of(asked: Budget) -> Cost:
    value = asked.capacity.value
    return pure_cost(value) if asked.pure else gaussian(value)


def gaussian(gdp: Fraction, delta: float = 0.0) -> Cost:
    return Cost(gdp, None, round_up(delta), gdp=gdp)


def ask(ledger: Ledger, who: str, epsilon: float, delta: float = 0.0) -> int:
    asked = Budget(epsilon, delta)
    return ledger.debit(cost_of(asked), asked, "add-remove", "a query", who, unit=PrivacyUnit())


def shared(limit: Budget = PURE, **shares: float) -> Ledger:
    ledger = Ledger.memory()
    ledger.set_limit(limit, "add-remove")
    for name, share in shares.items():
        ledger.set_share(name, share)
    return ledger


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_share_is_a_part_of_the_limit():
    ledger = shared(ada=0.25, bob=0.5)
    ask(ledger, "ada", 0.2)
    with pytest.raises(BudgetExhausted) as refusal:
        ask(ledger, "ada", 0.1)
    assert refusal.value.exit_code == 3
    assert str(refusal.value) == (
        "epsilon 0.1 at delta 0 must be at most the epsilon 0.05 at delta 0 left of the share (25 % of epsilon 1 at "
        "delta 0) of ada in ledger in memory; ask for less, or for a larger share."
    )
    ask(ledger, "ada", 0.05)
    ask(ledger, "bob", 0.5)
    assert [(a.analyst, a.share, a.entries, a.left, a.used) for a in ledger.accounts()] == [
        ("ada", 0.25, 2, pytest.approx(0.0, abs=1e-12), 1.0),
        ("bob", 0.5, 1, pytest.approx(0.0, abs=1e-12), 1.0),
    ]


def test_a_share_is_a_part_of_g():
    """Four quarters fill the limit, although four times a quarter of ε would not."""
    ledger, whole = shared(GAUSSIAN, a=0.25, b=0.25, c=0.25, d=0.25), gdp_from_epsilon(1.0, 1e-6)
    ledger.set_limit(GAUSSIAN, "add-remove", failure_delta=0.0)
    quarter = gaussian(whole / 4)
    for name in "abcd":
        with pytest.raises(BudgetExhausted, match="of the share"):
            ledger.debit(
                gaussian(whole / 4 + Fraction(1, 2**70)),
                GAUSSIAN,
                "add-remove",
                "q",
                name,
                unit=PrivacyUnit(),
            )
        ledger.debit(quarter, GAUSSIAN, "add-remove", "q", name, unit=PrivacyUnit())
    assert ledger.standing().left == pytest.approx(0, abs=1e-6)
    with pytest.raises(BudgetExhausted):
        ask(ledger, "a", 1e-4, 1e-6)


def test_all_together_are_bounded_by_the_limit():
    """Shares may add up to more than the whole; then the limit refuses, whoever colludes."""
    ledger = shared(ada=0.8, bob=0.8)
    ask(ledger, "ada", 0.8)
    assert {a.analyst: a.left for a in ledger.accounts()}["bob"] == pytest.approx(0.2)
    with pytest.raises(BudgetExhausted, match="left of the limit"):
        ask(ledger, "bob", 0.3)
    ask(ledger, "bob", 0.2)


@pytest.mark.parametrize("limit", [Budget(2.0, 1e-5), Budget(1.0, 1e-6), Budget(8.0, 1e-6)])
def test_what_is_left_of_a_share_beside_a_training_can_be_spent_and_hardly_more(limit: Budget):
    """The ε of a training adds to that of all counts together: g of the share that is not used yet buys less."""
    ledger, zero = shared(limit, ada=0.5), Fraction(0)
    ledger.set_limit(limit, "add-remove", failure_delta=limit.delta / 2, training_epsilon=limit.epsilon / 4)
    training = Cost(zero, None, round_up(limit.delta / 9), round_up(limit.epsilon / 4), gdp=zero)
    ledger.debit(training, limit, "add-remove", "a training", "ada", unit=PrivacyUnit())
    ask(ledger, "ada", limit.epsilon / 20, limit.delta)
    (account,) = ledger.accounts()
    assert account.left is not None and 0 < account.left < 0.6 * limit.epsilon
    with pytest.raises(BudgetExhausted, match=r"must be less, since with it 10\d.* % of the share .* would be used up"):
        ask(ledger, "ada", 1.03 * account.left, limit.delta)
    ask(ledger, "ada", account.left, limit.delta)


def test_of_all_of_the_limit_the_limit_speaks():
    """Nobody can be given more than all of it."""
    ledger = shared(GAUSSIAN, ada=1.0)
    with pytest.raises(BudgetExhausted, match=r"left of the limit .*or raise the limit\.$"):
        ask(ledger, "ada", 1.1, 1e-6)
    ask(ledger, "ada", 1.0, 1e-6)


@pytest.mark.parametrize(("name", "said"), [("eve", "(eve)"), ("", "(nobody is named)")])
def test_who_has_no_share_gets_nothing(name: str, said: str):
    ledger = shared(ada=0.25, bob=0.5)
    with pytest.raises(
        BudgetExhausted, match=r"must be one of those who have a share in ledger in memory: ada, bob"
    ) as e:
        ask(ledger, name, 0.01)
    assert said in str(e.value) and ledger.entries() == []


def test_shares_move_and_the_newest_counts():
    ledger = shared(ada=0.25)
    ask(ledger, "ada", 0.2)
    ledger.set_share("ada", 0.1)
    with pytest.raises(BudgetExhausted, match="epsilon 0 at delta 0 left"):
        ask(ledger, "ada", 0.01)
    ledger.set_share("ada", 0.3)
    ask(ledger, "ada", 0.1)
    ledger.set_limit(Budget(2.0, 0.0), "add-remove")
    ask(ledger, "ada", 0.3)
    assert [s.share for s in ledger.shares()] == [0.25, 0.1, 0.3]


def test_a_pure_limit_refuses_gaussian_noise_by_its_own_sentence():
    with pytest.raises(BudgetExhausted, match=r"delta \(1e-06\) must be 0"):
        ask(shared(ada=0.5), "ada", 0.01, 1e-6)


def test_failures_count_against_the_share():
    ledger = shared(GAUSSIAN, ada=0.5)
    with pytest.raises(BudgetExhausted):
        ledger.debit(gaussian(round_up(1e-6), 6e-7), GAUSSIAN, "add-remove", "keys", "ada", unit=PrivacyUnit())
    ledger.debit(gaussian(round_up(1e-6), 4e-7), GAUSSIAN, "add-remove", "keys", "ada", unit=PrivacyUnit())


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), True, "half"])
def test_shares_that_are_none(share: object):
    with pytest.raises(InputError, match=r"share \(.*\) of ada must be a number from 0 to 1"):
        shared().set_share("ada", share)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 201, None])
def test_names_that_are_none(name: object):
    with pytest.raises(InputError, match="must be a name"):
        shared().set_share(name, 0.1)  # type: ignore[arg-type]


def test_a_share_needs_a_limit():
    ledger = Ledger.memory()
    with pytest.raises(InputError, match="must have a limit"):
        ledger.set_share("ada", 0.5)
    assert ledger.shares() == [] and ledger.accounts() == []


def test_accounts_without_shares_or_limit():
    ledger = Ledger.memory()
    ask(ledger, "ada", 0.2)
    ask(ledger, "", 0.3)
    assert [(a.analyst, a.share, a.left, a.epsilon) for a in ledger.accounts()] == [
        ("", None, None, 0.3),
        ("ada", None, None, 0.2),
    ]
    ledger.set_limit(PURE, "add-remove")
    assert [a.left for a in ledger.accounts()] == [pytest.approx(0.5)] * 2


def test_the_history_has_shares():
    ledger = shared(ada=0.25)
    ask(ledger, "ada", 0.2)
    rows = json.loads(json.dumps(ledger.export()))
    assert [r["kind"] for r in rows] == ["limit", "share", "debit"]
    assert rows[1] | {"time": ""} == {"kind": "share", "id": 1, "time": "", "analyst": "ada", "share": 0.25}


def test_an_old_ledger_gets_shares_when_it_needs_them(tmp_path: Path):
    path = old_ledger(tmp_path / "ledger", 1, limit=2.0, debits=1)
    assert Ledger.open(path).shares() == []
    Ledger.open(path).set_share("ada", 0.25)
    assert Ledger.open(path).accounts()[0].left == pytest.approx(0.25)
    database = sqlite3.connect(path)
    assert database.execute("PRAGMA user_version").fetchone() == (5,)
    for attempt in (
        "UPDATE shares SET share = 1",
        "DELETE FROM shares",
        "REPLACE INTO shares VALUES (1, '', 'ada', 1)",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            database.execute(attempt)
        database.rollback()
    database.close()


def test_a_refusal_leaves_every_byte_alone(tmp_path: Path):
    path = tmp_path / "ledger"
    ledger = Ledger.open(path)
    ledger.set_limit(PURE, "add-remove")
    ledger.set_share("ada", 0.25)
    before = digest(path)
    for who, epsilon in (("ada", 0.3), ("eve", 0.1), ("", 0.1)):
        with pytest.raises(BudgetExhausted):
            ask(ledger, who, epsilon)
    with pytest.raises(InputError):
        ledger.set_share("ada", 2.0)
    assert digest(path) == before


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(0.01, 0.6)), max_size=8), st.sampled_from([PURE, GAUSSIAN]))
@settings(max_examples=20, deadline=None)
def test_what_is_left_of_a_share_can_be_spent_and_hardly_more(asks: list[tuple[str, float]], limit: Budget):
    ledger = shared(limit, a=0.3, b=0.9)
    for who, part in asks:
        left = {x.analyst: x.left for x in ledger.accounts()}[who]
        if left > 1e-6:
            ask(ledger, who, left * part, limit.delta)
    for who in "ab":
        left = {x.analyst: x.left for x in ledger.accounts()}[who]
        with pytest.raises(BudgetExhausted):
            ask(ledger, who, left * 1.00001 + 1e-9, limit.delta)
        if left > 1e-6:
            ask(ledger, who, left, limit.delta)


# --- real processes


@pytest.fixture(scope="module")
def analysts() -> ModuleType:
    """The benchmark, which has the processes and the check."""
    path = Path(__file__).resolve().parents[4] / "benchmarks" / "analysts.py"
    spec = importlib.util.spec_from_file_location("analysts", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["analysts"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_processes_cant_overspend_a_share_together(analysts: ModuleType, tmp_path: Path):
    ledger = analysts.prepared(tmp_path / "ledger", 4)
    told = analysts.hammer(ledger.path, 4, 2.0)
    assert analysts.complaints(ledger, told) == []
    assert sum(len(r["accepted"]) for r in told.values()) == len(ledger.entries()) > 0


def test_the_check_finds_out_lost_and_extra_debits(analysts: ModuleType, tmp_path: Path):
    ledger = analysts.prepared(tmp_path / "ledger", 2)
    told = {f"analyst {i}": {"accepted": [], "refused": 0, "broken": [], "longest": 0.0} for i in range(2)}
    asked = Budget(0.2, 1e-6)
    told["analyst 0"]["accepted"].append(
        ledger.debit(cost_of(asked), asked, "add-remove", "q", "analyst 0", unit=PrivacyUnit())
    )
    assert analysts.complaints(ledger, told) == []
    told["analyst 0"]["accepted"].append(2)
    assert any("not those" in c for c in analysts.complaints(ledger, told))


def test_the_check_finds_out_an_overspent_share(analysts: ModuleType, tmp_path: Path):
    ledger = analysts.prepared(tmp_path / "ledger", 2)
    whole = cost_of(Budget(1.45, 1e-6))
    assert not share_fits(analysts.LIMIT, 0.75, whole)
    row = {"time": "", "purpose": "q", "analyst": "analyst 0", "neighbours": "add-remove", "epsilon": None}
    row |= {"rho": f"g{round_up(whole.gdp) * 2**80}/2^80", "delta": "0/2^80", "asked_epsilon": 5.0, "asked_delta": 1e-6}
    database = sqlite3.connect(tmp_path / "ledger")
    insert(database, "debits", row)
    database.commit()
    database.close()
    told = {"analyst 0": {"accepted": [1], "refused": 0, "broken": [], "longest": 0.0}}
    assert analysts.complaints(ledger, told) == ["analyst 0 has overspent a share"]
