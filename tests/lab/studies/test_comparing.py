"""`understudy.compare`: the same figures as by hand, in children that may fail; a run that is killed goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import understudy as us
from understudy.lab.evaluation.evaluation import evaluate
from understudy.lab.evaluation.holdout import HoldoutSplit
from understudy.lab.jobs import worker_pool
from understudy.lab.jobs.worker_pool import Broken, WorkerPool, python_command
from understudy.lab.studies import worker
from understudy.lab.studies.method_comparison import TrialAdvance, compare
from understudy.lab.studies.record import FILE, KEY
from understudy.lab.studies.study import BASELINE, TRIAL_MEASURES, WITHOUT_GUARANTEE, Case, Study, cases
from understudy.lab.studies.worker import StudyTask, peak_megabytes, sentence, trials
from understudy.methods.method import STATISTICS_FIRST

SCHEMA = """
status = "draft"
[columns.age]
type = "integer"
min = 0
max = 99
bins = 10
[columns.job]
type = "categorical"
values = ["clerk", "cook", "nurse"]
[columns.smoker]
type = "boolean"
"""
WATCHDOG = 600
"""Seconds. It ends what hangs; a busy machine may need minutes for what else takes a second."""
FAST = {"epsilons": [1], "seeds": 1, "measures": ["tv1", "tv2"], "jobs": 1}


def people(rows: int = 300) -> pa.Table:
    rng = np.random.default_rng(5)
    job = rng.choice(["clerk", "cook", "nurse"], rows)
    return pa.table({"age": rng.integers(0, 100, rows), "job": job, "smoker": rng.random(rows) < 0.3})


def schema() -> us.Schema:
    return us.Schema.loads(SCHEMA)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Study, list[TrialAdvance]]]:
    """A study in which one method refuses."""
    out = tmp_path_factory.mktemp("study")
    steps: list[TrialAdvance] = []
    study = compare(people(), schema(), methods=["mst", "marginals"], out=out, progress=steps.append, **FAST)
    yield out, study, steps


def test_figures_are_those_of_the_same_release_by_hand(done: tuple[Path, Study, list[TrialAdvance]]):
    split = HoldoutSplit.of(people(), schema())
    study = done[1]
    release = us.synthesize(
        us.open(split.train, schema()), method="mst", epsilon=1, seed=0, test_only_noise_seed=0,
        accept_draft_as_public=True,
    )  # fmt: skip
    by_hand = evaluate(split.train, release.arrow, holdout=split.holdout, schema=schema(), measures=["tv1", "tv2"])
    (trial,) = study.of("mst", 1.0)
    assert trial.figures == by_hand.figures
    assert study.rows == 240 and study.holdout_rows == 60
    assert trial.seconds > 0 and trial.megabytes > 10


def test_a_method_that_refuses_is_recorded_and_the_study_goes_on(done: tuple[Path, Study, list[TrialAdvance]]):
    (failed,) = done[1].failures()
    assert failed.method == "marginals" and failed.failed.startswith("method marginals needs marginals or a target")
    assert done[1].methods == ("mst", "marginals")
    assert done[1].families == dict.fromkeys(("mst", "marginals"), STATISTICS_FIRST)


def test_the_baseline_is_the_real_table(done: tuple[Path, Study, list[TrialAdvance]]):
    assert {name: figure.value for name, figure in done[1].baseline.items()} == {"tv1": 0.0, "tv2": 0.0}


def test_progress_is_told(done: tuple[Path, Study, list[TrialAdvance]]):
    assert [(s.done, s.total, s.recorded) for s in done[2]] == [(0, 3, 0), (1, 3, 0), (2, 3, 0), (3, 3, 0)]
    assert done[2][0].trial is None
    assert {s.trial.key for s in done[2][1:] if s.trial} == {BASELINE.key, ("mst", 1.0, 0), ("marginals", 1.0, 0)}


def test_no_row_and_no_release_is_kept(done: tuple[Path, Study, list[TrialAdvance]]):
    assert {p.name for p in done[0].iterdir()} == {FILE, KEY, "results.parquet", "results.csv"}
    assert pq.read_table(done[0] / "results.parquet").filter(pa.compute.field("method") == "mst").num_rows == 8


def test_what_is_on_record_is_not_run_again(
    done: tuple[Path, Study, list[TrialAdvance]], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(worker_pool.subprocess, "Popen", None)  # a child could not even begin
    steps: list[TrialAdvance] = []
    again = compare(people(), schema(), methods=["mst", "marginals"], out=done[0], progress=steps.append, **FAST)
    assert again == done[1]
    assert [(s.done, s.total, s.recorded) for s in steps] == [(3, 3, 3)]
    fewer = compare(people(), schema(), methods=["mst"], out=done[0], **FAST)
    assert fewer.methods == ("mst",)


def test_another_question_is_refused_before_it_is_run(done: tuple[Path, Study, list[TrialAdvance]]):
    with pytest.raises(us.ReleaseError, match="the data changed"):
        compare(people(301), schema(), methods=["mst"], out=done[0], **FAST)


RUN = """
import signal, sys
import pyarrow.parquet as pq
import understudy as us
from understudy.lab.studies.method_comparison import compare
data, schema, out = sys.argv[1:]

