"""The same rows under another name: noticed by the steward, in no release, and never in the way of anybody else."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path

import pytest

import understudy as us
from understudy.boundary.privacy.ledger import known_rows
from understudy.boundary.privacy.ledger.known_rows import LedgerWarning, known_for, rows_of
from understudy.boundary.privacy.ledger.ledger import ledger_beside
from understudy.errors import InputError

SCHEMA = us.Schema.loads('[columns.age]\ntype = "integer"\nmin = 0\nmax = 99\n')


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text("age\n" + "".join(f"{20 + i % 60}\n" for i in range(200)))
    return path


def release(data: Path, **options: object) -> us.Release:
    table = us.open(data, SCHEMA)
    return us.synthesize(table, epsilon=0.5, delta=0, method="independent", rows=5, **options)


def test_a_copy_is_noticed_before_it_is_debited(data: Path, tmp_path: Path):
    release(data)
    release(data)
    copy = shutil.copy(data, tmp_path / "copy.csv")
    with pytest.warns(LedgerWarning, match=r"were released under ledger .*people\.csv\.ledger\.sqlite, and"):
        release(copy)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(LedgerWarning, match=r"copy\.csv\.ledger\.sqlite"):
            release(data)
    assert len(us.Ledger.open(ledger_beside(str(data))).entries()) == 2, "a warning that is an error costs nothing"


def test_one_ledger_for_all_is_no_news(data: Path, tmp_path: Path):
    ledger = tmp_path / "all.sqlite"
    release(data, ledger=ledger)
    release(shutil.copy(data, tmp_path / "copy.csv"), ledger=ledger)
    release(data, ledger=str(ledger))
    assert len(us.Ledger.open(ledger).entries()) == 3


def test_data_and_ledger_may_move_together(data: Path, tmp_path: Path):
    release(data)
    (tmp_path / "moved").mkdir()
    for path in (data, ledger_beside(str(data))):
        path.rename(tmp_path / "moved" / path.name)
    release(tmp_path / "moved" / "people.csv")
    assert len(us.Ledger.open(tmp_path / "moved" / "people.csv.ledger.sqlite").entries()) == 2


def test_renamed_data_are_told_of_their_ledger(data: Path, tmp_path: Path):
    release(data)
    renamed = data.rename(tmp_path / "persons.csv")
    with pytest.warns(LedgerWarning, match=r"give --ledger .*people\.csv\.ledger\.sqlite \(ledger= in Python\) to add"):
        release(renamed)


def test_rows_whose_ledger_is_gone_get_no_new_one(data: Path, tmp_path: Path):
    release(data)
    ledger_beside(str(data)).unlink()
    with pytest.raises(InputError, match=r"is gone.*budget forget"):
        release(data)
    with pytest.raises(InputError, match=r"would be a new one, and the same rows were released under .* is gone"):
        release(data.rename(tmp_path / "persons.csv"))
    assert [p.name for p in tmp_path.iterdir()] == ["persons.csv"]


def test_other_rows_at_the_same_path_are_other_rows(data: Path, tmp_path: Path):
    release(data)
    data.write_text(data.read_text() + "33\n")
    copy = shutil.copy(data, tmp_path / "copy.csv")
    release(copy)
    assert [len(us.Ledger.open(ledger_beside(str(path))).entries()) for path in (data, copy)] == [1, 1]


def test_no_fingerprint_leaves_the_state_folder(data: Path, tmp_path: Path, state_home: Path):
    made = release(data)
    rows = rows_of(str(data))
    assert rows is not None and (state_home / "understudy" / rows).is_file()
    name = rows.partition("/")[2]
    contents = [*made.files().values(), ledger_beside(str(data)).read_bytes()]
    assert not any(name.encode() in content for content in contents)
    (state_home / "understudy" / "key").unlink()
    assert rows_of(str(data)) != rows, "without the key it says nothing about the file"


def test_what_is_in_no_file_has_none(data: Path):
    assert rows_of(None) is rows_of("postgresql://host/people::people") is rows_of(str(data.parent)) is None
    assert rows_of(str(data) + "::A") == rows_of(str(data) + "::a") != rows_of(str(data))


def test_of_a_large_file_blocks_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(known_rows, "_WHOLE", 1000)
    monkeypatch.setattr(known_rows, "_BLOCK", 10)
    content = bytearray(range(256)) * 20
    file = tmp_path / "large"
    names = set()
    for place in (None, 0, 9, len(content) - 1):
        changed = bytearray(content)
        if place is not None:
            changed[place] ^= 1
        file.write_bytes(changed)
        names.add(rows_of(str(file)))
    file.write_bytes(content + b"x")
    names.add(rows_of(str(file)))
    assert len(names) == 5
    for size in (0, 1, 10, 1000, 1001, 1279):
        file.write_bytes(bytes(size))
        assert rows_of(str(file)) is not None


def test_a_state_folder_with_nonsense_says_nothing(data: Path, state_home: Path):
    release(data)
    rows = rows_of(str(data))
    assert rows is not None
    (state_home / "understudy" / rows).write_text(json.dumps({"identity": "../../etc/passwd"}) + '\n{"identity": 3}\nx')
    assert known_for(rows) == []
