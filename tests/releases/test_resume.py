"""Releases that were stopped: wherever that was, and whichever the method, they go on to the same end at one price."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import understudy as us
from helpers.tuning import tune
from understudy.boundary.privacy.asks import Select
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.ledger.ledger import Ledger
from understudy.boundary.privacy.mechanisms.posterior import Prior
from understudy.boundary.privacy.mechanisms.teachers import ExactVotes
from understudy.boundary.privacy.mechanisms.training import GradientSums
from understudy.errors import InputError, MethodError
from understudy.inference.generators.adversarial_training import TrainingConfig
from understudy.methods import registry
from understudy.methods.dp_ctgan import dp_ctgan
from understudy.methods.dp_gan import dp_gan
from understudy.methods.method import Options
from understudy.methods.pate_gan import PateConfig, PateGan
from understudy.releases.certificate import versions
from understudy.releases.interruption import continued, journal_at
from understudy.releases.synthesis import Plan, synthesize_with

RELATIONS = ("add-remove", "replace-one")
COLUMNS = """
[columns.colour]
type = "categorical"
values = ["red", "green", "blue"]
missing = true
[columns.size]
type = "integer"
min = 0
max = 19
[columns.large]
type = "boolean"
"""
TRAINED = ("dp-gan", "dp-ctgan", "pate-gan")
COUNTED = tuple(m for m in registry.METHODS if m not in TRAINED and not registry.METHODS[m].traits.selects)
NETWORKS = all(importlib.util.find_spec(name) for name in ("torch", "dp_accounting"))
needs_networks = pytest.mark.skipif(not NETWORKS, reason="the extra gan is not installed")
STEPS = 3
TINY = TrainingConfig(steps=STEPS, lessons=2, batch=30, hidden=3, deep_share=0.1)
FEW = PateGan(PateConfig(rounds=STEPS, votes=5, lessons=2), TrainingConfig(hidden=0, deep_share=0.0, pace=2e-3))


class Stop(BaseException):
    """What stops a run, as Ctrl-C would."""


class Tape:
    """Noise whose n-th draw is a function of n: two runs that draw as often have the same noise."""

    secure = True

    def __init__(self) -> None:
        self.drawn = 0

    def _next(self) -> np.random.Generator:
        self.drawn += 1
        return np.random.default_rng((3, self.drawn))

    def noise(self, mechanism: str, scale: float, size: int) -> NDArray[np.int64]:
        law = np.random.Generator.normal if mechanism != "discrete-laplace" else np.random.Generator.laplace
        return np.rint(law(self._next(), 0.0, scale, size)).astype(np.int64)

    def choose(self, scores: NDArray[np.float64], exponent: float, k: int) -> list[int]:
        noisy = exponent * scores + self._next().gumbel(size=len(scores))
        return [int(i) for i in np.argsort(-noisy, kind="stable")[:k]]

    def draw(self, counts: NDArray[np.int64], prior: Prior, draws: int) -> NDArray[np.int64]:
        law = (counts + 1.0) / (counts + 1.0).sum()
        return self._next().multinomial(draws, law.ravel()).reshape(counts.shape)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings of three steps, and small pools."""
    made: dict[str, Callable[[Options, Any], Any]] = {
        "dp-gan": lambda options, params: dp_gan(options.targets, TINY),
        "dp-ctgan": lambda options, params: dp_ctgan(options.targets, TINY),
        "pate-gan": lambda options, params: FEW,
    }
    for name, make in made.items():
        monkeypatch.setitem(registry.METHODS, name, registry.Method(name, "(ε, δ)", "", "", make))
    tune(monkeypatch, "dp-select", fewest_pool_rows=400)


def schema_of(relation: str) -> us.Schema:
    return us.Schema.loads(f'neighbours = "{relation}"\n{COLUMNS}')


def table_of(relation: str) -> us.Table:
    rng = np.random.default_rng(1)
    size = rng.integers(0, 20, 200)
    colour = np.array(["red", "green", "blue", None], dtype=object)[rng.integers(0, 4, 200)]
    return us.open(pa.table({"colour": pa.array(colour), "size": size, "large": size >= 10}), schema_of(relation))