def progress(step):
    print(step.done, flush=True)
    if step.done == 2:
        signal.pause()  # until it is killed: else the third trial might be faster

compare(
    data, us.Schema.load(schema), methods=["independent"], epsilons=[1, 2], seeds=1, measures=["tv1"], jobs=1, out=out,
    progress=progress,
)
"""


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_stopped(tmp_path: Path):
    """It is killed with SIGKILL after two of three trials, from a script without any guard."""
    data, rules, out = tmp_path / "people.parquet", tmp_path / "people.toml", tmp_path / "out"
    pq.write_table(people(), data)
    rules.write_text(SCHEMA)
    (tmp_path / "run.py").write_text(RUN)
    command = [sys.executable, str(tmp_path / "run.py"), str(data), str(rules), str(out)]
    run = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert run.stdout is not None
    with run.stdout:
        assert [int(run.stdout.readline()) for _ in range(3)] == [0, 1, 2]
        os.kill(run.pid, signal.SIGKILL)
        assert run.wait() == -signal.SIGKILL
    before = (out / FILE).read_bytes()
    assert before.count(b"\n") == 3 and not (out / "results.csv").exists()
    steps: list[TrialAdvance] = []
    study = compare(
        data, rules, methods=["independent"], epsilons=[1, 2], seeds=1, measures=["tv1"], jobs=1, out=out,
        progress=steps.append,
    )  # fmt: skip
    assert (steps[0].recorded, len(steps)) == (2, 2)  # one beginning, one trial
    assert (out / FILE).read_bytes().startswith(before)
    assert [t.key for t in study.trials] == [("independent", 1.0, 0), ("independent", 2.0, 0)]
    assert not list(study.failures()) and (out / "results.csv").exists()


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Study]:
    """A method beside one without a guarantee, attacked, with an option."""
    out = tmp_path_factory.mktemp("beside")
    wish: dict[str, Any] = FAST | {"epsilons": [1, 5], "measures": ["tv1"], "target": "job"}
    options = {"arf": {"num_trees": "3"}}
    return out, compare(
        people(), schema(), methods=["arf", "independent"], attacks=True, options=options, out=out, **wish
    )


def test_a_specimen_takes_part_and_never_wins(beside: tuple[Path, Study]):
    study = beside[1]
    assert not list(study.failures()) and study.families["arf"] == WITHOUT_GUARANTEE
    assert study.methods == ("arf", "independent") and study.guaranteed == ("independent",)
    (tv1,) = (m for m in study.measures if m.name == "tv1")
    assert {study.best(e, tv1)[0] for e in (1.0, 5.0)} == {"independent"}  # type: ignore[index]
    assert {r.method for r in study.ranking(1.0)} == {"independent"}


def test_what_knows_no_epsilon_is_run_once(beside: tuple[Path, Study]):
    """Its seconds are the same to the last digit, which no second run would have."""
    out, study = beside
    (first,), (second,) = study.of("arf", 1.0), study.of("arf", 5.0)
    assert (first.epsilon, second.epsilon) == (1.0, 5.0)
    assert first.figures == second.figures and first.seconds == second.seconds
    ours = [study.of("independent", e)[0].seconds for e in (1.0, 5.0)]
    assert ours[0] != ours[1]
    # Another ε asked for later is known, too; only the other method is run.
    steps: list[TrialAdvance] = []
    wish: dict[str, Any] = FAST | {"epsilons": [2], "measures": ["tv1"], "target": "job"}
    compare(
        people(), schema(), methods=["arf"], attacks=True, options={"arf": {"num_trees": 3}}, out=out,
        progress=steps.append, **wish,
    )  # fmt: skip
    assert [(s.done, s.total, s.recorded) for s in steps] == [(2, 2, 2)]


def test_every_trial_is_attacked(beside: tuple[Path, Study]):
    attacked = {m.name for m in TRIAL_MEASURES if m.name.startswith("attack-")}
    assert all(attacked < set(t.figures) for t in beside[1].trials)
    copied = beside[1].baseline["attack-copies"]
    assert len(attacked) == 7 and copied.value is not None


def test_an_option_is_part_of_the_question(beside: tuple[Path, Study]):
    wish: dict[str, Any] = FAST | {"epsilons": [1], "measures": ["tv1"], "target": "job"}
    with pytest.raises(us.ReleaseError, match="the options changed"):
        compare(people(), schema(), methods=["arf"], attacks=True, out=beside[0], **wish)


def task() -> StudyTask:
    options = (("dp-gan", (("pace", 0.5), ("steps", 3))),)
    return StudyTask(people(), people(20), schema(), 1e-6, "job", ("smoker",), ("tv1",), options, "cook")


def test_a_task_travels_unchanged():
    assert StudyTask.from_bytes(task().to_bytes()) == task()


def child(code: str) -> list[str]:
    return [sys.executable, "-c", f"import os, signal, sys; sys.stdin.buffer.read(); {code}"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "the process was killed, most likely because the machine ran out of"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "the process was ended by signal SIGSEGV"),
        ("print('x', file=sys.stderr); sys.exit(3)", "the process broke off with exit code 3"),
        ("sys.exit(0)", "the process broke off with exit code 0"),
    ],
)
def test_the_death_of_a_child_is_a_failed_trial(monkeypatch: pytest.MonkeyPatch, code: str, said: str):
    monkeypatch.setattr(worker, "python_command", lambda module: child(code))
    (trial,) = trials(task(), [Case("mst", 1.0, 0)], 1)
    assert trial.failed.startswith(said) and trial.key == ("mst", 1.0, 0)


@pytest.mark.slow
def test_an_interrupt_ends_the_children():
    pool: WorkerPool[Case] = WorkerPool(child("import time; time.sleep(3600)"), {}, 2, fresh=True)
    seen: list[subprocess.Popen[bytes]] = []

    def interrupt(*_: object) -> None:
        """As soon as there is something to interrupt, however long that takes."""
        if len(pool._running) < 2:
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            return
        seen.extend(w.process for w in pool._running)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            next(pool.run([Case("mst", 1.0, seed) for seed in range(5)]))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert [c.returncode for c in seen] == [-signal.SIGKILL] * 2  # and the other three never began


def test_a_child_ends_with_the_study_that_began_it():
    lines = json.dumps({"parent": os.getpid() + 1, "attached": 1_000}).encode() + b"\n"
    run = subprocess.Popen(python_command(worker.__name__), stdin=subprocess.PIPE)
    assert run.stdin is not None
    with run.stdin:
        run.stdin.write(lines)
        run.stdin.flush()
        assert run.wait(WATCHDOG) == 1  # though there is more to come on its standard input


def test_reasons_are_one_line():
    assert sentence(us.MethodError("too large")) == "too large"
    assert sentence(MemoryError()) == "there was not enough memory"
    assert sentence(ValueError("first\nsecond")) == "a bug of ours (ValueError)"
    assert Broken(1, "").reason == "the process broke off with exit code 1"
    assert Broken(1, "mod.SomeError: Ada").reason == "the process broke off with exit code 1 (mod.SomeError)"


def test_memory_is_that_of_this_process():
    before = peak_megabytes()
    block = np.ones(30_000_000)
    assert peak_megabytes() >= before and peak_megabytes() > block.nbytes / 2**20


def test_cases_are_distinct_and_in_order():
    found = cases(["mst", "mst", "aim"], [3, 1.0, 1], 2, 0.0)
    assert [c.key for c in found[:4]] == [("mst", 3.0, 0), ("aim", 3.0, 0), ("mst", 1.0, 0), ("aim", 1.0, 0)]
    assert len(set(found)) == len(found) == 8
    assert {c.method for c in cases(None, [1], 1, 1e-6)} == set(us.METHODS)


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ({"methods": ["msst"]}, "method 'msst' is not known; did you mean 'mst'?"),
        ({"methods": []}, "at least one method"),
        ({"epsilons": []}, "one epsilon"),
        ({"epsilons": [0]}, "epsilon (0) must"),
        ({"epsilons": [float("nan")]}, "epsilon (nan) must"),
        ({"delta": 2.0}, "delta (2.0) must"),
        ({"seeds": 0}, "seeds (0) must be a whole number from 1"),
        ({"seeds": 1.5}, "seeds (1.5) must be a whole number from 1"),
        ({"jobs": 0}, "jobs (0) must be a whole number from 1"),
        ({"target": "wage"}, "the target 'wage' is not a column"),
        ({"groups": ["age"]}, "the group 'age' is a number"),
        ({"measures": ["tv9"]}, "measure 'tv9' is not known; the measures are tv1, tv2"),
        ({"measures": []}, "at least one measure"),
        ({"options": {"mst": {}}, "methods": ["aim"]}, "there are options for 'mst', which takes no part"),
        ({"options": {"dp-gan": {"step": 3}}}, "option 'step' of method dp-gan is not known; did you mean 'steps'?"),
        ({"options": {"dp-gan": {"steps": 0}}}, "steps (0) must be"),
        ({"positive": "cook"}, "name the target too"),
        ({"positive": "judge", "target": "job"}, "'judge' is no declared value of 'job'"),
        ({"holdout": people(0)}, "the hold-out has 0 rows"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(tmp_path: Path, wish: dict[str, object], said: str):
    with pytest.raises(us.InputError) as refused:
        compare(people(), schema(), **{**FAST, "out": tmp_path / "out", **wish})
    assert said in str(refused.value)
    assert not (tmp_path / "out").exists()
