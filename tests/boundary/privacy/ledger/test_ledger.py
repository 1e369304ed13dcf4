"""The ledger under real processes, kill -9 and tampering."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing, suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.old_ledgers import old_ledger
from understudy.boundary.privacy.accountant import QUANTUM, round_up
from understudy.boundary.privacy.budget import Budget, Cost, covers, pure_cost
from understudy.boundary.privacy.facts import PrivacyUnit, PublicFacts
from understudy.boundary.privacy.gaussian_dp import epsilon_from_gdp, gdp_from_epsilon, gdp_from_pure
from understudy.boundary.privacy.ledger import database as module
from understudy.boundary.privacy.ledger.chain import insert
from understudy.boundary.privacy.ledger.ledger import Ledger, Receipt
from understudy.boundary.schema.schema import Schema
from understudy.errors import BudgetExhausted, InputError

PURE, GAUSSIAN = Budget(1.0, 0.0), Budget(1.0, 1e-6)
ROW, PERSON = PrivacyUnit(), PrivacyUnit("patient", 3)


def pure(epsilon: float) -> Cost:
    return pure_cost(round_up(epsilon))


def gaussian(gdp: Fraction | float, delta: float = 0.0) -> Cost:
    return Cost(round_up(gdp), None, round_up(delta), gdp=round_up(gdp))


def spend(
    ledger: Ledger,
    cost: Cost,
    asked: Budget = GAUSSIAN,
    neighbours: str = "add-remove",
    unit: PrivacyUnit = ROW,
) -> int:
    return ledger.debit(cost, asked, neighbours, "count of smokers", "ada", unit=unit)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.ledger"


# --- the record


def test_entries_come_back_as_they_went_in(path):
    first, second = gaussian(Fraction(1, 3), 1e-7), pure(0.1)
    with Ledger.open(path) as ledger:
        assert spend(ledger, first) == 1
        assert spend(ledger, second, Budget(0.1, 0.0)) == 2
    entries = Ledger.open(path).entries()
    # A ledger keeps g alone, which stands for ρ: never less than it.
    kept = replace(second, rho=second.gdp)
    assert [entry.cost for entry in entries] == [first, kept]
    assert kept.rho > second.rho
    assert entries[0].asked == GAUSSIAN
    assert (entries[0].purpose, entries[0].analyst, entries[0].neighbours) == ("count of smokers", "ada", "add-remove")
    assert entries[0].time.endswith("+00:00")
    assert Ledger.open(path).spent() == first + kept


def test_a_cost_off_the_grid_is_recorded_above_it():
    ledger = Ledger.memory()
    spend(ledger, Cost(Fraction(1, 3), None, Fraction(0), gdp=Fraction(1, 3)))
    assert 0 < ledger.spent().gdp - Fraction(1, 3) < QUANTUM


def test_export_is_plain_json():
    ledger = Ledger.memory()
    ledger.set_limit(GAUSSIAN, "add-remove")
    spend(ledger, gaussian(0.01))
    ledger.set_limit(Budget(2.0, 1e-6), "add-remove")
    rows = json.loads(json.dumps(ledger.export()))
    assert [row["kind"] for row in rows] == ["limit", "debit", "limit"]
    assert rows[1]["cost"]["gdp"] == f"g{round_up(0.01) / QUANTUM}/2^80"
    assert [limit.budget.epsilon for limit in ledger.limits()] == [1.0, 2.0]


def test_answers_are_kept_and_the_first_one_stays(path):
    ledger = Ledger.open(path)
    assert ledger.recall("count where age > 40") is None
    assert ledger.remember("count where age > 40", b"\x00\x17") == b"\x00\x17"
    assert ledger.remember("count where age > 40", b"another draw") == b"\x00\x17"
    assert Ledger.open(path).recall("count where age > 40") == b"\x00\x17"
    assert ledger.recall("count where age > 41") is None


# --- limits


def test_without_a_limit_everything_is_recorded():
    ledger = Ledger.memory()
    assert ledger.limit() is None
    spend(ledger, gaussian(1000))
    assert ledger.standing().left is None
    assert ledger.standing().epsilon == epsilon_from_gdp(1000, 1e-6)


@pytest.mark.parametrize(("limit", "part"), [(0.3, 0.1), (0.7, 0.1), (1.1, 0.1), (1.0, 0.2), (3.3, 1.1)])
def test_decimal_parts_fill_a_decimal_limit(limit, part):
    ledger = Ledger.memory()
    ledger.set_limit(Budget(limit, 0.0), "add-remove")
    for _ in range(round(limit / part)):
        assert ledger.standing().left >= part
        spend(ledger, pure(part), Budget(part, 0.0))
    with pytest.raises(BudgetExhausted):
        spend(ledger, pure(1e-9), Budget(1e-9, 0.0))


def test_a_limit_is_a_limit_on_the_sum_of_g():
    ledger = Ledger.memory()
    ledger.set_limit(GAUSSIAN, "add-remove", failure_delta=0.0)
    whole = gdp_from_epsilon(1.0, 1e-6)
    spend(ledger, gaussian(whole / 2))
    with pytest.raises(BudgetExhausted, match="left of the limit"):
        spend(ledger, gaussian(whole / 2 + QUANTUM))
    spend(ledger, gaussian(whole - ledger.spent().gdp))
    assert 0.99999 < ledger.standing().epsilon <= 1.0
    assert ledger.standing().left == 0.0


def test_failures_use_up_the_limits_delta():
    ledger = Ledger.memory()
    ledger.set_limit(GAUSSIAN, "add-remove")
    spend(ledger, gaussian(0.001, 9e-7))
    assert ledger.standing().epsilon == epsilon_from_gdp(round_up(0.001), Fraction(1e-6) - round_up(9e-7))
    with pytest.raises(BudgetExhausted):
        spend(ledger, gaussian(0, 2e-7))


def test_a_pure_limit_refuses_gaussian():
    ledger = Ledger.memory()
    ledger.set_limit(PURE, "add-remove")
    with pytest.raises(BudgetExhausted, match=r"delta \(1e-06\) must be 0") as refusal:
        spend(ledger, gaussian(1e-9))
    assert refusal.value.exit_code == 3
    with pytest.raises(BudgetExhausted):
        spend(ledger, Cost(Fraction(0), Fraction(0), QUANTUM))
    assert ledger.entries() == []


def test_pure_spends_fit_under_a_limit_with_delta():
    ledger = Ledger.memory()
    ledger.set_limit(GAUSSIAN, "add-remove")
    spend(ledger, pure(0.15), Budget(0.15, 0.0))
    assert ledger.standing().epsilon == epsilon_from_gdp(gdp_from_pure(round_up(0.15)), 1e-6)


@given(st.lists(st.floats(0.01, 0.5), max_size=5), st.booleans())
@settings(max_examples=25, deadline=None)
def test_what_is_left_can_be_spent_and_hardly_more(shares, is_pure):
    limit = PURE if is_pure else GAUSSIAN
    ledger = Ledger.memory()
    ledger.set_limit(limit, "add-remove")
    for share in shares:
        asked = Budget(ledger.standing().left * share, limit.delta)
        spend(ledger, cost_of(asked), asked)
    left = ledger.standing().left
    with pytest.raises(BudgetExhausted):
        spend(ledger, cost_of(Budget(left * 1.00001, limit.delta)))
    spend(ledger, cost_of(Budget(left, limit.delta)))


def cost_of(asked: Budget) -> Cost:
    value = asked.capacity.value
    return pure_cost(value) if asked.pure else Cost(value, None, Fraction(0), gdp=value)


def test_a_fresh_limit_is_left_whole():
    for limit in (PURE, GAUSSIAN, Budget(0.37, 1e-9)):
        ledger = Ledger.memory()
        ledger.set_limit(limit, "add-remove")
        assert ledger.standing().left == pytest.approx(limit.epsilon, rel=1e-11)
        spend(ledger, cost_of(limit), limit)


def test_limits_move_but_not_below_what_is_spent():
    ledger = Ledger.memory()
    spend(ledger, pure(0.5), Budget(0.5, 0.0))
    with pytest.raises(InputError, match=r"limit \(epsilon 0.4 at delta 0\) must be at least .* epsilon 0.5"):
        ledger.set_limit(Budget(0.4, 0.0), "add-remove")
    ledger.set_limit(PURE, "add-remove")
    ledger.set_limit(Budget(0.5, 0.0), "add-remove")
    assert ledger.limit() == Budget(0.5, 0.0)
    assert len(ledger.limits()) == 2


def test_the_offered_rest_is_rounded_down():
    ledger = Ledger.memory()
    ledger.set_limit(PURE, "add-remove")
    spend(ledger, pure(0.123456), Budget(0.123456, 0.0))
    with pytest.raises(BudgetExhausted, match=r"^epsilon 0\.9 at delta 0 must be at most the epsilon 0\.8765 at"):
        spend(ledger, pure(0.9), Budget(0.9, 0.0))


def asked_with_keys(epsilon: float, delta: float, keys: int) -> tuple[Cost, Budget]:
    """What a curator of a schema with as many private columns debits, and what it was asked for."""
    columns = "".join(f'[columns.c{i}]\ntype = "categorical"\nvalues = "private"\n' for i in range(keys))
    schema = Schema.loads(columns + '[columns.x]\ntype = "boolean"\n')
    return PublicFacts(schema, Budget(epsilon, delta)).whole, Budget(epsilon, delta)


@given(
    st.sampled_from([0.3, 1.0, 5.0]),
    st.sampled_from([1e-7, 1e-6, 1e-5, 0.0]),
    st.integers(0, 2),
    st.lists(st.floats(0.01, 1.0), max_size=3),
    st.sampled_from([None, 0.3, 0.9]),
)
@settings(max_examples=60, deadline=None)
def test_a_refusal_names_what_ran_out_in_numbers_that_are_true(limit, delta, keys, earlier, share):
    """Whatever it offers is accepted, and a hundredth more is not."""
    keys = keys if delta else 0
    ledger = Ledger.memory()
    ledger.set_limit(Budget(limit, 2e-6), "add-remove")
    if share:
        ledger.set_share("ada", share)
    for epsilon in earlier:
        with suppress(BudgetExhausted):
            spend(ledger, *asked_with_keys(epsilon, 5e-7, 1))
    with pytest.raises(BudgetExhausted) as refusal:
        spend(ledger, *asked_with_keys(3 * limit, delta, keys))
    said = str(refusal.value)
    if said.startswith("delta"):
        bound = r"\((\S+)\) must be (?:less than|at most) the (?:delta )?(\S+) (?:left )?of"
        pays, room = map(float, re.findall(bound, said)[0])
        assert keys and pays >= room * (1 - 1e-3)
        for smaller in (1e-9, 1e-3, 1.0):
            with pytest.raises(BudgetExhausted, match=r"^delta"):
                spend(ledger, *asked_with_keys(smaller, delta, keys))
        return
    offered, at = map(float, re.findall(r"at most the epsilon (\S+) at delta (\S+) left", said)[0])
    assert at == delta
    with pytest.raises(BudgetExhausted):
        spend(ledger, *asked_with_keys(offered * 1.01 + 1e-6, delta, keys))
    if offered > 0:
        spend(ledger, *asked_with_keys(offered, delta, keys))


def test_delta_that_ran_out_is_not_told_as_epsilon():
    ledger = Ledger.memory()
    ledger.set_limit(Budget(10.0, 1e-6), "add-remove")
    spend(ledger, *asked_with_keys(0.1, 1e-6, 1))
    with pytest.raises(BudgetExhausted) as refusal:
        spend(ledger, *asked_with_keys(0.1, 1e-6, 1))
    assert str(refusal.value) == (
        "delta (1e-06) is too large: what it pays for private values or a training (5e-07) must be at most the 0 left "
        "of the delta 5e-07 that the limit (epsilon 10 at delta 1e-06) in ledger in memory keeps for these; ask with a "
        "smaller delta, or raise the limit, its delta above 1e-06, with `understudy budget set` and --failure-delta "
        "1e-06."
    )
    spend(ledger, *asked_with_keys(0.1, 1e-6, 0))


@pytest.mark.parametrize("first", ["debit", "limit"])
def test_neighbouring_relations_are_not_mixed(path, first):
    ledger = Ledger.open(path)
    if first == "debit":
        spend(ledger, gaussian(0.01), neighbours="replace-one")
    else:
        ledger.set_limit(GAUSSIAN, "replace-one")
    before = digest(path)
    with pytest.raises(InputError, match=r"neighbours \(add-remove\) must be replace-one"):
        spend(ledger, gaussian(0.01), neighbours="add-remove")
    if first == "debit":
        with pytest.raises(InputError, match="neighbours"):
            ledger.set_limit(GAUSSIAN, "add-remove")
    assert digest(path) == before
    with pytest.raises(InputError, match="must be one of add-remove, replace-one"):
        spend(ledger, gaussian(0.01), neighbours="nearby")


@pytest.mark.parametrize(("first", "second"), [(ROW, PERSON), (PERSON, ROW), (PERSON, PrivacyUnit("household", 3))])
@pytest.mark.parametrize("way", ["debit", "limit"])
def test_units_are_not_mixed(path, first, second, way):
    ledger = Ledger.open(path)
    if way == "debit":
        spend(ledger, gaussian(0.01), unit=first)
    else:
        ledger.set_limit(GAUSSIAN, "add-remove", first)
    before = digest(path)
    with pytest.raises(InputError) as refusal:
        spend(ledger, gaussian(0.01), unit=second)
    assert str(refusal.value) == (
        f"unit ({second.who}) must be {first.who}, as in the earlier rows of ledger {path}, since claims about "
        "different units don't add up; use the same [unit] in the schema, or, for rows that share no person with "
        "those, a ledger of their own (--ledger, ledger= in Python)."
    )
    if way == "debit":
        with pytest.raises(InputError, match="unit"):
            ledger.set_limit(GAUSSIAN, "add-remove", second)
    assert digest(path) == before
    spend(ledger, gaussian(0.01), unit=first)
    assert ledger.standing().unit == first


def test_another_cap_is_the_same_unit(path):
    """Each release bounds what the same person moves by its own cap, and its price covers that."""
    ledger = Ledger.open(path)
    ledger.set_limit(GAUSSIAN, "add-remove", PERSON)
    spend(ledger, gaussian(0.01), unit=PERSON)
    spend(ledger, gaussian(0.001), unit=PrivacyUnit("patient", 1))
    assert [entry.unit for entry in ledger.entries()] == [PERSON, PrivacyUnit("patient", 1)]


def test_a_limit_without_debits_can_be_set_for_another_unit(path):
    ledger = Ledger.open(path)
    ledger.set_limit(GAUSSIAN, "add-remove", PERSON)
    ledger.set_limit(GAUSSIAN, "add-remove", ROW)
    spend(ledger, gaussian(0.001), unit=ROW)


def test_a_limit_that_names_no_unit_has_that_of_the_debits(path):
    ledger = Ledger.open(path)
    ledger.set_limit(GAUSSIAN, "add-remove")
    assert ledger.standing().unit is None and ledger.limits()[0].unit is None
    spend(ledger, gaussian(0.001), unit=PERSON)
    ledger.set_limit(Budget(2.0, 1e-6), "add-remove")
    assert ledger.standing().unit == ledger.limits()[1].unit == PERSON


def test_the_export_says_the_unit():
    ledger = Ledger.memory()
    ledger.set_limit(GAUSSIAN, "add-remove", PERSON)
    spend(ledger, gaussian(0.001), unit=PERSON)
    told = {"what": "person", "column": "patient", "max_rows": 3}
    assert [row["unit"] for row in json.loads(json.dumps(ledger.export()))] == [told, told]


def test_each_ledger_has_an_identity_of_its_own(path, tmp_path):
    ledger, other = Ledger.open(path), Ledger.open(tmp_path / "other")
    assert ledger.identity() == Ledger.open(path).identity() != other.identity()
    entry = spend(ledger, gaussian(0.001))
    receipt = ledger.receipt(entry)
    assert (receipt.name, receipt.identity, receipt.entry, receipt.limit) == (path.name, ledger.identity(), 1, None)
    ledger.set_limit(GAUSSIAN, "add-remove")
    assert ledger.receipt(entry).limit == GAUSSIAN
    assert Receipt.from_dict(json.loads(json.dumps(ledger.receipt(entry).to_dict()))) == ledger.receipt(entry)


# --- ledgers of earlier versions


@pytest.mark.parametrize("version", [1, 2])
def test_an_old_ledger_is_read_as_it_is(path, version):
    old_ledger(path, version, limit=2.0, debits=2)
    before = digest(path)
    ledger = Ledger.open(path)
    standing = ledger.standing()
    assert (standing.entries, standing.epsilon, standing.unit) == (2, 0.5, None)
    assert {row["unit"] for row in ledger.export() if "unit" in row} == {None}
    assert ledger.identity() is None and ledger.recall("q") is None and ledger.accounts()[0].entries == 2
    assert digest(path) == before


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("unit", [ROW, PERSON])
def test_old_debits_are_never_taken_for_rows(path, version, unit):
    """Nothing is added until somebody states what they protected."""
    old_ledger(path, version, limit=2.0, debits=2)
    before, ledger = digest(path), Ledger.open(path)
    for attempt in (
        lambda: spend(ledger, pure(0.1), PURE, unit=unit),
        lambda: ledger.set_limit(Budget(3.0, 0.0), "add-remove", unit),
    ):
        with pytest.raises(InputError, match=r"holds 2 debits from before units were recorded.*budget unit DATA"):
            attempt()
    assert digest(path) == before, "a refusal undoes the migration too"
    assert ledger.state_unit(unit) == 2
    spend(ledger, pure(0.1), PURE, unit=unit)
    assert [entry.unit for entry in ledger.entries()] == [unit] * 3
    assert ledger.standing().unit == unit and ledger.standing().epsilon == pytest.approx(0.6)
    with pytest.raises(InputError, match="nothing to state"):
        ledger.state_unit(unit)
    other = PERSON if unit == ROW else ROW
    with pytest.raises(InputError, match=r"must be a (row|person by column 'patient'), as in the earlier rows"):
        spend(ledger, pure(0.1), PURE, unit=other)
    stated = next(row for row in ledger.export() if row["kind"] == "unit")
    assert (stated["debits"], stated["unit"]) == (2, unit.to_dict())


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("limit", [None, 2.0])
def test_an_old_ledger_without_debits_takes_the_first_unit(path, version, limit):
    ledger = Ledger.open(old_ledger(path, version, limit=limit))
    spend(ledger, pure(0.1), PURE, unit=PERSON)
    assert ledger.standing().unit == PERSON and ledger.identity()
    with pytest.raises(InputError, match="must be a person by column 'patient'"):
        spend(ledger, pure(0.1), PURE, unit=ROW)


def test_a_migrated_ledger_keeps_its_rows_and_its_guards(path):
    ledger = Ledger.open(old_ledger(path, 1, limit=2.0, debits=2))
    kept = [row | {"unit": None} for row in ledger.export()]
    ledger.state_unit(ROW)
    assert [row | {"unit": None} for row in ledger.export() if row["kind"] != "unit"] == kept
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT DISTINCT unit FROM debits").fetchall() == [(None,)], "nothing was rewritten"
        for attempt in ("UPDATE debits SET unit = 'x'", "UPDATE units SET debits = 0", "DELETE FROM units"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                database.execute(attempt)


def test_an_older_program_that_was_still_running_is_shut_out(path):
    """It knows no chain, so that nothing would tell its row from one that somebody put in."""
    ledger = Ledger.open(old_ledger(path, 1, debits=1))
    ledger.state_unit(PERSON)
    with closing(sqlite3.connect(path)) as database:
        columns = "time, purpose, analyst, neighbours, rho, epsilon, delta, asked_epsilon, asked_delta"
        values = "'', 'late', '', 'add-remove', '1/2^80', '1/2^80', '0/2^80', 0.1, 0"
        with pytest.raises(sqlite3.IntegrityError, match="needs its entry in the chain"):
            database.execute(f"INSERT INTO debits ({columns}) VALUES ({values})")
    assert len(ledger.entries()) == 1


def test_kill_9_within_a_migration_leaves_the_old_ledger(path):
    old_ledger(path, 1, limit=2.0)
    before = digest(path)
    process = child(KILLED_AT_COMMIT, path, Budget(0.1, 0.0))
    process.communicate(timeout=WATCHDOG)
    assert process.returncode == -signal.SIGKILL
    assert Ledger.open(path).entries() == []
    assert digest(path) == before
    spend(Ledger.open(path), pure(0.1), PURE)


def test_processes_migrate_a_ledger_together(path):
    old_ledger(path, 1)
    assert race(HONEST, path, Budget(0.1, 0.0), runners=4) == 16
    assert len(Ledger.open(path).entries()) == 16


# --- the file


def test_a_refusal_leaves_every_byte_alone(path):
    ledger = Ledger.open(path)
    ledger.set_limit(GAUSSIAN, "add-remove")
    spend(ledger, gaussian(0.01))
    before = digest(path)
    with pytest.raises(BudgetExhausted, match=r"data\.ledger"):
        spend(ledger, gaussian(1.0))
    with pytest.raises(InputError):
        ledger.set_limit(Budget(0.1, 1e-6), "add-remove")
    assert digest(path) == before
    assert list(path.parent.iterdir()) == [path]
    spend(ledger, gaussian(0.001))
    assert digest(path) != before, "the hash sees an accepted debit"


def test_opening_and_reading_write_nothing(path):
    ledger = Ledger.open(path)
    spend(ledger, gaussian(0.01))
    ledger.remember("q", b"a")
    before = digest(path), path.stat().st_mtime_ns
    again = Ledger.open(path)
    for read in (again.standing, again.export, again.entries, again.limits, again.limit, again.spent):
        read()
    again.recall("q")
    again.remember("q", b"b")
    assert (digest(path), path.stat().st_mtime_ns) == before


def test_only_the_owner_may_read_it(path):
    Ledger.open(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_debits_are_synced_to_the_disk(path):
    ledger = Ledger.open(path)
    with ledger._database.writing() as database:
        assert database.execute("PRAGMA synchronous").fetchone() == (3,), "EXTRA"
        assert database.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_an_emptied_file_is_never_filled(path):
    path.touch(0o600)
    for create in (False, True):
        with pytest.raises(InputError, match=r"is emptied: it has 0 bytes; put a backup in its place"):
            Ledger.open(path, create=create)
    assert path.stat().st_size == 0


def test_kill_9_while_creating_leaves_no_ledger_or_a_whole_one(path):
    """At each step: before the file is made, while it has another name, and when it has its own."""
    for step, made in (("open", False), ("fsync", False), ("link", False), ("unlink", True)):
        script = f"os.{step} = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)\nmodule.Ledger.open(path)"
        # A name of its own for each: what an earlier one left behind is swept first.
        own = path.with_name(f"{step}-{path.name}")
        process = child(script, own, GAUSSIAN)
        process.communicate(timeout=WATCHDOG)
        assert process.returncode == -signal.SIGKILL
        assert own.exists() is made
        assert spend(Ledger.open(own), gaussian(0.01)) == 1


def test_what_is_no_ledger_is_refused_and_left_alone(tmp_path):
    text, foreign, later = tmp_path / "notes.txt", tmp_path / "foreign.db", tmp_path / "later.ledger"
    text.write_text("not a database, but long enough to look like one\n" * 100)
    with sqlite3.connect(foreign) as database:
        database.execute("CREATE TABLE debits (id)")
    database.close()
    Ledger.open(later)
    with sqlite3.connect(later) as database:
        database.execute("PRAGMA user_version = 6")
    database.close()
    before = [digest(path) for path in (text, foreign, later)]
    for path, reason in ((text, "isn't a ledger"), (foreign, "isn't a ledger"), (later, "version 6")):
        with pytest.raises(InputError, match=reason):
            Ledger.open(path)
    assert [digest(path) for path in (text, foreign, later)] == before


def test_paths_that_lead_nowhere(tmp_path):
    for path, create in ((tmp_path / "none" / "x", True), (tmp_path / "x", False), (tmp_path, True)):
        with pytest.raises(InputError, match=r"^ledger \("):
            Ledger.open(path, create=create)
    assert list(tmp_path.iterdir()) == []


def test_odd_names_are_fine(tmp_path):
    path = tmp_path / "50% of #1?mode=memory é.ledger"
    spend(Ledger.open(path), gaussian(0.01))
    assert path.exists()
    assert len(Ledger.open(path).entries()) == 1


def test_a_ledger_that_vanished_isnt_made_anew_by_a_debit(path):
    ledger = Ledger.open(path)
    path.unlink()
    with pytest.raises(InputError, match="can't be opened"):
        spend(ledger, gaussian(0.01))
    assert not path.exists()


def test_one_that_stays_locked(path, monkeypatch):
    ledger = Ledger.open(path)
    monkeypatch.setattr(module, "_BUSY_SECONDS", 0.05)
    with ledger._database.writing(), pytest.raises(InputError, match="stayed locked"):
        spend(Ledger.open(path), gaussian(0.01))
    assert spend(ledger, gaussian(0.01)) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to everything")
def test_one_that_cant_be_written(path):
    ledger = Ledger.open(path)
    path.chmod(0o400)
    assert ledger.entries() == []
    with pytest.raises(InputError, match="can't be written"):
        spend(ledger, gaussian(0.01))


@pytest.mark.parametrize(
    "attempt",
    [
        "UPDATE debits SET rho = '0/2^80'",
        "DELETE FROM debits",
        "INSERT OR REPLACE INTO debits SELECT id, time, purpose, analyst, neighbours, '0/2^80', epsilon, delta, "
        "asked_epsilon, asked_delta, unit FROM debits",
        "UPDATE limits SET epsilon = 100",
        "DELETE FROM limits",
        "INSERT OR REPLACE INTO limits SELECT id, time, 100, delta, neighbours, unit FROM limits",
        "UPDATE answers SET answer = x'00'",
        "DELETE FROM answers",
        "INSERT OR REPLACE INTO answers (time, question, answer) VALUES ('', 'q', x'00')",
        "UPDATE debits SET unit = NULL",
        "UPDATE identity SET value = 'another'",
        "DELETE FROM identity",
        "INSERT INTO identity (time, value) VALUES ('', 'another')",
        "INSERT OR REPLACE INTO identity (id, time, value) VALUES (1, '', 'another')",
    ],
)
def test_rows_are_only_ever_added(path, attempt):
    ledger = Ledger.open(path)
    ledger.set_limit(GAUSSIAN, "add-remove")
    spend(ledger, gaussian(0.01))
    ledger.remember("q", b"a")
    before = digest(path)
    database = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        database.execute(attempt)
    database.rollback()
    database.close()
    assert digest(path) == before


def test_a_doctored_cost_is_refused(path):
    ledger = Ledger.open(path)
    row = {"time": "", "purpose": "", "analyst": "", "neighbours": "add-remove", "rho": "-5/2^80", "delta": "0/2^80"}
    with closing(sqlite3.connect(path)) as database:
        insert(database, "debits", row | {"asked_epsilon": 1, "asked_delta": 0})
        database.commit()
    with pytest.raises(InputError, match=r"cost \(-5/2\^80\)"):
        spend(ledger, gaussian(0.01))


# --- threads and real processes


def test_threads_share_a_ledger(path):
    ledger = Ledger.open(path)
    threads = [threading.Thread(target=spend, args=(ledger, gaussian(0.01))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ledger.entries()) == 4


WATCHDOG = 600
"""Seconds. It ends what hangs; a busy machine may need minutes for what else takes a second."""
PRELUDE = """
import os, signal, sys
from fractions import Fraction
from pathlib import Path
from understudy.errors import BudgetExhausted
from understudy.boundary.privacy.budget import Budget, Cost, pure_cost
from understudy.boundary.privacy.ledger import database, ledger as module
from understudy.boundary.privacy.facts import PrivacyUnit
row = PrivacyUnit()
path, budget = Path(sys.argv[1]), Budget(float(sys.argv[2]), float(sys.argv[3]))
value = budget.capacity.value
cost = pure_cost(value) if budget.pure else Cost(value, None, Fraction(0), gdp=value)
def meet(word):
    print(word, flush=True)
    sys.stdin.readline()
