"""The study of DP-Select: what it tries, that it goes on where it stopped, and that its page holds what was found."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import understudy as us
from helpers.tuning import tuned
from understudy.boundary.schema.domain import Domain
from understudy.errors import InputError
from understudy.lab.jobs.job_record import JobRecord
from understudy.lab.studies.documents import selection_study as selection
from understudy.lab.studies.documents.selection_page import (
    POOL,
    PUBLISHED,
    SELECT,
    SelectionCase,
    SelectionResults,
    SelectionTrial,
    render,
    verdict,
)
from understudy.lab.studies.documents.selection_study import (
    SelectionSize,
    attempt,
    auc_and_accuracy,
    cases,
    compared,
    mean_auc,
    sweeps,
    total_variation,
    write,
)
from understudy.methods.dp_select import TUNING

SMALL_POOL = tuned(TUNING, fewest_pool_rows=400, rake={"exchange_rounds": 20})

SCHEMA = us.Schema.loads(
    """
[columns.age]
type = "integer"
min = 0
max = 3
[columns.sex]
type = "integer"
min = 0
max = 1
[columns.income]
type = "integer"
min = 0
max = 1
"""
)
SMALL = SelectionSize(("independent",), (2.0,), 1, "independent", (2.0,), 1)


def table(rows: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    age, sex = rng.integers(0, 4, rows), rng.integers(0, 2, rows)
    return pa.table({"age": age, "sex": sex, "income": ((age > 1) ^ (rng.random(rows) < 0.1)).astype(int)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, seed in (("train", 0), ("test", 1)):
        pyarrow.csv.write_csv(table(400, seed), tmp_path / f"adult.{name}.csv")
    return tmp_path


def test_a_study_is_written_and_not_made_twice(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "attempt", lambda data, case: trial(case, case.ratio / 10, case.factor / 100))
    said: list[str] = []
    page = write(folder / "page.html", folder, {"adult": SCHEMA}, 0, SMALL, said.append)
    text = page.read_text()
    assert "Rows selected out of a private pool" in text and "dp-select over independent" in text
    lines = (folder / "page.jsonl").read_text().splitlines()
    assert len(lines) == len(said) == len(set(cases(SMALL, ["adult"])))
    monkeypatch.setattr(selection, "attempt", None)  # nothing is tried again
    with (folder / "page.jsonl").open("a") as file:
        file.write('{"case": {"table"')  # a run that was killed in the middle of a line
    assert write(folder / "page.html", folder, {"adult": SCHEMA}, 0, SMALL).read_text() == text


def test_selection_finds_what_its_pool_does_not_know(folder: Path) -> None:
    """The pool has independent columns, so that nothing can be learned of income; selected rows show that age tells.

    Age decides for nine of ten rows: the pool's AUC is ½ by construction, the other's about 0.9.
    """
    data = selection.SelectionData.read("adult", folder, SCHEMA)
    pool = attempt(data, SelectionCase("adult", POOL, "independent", 8.0), SMALL_POOL)
    selected = attempt(data, selection.honest("adult", "independent", 8.0), SMALL_POOL)
    assert pool.auc < 0.65 < 0.8 < selected.auc
    assert selected.tv2 < pool.tv2
    printed = selection.published(data, replace(selection.printed("adult", "independent", 8.0), distance="L2"))
    assert {len(v) for v in printed.values()} == {400}


def test_the_plan_of_a_study() -> None:
    size = SelectionSize(("independent", "mst"), (1.0, 8.0), 3, "mst", (2.0,), 1)
    planned = list(cases(size, ["adult", "covertype"]))
    assert len(list(compared(size, "adult"))) == 2 * 2 * 3
    assert {c.seed for c in planned} == {0, 1, 2}
    assert {c.epsilon for c in planned if c.seed} == {1.0, 8.0}  # sweeps have one seed
    names = {(s.method, s.parameter) for s in sweeps(size, ["adult"])}
    assert names == {(m, p) for m in (SELECT, PUBLISHED) for p in ("ε-ratio", "pool size", "distance", "sections")}


def test_sweeps_are_measured_against_their_own_pool_at_every_epsilon() -> None:
    size = SelectionSize(("independent",), (1.0,), 1, "mst", (2.0, 8.0), 1, rows=50, steps=7)
    planned = list(dict.fromkeys(cases(size, ["adult"])))
    assert all((c.rows, c.steps) == (50, 7) for c in planned)
    for sweep in sweeps(size, ["adult"]):
        for case in sweep.cases.values():
            assert case.epsilon == sweep.epsilon and case.pool == "mst"
            assert planned.index(case.pool_alone) < planned.index(case)
    assert {s.epsilon for s in sweeps(size, ["adult"])} == {2.0, 8.0}


def test_steps_are_those_of_a_pool_that_learns_by_them() -> None:
    case = SelectionCase("adult", POOL, "dp-gan", 1.0, steps=7)
    assert selection.pool_of(case, "income").config.steps == 7  # type: ignore[attr-defined]
    assert selection.pool_of(replace(case, pool="mst"), "income") == selection.pool_of(
        replace(case, pool="mst", steps=0), "income"
    )


def test_acc_diff_is_taken_seed_by_seed() -> None:
    """0.9 less 0.8 and 0.5 less 0.6 are 0.1 and −0.1; a seed without its pool does not count."""
    pool, ours = SelectionCase("adult", POOL, "mst", 1.0), selection.honest("adult", "mst", 1.0)
    found = SelectionResults(
        [
            replace(trial(replace(case, seed=seed), 0.0, 0.0), accuracy=accuracy)
            for case, seed, accuracy in ((pool, 0, 0.8), (pool, 1, 0.6), (ours, 0, 0.9), (ours, 1, 0.5), (ours, 2, 0.1))
        ]
    )
    gain = found.gain(ours)
    assert gain is not None and gain.seeds == 2 and gain.mean == pytest.approx(0.0)
    assert gain.high > 0.1 and found.gain(replace(ours, epsilon=2.0)) is None


def test_a_page_has_acc_diff_over_epsilon_and_by_parameter() -> None:
    size = SelectionSize(("mst",), (1.0, 2.0), 1, "mst", (1.0, 2.0), 1)
    trials = [trial(case, 0.05, 0.8) for case in dict.fromkeys(cases(size, ["adult"]))]
    page = render(trials, sweeps(size, ["adult"]), "mst")
    assert "adult, pool mst: acc-diff" in page and "adult, pool mst: accuracy, %" in page
    assert "dp-select: ε-ratio, ε = 1" in page and "as printed: sections, ε = 2" in page
    assert "acc-diff, points" in page


def test_unknown_tables_and_pools_are_refused(folder: Path) -> None:
    with pytest.raises(InputError, match=r"table \('votes'\) must be one of adult, covertype"):
        selection.SelectionData.read("votes", folder, SCHEMA)
    with pytest.raises(InputError, match=r"pool \('gan'\) must be one of"):
        selection.pool_of(SelectionCase("adult", SELECT, "gan", 1.0), "income")


def trial(case: SelectionCase, tv2: float, auc: float) -> SelectionTrial:
    return SelectionTrial(case, 1.0, 0.01, tv2, auc, 0.8, 0.7)


def test_the_verdict_counts_means_over_seeds() -> None:
    pool, ours = SelectionCase("adult", POOL, "mst", 1.0), selection.honest("adult", "mst", 1.0)
    trials = [trial(pool, 0.05, 0.8), trial(ours, 0.06, 0.9), trial(replace(ours, seed=1), 0.02, 0.6)]
    said = verdict(SelectionResults(trials), [pool, ours])
    assert "pairs in 1 of 1" in said and "boosting in 0 of 1" in said


def test_a_page_escapes_and_shows_what_it_is_given() -> None:
    case = SelectionCase("<adult>", POOL, "mst", 1.0)
    page = render([trial(case, 0.0512, 0.8)], [], "mst")
    assert "&lt;adult&gt;" in page and "<adult>" not in page
    assert "0.0512" in page and "INTERNAL" in page
    assert page == render([trial(case, 0.0512, 0.8)], [], "mst")


def test_a_trial_survives_its_record(tmp_path: Path) -> None:
    made = trial(selection.honest("adult", "mst", 1.0), 0.1, 0.2)
    (tmp_path / "x.jsonl").write_text(json.dumps({"case": vars(made.case), **_figures(made)}) + "\n")
    with JobRecord.open(tmp_path / "x.jsonl") as record:
        assert [SelectionTrial.from_dict(line) for line in record.values] == [made]


def _figures(made: SelectionTrial) -> dict[str, float]:
    return {name: value for name, value in vars(made).items() if name != "case"}


# --- Closeness


DOMAIN = Domain.of(SCHEMA)


def codes(rows: pa.Table) -> dict[str, np.ndarray]:
    return {c: rows.column(c).to_numpy() for c in rows.column_names}


def test_total_variation_by_hand() -> None:
    one = {"age": np.array([0, 0]), "sex": np.array([0, 1]), "income": np.array([0, 0])}
    other = {"age": np.array([0, 1]), "sex": np.array([0, 1]), "income": np.array([0, 0])}
    assert total_variation(DOMAIN, one, other, 1) == pytest.approx((0.5 + 0 + 0) / 3)
    assert total_variation(DOMAIN, one, other, 2) == pytest.approx((0.5 + 0.5 + 0) / 3)


def test_real_rows_teach_and_rows_of_one_class_do_not() -> None:
    """Age decides for nine of ten rows, and both classes are as common."""
    train, test = codes(table(2000, 0)), codes(table(2000, 1))
    auc, accuracy, balanced = auc_and_accuracy(DOMAIN, "income", train, test, 0)
    assert auc > 0.85 and accuracy > 0.87 and balanced > 0.87
    constant = train | {"income": np.zeros(2000, dtype=int)}
    assert auc_and_accuracy(DOMAIN, "income", constant, test, 0)[0] == 0.5


def test_the_mean_auc_of_several_classes_by_hand() -> None:
    """The first class is told apart, the second the wrong way round, the third does not occur."""
    chances = np.array([[0.9, 0.8, 0.0], [0.8, 0.7, 0.0], [0.1, 0.2, 0.0], [0.2, 0.1, 0.0]])
    assert mean_auc(chances, np.array([0, 0, 1, 1])) == pytest.approx((1.0 + 0.0) / 2)
