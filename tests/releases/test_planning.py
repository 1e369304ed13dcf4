"""The ε of a wanted error, what is said before and after the spend, and that all say the same figure."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import understudy as us
from understudy import datasets
from understudy.boundary.privacy.budget import Budget
from understudy.methods.forecast.caution import NOISY, cautions_before, rows_worth, spoken
from understudy.methods.forecast.forecast import forecast
from understudy.methods.forecast.spending import Public
from understudy.methods.registry import METHODS
from understudy.progress import Progress
from understudy.releases.planning import MOST_EPSILON

SCHEMA = us.Schema.loads("""
[columns.age]
type = "integer"
min = 0
max = 99
[columns.job]
type = "categorical"
values = ["cook", "clerk", "else"]
[columns.smoker]
type = "boolean"
""")
ADULT = datasets.schema("adult")


def people(rows: int = 400) -> us.Table:
    frame = pa.table({
        "age": [20 + i % 60 for i in range(rows)],
        "job": ["cook", "clerk"] * (rows // 2),
        "smoker": [i % 3 == 0 for i in range(rows)],
    })  # fmt: skip
    return us.open(frame, SCHEMA, name="people")


@pytest.mark.parametrize("error", [0.03, 0.08, 0.2])
@pytest.mark.parametrize("rows", [3_000, 100_000])
def test_the_epsilon_of_an_error_is_the_least_that_reaches_it(error: float, rows: int) -> None:
    try:
        outlook = us.plan(ADULT, error=error, rows=rows)
    except us.InputError:
        best = us.plan(ADULT, epsilon=MOST_EPSILON, rows=rows).expected
        assert best is not None and best.error > error
        return
    assert outlook.expected is not None and outlook.expected.error <= error
    less = us.plan(ADULT, epsilon=outlook.epsilon * 0.88, rows=rows).expected  # more than a second digit below
    assert outlook.epsilon <= 0.011 or (less is not None and less.error > error)


def test_an_error_out_of_reach_is_refused_with_the_one_within_it() -> None:
    with pytest.raises(us.InputError, match=r"at epsilon 20 \S+ is expected to err by [\d.]+ %; accept that"):
        us.plan(ADULT, error=0.001, rows=2_000)


@pytest.mark.parametrize("said", [{}, {"epsilon": 1.0, "error": 0.1}])
def test_a_plan_needs_one_of_both(said: dict[str, float]) -> None:
    with pytest.raises(us.InputError, match="either epsilon"):
        us.plan(SCHEMA, **said)


@pytest.mark.parametrize("error", [0.0, 1.0, -0.1, float("nan")])
def test_an_error_is_a_share(error: float) -> None:
    with pytest.raises(us.InputError, match="error"):
        us.plan(SCHEMA, error=error)


def test_rows_worth_a_budget_are_where_signal_begins() -> None:
    method, budget = METHODS["rake"], Budget(0.05, 1e-6)
    rows = rows_worth(method, ADULT, budget)
    assert forecast(method, Public.of(ADULT, budget, round(rows * 1.1))).error < NOISY
    assert forecast(method, Public.of(ADULT, budget, round(rows * 0.9))).error > NOISY


def test_before_the_spend_public_facts_alone_are_spoken_of() -> None:
    few, many = (cautions_before(METHODS["rake"], ADULT, Budget(e, 1e-6)) for e in (0.01, 1.0))
    assert "in a table of fewer than about" in few[0] and many == ()
    assert "is above 5" in us.plan(SCHEMA, epsilon=6.0).cautions[0]
    assert "10^4343" in us.plan(SCHEMA, epsilon=9_999).cautions[0]


class Listening(Progress):
    """Remembers what it is told, in order."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def __call__(self, part: str, /) -> None:
        self.heard.append("part")

    def caution(self, sentence: str, /) -> None:
        self.heard.append("caution")


def test_cautions_come_before_the_first_question(tmp_path: Path) -> None:
    told = Listening()
    us.synthesize(people(), epsilon=50.0, method="independent", progress=told, ledger=tmp_path / "ledger.sqlite")
    assert told.heard[0] == "caution" and "part" in told.heard


def test_one_figure_is_said_everywhere(tmp_path: Path) -> None:
    release = us.synthesize(people(), epsilon=1.0, rows=7, test_only_noise_seed=1)
    assert release.expected is not None and abs(release.total - 400) < 200  # 7 rows were asked for: no part of it
    words = spoken(release.expected, release.total)
    assert release.certificate.reason.endswith(f"; expected: {words}") and words in repr(release)
    assert words.partition(" of")[0] in release.files()["report.html"].decode()
    folder = release.save(tmp_path / "out")
    assert us.Release.load(folder).expected == release.expected


def test_noise_beyond_signal_is_said_after_the_release() -> None:
    release = us.synthesize(people(40), epsilon=0.05, test_only_noise_seed=1)
    assert any("noise exceeds signal" in c for c in release.cautions) and "noise exceeds signal" in repr(release)


def test_given_values_have_no_forecast() -> None:
    release = us.synthesize(people(), epsilon=1.0, given={"job": "cook"}, test_only_noise_seed=1)
    assert release.expected is None and "; expected" not in release.certificate.reason
