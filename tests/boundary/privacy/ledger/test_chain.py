"""Ledgers that were damaged, cut off, emptied or rewritten: refused in one sentence, or as they were."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from helpers.old_ledgers import before_chains, old_ledger
from understudy.boundary.privacy.accountant import round_up
from understudy.boundary.privacy.budget import Budget, Cost
from understudy.boundary.privacy.facts import PrivacyUnit
from understudy.boundary.privacy.ledger import chain
from understudy.boundary.privacy.ledger.chain import DamagedLedger, Head
from understudy.boundary.privacy.ledger.ledger import Ledger
from understudy.errors import InputError

ROW = PrivacyUnit()
DAMAGES = 250
"""Three thousand were tried when this was written."""


def spend(ledger: Ledger, gdp: float = 0.001, journal: str = "") -> int:
    cost = Cost(round_up(gdp), None, Fraction(0), gdp=round_up(gdp))
    return ledger.debit(cost, Budget(0.1, 1e-6), "add-remove", "count of smokers", "ada", unit=ROW, journal=journal)


def filled(path: Path) -> Path:
    """A ledger with rows in every table but those for what went wrong."""
    ledger = Ledger.open(path)
    ledger.set_limit(Budget(3.0, 1e-6), "add-remove", ROW)
    ledger.set_share("ada", 1.0)
    entry = spend(ledger, journal="head")
    ledger.claim(entry, 1, "first")
    for number in range(12):
        spend(ledger)
        ledger.remember(f"question {number}", b"\x00\x17" * (200 * number))
    return path


def told(path: Path) -> tuple[Any, ...]:
    """All that a ledger says."""
    ledger = Ledger.open(path, create=False)
    answers = [ledger.recall(f"question {number}") for number in range(12)]
    return ledger.export(), ledger.standing(), ledger.accounts(), ledger.claimed("head"), ledger.identity(), answers


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("whole") / "data.ledger")


@pytest.fixture
def path(whole: Path, tmp_path: Path) -> Path:
    """A copy of it, known to this test's witness."""
    path = shutil.copy(whole, tmp_path / "data.ledger")
    Ledger.open(path)
    return path


def rewritten(path: Path, *statements: str) -> None:
    """What somebody does who knows SQL: the guards of the table first."""
    with closing(sqlite3.connect(path)) as database:
        guards = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            database.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            database.execute(statement)
        for _, sql in guards:
            database.execute(sql)
        database.commit()


# --- what is found


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE debits SET rho = 'g0/2^80' WHERE id = 7",
        "UPDATE debits SET rho = 'g' || substr(rho, 3) WHERE id = 7",
        "DELETE FROM debits WHERE id = 13",
        "DELETE FROM debits",
        "UPDATE limits SET epsilon = 100",
        "INSERT INTO limits VALUES (2, '', 100.0, 1e-6, 'add-remove', NULL)",
        "DELETE FROM divisions",
        "UPDATE divisions SET failure_delta = '0/2^80'",
        "UPDATE shares SET share = 0.5",
        "UPDATE answers SET answer = x'00' WHERE id = 3",
        "DELETE FROM answers WHERE id = 12",
        "DELETE FROM claims WHERE place = 1",
        "UPDATE identity SET value = 'another'",
        "UPDATE debits SET unit = NULL",
        "UPDATE debits SET time = ''",
        "UPDATE debits SET rho = CAST(x'fffe' AS TEXT) WHERE id = 1",
        "UPDATE debits SET rho = x'00' WHERE id = 1",
        "UPDATE debits SET asked_epsilon = 'much'",
        "DELETE FROM chain WHERE id = 5",
        "UPDATE chain SET digest = ''",
        "UPDATE chain SET covers = 'nothing' WHERE id = 4",
        "UPDATE chain SET time = '' WHERE id = 4",
        "PRAGMA user_version = 4",
        "ALTER TABLE debits RENAME COLUMN purpose TO reason",
        "INSERT INTO restorations VALUES (1, '', 1, '')",
    ],
)
def test_a_row_that_was_changed_is_found(path: Path, statement: str):
    rewritten(path, statement)
    with pytest.raises(DamagedLedger, match=r"is damaged: .*; put a backup in its place with") as refusal:
        Ledger.open(path)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "statement", ["DROP TRIGGER debits_update", "CREATE TRIGGER x AFTER INSERT ON debits BEGIN SELECT 1; END"]
)
def test_so_is_a_trigger(path: Path, statement: str):
    with closing(sqlite3.connect(path)) as database:
        database.execute(statement)
    with pytest.raises(DamagedLedger, match="triggers that keep its rows"):
        Ledger.open(path)


