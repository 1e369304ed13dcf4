"""Journals and claims: wherever a run is stopped, no question ever gets two noises, and nothing is paid twice."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import hypothesis.extra.numpy as npst
import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

import understudy as us
from understudy.boundary.privacy.asks import Marginals
from understudy.boundary.privacy.budget import Budget, Cost
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.facts import PrivacyUnit
from understudy.boundary.privacy.gates import JournalGate, Payer
from understudy.boundary.privacy.journal import ANSWER, FRAME, MAGIC, STEP, Journal
from understudy.boundary.privacy.ledger.claims import FINISHED, HEAD, Overtaken, put
from understudy.boundary.privacy.ledger.ledger import Ledger
from understudy.boundary.schema.domain import Domain
from understudy.errors import BudgetExhausted, InputError, InternalError

BUDGET = Budget(1.0, 1e-6)
QUESTIONS = 4
RELATIONS = ("add-remove", "replace-one")
FACTS = {"method": "a test", "epsilon": 1.0, "seed": 5}

Seen = list[tuple[int, bytes]]


class Stop(BaseException):
    """What stops a run, as Ctrl-C would."""


class Tape:
    """Noise whose n-th draw is a function of n, so that two runs can be compared; it counts what is drawn."""

    secure = True

    def __init__(self) -> None:
        self.drawn = 0

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        self.drawn += 1
        return np.random.default_rng((7, self.drawn)).integers(-(2**40), 2**40, size)

    def choose(self, scores: NDArray[np.float64], exponent: float, k: int) -> list[int]:
        self.drawn += 1
        return [int(i) for i in np.random.default_rng((7, self.drawn)).permutation(len(scores))[:k]]

    def draw(self, counts: NDArray[np.int64], prior: Any, draws: int) -> NDArray[np.int64]:
        raise NotImplementedError


class Unclaimed(JournalGate):
    """The mutant that keeps a journal and tells the ledger nothing of its records."""

    def _kept(self, kind: str, values: list[NDArray[Any]]) -> list[NDArray[Any]]:
        self._journal.append(kind, self._asked, values)
        self._journal.advance()
        return values


class Late(JournalGate):
    """The mutant that claims an answer when the next one is drawn: after the method has seen it."""

    _owed: tuple[int, str] | None = None

    def _kept(self, kind: str, values: list[NDArray[Any]]) -> list[NDArray[Any]]:
        assert self._book is not None and self._journal.entry is not None
        if self._owed:
            self._book.claim(self._journal.entry, *self._owed)
        self._owed = self._journal.place, self._journal.append(kind, self._asked, values)
        self._journal.advance()
        return values


@dataclasses.dataclass
class Desk:
    """A table, its ledger and a journal, and everything that any run was ever handed."""

    folder: Path
    relation: str = "add-remove"
    gate: type[JournalGate] = JournalGate
    tape: Tape = dataclasses.field(default_factory=Tape)
    seen: Seen = dataclasses.field(default_factory=list)

    @property
    def path(self) -> Path:
        return self.folder / "out.journal"

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.sqlite"

    def run(self, resume: bool = False, *, path: Path | None = None, hand: Callable[[int], None] | None = None) -> Seen:
        """All questions, from a new journal or an old one; `hand` is called with the number of each answer."""
        where = path or self.path
        with closing(Journal.resumed(where, self.ledger) if resume else Journal.fresh(where, self.ledger)) as journal:
            journal.settle(FACTS)
            return self.ask(journal, hand or (lambda number: None))

    def ask(self, journal: Journal, hand: Callable[[int], None]) -> Seen:
        schema = us.Schema.loads(
            f'neighbours = "{self.relation}"\n[columns.a]\ntype = "boolean"\n[columns.b]\ntype = "boolean"'
        )
        table = us.open(pa.table({"a": [True, False, True], "b": [True, True, False]}), schema)
        gate = self.gate(table, Payer(BUDGET, self.ledger, "test"), self.tape, journal)
        curator, domain = Curator(schema, BUDGET, gate), Domain.of(schema)
        mine: Seen = []
        for number, amount in enumerate(curator.remaining().split([1.0] * QUESTIONS), 1):
            (measured,) = curator.ask(Marginals(domain, [("a", "b")], amount))
            mine.append((number, measured.counts.tobytes()))
            self.seen.append(mine[-1])
            hand(number)
        return mine

    @property
    def twice(self) -> list[int]:
        """The questions to which runs were handed different answers."""
        return [n for n in range(1, QUESTIONS + 1) if len({v for m, v in self.seen if m == n}) > 1]

    def spent(self) -> list[Cost]:
        return [e.cost for e in Ledger.open(self.ledger).entries()]


@contextmanager
def stopped(point: str, number: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Stops a run at its n-th answer: before it is drawn, written or claimed, or after it was claimed or handed out."""
    done = {"n": 0}

    def breaking(honest: Callable[..., Any], before: bool) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            done["n"] += 1
            if before and done["n"] == number:
                raise Stop
            found = honest(*arguments)
            if done["n"] == number:
                raise Stop
            return found

        return call

    def hand(handed: int) -> None:
        if point == "handed" and handed == number:
            raise Stop

    with monkeypatch.context() as patch:
        if point == "drawing":
            patch.setattr(Tape, "noise", breaking(Tape.noise, before=True))
        elif point in ("writing", "written"):
            patch.setattr(Journal, "append", breaking(Journal.append, before=point == "writing"))
        elif point in ("claiming", "claimed"):
            patch.setattr(Ledger, "claim", breaking(Ledger.claim, before=point == "claiming"))
        yield hand