"""

HONEST = """
meet("ready")
accepted = 0
ledger = module.Ledger.open(path)
for _ in range(4):
    try:
        accepted += bool(ledger.debit(cost, budget, "add-remove", "race", unit=row))
    except BudgetExhausted:
        pass
print(accepted, flush=True)
"""

# The mutant checks first and writes later, under two locks instead of one.
CARELESS = """
ledger = module.Ledger.open(path)
fits = module.allowance.fits(ledger.limit(), None, ledger.spent() + cost)
meet("ready")
module.allowance.fits = lambda limit, division, spent: fits
print(int(fits and bool(ledger.debit(cost, budget, "add-remove", "race", unit=row))), flush=True)
"""

KILLED_AT_COMMIT = """
def last_words(database, statement):
    if statement == "COMMIT":
        os.kill(os.getpid(), signal.SIGKILL)
connection = database._connection
def traced(name):
    database = connection(name)
    database.set_trace_callback(lambda statement: last_words(database, statement))
    return database
database._connection = traced
module.Ledger.open(path).debit(cost, budget, "add-remove", "x", unit=row)
"""


def child(script: str, path: Path, asked: Budget) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PRELUDE + script, str(path), repr(asked.epsilon), repr(asked.delta)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def race(script: str, path: Path, asked: Budget, runners: int = 6) -> int:
    """How many debits were accepted in all, when every process starts at the same word."""
    processes = [child(script, path, asked) for _ in range(runners)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    accepted = sum(int(process.communicate(timeout=WATCHDOG)[0]) for process in processes)
    assert all(process.returncode == 0 for process in processes)
    return accepted


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("asked", [Budget(0.1, 0.0), Budget(0.3, 1e-6)])
def test_processes_cant_overspend_together(path, asked):
    ledger, limit = Ledger.open(path), Budget(1.0, asked.delta)
    ledger.set_limit(limit, "add-remove", failure_delta=None if asked.pure else 0.0)
    affordable = 10 if asked.pure else int(limit.capacity.value / asked.capacity.value)
    assert 0 < affordable < 24
    assert race(HONEST, path, asked) == affordable
    assert len(ledger.entries()) == affordable
    assert ledger.standing().epsilon <= 1.0 or asked.pure
    assert ledger.spent().epsilon is None or ledger.spent().epsilon <= Fraction(1) * (1 + Fraction(1, 2**50))


@pytest.mark.slow
def test_the_race_catches_a_careless_ledger(path):
    ledger, limit = Ledger.open(path), Budget(1.0, 0.0)
    ledger.set_limit(limit, "add-remove")
    assert race(CARELESS, path, Budget(0.4, 0.0), runners=4) > 2
    assert not covers(limit, ledger.spent())


@pytest.mark.slow
def test_processes_create_a_ledger_together(path):
    assert race(HONEST, path, Budget(0.1, 0.0), runners=4) == 16
    assert len(Ledger.open(path).entries()) == 16


def test_a_debit_survives_kill_9(path):
    process = child(
        "module.Ledger.open(path).debit(cost, budget, 'add-remove', 'x', unit=row)\n"
        "os.kill(os.getpid(), signal.SIGKILL)",
        path,
        GAUSSIAN,
    )
    process.communicate(timeout=WATCHDOG)
    assert process.returncode == -signal.SIGKILL
    assert [entry.asked for entry in Ledger.open(path, create=False).entries()] == [GAUSSIAN]


def test_kill_9_before_the_commit_leaves_the_earlier_state(path):
    """The child writes until its pages spill into the file itself, so that only the journal can undo them."""
    ledger = Ledger.open(path)
    spend(ledger, gaussian(0.01))
    before, size = ledger.export(), path.stat().st_size
    script = """
