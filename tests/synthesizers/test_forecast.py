"""Forecasts go by public facts, move the right way, and stay sane where nothing was measured."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import understudy as us
from understudy.cli.app import app
from understudy.datasets import schema as bundled
from understudy.privacy.budget import Budget
from understudy.synthesizers.coefficients import COEFFICIENTS
from understudy.synthesizers.forecast import FACTS, Forecast, facts_of, forecast
from understudy.synthesizers.registry import METHODS, spoken_seconds

ONE = '[columns.only]\ntype = "boolean"'
SHARED = ("adult", "covertype", "healthcare", "insurance", "mushroom", "nursery", "votes")


def expected(method: str, epsilon: float = 1.0, rows: int = 20_000, table: str = "adult") -> Forecast:
    outlook = us.plan(bundled(table), epsilon=epsilon, rows=rows)
    return next(f for f in outlook.forecasts if f.method == method)


UNMEASURED = {"dp-arf", "dp-gan", "dp-ctgan", "pate-gan", "dp-select", "polya-tree", "dirichlet"}
"""Methods that were not measured on enough tables to be foretold; `plan` leaves them out."""
FORETOLD = [name for name in METHODS if name not in UNMEASURED]


def test_every_method_has_coefficients():
    assert set(COEFFICIENTS) == set(FORETOLD)
    for of in COEFFICIENTS.values():
        assert all(len(of[name]) == len(FACTS) + 1 for name in ("error", "seconds", "megabytes")) and of["range"][0] > 0


@pytest.mark.parametrize("table", SHARED)
@pytest.mark.parametrize("method", FORETOLD)
def test_more_budget_and_more_rows_mean_less_error(method: str, table: str):
    errors = [expected(method, epsilon, 10_000, table).error for epsilon in (0.1, 1.0, 10.0)]
    assert errors[0] > errors[1] > 0.9 * errors[2]
    assert expected(method, 1.0, 1_000, table).error > expected(method, 1.0, 100_000, table).error


@pytest.mark.parametrize("method", FORETOLD)
@pytest.mark.parametrize("rows", [1, 50, 10**9])
@pytest.mark.parametrize("epsilon", [1e-3, 1e3])
def test_far_from_what_was_measured_forecasts_stay_possible(method: str, rows: int, epsilon: float):
    for schema in (us.Schema.loads(ONE), bundled("adult")):
        found = next(f for f in us.plan(schema, epsilon=epsilon, rows=rows).forecasts if f.method == method)
        assert 0 < found.low <= found.error <= found.high < 1
        assert 0.01 < found.seconds < 1e9 and 50 < found.megabytes < 1e5


def test_rows_cost_counting_beyond_what_was_measured():
    assert expected("rake", rows=10**9).seconds > 5 * expected("rake", rows=10**8).seconds


@pytest.mark.parametrize(("one", "other"), [("add-remove", "replace-one")])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_facts_follow_relation_and_budget(one: str, other: str, delta: float):
    """Under replace-one a unit changes two cells: twice the Laplace noise, √2 of the Gaussian."""
    schema = bundled("nursery")
    noise = [
        facts_of(
            us.Schema(schema.columns, neighbours=n, missing_values=schema.missing_values), Budget(1.0, delta), 10**6
        )[0]
        for n in (one, other)
    ]
    assert np.exp(noise[1] - noise[0]) == pytest.approx(2.0 if delta == 0 else np.sqrt(2), rel=1e-6)


def test_no_row_is_read(tmp_path: Path):
    """The data may not even exist: the schema beside them is enough."""
    path = tmp_path / "t.csv"
    (tmp_path / "t.toml").write_text(bundled("nursery").dumps())
    done = CliRunner().invoke(app, ["plan", str(path), "--epsilon", "1", "--rows", "5000", "--json"])
    assert done.exit_code == 0 and not path.exists()
    found = json.loads(done.output)
    assert {f["method"] for f in found["forecasts"]} == set(FORETOLD) and found["rows"] == 5000
    assert [f["error"] for f in found["forecasts"]] == sorted(f["error"] for f in found["forecasts"])


def test_the_table_says_what_it_assumed(tmp_path: Path):
    schema = tmp_path / "s.toml"
    schema.write_text(bundled("votes").dumps())
    said = CliRunner().invoke(app, ["plan", "--schema", str(schema), "--epsilon", "0.5"], env={"COLUMNS": "200"}).output
    assert "10,000 rows (assumed; say how many with --rows)" in " ".join(said.split())
    assert "auto would take" in said and "nothing was spent" in said


@pytest.mark.parametrize("rows", [0, -3, 10**13, True, 2.5])
def test_impossible_numbers_of_rows_are_refused(rows: object):
    with pytest.raises(us.InputError, match=r"rows .* must be a whole number from 1 to"):
        us.plan(us.Schema.loads(ONE), epsilon=1.0, rows=rows)  # type: ignore[arg-type]


def test_a_schema_with_private_values_is_planned_with_the_least_of_them():
    private = us.Schema.loads('[columns.city]\ntype = "categorical"\nvalues = "private"\n[columns.b]\ntype = "boolean"')
    assert us.plan(private, epsilon=1.0).forecasts


def test_the_certificate_of_auto_says_why():
    schema = us.Schema.loads('[columns.a]\ntype = "boolean"\n[columns.b]\ntype = "boolean"')
    table = us.open(pa.table({"a": [True, False] * 30, "b": [True, True, False] * 20}), schema)
    certificate = us.synthesize(table, epsilon=1.0, rows=5).certificate
    assert (certificate.method, certificate.reason) == (
        us.plan(schema, epsilon=1.0).method,
        us.plan(schema, epsilon=1.0).reason,
    )


def test_facts_beyond_the_measured_count_as_the_nearest():
    facts = facts_of(bundled("adult"), Budget(1.0, 1e-6), 20_000)
    far = facts.copy()
    far[3] += 50.0
    farther = facts.copy()
    farther[3] += 60.0
    assert forecast("rake", far) == forecast("rake", farther) != forecast("rake", facts)


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.01, "0.1 s"), (3.456, "3.5 s"), (99.6, "100 s"), (150.0, "2.5 min"), (7000.0, "120 min")]
)
def test_seconds_are_said_to_two_digits(seconds: float, said: str):
    assert spoken_seconds(seconds) == said
