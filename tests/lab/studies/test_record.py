"""What a study leaves on disk: whole trials, for one question, from one run at a time."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from understudy.errors import ReleaseError
from understudy.lab.evaluation.measure import MeasurePart, MeasureResult
from understudy.lab.studies.record import (
    FILE,
    KEY,
    UNDEFINED,
    StudyQuestion,
    StudyRecord,
    from_dict,
    study_key,
    to_dict,
)
from understudy.lab.studies.study import Trial

QUESTION = StudyQuestion("d" * 64, "20 % of the rows, seed 0", "5" * 64, 1e-6, None, (), ("tv1", "tv2"), "1.0")
PARTS = (
    MeasurePart("a \u2028 line", 0.5, note="p = 0.1"),
    MeasurePart("b", None, "constant"),
    MeasurePart("c", 1.0, raw=2.0, reference=3.0),
)


def trial(seed: int) -> Trial:
    return Trial("mst", 0.1, seed, 1.25, 170.5, {"tv1": MeasureResult(0.25, parts=PARTS, note="three columns")})


def recorded(folder: Path, question: StudyQuestion = QUESTION) -> list[Trial]:
    with StudyRecord.open(folder, question) as record:
        return list(record.trials.values())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A study of two trials."""
    with StudyRecord.open(tmp_path / "a" / "study", QUESTION) as record:
        record.add(trial(0))
        record.add(trial(1))
    return tmp_path / "a" / "study"


def test_trials_come_back_as_they_were(folder: Path):
    assert recorded(folder) == [trial(0), trial(1)]
    with StudyRecord.open(folder, QUESTION) as record:
        record.add(trial(2))
    assert recorded(folder) == [trial(0), trial(1), trial(2)]


def test_a_trial_is_on_the_disk_before_the_record_is_closed(tmp_path: Path):
    with StudyRecord.open(tmp_path, QUESTION) as record:
        record.add(trial(0))
        lines = (tmp_path / FILE).read_bytes().split(b"\n")
    assert len(lines) == 3 and json.loads(lines[1])["seed"] == 0


@pytest.mark.parametrize("kept", [1, 100, -1])
def test_a_half_written_line_is_forgotten(folder: Path, kept: int):
    path = folder / FILE
    whole = path.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    path.write_bytes(whole[:last] + whole[last:][:kept])
    assert recorded(folder) == [trial(0)]
    with StudyRecord.open(folder, QUESTION) as record:
        record.add(trial(1))
    assert path.read_bytes() == whole


def test_a_half_written_question_is_asked_anew(folder: Path):
    (folder / FILE).write_bytes((folder / FILE).read_bytes()[:20])
    assert recorded(folder) == [] and recorded(folder) == []


@pytest.mark.parametrize("content", ['{"question": {"data": 1}}\n', "[1]\n", "3\n", '{"a": 1}\n'])
def test_another_file_of_that_name_is_left_alone(tmp_path: Path, content: str):
    (tmp_path / FILE).write_text(content)
    with pytest.raises(ReleaseError, match="is not the record of a study"):
        recorded(tmp_path)
    assert (tmp_path / FILE).read_text() == content


def test_a_damaged_line_is_named(folder: Path):
    lines = (folder / FILE).read_bytes().split(b"\n")
    (folder / FILE).write_bytes(b"\n".join([lines[0], lines[1][:50], *lines[2:]]))
    with pytest.raises(ReleaseError, match=r"line 2 of .* can't be read; delete that line"):
        recorded(folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"data": "e" * 64}, "(the data changed)"),
        ({"schema": "6" * 64}, "(the schema changed)"),
        ({"holdout": "f" * 64}, "(the hold-out changed)"),
        ({"holdout": "10 % of the rows, seed 1"}, "from 20 % of the rows, seed 0 to 10 % of the rows, seed 1"),
        ({"delta": 0.0}, "(delta changed from 1e-06 to 0.0)"),
        ({"target": "pay"}, "(the target changed from None to pay)"),
        ({"groups": ("sex", "race")}, "(the groups changed from none to sex, race)"),
        ({"measures": ("tv1",)}, "(the measures changed from tv1, tv2 to tv1)"),
        ({"version": "2.0", "delta": 0.0}, "1e-06 to 0.0; the version of understudy changed from 1.0 to 2.0)"),
    ],
)
def test_another_question_is_refused(folder: Path, change: dict[str, object], said: str):
    before = (folder / FILE).read_bytes()
    with pytest.raises(ReleaseError) as refused:
        recorded(folder, dataclasses.replace(QUESTION, **change))
    assert said in str(refused.value) and "choose another folder" in str(refused.value)
    assert (folder / FILE).read_bytes() == before


def test_two_runs_do_not_share_a_folder(folder: Path):
    with StudyRecord.open(folder, QUESTION) as record:
        with pytest.raises(ReleaseError, match="another run is writing to"):
            recorded(folder)
        record.add(trial(2))
    assert len(recorded(folder)) == 3


def test_another_process_has_no_share_either_until_it_ends(folder: Path):
    code = f"""
import sys, pathlib
from understudy.lab.studies.record import StudyQuestion, StudyRecord
with StudyRecord.open(pathlib.Path({str(folder)!r}), StudyQuestion.from_dict({dataclasses.asdict(QUESTION)!r})):
    print("open", flush=True)
    sys.stdin.read()
"""
    other = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout is not None and other.stdin is not None
    with other.stdout, other.stdin:
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(ReleaseError, match="another run"):
            recorded(folder)
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
    assert len(recorded(folder)) == 2


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ReleaseError, match=r"can't be written"):
        recorded(tmp_path / "file" / "study")


def test_what_is_not_finite_is_recorded_as_undefined():
    odd = MeasureResult(
        math.nan, parts=(MeasurePart("a", math.inf, raw=-math.inf), MeasurePart("b", 1.0, reference=math.nan))
    )
    read = from_dict(json.loads(json.dumps(to_dict(Trial("mst", 1.0, 0, 1.0, 1.0, {"x": odd})), allow_nan=False)))
    assert read.figures["x"] == MeasureResult(
        None, UNDEFINED, (MeasurePart("a", None, UNDEFINED), MeasurePart("b", 1.0))
    )


def test_a_study_keeps_its_key_to_itself(tmp_path: Path):
    first = study_key(tmp_path / "a")
    assert len(first) == 32 and study_key(tmp_path / "a") == first != study_key(tmp_path / "b")
    assert stat.S_IMODE((tmp_path / "a" / KEY).stat().st_mode) == 0o600


def test_a_study_with_a_plain_hash_is_refused(folder: Path):
    with pytest.raises(ReleaseError, match=r"holds a study without its study\.key"):
        study_key(folder)
    assert not (folder / KEY).exists()


def test_a_damaged_key_is_refused(tmp_path: Path):
    (tmp_path / KEY).write_bytes(b"short")
    with pytest.raises(ReleaseError, match=r"study\.key' is damaged"):
        study_key(tmp_path)
