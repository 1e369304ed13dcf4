"""A date is drawn inside its bin, with the weekday, month and hour that its row has."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.encoding import codes_of_derived
from understudy.inference import date_parts as module
from understudy.inference.values import decode

TOML = """
[columns.seen]
type = "datetime"
min = 2020-01-01
max = 2023-12-31
bins = 8
missing = true
resolution = "hour"
[columns.weekday]
type = "derived"
of = "weekday(seen)"
[columns.month]
type = "derived"
of = "month(seen)"
[columns.hour]
type = "derived"
of = "hour(seen)"
"""
SCHEMA = us.Schema.loads(TOML)
DOMAIN = Domain.of(SCHEMA)
ROWS = 300


def rng() -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(3))


def coded(dates: np.ndarray) -> dict[str, np.ndarray]:
    """The codes of these dates and of their parts, as the encoder of rows has them."""
    table = pa.table({"seen": pa.array(dates)})
    found = {c.name: codes_of_derived(c, table, ()) for c in DOMAIN if c.name != "seen"}
    edges = np.datetime64(SCHEMA["seen"].start, "s") + np.array(DOMAIN["seen"].edges) * np.timedelta64(3600, "s")
    own = np.searchsorted(edges[1:-1], dates, side="right")
    return {"seen": np.where(np.isnat(dates), DOMAIN.size("seen") - 1, own), **found}


def dates() -> np.ndarray:
    made = np.datetime64("2020-01-01T00", "s") + rng().integers(0, 4 * 365 * 24, ROWS) * np.timedelta64(3600, "s")
    made[::10] = np.datetime64("NaT")
    return made


@pytest.mark.parametrize("uniform", [False, True])
def test_decoded_dates_have_the_codes_that_they_were_drawn_from(uniform: bool) -> None:
    codes = coded(dates())
    found = decode(codes, DOMAIN, rng(), uniform=uniform)["seen"]
    again = coded(np.where(found.absent(), np.datetime64("NaT"), found.data))
    for name, wanted in codes.items():
        np.testing.assert_array_equal(again[name], wanted, err_msg=name)


def test_a_bin_without_such_a_date_keeps_the_date_and_the_part_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROUNDS", 2)
    codes = {"seen": np.zeros(ROWS, dtype=int), "month": np.full(ROWS, 11)}  # December in the first half of 2020
    found = decode(codes, DOMAIN, rng())
    assert (coded(found["seen"].data)["seen"] == 0).all()
    np.testing.assert_array_equal(found["month"].data, coded(found["seen"].data)["month"] + 1)
    assert found["month"].data.max() <= 7


def test_without_its_date_a_part_is_a_number() -> None:
    assert decode({"weekday": np.array([0, 6])}, DOMAIN, rng())["weekday"].data.tolist() == [1, 7]


def test_a_release_keeps_weekdays_that_bins_lose() -> None:
    days = np.datetime64("2020-01-01") + np.arange(1400)
    working = days[(days.astype(int) + 3) % 7 < 5].repeat(4).astype("datetime64[s]")
    table = us.open(pa.table({"seen": working}), us.Schema.loads(TOML.split("[columns.month]")[0]), name="visits")
    made = us.synthesize(table, epsilon=10, method="mst", seed=1, ledger=False).table
    assert made.column_names == ["seen"]
    found = made["seen"].drop_null().to_numpy().astype("datetime64[D]").astype(int)
    assert np.mean((found + 3) % 7 >= 5) < 0.02  # of days drawn at random two in seven


def test_rules_and_counts_may_speak_of_a_part() -> None:
    days = (np.datetime64("2020-01-01") + np.arange(1400)).astype("datetime64[s]")
    rule = '[[constraints]]\nthen = "weekday <= 5"\n'
    table = us.open(pa.table({"seen": days}), us.Schema.loads(TOML + rule), name="visits")
    release = us.synthesize(table, epsilon=10, method="independent", seed=1, ledger=False)
    found = release.table["seen"].drop_null().to_numpy().astype("datetime64[D]").astype(int)
    assert ((found + 3) % 7 < 5).all()
    assert release.count("weekday = 3").value > 0
    assert us.query(table, "SELECT count(*) FROM visits WHERE weekday = 6", epsilon=10, ledger=False).value > 100