with module.Ledger.open(path)._database.writing() as database:
    database.execute("PRAGMA cache_size = 2")
    row = dict(purpose="x" * 3000, analyst="", neighbours="add-remove", rho="1/2^80", epsilon=None, delta="0/2^80")
    for _ in range(200):
        module.append(database, "debits", **row, asked_epsilon=1, asked_delta=0)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    process = child(script, path, GAUSSIAN)
    process.communicate(timeout=WATCHDOG)
    assert process.returncode == -signal.SIGKILL
    assert path.stat().st_size > size, "half a transaction is in the file"
    assert (path.parent / f"{path.name}-journal").exists()
    assert Ledger.open(path).export() == before
    assert spend(Ledger.open(path), gaussian(0.01)) == 2
    assert path.stat().st_size == size


def test_kill_9_inside_a_debit_leaves_the_earlier_state(path):
    ledger = Ledger.open(path)
    spend(ledger, gaussian(0.01))
    before = digest(path)
    process = child(KILLED_AT_COMMIT, path, GAUSSIAN)
    process.communicate(timeout=WATCHDOG)
    assert process.returncode == -signal.SIGKILL
    assert len(Ledger.open(path).entries()) == 1
    assert digest(path) == before


def test_a_full_disk_is_told_and_debits_nothing(path):
    """A limit on the size of files stands in for the disk: the write itself fails, in the kernel."""
    ledger = Ledger.open(path)
    spend(ledger, gaussian(0.01))
    before = ledger.export()
    script = f"""
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, ({path.stat().st_size},) * 2)
from understudy.errors import InputError
try:
    module.Ledger.open(path).debit(cost, budget, "add-remove", "x" * 100_000, unit=row)
except InputError as error:
    print(error)
"""
    said, _ = child(script, path, GAUSSIAN).communicate(timeout=WATCHDOG)
    assert said.startswith(f"ledger ({path}) can't be")
    assert Ledger.open(path).export() == before
