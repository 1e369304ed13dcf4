"""Forecasts go by public facts, move the right way, and stay sane where nothing was measured."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import understudy as us
from understudy.boundary.privacy.budget import Budget
from understudy.cli.app import app
from understudy.datasets import schema as bundled
from understudy.methods.forecast.coefficients import COEFFICIENTS
from understudy.methods.forecast.forecast import (
    COST_FACTS,
    FEWEST_TABLES,
    POINTS,
    Forecast,
    Setting,
    Shape,
    cost_facts,
    effective_sizes,
    expected_error,
    forecast,
    pairs_of,
)
from understudy.methods.forecast.spending import Public
from understudy.methods.method import Options
from understudy.methods.rake.schedule import Schedule
from understudy.methods.registry import AUTO, METHODS, choose, spoken_seconds

ONE = '[columns.only]\ntype = "boolean"'
SHARED = ("adult", "covertype", "healthcare", "insurance", "mushroom", "nursery", "votes")
SHAPE = Shape(2.0, 1.0, 1.0)


def expected(method: str, epsilon: float = 1.0, rows: int = 20_000, table: str = "adult") -> Forecast:
    outlook = us.plan(bundled(table), epsilon=epsilon, rows=rows)
    return next(f for f in outlook.forecasts if f.method == method)


def error_of(setting: Setting, related: float = 0.1, waste: float = 1.0, unreached: float = 0.0) -> float:
    return float(expected_error(setting, SHAPE, *(np.array([x]) for x in (related, waste, unreached))))


def setting(cells: float, rows: float, noise: float, columns: float = 0.0) -> Setting:
    full = np.ones(POINTS.size)
    return Setting(columns * full, cells * full, np.array([rows]), np.array([noise]))


UNMEASURED = {"polya-tree", "dirichlet", "generative-forest", "privsyn", "dualquery"}
"""Methods that were measured on no table; `plan` leaves them out."""
SELDOM_MEASURED = {"dp-gan", "dp-ctgan", "pate-gan"}
PREDICTED = [name for name in METHODS if name not in UNMEASURED]


def test_every_method_has_coefficients():
    assert set(COEFFICIENTS) == set(PREDICTED)
    for of in COEFFICIENTS.values():
        assert all(len(of[name]) == len(COST_FACTS) + 1 for name in ("seconds", "megabytes"))
        assert len(of["error"]) == 2 and of["range"][0] > 0


def test_a_forecast_that_rests_on_few_tables_says_so():
    few = {f.method for f in us.plan(bundled("adult"), epsilon=1.0).forecasts if not f.firm}
    assert few == SELDOM_MEASURED == {m for m, of in COEFFICIENTS.items() if of["tables"][0] < FEWEST_TABLES}


def test_pairs_that_can_be_measured_err_by_their_noise():
    """100 cells, each off by 0.4 of its deviation on average: 0.4 · 100 · 1 / 10⁶ of the rows."""
    assert error_of(setting(100, 1e6, 1.0), related=0.5) == pytest.approx(0.4 * 100 / 1e6, rel=1e-6)


def test_pairs_drowned_in_noise_err_by_their_departure():
    """Sampling, 0.4 · √(cells/rows), and the relation, as the sides of a right angle; no more without sets."""
    drowned = error_of(setting(100, 10_000, 1e9), related=0.03)
    assert drowned == pytest.approx(math.hypot(0.04, 0.03), rel=1e-6)
    assert error_of(setting(100, 10_000, 0.0), related=0.03, unreached=1.0) == pytest.approx(drowned, rel=1e-6)


def test_columns_add_their_noise_to_pairs():
    """As the sides of a right angle, damped: 0.03/(1 + 0.03)."""
    alone, both = error_of(setting(100, 1e6, 10.0)), error_of(setting(100, 1e6, 10.0, columns=0.03))
    assert both == pytest.approx(math.hypot(alone, 0.03 / 1.03), rel=1e-6)


def test_no_error_is_more_than_everything():
    assert 0.9 < error_of(setting(1e6, 10, 1e9, columns=1e3), related=0.9, unreached=10.0) < 1.0


def test_quantiles_stand_for_all_pairs():
    sizes = effective_sizes(np.array([2.0, 3.0, 40.0, 80.0]))
    assert sizes.tolist() == pytest.approx([2 / 1.05, 3 / 1.075, 20.0, 80 / 3])
    cells = [a * b for a, b in itertools.combinations(sizes, 2)]
    assert pairs_of(sizes).mean() == pytest.approx(np.mean(cells), rel=0.05)
    assert min(cells) <= pairs_of(sizes).min() and pairs_of(sizes).max() <= max(cells)


@pytest.mark.parametrize("sizes", [[5.0], [2.0, 2.0], [2.0] * 40, [2.0, 3.0, 3.0, 7.0, 20.0], [1.5, *[2.0] * 9, 8.0]])
def test_pairs_of_equal_columns_are_counted_as_if_each_were_listed(sizes: list[float]):
    cells = [a * b for a, b in itertools.combinations(sizes, 2)]
    wanted = np.quantile(cells, POINTS, method="inverted_cdf") if cells else np.zeros(POINTS.size)
    assert pairs_of(np.array(sizes)).tolist() == wanted.tolist()


def test_noise_is_that_of_the_methods_own_rules():
    """Two columns of two values and a generous budget: what is left of each split, by hand."""
    public = Public.of(us.Schema.loads('[columns.a]\ntype = "boolean"\n[columns.b]\ntype = "boolean"'), BUDGET, 10**6)
    whole = public.deviation(public.amount)
    assert METHODS["independent"].expected_spending(public).sets == 0
    # Two equal columns share the budget, and each has two cells.
    assert METHODS["independent"].expected_spending(public).columns == pytest.approx(
        [0.4 * 2 * whole * math.sqrt(2) / 1e6] * 2
    )
    tree = METHODS["mst"].expected_spending(public)
    assert (tree.sets, tree.noise) == (1, pytest.approx(whole / math.sqrt(0.7 * 0.85)))
    assert METHODS["mwem"].expected_spending(public).noise == pytest.approx(whole / math.sqrt(0.7 * 0.8 / 3))


BUDGET = Budget(1.0, 1e-6)


class Asked:
    """Notes the schedule that a real release follows."""

    seen: Schedule


def test_the_schedule_of_rake_is_the_one_it_follows(monkeypatch: pytest.MonkeyPatch):
    """With as many rows as were guessed; a noisy total moves a schedule by little, and here by nothing."""
    schema = us.Schema.loads("".join(f'[columns.c{i}]\ntype = "boolean"\n' for i in range(4)))
    rows, original = 4_000, Schedule.of.__func__  # type: ignore[attr-defined]

    def noted(cls: type[Schedule], *of: object, **more: object) -> Schedule:
        Asked.seen = original(cls, *of, **more)
        return Asked.seen

    planned = METHODS["rake"].expected_spending(Public.of(schema, BUDGET, rows))
    monkeypatch.setattr(Schedule, "of", classmethod(noted))
    frame = pa.table({f"c{i}": np.arange(rows) % (i + 2) == 0 for i in range(4)})
    us.synthesize(us.open(frame, schema), method="rake", epsilon=1.0, delta=1e-6, seed=1, test_only_noise_seed=1)
    seen = Asked.seen
    assert planned.sets == seen.edges + seen.per_round * len(seen.rounds)
    assert planned.noise == pytest.approx(seen.noise, rel=1e-6)


@pytest.mark.slow_after(24)
@pytest.mark.parametrize("table", SHARED)
@pytest.mark.parametrize("method", PREDICTED)
def test_more_budget_and_more_rows_mean_less_error(method: str, table: str):
    errors = [expected(method, epsilon, 10_000, table).error for epsilon in (0.1, 1.0, 10.0)]
    assert errors[0] > errors[1] > 0.9 * errors[2]
    assert expected(method, 1.0, 1_000, table).error > expected(method, 1.0, 100_000, table).error


@pytest.mark.slow_after(24)
@pytest.mark.parametrize("method", PREDICTED)
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
def test_noise_follows_relation_and_budget(one: str, other: str, delta: float):
    """Under replace-one a unit changes two cells: twice the Laplace noise, √2 of the Gaussian."""
    schema, budget = bundled("nursery"), Budget(1.0, delta)
    both = [us.Schema(schema.columns, neighbours=n, missing_values=schema.missing_values) for n in (one, other)]
    few, more = (METHODS["mst"].expected_spending(Public.of(s, budget, 10**6)) for s in both)
    factor = 2.0 if delta == 0 else math.sqrt(2)
    assert more.noise / few.noise == pytest.approx(factor, rel=1e-6)
    assert more.columns / few.columns == pytest.approx(factor, rel=1e-6)


def test_no_row_is_read(tmp_path: Path):
    """The data may not even exist: the schema beside them is enough."""
    path = tmp_path / "t.csv"
    (tmp_path / "t.toml").write_text(bundled("nursery").dumps())
    done = CliRunner().invoke(app, ["plan", str(path), "--epsilon", "1", "--rows", "5000", "--json"])
    assert done.exit_code == 0 and not path.exists()
    found = json.loads(done.output)
    assert {f["method"] for f in found["forecasts"]} == set(PREDICTED) and found["rows"] == 5000
    assert [f["error"] for f in found["forecasts"]] == sorted(f["error"] for f in found["forecasts"])


def test_the_table_says_what_it_assumed(tmp_path: Path):
    schema = tmp_path / "s.toml"
    schema.write_text(bundled("votes").dumps())
    said = CliRunner().invoke(app, ["plan", "--schema", str(schema), "--epsilon", "0.5"], env={"COLUMNS": "200"}).output
    assert "10,000 rows (assumed)" in said and "10,000 rows were assumed; say how many you have with --rows." in said
    assert "auto would take" in said and "nothing was spent" in said
    assert "dp-gan *" in said and "* rests on few measurements" in said


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
    outlook = us.plan(schema, epsilon=1.0)
    reason, _, expected = certificate.reason.partition("; expected: ")
    assert (certificate.method, reason) == (outlook.method, outlook.reason)
    assert "of the rows misplaced per pair of columns" in expected


def test_memory_beyond_the_measured_counts_as_the_nearest():
    """But for the time of rows, which goes on growing."""
    few, many, more = (Public.of(bundled("adult"), BUDGET, rows) for rows in (20_000, 10**10, 10**11))
    assert (
        cost_facts(many, METHODS["independent"].expected_spending(many))[0] > COEFFICIENTS["independent"]["highest"][0]
    )
    found = [forecast(METHODS["independent"], f) for f in (few, many, more)]
    assert found[0].megabytes != found[1].megabytes == found[2].megabytes
    assert found[2].seconds == pytest.approx(10 * found[1].seconds, rel=1e-3)


def test_plan_says_what_auto_would_take_told_a_target():
    """The same that a release would take; what a target needs, the general method knows by itself."""
    for table, target in (("mushroom", "class"), ("votes", "Class"), ("nursery", "classification")):
        schema = bundled(table)
        for epsilon in (0.1, 1.0):
            outlook = us.plan(schema, epsilon=epsilon, target=target)
            choice = choose(AUTO, Options((target,)), schema, Budget(epsilon, 1e-6))
            assert (outlook.method, outlook.reason, outlook.targets) == (choice.method.name, choice.reason, (target,))
    told = us.plan(bundled("mushroom"), epsilon=1.0, target="class")
    untold = us.plan(bundled("mushroom"), epsilon=1.0)
    assert told.method == "rake" == untold.method and told.forecasts == untold.forecasts


def test_a_target_that_is_no_column_is_refused(tmp_path: Path):
    with pytest.raises(us.SchemaError, match="'clas' is not in the schema"):
        us.plan(bundled("mushroom"), epsilon=1.0, target="clas")
    with pytest.raises(us.MethodError, match="is named 2 times"):
        us.plan(bundled("mushroom"), epsilon=1.0, target=["class", "class"])
    (tmp_path / "s.toml").write_text(bundled("mushroom").dumps())
    words = ["plan", "--schema", str(tmp_path / "s.toml"), "--epsilon", "1"]
    done = CliRunner().invoke(app, [*words, "--target", "class"], env={"COLUMNS": "200"})
    assert "auto would take rake told to predict class" in " ".join(done.output.split())


def test_methods_that_are_never_pure_are_left_out_where_delta_is_0():
    found = {f.method for f in us.plan(bundled("votes"), epsilon=1.0, delta=0.0).forecasts}
    assert found == set(PREDICTED) - SELDOM_MEASURED


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.01, "0.1 s"), (3.456, "3.5 s"), (99.6, "100 s"), (150.0, "2.5 min"), (7000.0, "120 min")]
)
def test_seconds_are_said_to_two_digits(seconds: float, said: str):
    assert spoken_seconds(seconds) == said