POINTS = ("drawing", "writing", "written", "claiming", "claimed", "handed")


def interrupted(desk: Desk, point: str, number: int, monkeypatch: pytest.MonkeyPatch, resume: bool = False) -> None:
    with stopped(point, number, monkeypatch) as hand, pytest.raises(Stop):
        desk.run(resume, hand=hand)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


# --- where a run may be stopped


@pytest.mark.slow_after(6)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("number", range(1, QUESTIONS + 1))
def test_no_question_gets_two_noises(tmp_path: Path, point: str, number: int, relation: str, monkeypatch):
    desk = Desk(tmp_path, relation)
    interrupted(desk, point, number, monkeypatch)
    before = desk.tape.drawn
    whole = desk.run(resume=True)
    assert desk.twice == [] and [n for n, _ in whole] == [1, 2, 3, 4]
    # What was claimed is not drawn again, and what was not is.
    assert desk.tape.drawn - before == QUESTIONS - number + (point not in ("claimed", "handed"))
    once = Desk(tmp_path / "once", relation)
    once.folder.mkdir()
    once.run()
    assert desk.spent() == once.spent() and len(desk.spent()) == 1


@pytest.mark.parametrize("point", ["drawing", "claimed", "handed"])
def test_a_resumed_run_equals_one_that_was_never_stopped(tmp_path: Path, point: str, monkeypatch):
    """With the same draws; stopped at every answer, one after the other."""
    desk, once = Desk(tmp_path / "often"), Desk(tmp_path / "once")
    desk.folder.mkdir()
    once.folder.mkdir()
    for number in range(1, QUESTIONS + 1):
        # Of a method that ledger or noise is asked of only for what is new, each run's first is the next answer.
        interrupted(desk, point, number if point == "handed" else 1, monkeypatch, resume=number > 1)
    assert desk.run(resume=True) == once.run()


@pytest.mark.parametrize(("mutant", "point"), [(Unclaimed, "handed"), (Unclaimed, "written"), (Late, "handed")])
def test_a_gate_that_claims_late_or_never_is_found(tmp_path: Path, mutant: type[JournalGate], point: str, monkeypatch):
    desk = Desk(tmp_path, gate=mutant)
    interrupted(desk, point, 2, monkeypatch)
    desk.run(resume=True)
    assert desk.twice != []


