"""A release as an object and as a folder: what is in it, and that it is written whole or not at all."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

import understudy as us
from understudy.cli import run
from understudy.releases.release import check_writable, read_record, record_bytes, write_folder

SCHEMA = us.Schema.loads(
    """
    missing_values = ["?", "NA"]
    [columns.id]
    type = "identifier"
    made_up = "P{:04d}"
    [columns.secret]
    type = "identifier"
    [columns.job]
    type = "categorical"
    values = ["clerk, senior", "cook", "nurse"]
    missing = true
    [columns.grade]
    type = "ordinal"
    values = [1, 2, 3]
    [columns.age]
    type = "integer"
    min = 18
    max = 80
    missing = true
    [columns.pay]
    type = "number"
    min = 0
    max = 100
    decimals = 2
    [columns.smoker]
    type = "boolean"
    missing = true
    [columns.hired]
    type = "datetime"
    min = 2020-01-01
    max = 2020-03-31
    [columns.seen]
    type = "datetime"
    min = 2020-01-01T00:00:00
    max = 2020-01-01T23:59:59
    resolution = "second"
    """
)


def people(rows: int = 200, absent: float = 0.2) -> pa.Table:
    rng = np.random.default_rng(3)
    day = np.datetime64("2020-01-01", "s")
    return pa.table(
        {
            "id": [f"real {i}" for i in range(rows)],
            "secret": [f"secret {i}" for i in range(rows)],
            "job": pa.array(rng.choice(["clerk, senior", "cook", "nurse"], rows), mask=rng.random(rows) < absent),
            "grade": rng.integers(1, 4, rows),
            "age": pa.array(rng.integers(18, 81, rows), mask=rng.random(rows) < absent),
            "pay": rng.random(rows) * 100,
            "smoker": pa.array(rng.random(rows) < 0.3, mask=rng.random(rows) < absent),
            "hired": pa.array((day + rng.integers(0, 90, rows) * np.timedelta64(86400, "s")).astype("datetime64[s]")),
            "seen": pa.array(day + rng.integers(0, 86400, rows) * np.timedelta64(1, "s")),
        }
    )


TYPES = {
    "id": pa.string(), "job": pa.string(), "grade": pa.int64(), "age": pa.int64(), "pay": pa.float64(),
    "smoker": pa.bool_(), "hired": pa.date32(), "seen": pa.timestamp("s"),
}  # fmt: skip


@pytest.fixture(scope="module")
def release() -> us.Release:
    return us.synthesize(us.open(people(), SCHEMA), epsilon=50.0, method="mst", rows=150, seed=1)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 1e-3])
def test_the_smallest_budgets_are_never_said_to_be_overspent(epsilon: float, tmp_path: Path):
    """There the conversion of a sum is less exact than the sum is near to what was asked for."""
    schema = us.Schema.loads('[columns.a]\ntype = "integer"\nmin = 0\nmax = 9\n[columns.b]\ntype = "boolean"\n')
    table = us.open(pa.table({"a": [1, 2, 3] * 50, "b": [True, False, True] * 50}), schema)
    made = us.synthesize(table, epsilon=epsilon, method="mst", rows=20, seed=3)
    assert made.certificate.composed[0] <= epsilon
    assert us.verify(made.save(tmp_path / "release")).spent <= epsilon


def test_columns_and_types_follow_from_the_schema(release: us.Release):
    assert dict(zip(release.table.schema.names, release.table.schema.types, strict=True)) == TYPES
    assert {f.name for f in release.table.schema if f.nullable} == {"job", "age", "smoker"}


def test_identifiers_are_made_up_or_dropped(release: us.Release):
    assert release.table.column("id").to_pylist() == [f"P{i + 1:04d}" for i in range(150)]
    assert "secret" not in release.table.column_names


def test_values_lie_in_the_domain(release: us.Release):
    rows = release.table.to_pylist()
    assert {r["job"] for r in rows} <= {"clerk, senior", "cook", "nurse", None}
    assert all(r["age"] is None or 18 <= r["age"] <= 80 for r in rows)
    assert all(0 <= r["pay"] <= 100 and round(r["pay"], 2) == r["pay"] for r in rows)
    assert all(str(r["hired"]) <= "2020-03-31" for r in rows)


def test_missing_values_are_written_as_declared(release: us.Release):
    text = release.synthetic_bytes("csv").decode()
    options = pacsv.ConvertOptions(null_values=["?"], strings_can_be_null=True, column_types=TYPES)
    back = pacsv.read_csv(pa.py_buffer(text.encode()), convert_options=options)
    assert back.column("job").null_count == release.table.column("job").null_count > 0
    assert back.cast(release.table.schema).equals(release.table)
    assert '"clerk, senior"' in text and "None" not in text and "nan" not in text


@pytest.mark.parametrize("absent", [0.0, 0.2, 1.0])
def test_pandas_in_pandas_out(absent: float):
    """The dtypes are the same whether or not a value happens to be missing."""
    table = us.open(people(absent=absent).to_pandas(), SCHEMA)
    made = us.synthesize(table, epsilon=50.0, method="mst", rows=40, seed=1).table
    assert isinstance(made, pd.DataFrame) and len(made) == 40
    assert [str(made[c].dtype) for c in ("age", "smoker", "grade", "pay")] == ["Int64", "boolean", "int64", "float64"]
    assert all(str(made[c].dtype).startswith("datetime64") for c in ("hired", "seen"))


@pytest.mark.parametrize("absent", [0.0, 1.0])
def test_polars_in_polars_out(absent: float):
    table = us.open(pl.from_arrow(people(absent=absent)), SCHEMA)
    made = us.synthesize(table, epsilon=50.0, method="mst", rows=40, seed=1).table
    assert isinstance(made, pl.DataFrame) and made.height == 40
    assert made.schema["age"] == pl.Int64 and made.schema["smoker"] == pl.Boolean and made.schema["hired"] == pl.Date


def test_pyarrow_in_pyarrow_out(release: us.Release):
    assert isinstance(release.table, pa.Table)


def test_files_know_each_other(release: us.Release):
    files = release.files()
    assert set(files) == {"synthetic.csv", "certificate.json", "measurements.npz", "schema.toml", "report.html"}
    certificate = json.loads(files["certificate.json"])
    assert set(certificate["files"]) == set(files) - {"certificate.json"}
    assert us.Certificate.from_bytes(files["certificate.json"]).to_bytes() == files["certificate.json"]
    assert us.Schema.loads(files["schema.toml"].decode()) == SCHEMA


def test_no_private_value_is_in_any_file(release: us.Release):
    for name, content in release.files().items():
        assert b"real " not in content and b"secret 1" not in content, name


def test_the_record_reads_back(release: us.Release):
    again = read_record(record_bytes(release.record))
    assert [a.question for a in again] == [a.question for a in release.record]
    assert all(np.array_equal(a.value, b.value) for a, b in zip(again, release.record, strict=True))
    assert record_bytes(again) == record_bytes(release.record)


def test_save_and_save_again(release: us.Release, tmp_path: Path):
    folder = release.save(tmp_path / "deep" / "release")
    assert us.verify(folder).claimed and us.replay(folder).rows == 150
    with pytest.raises(us.ReleaseError, match="exists already"):
        release.save(folder)
    release.save(folder, format="parquet", overwrite=True)
    assert us.replay(folder).file == "synthetic.parquet"
    assert not (folder / "synthetic.csv").exists()
    with pytest.raises(us.ReleaseError, match=r"format \('xlsx'\)"):
        release.save(tmp_path / "other", format="xlsx")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["deep"]
    assert sorted(p.name for p in (tmp_path / "deep").iterdir()) == ["release"]


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    real, calls = os.fsync, []

    def fsync(handle: int) -> None:
        calls.append(handle)
        if len(calls) == 2:
            raise KeyboardInterrupt
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(KeyboardInterrupt):
        write_folder(tmp_path / "out", {"a": b"1", "b": b"2"}, False, private=False)
    assert list(tmp_path.iterdir()) == []


def test_checking_a_target_leaves_nothing(tmp_path: Path):
    check_writable(tmp_path / "a" / "b", False, expected_bytes=100_000)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    for target in (tmp_path / "file" / "a", tmp_path / "file" / "a" / "b"):
        with pytest.raises(us.ReleaseError, match="can't be written: Not a directory"):
            check_writable(target, False)


RULES = """
[[constraints]]
if = "job = 'cook'"
then = "age >= 60"
[[constraints]]
then = "pay <= 50"
"""


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("options", [{}, {"target": "job"}, {"marginals": [["job", "age"]]}])
def test_every_row_obeys_the_constraints(options: dict, tmp_path: Path):
    schema = us.Schema.loads(SCHEMA.dumps() + RULES)
    release = us.synthesize(us.open(people(), schema), epsilon=3.0, rows=1000, **options)
    rows = release.table.to_pylist()
    assert len(rows) == 1000 and all(r["pay"] <= 50 for r in rows)
    cooks = [r for r in rows if r["job"] == "cook"]
    assert cooks and all(r["age"] is None or r["age"] >= 60 for r in cooks)
    assert us.replay(release.save(tmp_path / "out")).rows == 1000


def test_a_constraint_that_the_model_hardly_ever_obeys():
    """One row in about 8,000 obeys: the rows that do are repeated, and none that does not comes out."""
    rule = "[[constraints]]\nthen = \"age = 18 and pay < 1 and smoker and job = 'cook'\"\n"
    schema = us.Schema.loads(SCHEMA.dumps() + rule)
    table = us.synthesize(us.open(people(), schema), epsilon=1.0, method="independent", rows=300).table
    assert table.num_rows == 300
    assert all(r["age"] in (18, None) and r["pay"] < 1 and r["job"] in ("cook", None) for r in table.to_pylist())


def test_impossible_constraints_spend_nothing(tmp_path: Path):
    schema = us.Schema.loads(
        SCHEMA.dumps() + '[[constraints]]\nthen = "age > 80"\n[[constraints]]\nthen = "age is not null"\n'
    )
    ledger = tmp_path / "ledger.sqlite"
    with pytest.raises(us.SchemaError, match="satisfy all constraints"):
        us.synthesize(us.open(people(), schema), epsilon=1.0, ledger=ledger)
    assert not ledger.exists()


def test_a_draft_is_refused_without_consent():
    draft = us.draft_schema(people().drop_columns(["seen"]))
    table = us.open(people().drop_columns(["seen"]), draft)
    with pytest.raises(us.InputError, match="draft"):
        us.synthesize(table, epsilon=1.0)
    accepted = us.synthesize(table, epsilon=1.0, method="independent", accept_draft_as_public=True).certificate
    assert "draft accepted as public" in accepted.columns.values()
    confirmed = us.open(people().drop_columns(["seen"]), dataclasses.replace(draft, status="confirmed"))
    assert (
        "confirmed unchanged"
        in us.synthesize(confirmed, epsilon=1.0, method="independent").certificate.columns.values()
    )


def test_a_draft_that_nobody_confirmed_guarantees_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Its values come from the rows: one person's diagnosis stands in the domain, whatever the noise."""
    rows = pa.table({"diagnosis": ["flu", "cold"] * 50 + ["HIV"], "age": [30, 40] * 50 + [101]})
    drafted = us.draft_schema(rows)
    table = us.open(rows, drafted)
    release = us.synthesize(table, epsilon=0.01, delta=0, method="independent", accept_draft_as_public=True)
    assert "HIV" in release.domain["diagnosis"].labels
    assert release.certificate.guarantee is None and release.certificate.stamp == "UNCONFIRMED-DRAFT"
    written = json.loads(release.files()["certificate.json"])
    assert written["guarantee"] is None and "draft" in written["no_guarantee_because"]
    assert b"this release guarantees nothing" in release.files()["report.html"]
    # Of facts that were taken out of a draft since, its digest would tell.
    edited = drafted.edit(diagnosis={"values": ["flu", "cold"]})
    less = us.synthesize(
        us.open(rows, edited), epsilon=0.01, delta=0, method="independent", accept_draft_as_public=True
    )
    assert edited.drafted and not any(edited.drafted.encode() in content for content in less.files().values())
    folder = release.save(tmp_path / "out")
    # What was read off the rows stands in it, so it is for its owner alone.
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {
        0o600
    } and folder.stat().st_mode & 0o777 == 0o700
    assert not us.verify(folder).claimed and us.Release.load(folder).certificate.guarantee is None
    assert run(["verify", str(folder)]) == 0 and "guarantees nothing: the schema is a draft" in capsys.readouterr().out
    answer = us.query(table, "select count(*) from data", epsilon=1.0, accept_draft_as_public=True)
    assert answer.guarantee is None and answer.to_dict()["guarantee"] is None
    fitted = us.PrivateDecisionTree(accept_draft_as_public=True).fit(table, target="diagnosis")
    assert fitted.guarantee_ is None and fitted.certificate_.guarantee is None
    fitted.save(tmp_path / "fitted.json")
    assert (tmp_path / "fitted.json").stat().st_mode & 0o777 == 0o600
    confirmed = us.open(rows, dataclasses.replace(drafted, status="confirmed"))
    assert us.synthesize(confirmed, epsilon=0.01, delta=0, method="independent").certificate.guarantee
    assert us.PrivateDecisionTree().fit(confirmed, target="diagnosis").guarantee_ == (1.0, 0.0)