def test_a_ledger_that_is_open_sees_what_others_put_in(path: Path):
    ledger = Ledger.open(path)
    rewritten(path, "INSERT INTO limits VALUES (2, '', 100.0, 1e-6, 'add-remove', NULL)")
    with pytest.raises(DamagedLedger, match="its table limits has a row that is not in its chain"):
        ledger.standing()


def test_a_ledger_that_was_cut_off_says_so(path: Path):
    content = path.read_bytes()
    path.write_bytes(content[:-5000])
    with pytest.raises(DamagedLedger, match=rf"is cut off: it has {len(content) - 5000} bytes of {len(content)}; put"):
        Ledger.open(path)
    path.write_bytes(b"")
    with pytest.raises(DamagedLedger, match="is emptied: it has 0 bytes; put"):
        Ledger.open(path)
    path.write_bytes(b"\x00" * 16 + content[16:])
    with pytest.raises(DamagedLedger, match="first bytes are no longer those of a ledger"):
        Ledger.open(path)


# --- random damage


def flip(draw: random.Random, content: bytearray) -> bytes:
    for _ in range(draw.choice([1, 1, 1, 3, 30])):
        content[draw.randrange(len(content))] = draw.randrange(256)
    return bytes(content)


def blank(draw: random.Random, content: bytearray) -> bytes:
    start = draw.randrange(len(content))
    length = draw.choice([4, 64, 4096])
    content[start : start + length] = bytes(min(length, len(content) - start))
    return bytes(content)