def test_a_stop_before_the_debit_leaves_a_journal_that_is_paid_when_it_goes_on(desk: Desk, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(Stop):
        patch.setattr(Ledger, "debit", _stop)
        desk.run()
    assert desk.spent() == []
    copy = shutil.copy(desk.path, desk.folder / "copy.journal")
    desk.run(resume=True)
    assert len(desk.spent()) == 1
    with pytest.raises(InputError, match="older than the ledger"):
        desk.run(resume=True, path=Path(copy))
    assert len(desk.spent()) == 1


def test_a_stop_within_the_debit_leaves_nothing_half_done(desk: Desk, monkeypatch):
    """Debit and head are one transaction: here it is undone after both were written."""
    with monkeypatch.context() as patch, pytest.raises(Stop):
        patch.setattr("understudy.boundary.privacy.ledger.claims.put", _then_stop(put))
        desk.run()
    assert desk.spent() == []
    desk.run(resume=True)
    assert len(desk.spent()) == 1 and desk.twice == []


def _stop(*arguments: Any, **named: Any) -> None:
    raise Stop


def _then_stop(honest: Callable[..., None]) -> Callable[..., None]:
    def call(*arguments: Any) -> None:
        honest(*arguments)
        raise Stop

    return call


# --- copies


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("number", range(1, QUESTIONS))
def test_a_copy_cant_be_resumed_after_the_journal_went_on(tmp_path: Path, number: int, relation: str, monkeypatch):
    desk = Desk(tmp_path, relation)
    interrupted(desk, "handed", number, monkeypatch)
    copy = Path(shutil.copy(desk.path, tmp_path / "copy.journal"))
    desk.run(resume=True)
    drawn, content = desk.tape.drawn, copy.read_bytes()
    with pytest.raises(InputError, match=f"older than the ledger: it lacks answer {number + 1} of the 4") as refusal:
        desk.run(resume=True, path=copy)
    assert refusal.value.exit_code == 2
    assert desk.tape.drawn == drawn and copy.read_bytes() == content and len(desk.spent()) == 1


def test_the_check_of_copies_finds_a_gate_that_never_claims(tmp_path: Path, monkeypatch):
    desk = Desk(tmp_path, gate=Unclaimed)
    interrupted(desk, "handed", 2, monkeypatch)
    copy = Path(shutil.copy(desk.path, tmp_path / "copy.journal"))
    desk.run(resume=True)
    desk.run(resume=True, path=copy)
    assert desk.twice == [1, 2, 3, 4]


def test_of_two_that_go_on_at_once_the_second_is_refused_unseen(desk: Desk, monkeypatch):
    interrupted(desk, "handed", 2, monkeypatch)
    copy = Path(shutil.copy(desk.path, desk.folder / "copy.journal"))
    with closing(Journal.resumed(copy, desk.ledger)) as slow:
        slow.settle(FACTS)
        desk.run(resume=True)
        before = list(desk.seen)
        with pytest.raises(Overtaken, match=r"answer \(3\) of debit 1 must be 5"):
            desk.ask(slow, lambda number: None)
    assert desk.twice == [] and desk.seen[len(before) :] == before[:2], "what it drew itself was never handed out"


def test_two_heads_that_are_the_same_are_debited_once(desk: Desk, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(Stop):
        patch.setattr(Ledger, "debit", _stop)
        desk.run()
    copy = Path(shutil.copy(desk.path, desk.folder / "copy.journal"))
    with closing(Journal.resumed(copy, desk.ledger)) as slow:
        slow.settle(FACTS)
        desk.run(resume=True)
        with pytest.raises(Overtaken, match="debited by another process"):
            desk.ask(slow, lambda number: None)
    assert len(desk.spent()) == 1


def test_one_journal_is_open_once(desk: Desk, monkeypatch):
    pytest.importorskip("fcntl")
    interrupted(desk, "handed", 1, monkeypatch)
    with closing(Journal.resumed(desk.path, desk.ledger)), pytest.raises(InputError, match="in use by another process"):
        desk.run(resume=True)
    desk.run(resume=True)


# --- damaged, foreign and finished journals


@pytest.mark.slow
def test_a_record_cut_anywhere_is_ignored_unless_it_was_claimed(desk: Desk, monkeypatch):
    interrupted(desk, "handed", 1, monkeypatch)
    claimed = desk.path.stat().st_size
    interrupted(desk, "claiming", 1, monkeypatch, resume=True)  # the second is written, and nobody knows it
    content, ledger = desk.path.read_bytes(), desk.ledger.read_bytes()
    assert len(content) > claimed
    for size in range(claimed, len(content)):
        desk.path.write_bytes(content[:size])
        desk.ledger.write_bytes(ledger)
        # Nobody remembers that the same ledger had gone on already.
        monkeypatch.setenv("XDG_STATE_HOME", str(desk.folder / f"state-{size}"))
        fresh = Desk(desk.folder, tape=Tape(), seen=desk.seen[:1])
        fresh.run(resume=True)
        assert fresh.twice == [] and fresh.tape.drawn == QUESTIONS - 1
    for size in range(len(MAGIC), claimed):
        desk.path.write_bytes(content[:size])
        with pytest.raises(InputError, match=r"older than the ledger|ends within its head"):
            desk.run(resume=True)


def test_a_changed_bit_of_a_claimed_record_is_found(desk: Desk, monkeypatch):
    interrupted(desk, "handed", 2, monkeypatch)
    content = bytearray(desk.path.read_bytes())
    content[-1] ^= 1
    desk.path.write_bytes(content)
    with pytest.raises(InputError, match="lacks answer 2 of the 2"):
        desk.run(resume=True)


def test_another_request_is_named_and_nothing_is_drawn(desk: Desk, monkeypatch):
    interrupted(desk, "handed", 1, monkeypatch)
    before = desk.path.read_bytes(), desk.ledger.read_bytes()
    for changed, sentence in (
        ({"epsilon": 2.0}, r"^epsilon \(2.0\) must be 1.0, as in journal"),
        ({"seed": None}, r"^seed \(none\) must be 5"),
        ({"version of numpy": "9"}, r"^version of numpy \(9\) must be none"),
    ):
        with closing(Journal.resumed(desk.path, desk.ledger)) as journal, pytest.raises(InputError, match=sentence):
            journal.settle(FACTS | changed)
    assert (desk.path.read_bytes(), desk.ledger.read_bytes()) == before


def test_another_question_is_a_bug_and_gets_no_answer(desk: Desk, monkeypatch):
    interrupted(desk, "handed", 1, monkeypatch)
    with (
        closing(Journal.resumed(desk.path, desk.ledger)) as journal,
        pytest.raises(InternalError, match="another question"),
    ):
        journal.answer("some other")


def test_another_ledger_knows_nothing(desk: Desk, monkeypatch):
    interrupted(desk, "handed", 1, monkeypatch)
    other = desk.folder / "other.sqlite"
    Ledger.open(other)
    with pytest.raises(InputError, match="knows nothing of journal"):
        Journal.resumed(desk.path, other)
    with pytest.raises(InputError, match="can't be opened"):
        Journal.resumed(desk.path, desk.folder / "none.sqlite")
    assert not (desk.folder / "none.sqlite").exists()
    desk.run(resume=True)


def test_a_finished_release_cant_be_resumed(desk: Desk, monkeypatch):
    interrupted(desk, "handed", QUESTIONS, monkeypatch)
    copy = Path(shutil.copy(desk.path, desk.folder / "copy.journal"))
    with closing(Journal.resumed(desk.path, desk.ledger)) as journal:
        journal.finish(desk.ledger)
    assert not desk.path.exists()
    with pytest.raises(InputError, match="is finished, and can't be resumed"):
        desk.run(resume=True, path=copy)
    ledger = Ledger.open(desk.ledger)
    for place in (QUESTIONS + 1, FINISHED):
        with pytest.raises(Overtaken, match="is finished"):
            ledger.claim(1, place, "x")


def test_what_is_no_journal_is_refused(desk: Desk):
    with pytest.raises(InputError, match="nothing to resume"):
        desk.run(resume=True)
    desk.path.write_text("something else entirely")
    with pytest.raises(InputError, match="isn't a journal"):
        desk.run(resume=True)
    with pytest.raises(InputError, match="isn't a journal"):
        desk.run()
    assert not desk.ledger.exists()


BODY = len(MAGIC) + FRAME.size
"""A journal that is shorter, or not much longer, ends within its head."""


@pytest.mark.parametrize("length", [0, 5, len(MAGIC), BODY - 1, BODY + 10])
@pytest.mark.parametrize("resume", [False, True])
def test_a_journal_that_ends_within_its_head_was_never_paid_for(desk: Desk, length: int, resume: bool, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(Stop):
        patch.setattr(Ledger, "debit", _stop)
        desk.run()
    desk.path.write_bytes(desk.path.read_bytes()[:length])
    desk.run(resume=resume)
    assert len(desk.spent()) == 1


@pytest.mark.parametrize("length", [0, BODY + 10])
def test_a_paid_journal_that_was_cut_short_later_is_not_debited_again_by_resuming(desk: Desk, length: int, monkeypatch):
    interrupted(desk, "handed", 2, monkeypatch)
    desk.path.write_bytes(desk.path.read_bytes()[:length])
    with pytest.raises(InputError, match="ends within its head, so that nothing tells which release it is of"):
        desk.run(resume=True)
    assert len(desk.spent()) == 1 and desk.path.exists()


def test_a_journal_with_a_damaged_head_is_refused(desk: Desk, monkeypatch):
    interrupted(desk, "handed", 2, monkeypatch)
    content = bytearray(desk.path.read_bytes())
    content[BODY + 5] ^= 1
    desk.path.write_bytes(content)
    for resume in (False, True):
        with pytest.raises(InputError, match="is damaged in its head"):
            desk.run(resume=resume)
    assert desk.path.read_bytes() == content


@pytest.mark.parametrize("body", [b"{", b"[]", b"{}", b'{"other": 1}', b"[" * 100_000, b"\xff"])
def test_a_head_with_a_right_digest_that_says_nothing_is_refused(desk: Desk, body: bytes, monkeypatch):
    """Anybody can compute a digest."""
    interrupted(desk, "handed", 2, monkeypatch)
    desk.path.write_bytes(MAGIC + FRAME.pack(len(body), hashlib.sha256(body).digest()) + body)
    for resume in (False, True):
        with pytest.raises(InputError, match="is damaged; put a copy back"):
            desk.run(resume=resume)


def test_a_plain_run_says_whether_the_journal_in_its_way_is_paid_for(desk: Desk, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(Stop):
        patch.setattr(Ledger, "debit", _stop)
        desk.run()
    with pytest.raises(InputError, match="interrupted before the ledger was debited for it; go on with it"):
        desk.run()
    desk.path.unlink()
    interrupted(desk, "handed", 1, monkeypatch)
    with pytest.raises(InputError, match="interrupted, and is paid for; go on with it"):
        desk.run()


def test_a_release_is_finished_also_where_the_ledger_cant_be_written(desk: Desk, monkeypatch):
    """It is delivered by then: the journal goes, and a copy of it gives the same release once more."""

    def full(self: Ledger, entry: int, place: int, digest: str) -> None:
        if place == FINISHED:
            raise InputError("the disk is full")
        honest(self, entry, place, digest)

    honest = Ledger.claim
    monkeypatch.setattr(Ledger, "claim", full)
    desk.run()
    with closing(Journal.resumed(desk.path, desk.ledger)) as journal:
        journal.finish(desk.ledger)
    assert not desk.path.exists() and len(desk.spent()) == 1


def test_an_interrupt_after_the_commit_of_the_debit_leaves_a_paid_journal(desk: Desk, monkeypatch):
    def late(self: Ledger, *arguments: Any, **named: Any) -> int:
        honest(self, *arguments, **named)
        raise KeyboardInterrupt

    honest = Ledger.debit
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Ledger, "debit", late)
        desk.run()
    assert len(desk.spent()) == 1
    desk.run(resume=True)
    assert len(desk.spent()) == 1


def test_an_interrupt_before_the_debit_leaves_no_journal(desk: Desk, monkeypatch):
    def early(*arguments: Any, **named: Any) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Ledger, "debit", early)
        desk.run()
    assert desk.spent() == [] and not desk.path.exists()


def test_a_refused_debit_leaves_no_journal(desk: Desk):
    Ledger.open(desk.ledger).set_limit(Budget(0.5, 1e-6), "add-remove")
    before = desk.ledger.read_bytes()
    with pytest.raises(BudgetExhausted):
        desk.run(path=desk.folder / "new" / "folder" / "out.journal")
    assert [p.name for p in desk.folder.iterdir()] == ["ledger.sqlite"] and desk.ledger.read_bytes() == before


# --- the file, and the table of claims


def test_only_the_owner_may_read_it(desk: Desk, monkeypatch):
    interrupted(desk, "handed", 1, monkeypatch)
    assert stat.S_IMODE(desk.path.stat().st_mode) == 0o600


ARRAYS = npst.arrays(
    st.one_of(npst.integer_dtypes(), npst.floating_dtypes(sizes=(32, 64)), npst.unicode_string_dtypes(max_len=5)),
    npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)


@settings(max_examples=60, deadline=None)
@given(values=st.lists(st.lists(ARRAYS, min_size=1, max_size=3), min_size=1, max_size=4))
def test_what_is_read_is_what_was_written(values: list[list[NDArray[Any]]], tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("journal") / "x.journal"
    with closing(Journal.fresh(path)) as journal:
        journal.settle(FACTS)
        journal.create()
        digests = []
        for number, arrays in enumerate(values):
            digests.append(journal.append(ANSWER, f"question {number}", arrays))
            journal.advance()
    with closing(Journal.open(path)) as again:
        again.take(digests)
        assert again.facts == FACTS and again.digest == journal.digest
        for number, arrays in enumerate(values):
            read = again.answer(f"question {number}")
            assert read is not None
            assert [(a.dtype, a.shape, a.tobytes()) for a in read] == [(a.dtype, a.shape, a.tobytes()) for a in arrays]
        assert again.answer("the next") is None


def test_objects_are_never_written(tmp_path: Path):
    with closing(Journal.fresh(tmp_path / "x.journal")) as journal:
        journal.create()
        with pytest.raises(InternalError, match="object"):
            journal.append(ANSWER, "q", [np.array([object()])])


def test_steps_of_a_finished_answer_are_passed_over(tmp_path: Path):
    path = tmp_path / "x.journal"
    with closing(Journal.fresh(path)) as journal:
        journal.create()
        digests = []
        for kind, question, value in ((STEP, "q", 1), (STEP, "q", 2), (ANSWER, "q", 3), (STEP, "r", 4)):
            digests.append(journal.append(kind, question, [np.array([value])]))
            journal.advance()
    with closing(Journal.open(path)) as again:
        again.take(digests)
        assert again.answer("q") == [np.array([3])]
        assert again.answer("r") is None and again.step("r") == np.array([4])
        assert again.step("r") is None and again.place == 5


@pytest.mark.parametrize(
    "attempt",
    [
        "UPDATE claims SET digest = 'x'",
        "DELETE FROM claims",
        "INSERT OR REPLACE INTO claims (entry, place, digest) VALUES (1, 1, 'x')",
        "INSERT OR REPLACE INTO claims (entry, place, digest) SELECT 2, 0, digest FROM claims WHERE place = 0",
    ],
)
def test_claims_are_only_ever_added(desk: Desk, attempt: str, monkeypatch):
    interrupted(desk, "handed", 1, monkeypatch)
    with closing(sqlite3.connect(desk.ledger)) as database:
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            database.execute(attempt)
        database.rollback()
    desk.run(resume=True)


def test_places_are_claimed_in_order():
    with Ledger.memory() as ledger:
        assert ledger.claimed("head") is None
        entry = ledger.debit(Cost.zero(), BUDGET, "add-remove", "test", journal="head", unit=PrivacyUnit())
        ledger.claim(entry, 1, "a")
        for place in (1, 3, HEAD - 5):
            with pytest.raises(Overtaken, match=r"must be 2"):
                ledger.claim(entry, place, "b")
        ledger.claim(entry, 2, "b")
        found = ledger.claimed("head")
        assert found is not None and (found.entry, found.digests, found.finished) == (entry, ("a", "b"), False)