def test_a_draft_whose_columns_are_all_bought_is_a_draft():
    """Types, and that there may be missing values, were read off the rows too."""
    schema = dataclasses.replace(
        us.Schema.loads('[columns.job]\ntype = "categorical"\nvalues = "private"'), status="draft"
    )
    rows = us.open(pa.table({"job": ["cook"] * 50}), schema)
    release = us.synthesize(rows, epsilon=1.0, method="independent", accept_draft_as_public=True)
    assert set(release.certificate.columns.values()) == {"bought"} and release.certificate.guarantee is None


def test_the_claim_is_what_was_asked_for():
    """The sum of the spends is a claim only where no price followed an answer."""
    certificate = us.synthesize(us.open(people(), SCHEMA), epsilon=1.0, method="mst").certificate
    assert certificate.guarantee["epsilon"] == certificate.epsilon == 1.0
    assert certificate.guarantee["delta"] == certificate.delta == 1e-6
    assert certificate.composed[0] <= certificate.epsilon


def test_the_seed_fixes_the_post_processing_alone():
    def made(noise: int, seed: int) -> us.Release:
        table, seeds = us.open(people(), SCHEMA), {"seed": seed, "test_only_noise_seed": noise}
        return us.synthesize(table, epsilon=1.0, method="independent", rows=50, **seeds)

    one, same, other = made(1, 2), made(1, 2), made(1, 3)
    assert one.table.equals(same.table) and record_bytes(one.record) == record_bytes(same.record)
    assert record_bytes(one.record) == record_bytes(other.record) and not one.table.equals(other.table)
    assert record_bytes(made(2, 2).record) != record_bytes(one.record)
    assert one.certificate.guarantee is None and one.certificate.stamp == "TEST-ONLY"


@pytest.mark.parametrize(
    "wish",
    [{"rows": 0}, {"rows": -1}, {"rows": True}, {"rows": 1.5}, {"seed": -1}, {"seed": 2**63}, {"seed": 1.5},
     {"marginals": ["age"]}, {"epsilon": float("nan")}, {"delta": 1.0}, {"method": "magic"}, {"target": "height"}],
)  # fmt: skip
def test_wrong_wishes_spend_nothing(wish: dict, tmp_path: Path):
    ledger = tmp_path / "ledger.sqlite"
    with pytest.raises(us.InputError):
        us.synthesize(us.open(people(), SCHEMA), **{"epsilon": 1.0, "ledger": ledger} | wish)
    assert not ledger.exists()
