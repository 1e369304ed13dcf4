"""Conditional sampling through releases: given values are kept, rules hold, replay works, and nothing more is spent."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import understudy as us

SCHEMA_TEXT = """
[columns.id]
type = "identifier"
made_up = "P{:04d}"
[columns.secret]
type = "identifier"
[columns.job]
type = "categorical"
values = ["clerk", "cook", "nurse"]
missing = true
[columns.age]
type = "integer"
min = 0
max = 999
bins = 20
[columns.pay]
type = "number"
min = 0
max = 100
decimals = 1
bins = 10
[columns.smoker]
type = "boolean"
[columns.hired]
type = "datetime"
min = 2020-01-01
max = 2021-12-31
bins = 8
"""
SCHEMA = us.Schema.loads(SCHEMA_TEXT)
RULES = '[[constraints]]\nif = "age < 420"\nthen = "smoker = false"\n'
RULED = us.Schema.loads(SCHEMA_TEXT + RULES)
ROWS = 3000
METHODS = ("independent", "marginals", "privbayes", "mwem", "mst", "aim")


def people() -> pa.Table:
    """Cooks smoke and clerks do not; the old earn more."""
    rng = np.random.default_rng(3)
    job = rng.choice(["clerk", "cook", "nurse"], ROWS)
    age = rng.integers(0, 1000, ROWS)
    days = rng.integers(0, 700, ROWS)
    return pa.table(
        {
            "id": [f"real {i}" for i in range(ROWS)],
            "secret": ["secret"] * ROWS,
            "job": pa.array(job, mask=rng.random(ROWS) < 0.1),
            "age": age,
            "pay": np.clip(age / 10 + rng.normal(0, 3, ROWS), 0, 100),
            "smoker": np.where(job == "cook", rng.random(ROWS) < 0.9, rng.random(ROWS) < 0.1),
            "hired": pa.array(np.datetime64("2020-01-01", "s") + days * np.timedelta64(86400, "s")),
        }
    )


def made(schema: us.Schema = SCHEMA, method: str = "mst", **options: Any) -> us.Release:
    marginals = [("job", "smoker"), ("age", "pay")] if method == "marginals" else []
    options = {"rows": 1000, "seed": 5, "epsilon": 20.0, "test_only_noise_seed": 1} | options
    return us.synthesize(us.open(people(), schema), method=method, marginals=marginals, **options)


@pytest.fixture(scope="module")
def release() -> us.Release:
    return made()


@pytest.fixture(scope="module")
def ruled() -> us.Release:
    return made(RULED)


# --- The same values in every row -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_every_row_has_the_given_values_and_the_release_replays(method: str, tmp_path: Path):
    """41 lies inside a bin of fifty ages: the row keeps 41. The missing job is kept missing."""
    given = {"age": 41, "job": None, "hired": "2020-05-17"}
    release = made(method=method, given=given)
    table = release.table
    assert set(table["age"].to_pylist()) == {41} and set(table["job"].to_pylist()) == {None}
    assert {str(v) for v in table["hired"].to_pylist()} == {"2020-05-17"}
    assert table.num_rows == 1000 and table.column_names == ["id", "job", "age", "pay", "smoker", "hired"]
    release.save(tmp_path / "out")
    assert json.loads((tmp_path / "out" / "certificate.json").read_text())["method"]["parameters"]["given"] == given
    us.verify(tmp_path / "out")
    assert us.replay(tmp_path / "out").rows == 1000


def smokers(table: pa.Table) -> float:
    return float(np.mean(table["smoker"].to_pylist()))


@pytest.mark.parametrize("method", ["marginals", "mst", "aim"])
def test_the_other_columns_follow_the_conditional(method: str):
    """Nine of ten cooks smoke, one of ten clerks does. The draw is systematic; at ε = 20 noise is a few rows."""
    assert abs(smokers(made(method=method, given={"job": "cook"}).table) - 0.9) < 0.05
    assert abs(smokers(made(method=method, given={"job": "clerk"}).table) - 0.1) < 0.05


def test_columns_that_a_method_does_not_relate_learn_nothing():
    """The mutant of the test above."""
    table = made(method="independent", given={"job": "cook"}).table
    assert abs(smokers(table) - smokers(people())) < 0.05 < 0.9 - smokers(table)


def test_what_is_asked_of_the_rows_does_not_change():
    free, given = made(), made(given={"job": "cook"})
    assert free.certificate.spends == given.certificate.spends
    assert [a.question for a in free.record] == [a.question for a in given.record]
    assert all(np.array_equal(a.value, b.value) for a, b in zip(free.record, given.record, strict=True))
    assert "given" not in free.certificate.parameters


def test_the_number_of_rows_stays_that_of_the_whole_table():
    """Not the number of cooks: given values say which rows to make, and nothing about how many."""
    assert made(rows=None).table.num_rows == made(rows=None, given={"job": "cook"}).table.num_rows


def test_a_changed_given_fails_the_replay(tmp_path: Path):
    made(given={"job": "cook"}).save(tmp_path / "out")
    certificate = us.Certificate.from_bytes((tmp_path / "out" / "certificate.json").read_bytes())
    for other in ({"job": "clerk"}, {}, {"job": "lawyer"}, ["job"]):
        certificate.parameters["given"] = other
        (tmp_path / "out" / "certificate.json").write_bytes(certificate.to_bytes())
        with pytest.raises(us.CheckFailed):
            us.replay(tmp_path / "out")


def test_rules_hold_beside_given_values():
    table = made(RULED, given={"job": "cook"}).table
    young = np.array(table["age"].to_pylist()) < 420
    assert young.any() and not np.array(table["smoker"].to_pylist())[young].any()
    assert set(table["job"].to_pylist()) == {"cook"}


def test_given_values_that_contradict_the_rules_are_refused_before_anything_is_spent(tmp_path: Path):
    ledger = tmp_path / "ledger.sqlite"
    with pytest.raises(us.SchemaError, match="no row of the domain with the given age and smoker was found"):
        made(RULED, given={"smoker": True, "age": 419}, ledger=ledger)
    assert not ledger.exists()


def test_the_value_itself_must_obey_and_not_only_its_bin():
    """419 and 420 share a bin, and only one of them may smoke."""
    assert set(made(RULED, given={"smoker": True, "age": 420}).table["age"].to_pylist()) == {420}


# --- Row by row from a frame ------------------------------------------------------------------------------------------

FRAMES: dict[str, Callable[[dict[str, list[object]]], Any]] = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}
KNOWN: dict[str, list[object]] = {
    "age": [7, 41, 999, 500],
    "job": ["cook", None, "clerk", "nurse"],
    "secret": ["mine", "mine", "yours", "yours"],
}


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_comes_back_whole_and_in_its_kind(release: us.Release, kind: str):
    frame = FRAMES[kind](KNOWN)
    whole = release.complete(frame, seed=1)
    assert type(whole) is type(frame)
    columns = list(whole.column_names if kind == "pyarrow" else whole.columns)
    assert columns == ["id", "secret", "job", "age", "pay", "smoker", "hired"]
    own = whole.select(list(KNOWN)) if kind != "pandas" else whole[list(KNOWN)]
    assert own.equals(frame)


def test_frames_of_every_kind_are_completed_alike(release: us.Release):
    drawn = ["pay", "smoker", "hired"]
    pandas = release.complete(pd.DataFrame(KNOWN), seed=1)[drawn]
    one = pl.from_pandas(pandas).with_columns(pl.col("hired").cast(pl.Date))  # pandas has no dates
    two = release.complete(pl.DataFrame(KNOWN), seed=1)[drawn]
    three = pl.from_arrow(release.complete(pa.table(KNOWN), seed=1))[drawn]
    assert one.rows() == two.rows() == three.rows()


def test_an_index_stays(release: us.Release):
    frame = pd.DataFrame({"age": [1, 2, 3]}, index=["x", "x", "y"])
    whole = release.complete(frame)
    assert whole.index.tolist() == ["x", "x", "y"] and whole["age"].tolist() == [1, 2, 3]


def test_each_row_follows_its_own_values(release: us.Release):
    """Of 2,000 cooks nine of ten smoke, of 2,000 clerks one of ten; drawn without the job, both would be at 0.37."""
    whole = release.complete(pa.table({"job": ["cook", "clerk"] * 2000}), seed=1)
    assert abs(smokers(whole.take(list(range(0, 4000, 2)))) - 0.9) < 0.05
    assert abs(smokers(whole.take(list(range(1, 4000, 2)))) - 0.1) < 0.05


def test_values_in_several_tables_of_the_model_count_together(release: us.Release):
    """Pay is near a tenth of the age, and cooks smoke: each column learns from the one that tells of it."""
    rows = 500
    whole = release.complete(pa.table({"age": [900] * rows, "job": ["cook"] * rows}), seed=1)
    assert abs(float(np.median(whole["pay"].to_numpy())) - 90) < 5 and abs(smokers(whole) - 0.9) < 0.1


@pytest.mark.parametrize("method", METHODS)
def test_a_loaded_release_completes_as_a_fresh_one(method: str, tmp_path: Path):
    fresh = made(method=method)
    fresh.save(tmp_path / "out")
    loaded = us.Release.load(tmp_path / "out")
    assert loaded.table.equals(fresh.table) and loaded.certificate.epsilon == fresh.certificate.epsilon
    frame = pa.table(KNOWN)
    assert loaded.complete(frame, seed=9).equals(fresh.complete(frame, seed=9))


def test_a_changed_release_is_not_loaded(tmp_path: Path):
    made().save(tmp_path / "out")
    (tmp_path / "out" / "report.html").write_text("better")
    with pytest.raises(us.CheckFailed, match=r"report\.html was changed"):
        us.Release.load(tmp_path / "out")


def test_seeds_repeat_and_without_one_draws_differ(release: us.Release):
    frame = pa.table({"age": list(range(500))})
    assert release.complete(frame, seed=4).equals(release.complete(frame, seed=4))
    assert not release.complete(frame).equals(release.complete(frame))
    with pytest.raises(us.InputError, match="seed"):
        release.complete(frame, seed=-1)


def test_nothing_and_everything_given(release: us.Release):
    assert release.complete(pd.DataFrame(index=range(3))).shape == (3, 6)
    assert release.complete(pa.table({"age": pa.array([], pa.int64())})).num_rows == 0
    assert release.complete(pa.table({"secret": ["x", "y"]})).num_rows == 2
    assert release.complete(release.table).equals(release.table)


def test_dictionaries_and_lazy_frames_are_read(release: us.Release):
    jobs = pd.DataFrame({"job": pd.Categorical(["cook", None, "clerk"])})
    assert release.complete(jobs)["job"].tolist()[::2] == ["cook", "clerk"]
    assert release.complete(pl.LazyFrame({"age": [1, 2]}))["age"].to_list() == [1, 2]


BAD_FRAMES: dict[str, tuple[Any, str]] = {
    "unknown column": (pa.table({"salary": [1]}), "column 'salary' is not in the schema"),
    "value outside of the domain": (
        pa.table({"age": [41, 1000]}),
        "a value of the frame must be a whole number from 0",
    ),
    "missing where nothing is": (pa.table({"age": [41, None]}), "must not be missing"),
    "unknown label": (pl.DataFrame({"job": ["baker"]}), "must be one of clerk, cook, nurse"),
    "values that can't be read": (pa.table({"age": [[41]]}), "'age'"),
    "no frame": ([1, 2], "a list can't be completed"),
}


@pytest.mark.parametrize("case", BAD_FRAMES)
def test_bad_frames_are_refused(release: us.Release, case: str):
    frame, words = BAD_FRAMES[case]
    with pytest.raises(us.InputError) as caught:
        release.complete(frame)
    assert words in str(caught.value)


def test_completed_rows_obey_the_rules(ruled: us.Release):
    """A smoker is completed with an age of 420 at least, a person of 100 as one who does not smoke."""
    whole = ruled.complete(pa.table({"smoker": [True, False] * 1000}), seed=2)
    assert whole["smoker"].to_pylist() == [True, False] * 1000
    assert min(whole["age"].to_pylist()[::2]) >= 420 > min(whole["age"].to_pylist()[1::2])
    assert not any(ruled.complete(pa.table({"age": [100] * 50}), seed=2)["smoker"].to_pylist())


def test_a_row_that_no_completion_suits_is_named(ruled: us.Release):
    with pytest.raises(us.SchemaError, match="row 3 of the frame can't be completed"):
        ruled.complete(pa.table({"age": [500, 200, 100], "smoker": [True, False, True]}))


def test_a_model_that_never_obeys_gives_way_to_the_rows_that_were_found():
    """Nobody of 999 earns next to nothing, and the rules leave five rows in a million of the domain."""
    rule = '[[constraints]]\nthen = "age = 999 AND smoker = true AND pay < 1"\n'
    table = made(us.Schema.loads(SCHEMA_TEXT + rule), given={"job": "clerk"}, rows=20).table
    assert set(table["age"].to_pylist()) == {999} and set(table["job"].to_pylist()) == {"clerk"}
    assert set(table["smoker"].to_pylist()) == {True} and max(table["pay"].to_pylist()) < 1