class Desk:
    """One release, its ledger and its journal, as the command line would use them."""

    def __init__(self, folder: Path, method: str, relation: str, **options: Any) -> None:
        folder.mkdir(exist_ok=True)
        self.journal, self.ledger = folder / "out.journal", folder / "ledger.sqlite"
        self.method, self.relation, self.options = method, relation, Options(**options)
        self.tape = Tape()

    def plan(self, seed: int | None = None) -> Plan:
        return Plan.of(schema_of(self.relation), Budget(2.0, 1e-5), self.method, self.options, 20, seed)

    def run(self, resume: bool = False, seed: int | None = None) -> us.Release:
        with closing(journal_at(self.journal, self.ledger, resume)) as journal:
            plan = continued(self.plan(seed), journal, seed=seed)
            table = table_of(self.relation)
            release = synthesize_with(table, plan, randomness=self.tape, ledger=self.ledger, journal=journal)
            journal.finish(self.ledger)
            return release

    @property
    def claims(self) -> int:
        """How many records the release took, once it is made."""
        with closing(sqlite(self.ledger)) as database:
            return int(database.execute("SELECT count(*) FROM claims WHERE place > 0").fetchone()[0])


def sqlite(path: Path) -> Any:
    import sqlite3

    return sqlite3.connect(path)


