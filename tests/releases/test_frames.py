"""Missing cells of a user's frame filled in, and densities of its rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import understudy as us

SCHEMA = us.Schema.loads(
    """
missing_values = ["?"]
[columns.id]
type = "identifier"
[columns.job]
type = "categorical"
values = ["clerk", "cook", "nurse"]
missing = true
[columns.age]
type = "integer"
min = 0
max = 99
bins = 10
[columns.pay]
type = "number"
min = 0
max = 50
decimals = 1
bins = 5
special = [-1]
[columns.smoker]
type = "boolean"
[columns.hired]
type = "datetime"
min = 2020-01-01
max = 2021-12-31
bins = 8
[[constraints]]
if = "age < 20"
then = "smoker = false"
"""
)
ROWS = 2000


@pytest.fixture(scope="module")
def release() -> us.Release:
    return made("mst")


def made(method: str, **options: Any) -> us.Release:
    """Cooks smoke and clerks do not; a tenth of the jobs is missing."""
    rng = np.random.default_rng(3)
    job = rng.choice(["clerk", "cook", "nurse"], ROWS)
    age = rng.integers(0, 100, ROWS)
    smoker = (rng.random(ROWS) < np.where(job == "cook", 0.95, 0.05)) & (age >= 20)
    people = pa.table(
        {
            "id": [f"P{i}" for i in range(ROWS)],
            "job": pa.array(job, mask=rng.random(ROWS) < 0.1),
            "age": age,
            "pay": np.where(rng.random(ROWS) < 0.2, -1.0, (age / 2).round(1)),
            "smoker": smoker,
            "hired": np.datetime64("2020-01-01") + rng.integers(0, 700, ROWS).astype("timedelta64[D]"),
        }
    )
    named = {"epsilon": 100.0, "seed": 1, "test_only_noise_seed": 1, "ledger": False} | options
    return us.synthesize(us.open(people, SCHEMA), method=method, **named)


GAPS: dict[str, list[Any]] = {
    "id": ["a", None, "c", "d"],
    "job": ["cook", None, "?", None],
    "age": [50, None, 31, None],
    "smoker": [None, True, None, None],
}
KINDS: dict[str, Callable[[Any], Any]] = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.mark.parametrize("kind", KINDS)
def test_gaps_are_filled_in_and_all_else_stays(release: us.Release, kind: str):
    frame = KINDS[kind](GAPS)
    whole = release.impute(frame, seed=1)
    assert type(whole) is type(frame)
    rows = pa.table(whole) if kind != "pandas" else pa.Table.from_pandas(whole, preserve_index=False)
    found = rows.to_pydict()
    assert found["id"][0] == "a" and rows.column("id").null_count == 1  # no identifier is made up
    assert found["job"][0] == "cook" and found["age"][0] == 50 and found["age"][2] == 31
    assert str(found["smoker"][1]) in ("True", "1")  # pandas holds truth with gaps as objects
    assert set(found["job"]) <= {"clerk", "cook", "nurse"}
    assert all(0 <= age <= 99 for age in found["age"]) and None not in found["smoker"]


def test_an_index_stays_and_so_do_columns_without_gaps(release: us.Release):
    frame = pd.DataFrame({"age": [1.0, np.nan, 3.0], "job": ["cook"] * 3}, index=["x", "x", "y"])
    whole = release.impute(frame, seed=1)
    assert whole.index.tolist() == ["x", "x", "y"] and whole["job"].equals(frame["job"])
    assert whole["age"].dtype == np.float64 and whole["age"].notna().all()
    assert release.impute(whole).equals(whole)


def test_cells_follow_the_rest_of_their_row(release: us.Release):
    """Of 600 cooks over twenty nearly all smoke, of 600 clerks hardly any."""
    frame = pd.DataFrame(
        {"job": ["cook", "clerk"] * 600, "age": [40] * 1200, "smoker": pd.array([None] * 1200, "boolean")}
    )
    smoker = release.impute(frame, seed=1)["smoker"].to_numpy(dtype=float)
    assert abs(smoker[::2].mean() - 0.95) < 0.12 and abs(smoker[1::2].mean() - 0.05) < 0.05


def test_rules_hold_in_filled_rows(release: us.Release):
    frame = pa.table({"job": ["cook"] * 300, "age": [15] * 300, "smoker": pa.nulls(300, pa.bool_())})
    assert not any(release.impute(frame, seed=1).column("smoker").to_pylist())


def test_a_special_value_is_not_missing(release: us.Release):
    frame = pa.table({"pay": pa.array([-1.0, None, 12.5]), "age": [30, 40, 25]})
    pay = release.impute(frame, seed=1).column("pay").to_pylist()
    assert pay[0] == -1.0 and pay[2] == 12.5 and (pay[1] == -1.0 or 0 <= pay[1] <= 50)


@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.uint32(), pa.string()), pa.large_string()])
def test_columns_keep_their_type(release: us.Release, kind: pa.DataType):
    frame = pa.table(
        {"job": pa.array(["cook", None], pa.string()).cast(kind), "hired": pa.nulls(2, pa.timestamp("us"))}
    )
    whole = release.impute(frame, seed=1)
    assert (
        whole.schema.types == frame.schema.types
        and whole.column("job").null_count == whole.column("hired").null_count == 0
    )


def test_a_column_that_cannot_take_what_is_drawn_is_refused_without_its_values(release: us.Release):
    with pytest.raises(us.TableError, match=r"'pay' holds int8 values") as refused:
        release.impute(pa.table({"pay": pa.array([7, None], pa.int8()), "age": [95, 95]}), seed=1)
    assert "7" not in str(refused.value).replace("int8", "")


def test_seeds_repeat_and_bad_frames_are_refused(release: us.Release):
    frame = pa.table({"age": pa.array([None] * 50, pa.int64())})
    assert release.impute(frame, seed=4).equals(release.impute(frame, seed=4))
    with pytest.raises(us.TableError, match="dict can't be filled in"):
        release.impute({"age": [None]})
    with pytest.raises(us.InputError, match="job"):
        release.impute(pa.table({"job": ["baker"], "age": pa.nulls(1, pa.int64())}))
    assert release.impute(pa.table({"age": pa.array([], pa.int64())})).num_rows == 0


# --- Densities -------------------------------------------------------------------------------------------------------

WHOLE = pa.table(
    {
        "job": ["cook", "cook", None],
        "age": [40, 41, 90],
        "pay": [-1.0, 20.0, 45.0],
        "smoker": [True, False, False],
        "hired": np.full(3, np.datetime64("2020-05-01")),
    }
)


@pytest.mark.parametrize("method", ["mst", "independent", "generative-forest"])
def test_likely_rows_have_a_higher_density(method: str):
    logs = made(method, epsilon=20.0).log_density(WHOLE)
    assert logs.shape == (3,) and np.isfinite(logs).all()
    if method != "independent":
        assert logs[0] > logs[1]  # a cook who smokes


def test_bins_spread_their_probability_over_their_values():
    """Ten bins of ten ages each, and a number of 50 units in five bins."""
    schema = us.Schema.loads('[columns.age]\ntype = "integer"\nmin = 0\nmax = 99\nbins = 10')
    people = us.open(pa.table({"age": list(range(100)) * 10}), schema)
    release = us.synthesize(people, epsilon=50.0, seed=1, test_only_noise_seed=1, method="independent")
    every = np.exp(release.log_density(pa.table({"age": list(range(100))})))
    assert every.sum() == pytest.approx(1.0) and np.abs(every - 0.01).max() < 0.001


def test_densities_need_whole_rows_and_a_model_that_has_one(release: us.Release):
    with pytest.raises(us.TableError, match="no column 'job'"):
        release.log_density(WHOLE.drop_columns(["job"]))
    assert release.log_density(WHOLE.slice(0, 0)).shape == (0,)
    with pytest.raises(us.MethodError, match=r"method rake gives no density; .* generative-forest"):
        made("rake", epsilon=1.0, rows=20).log_density(WHOLE)


def test_a_loaded_release_fills_in_and_judges_as_a_fresh_one(tmp_path: Path):
    fresh = made("generative-forest", epsilon=3.0, rows=50, options={"trees": 3, "leaves": 8})
    fresh.save(tmp_path / "out")
    loaded = us.Release.load(tmp_path / "out")
    frame = pa.table(GAPS)
    assert loaded.impute(frame, seed=2).equals(fresh.impute(frame, seed=2))
    assert loaded.log_density(WHOLE).tolist() == fresh.log_density(WHOLE).tolist()


def test_categories_of_pandas_and_polars_stay_categories(release: us.Release):
    frame = pd.DataFrame({"job": pd.Categorical(["cook", None], categories=["clerk", "cook", "nurse"])})
    whole = release.impute(frame, seed=1)
    assert whole["job"].dtype == "category" and whole["job"].notna().all()
    polars = pl.DataFrame({"job": ["cook", None]}, schema={"job": pl.Enum(["clerk", "cook", "nurse"])})
    assert release.impute(polars, seed=1).schema == polars.schema