def cut(draw: random.Random, content: bytearray) -> bytes:
    return bytes(content[: draw.choice([0, draw.randrange(len(content)), 4096 * draw.randrange(len(content) // 4096)])])


def swap(draw: random.Random, content: bytearray) -> bytes:
    """Two digits or letters of texts: the file stays one that SQLite reads."""
    places = [place for place, byte in enumerate(content) if chr(byte).isalnum()]
    one, other = draw.choice(places), draw.choice(places)
    content[one], content[other] = content[other], content[one]
    return bytes(content)


def move_page(draw: random.Random, content: bytearray) -> bytes:
    pages = len(content) // 4096
    source, target = 4096 * draw.randrange(pages), 4096 * draw.randrange(pages)
    content[target : target + 4096] = content[source : source + 4096]
    return bytes(content)


DAMAGE: list[Callable[[random.Random, bytearray], bytes]] = [flip, flip, blank, cut, swap, swap, move_page]


VALUES = ("NULL", "0", "'x'", "x'ff'", "id", "1e300", "CAST(x'ff' AS TEXT)")


def in_sql(draw: random.Random, path: Path) -> None:
    table = draw.choice(["limits", "divisions", "debits", "shares", "answers", "claims", "identity", "chain"])
    with closing(sqlite3.connect(path)) as database:
        columns = [name for _, name, *_ in database.execute(f"PRAGMA table_info({table})")]
    column, other = (
        draw.choice(columns),
        draw.choice(["NULL", "0", "'x'", "x'ff'", "id", "1e300", "CAST(x'ff' AS TEXT)"]),
    )
    where = draw.choice(["", "WHERE id = 1", f"WHERE id = (SELECT max(id) FROM {table})"])
    rewritten(
        path, draw.choice([f"UPDATE OR IGNORE {table} SET {column} = {other} {where}", f"DELETE FROM {table} {where}"])
    )


def check_damages(folder: Path, count: int, seed: int, whole: Path) -> dict[str, int]:
    """Each damage leaves a ledger that is refused in a sentence, or says what it said before."""
    draw, expected, path = random.Random(seed), told(whole), folder / "damaged.ledger"
    seen = {"refused": 0, "the same": 0}
    for _ in range(count):
        for rest in folder.glob("damaged.ledger*"):
            rest.unlink()
        shutil.copy(whole, path)
        kind = draw.randrange(len(DAMAGE) + 1)
        if kind == len(DAMAGE):
            try:
                in_sql(draw, path)
            except sqlite3.Error:
                continue
        else:
            path.write_bytes(DAMAGE[kind](draw, bytearray(path.read_bytes())))
        try:
            assert told(path) == expected, (seed, kind)
            seen["the same"] += 1
        except InputError as refusal:
            assert "\n" not in str(refusal) and str(refusal).isprintable(), refusal
            seen["refused"] += 1
    return seen


@pytest.mark.slow
def test_no_damage_is_read_as_less_spent_or_another_limit(path: Path, state_home: Path):
    shutil.rmtree(state_home / "understudy")  # the chain alone has to find it
    (path.parent / "damages").mkdir()
    seen = check_damages(path.parent / "damages", DAMAGES, 7, path)
    assert seen["refused"] > DAMAGES / 2 and seen["the same"] > 10, "both are tried"


# --- old ledgers


@pytest.mark.parametrize("version", [1, 2])
def test_an_old_ledger_gets_its_chain_with_the_next_write(tmp_path: Path, version: int):
    path = old_ledger(tmp_path / "old", version, limit=2.0, debits=2)
    assert len(Ledger.open(path).entries()) == 2
    Ledger.open(path).state_unit(ROW)
    with closing(sqlite3.connect(path)) as database:
        assert chain.verified(database, "it").rows["debits"] == 2
    rewritten(path, "UPDATE debits SET epsilon = '0/2^80' WHERE id = 1")
    with pytest.raises(DamagedLedger, match="its chain doesn't fit"):
        Ledger.open(path)


@pytest.mark.parametrize("write", ["debit", "claim", "remember"])
def test_any_row_brings_a_ledger_of_the_fourth_version_its_chain(path: Path, write: str):
    ledger, before = Ledger.open(before_chains(path)), Ledger.open(path).export()
    if write == "debit":
        spend(ledger)
    elif write == "claim":
        ledger.claim(1, 2, "second")
    else:
        ledger.remember("another", b"a")
    assert [row for row in Ledger.open(path).export() if row["id"] <= 13] == before
    with closing(sqlite3.connect(path)) as database:
        assert chain.is_chained(database) and chain.verified(database, "it").entries > 25


def test_what_an_old_ledger_holds_is_refused_in_a_sentence(tmp_path: Path):
    path = old_ledger(tmp_path / "old", 2, limit=2.0, debits=2)
    for value in ("CAST(x'ff' AS TEXT)", "x'00'", "12", "'1e5'", f"'{'9' * 5000}/2^80'"):
        damaged = tmp_path / "damaged"
        shutil.copy(path, damaged)
        with closing(sqlite3.connect(damaged)) as database:
            database.execute("DROP TRIGGER debits_update")
            database.execute(f"UPDATE debits SET rho = {value}")
            database.commit()
        with pytest.raises(InputError, match="ledger"):
            Ledger.open(damaged).standing()


# --- the digest itself


def test_the_digest_is_the_same_everywhere(tmp_path: Path):
    """Computed once by hand, so that a later version can't change what older ones wrote."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(
            "CREATE TABLE shares (id INTEGER PRIMARY KEY, time TEXT, analyst TEXT, share REAL);" + chain.TABLE
        )
        database.execute("INSERT INTO shares VALUES (1, 't', 'Zoë', 1.0)")
        for table in set(chain.COVERED) - {"shares"}:
            database.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY)")
        chain.now, honest = (lambda: "2026-01-01"), chain.now
        try:
            chain.cover(database)
        finally:
            chain.now = honest
        import hashlib

        text = "0" * 64 + " '2026-01-01' ('shares', [('analyst', 'Zo\\xeb'), ('id', 1), ('share', 1.0), ('time', 't')])"
        assert chain.verified(database, "it") == Head(1, hashlib.sha256(text.encode()).hexdigest())