@contextmanager
def stopped_after(claims: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stops a run right after its n-th claim of this run, before anybody sees what was claimed."""
    honest, done = Ledger.claim, [0]

    def claim(self: Ledger, entry: int, place: int, digest: str) -> None:
        honest(self, entry, place, digest)
        done[0] += 1
        if done[0] == claims:
            raise Stop

    with monkeypatch.context() as patch, pytest.raises(Stop):
        patch.setattr(Ledger, "claim", claim)
        yield


def content(release: us.Release) -> tuple[Any, ...]:
    """All of a release but the time at which it was made."""
    record = [(a.question, a.value.dtype.str, a.value.tobytes()) for a in release.record]
    return release.synthetic_bytes("csv"), record, release.certificate.spends, release.certificate.seed


def check_every_stop(method: str, relation: str, folder: Path, monkeypatch, same_noise: bool = True, **options: Any):
    once = Desk(folder / "once", method, relation, **options)
    whole = once.run(seed=9)
    spent, claims = Ledger.open(once.ledger).spent(), once.claims
    assert claims >= 1 and not once.journal.exists()
    for number in range(1, claims + 1):
        desk = Desk(folder / f"stopped-{number}", method, relation, **options)
        with stopped_after(number, monkeypatch):
            desk.run(seed=9)
        assert desk.journal.exists()
        release = desk.run(resume=True)
        assert not same_noise or content(release) == content(whole), number
        assert desk.claims == claims and not desk.journal.exists()
        assert Ledger.open(desk.ledger).spent() == spent and len(Ledger.open(desk.ledger).entries()) == 1
        if not same_noise or number == claims:
            replayed(desk, release)


def replayed(desk: Desk, release: us.Release) -> None:
    """A run that has no rows, given the same answers, makes the same release."""
    plan = desk.plan(release.certificate.seed)
    curator = Curator.replaying(release.schema, plan.budget, release.record)
    assert content(plan.release(curator, "pyarrow", lambda *a, **k: None)) == content(release)


# --- every method, every stop


SLOW = {"rake": "add-remove", "dp-arf": "replace-one"}
"""Methods of many questions, each with one of the relations."""
CASES = [(m, r) for m in COUNTED for r in RELATIONS if SLOW.get(m, r) == r]


@pytest.mark.slow_after(4)
@pytest.mark.parametrize(("method", "relation"), CASES)
def test_a_stop_after_any_answer(method: str, relation: str, tmp_path: Path, monkeypatch):
    needed: dict[str, Any] = {"marginals": (("size", "large"),)} if method == "marginals" else {}
    check_every_stop(method, relation, tmp_path, monkeypatch, **needed)


@pytest.mark.slow
def test_a_stop_of_a_selection_out_of_a_pool(tmp_path: Path, monkeypatch):
    check_every_stop("dp-select", "add-remove", tmp_path, monkeypatch, pool="independent")


@pytest.mark.slow
@needs_networks
@pytest.mark.parametrize(("method", "relation"), [("dp-gan", "add-remove"), ("dp-ctgan", "replace-one")])
def test_a_stop_after_any_step_of_a_training(method: str, relation: str, tmp_path: Path, monkeypatch):
    check_every_stop(method, relation, tmp_path, monkeypatch)


@pytest.mark.slow
@needs_networks
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_stop_after_any_round_of_votes(relation: str, tmp_path: Path, monkeypatch):
    """Rows are given to teachers anew, so that later votes have other noise; what was heard stays heard."""
    check_every_stop("pate-gan", relation, tmp_path, monkeypatch, same_noise=False)


@needs_networks
@pytest.mark.parametrize(("method", "part"), [("dp-gan", GradientSums), ("pate-gan", ExactVotes)])
@pytest.mark.parametrize("left", range(STEPS))
def test_only_the_steps_that_are_left_meet_rows(method: str, part: type, left: int, tmp_path: Path, monkeypatch):
    desk = Desk(tmp_path, method, "add-remove")
    drawn: list[NDArray[np.int64]] = []
    honest = part.noisy

    def watched(self: Any, *arguments: Any) -> NDArray[np.int64]:
        drawn.append(honest(self, *arguments))
        return drawn[-1]

    monkeypatch.setattr(part, "noisy", watched)
    with stopped_after(1 + STEPS - left, monkeypatch):  # the counts are the first record
        desk.run()
    assert len(drawn) == STEPS - left
    desk.run(resume=True)
    assert len(drawn) == STEPS


def test_a_release_that_is_stopped_again_and_again(tmp_path: Path, monkeypatch):
    once, desk = Desk(tmp_path / "once", "rake", "add-remove"), Desk(tmp_path / "often", "rake", "add-remove")
    whole = once.run(seed=4)
    for number in range(once.claims):
        with stopped_after(1, monkeypatch):
            desk.run(resume=number > 0, seed=4)
    assert content(desk.run(resume=True)) == content(whole)
    assert Ledger.open(desk.ledger).spent() == Ledger.open(once.ledger).spent()


def test_an_error_of_a_method_between_two_answers(tmp_path: Path, monkeypatch):
    """Here the last answer was handed out, and the method broke; the answer stays what it was."""
    desk, once = Desk(tmp_path / "broken", "mst", "add-remove"), Desk(tmp_path / "once", "mst", "add-remove")
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr(Select, "spends", lambda *a, **k: 1 / 0)
        desk.run(seed=2)
    assert content(desk.run(resume=True)) == content(once.run(seed=2))


# --- the seed, and what must be the same


def test_a_random_seed_is_taken_from_the_journal(tmp_path: Path, monkeypatch):
    desk = Desk(tmp_path, "mst", "add-remove")
    with stopped_after(1, monkeypatch):
        desk.run()
    with closing(journal_at(desk.journal, desk.ledger, True)) as journal:
        seed = journal.facts["seed"]
    assert desk.run(resume=True).certificate.seed == seed


def test_title_and_publisher_go_on_unless_others_are_said(tmp_path: Path, monkeypatch):
    asked: dict[str, Any] = {"epsilon": 2.0, "method": "mst", "rows": 50}
    for said, wanted in (({}, "then"), ({"title": "now"}, "now")):
        places = {"ledger": tmp_path / f"{wanted}.sqlite", "journal": tmp_path / f"{wanted}.journal"}
        with stopped_after(1, monkeypatch):
            us.synthesize(table_of("add-remove"), **asked, **places, title="then")
        resumed = us.synthesize(table_of("add-remove"), **asked, **places, **said, resume=True)
        assert resumed.certificate.imprint.title == wanted


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"epsilon": 1.0}, r"^epsilon \(1.0\) must be 2.0"),
        ({"delta": 1e-6}, r"^delta \(1e-06\) must be 1e-05"),
        ({"method": "independent"}, r"^method \(independent\) must be mst"),
        ({"seed": 6}, r"^seed \(6\) must be 5"),
        ({"target": "large"}, r"^target \(large\) must be none"),
        ({"test_only_noise_seed": 1}, r"^noise \(seeded, for tests\) must be secure"),
    ],
)
def test_another_request_is_refused_by_name(changed: dict[str, Any], sentence: str, tmp_path: Path, monkeypatch):
    asked: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "method": "mst", "seed": 5, "rows": 50}
    places = {"ledger": tmp_path / "ledger.sqlite", "journal": tmp_path / "out.journal"}
    table = table_of("add-remove")
    with stopped_after(1, monkeypatch):
        us.synthesize(table, **asked, **places)
    before = {name: path.read_bytes() for name, path in places.items()}
    with pytest.raises(InputError, match=sentence):
        us.synthesize(table, **(asked | changed), **places, resume=True)
    assert {name: path.read_bytes() for name, path in places.items()} == before
    assert us.synthesize(table, **asked, **places, resume=True).certificate.seed == 5


def test_other_neighbours_another_schema_and_another_version_are_refused(tmp_path: Path, monkeypatch):
    asked: dict[str, Any] = {"epsilon": 2.0, "method": "mst"}
    places = {"ledger": str(tmp_path / "ledger.sqlite"), "journal": str(tmp_path / "out.journal")}
    with stopped_after(1, monkeypatch):
        us.synthesize(table_of("add-remove"), **asked, **places)
    with pytest.raises(InputError, match=r"^neighbours \(replace-one\) must be add-remove"):
        us.synthesize(table_of("replace-one"), **asked, **places, resume=True)
    wider = us.Schema.loads(COLUMNS.replace("max = 19", "max = 20"))
    rows = pa.table({"colour": ["red", "red"], "size": [1, 2], "large": [True, False]})
    with pytest.raises(InputError, match=r"^schema \("):
        us.synthesize(us.open(rows, wider), **asked, **places, resume=True)
    with monkeypatch.context() as patch, pytest.raises(InputError, match=r"^version of understudy \(9\.9\) must be "):
        patch.setattr("understudy.releases.synthesis.versions", lambda: versions() | {"understudy": "9.9"})
        us.synthesize(table_of("add-remove"), **asked, **places, resume=True)
    assert us.synthesize(table_of("add-remove"), **asked, **places, resume=True).certificate.guarantee


def test_what_a_journal_needs(tmp_path: Path):
    table, path, ledger = table_of("add-remove"), tmp_path / "out.journal", tmp_path / "ledger.sqlite"
    with pytest.raises(InputError, match="needs a ledger"):
        us.synthesize(table, epsilon=1.0, journal=path)
    with pytest.raises(InputError, match="needs a ledger"):
        us.synthesize(table, epsilon=1.0, resume=True)
    with pytest.raises(InputError, match="name the journal"):
        us.synthesize(table, epsilon=1.0, ledger=ledger, resume=True)
    with pytest.raises(InputError, match="nothing to resume"):
        us.synthesize(table, epsilon=1.0, ledger=ledger, journal=path, resume=True)
    assert list(tmp_path.iterdir()) == []


def test_a_refused_release_leaves_no_journal(tmp_path: Path):
    with pytest.raises(MethodError):
        us.synthesize(
            table_of("add-remove"), epsilon=1.0, method="mts", journal=tmp_path / "j", ledger=tmp_path / "ledger"
        )
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_in_memory_will_do(tmp_path: Path, monkeypatch):
    with Ledger.memory() as ledger:
        asked: dict[str, Any] = {"epsilon": 1.0, "method": "mst", "ledger": ledger, "journal": tmp_path / "j"}
        with stopped_after(2, monkeypatch):
            us.synthesize(table_of("replace-one"), **asked)
        assert us.synthesize(table_of("replace-one"), **asked, resume=True).certificate.guarantee
        assert len(ledger.entries()) == 1
