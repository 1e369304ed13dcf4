"""The verdict on networks and counts: who is better by what, and how it is written down; the run itself, small."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.made_results import EVIL, study
from understudy.lab.evaluation.measure import MeasureResult
from understudy.lab.studies.documents import model_or_statistics as document
from understudy.lab.studies.study import TRIAL_MEASURES, WITHOUT_GUARANTEE, Study, Trial
from understudy.methods.method import MODEL_FIRST, STATISTICS_FIRST
from understudy.methods.registry import METHODS

FAMILIES = {"net": MODEL_FIRST, "other-net": MODEL_FIRST, "counts": STATISTICS_FIRST, "arf": WITHOUT_GUARANTEE}


def made(**values: tuple[float, ...]) -> Study:
    """TSTR accuracy of each method, seed by seed."""
    trials = tuple(
        Trial(name.replace("_", "-"), 1.0, seed, 1.0, 1.0, {"tstr-accuracy": MeasureResult(value)})
        for name, found in values.items()
        for seed, value in enumerate(found)
    )
    return Study("t", 10, 5, 1e-6, "y", trials, {"tstr-accuracy": MeasureResult(0.9)}, FAMILIES)


def test_the_best_of_each_family_meet():
    found = document.verdict(made(net=(0.5, 0.5), other_net=(0.6, 0.6), counts=(0.8, 0.8), arf=(0.99, 0.99)))
    assert found.rows == (("1", "TSTR accuracy", "other-net 0.600 ± 0.000", "counts 0.800 ± 0.000", STATISTICS_FIRST),)
    assert "model-first in 0, statistics-first in 1 of 1" in found.note


def test_intervals_that_overlap_decide_nothing():
    found = document.verdict(made(net=(0.5, 0.7), counts=(0.4, 0.6)))
    assert found.rows[0][-1] == "model-first, within the intervals" and "model-first in 0" in found.note
    equal = document.verdict(made(net=(0.5,), counts=(0.5,)))
    assert equal.rows[0][-1] == "equal"
    assert document.verdict(made(counts=(0.5,))).rows == ()


def test_every_method_is_in_the_table():
    found = document.everything(made(net=(0.5,), arf=(0.9,)))
    assert [row[:4] for row in found.rows] == [
        ("net", MODEL_FIRST, "1", "0.500"),
        ("arf", WITHOUT_GUARANTEE, "1", "0.900"),
        ("real rows", "–", "–", "0.900"),
    ]
    assert document.markdown(study(families=dict.fromkeys(("rake", "mst", EVIL), MODEL_FIRST))).count("\n## ") == 1


def test_what_is_asked_exists_and_networks_are_the_models():
    known = {m.name for m in TRIAL_MEASURES}
    assert {q.measure for q in document.QUESTIONS} <= known and set(document.MEASURES) <= known
    models = {m for m in document.METHODS if METHODS[m].traits.family == MODEL_FIRST}
    assert models == {"dp-gan", "dp-ctgan", "pate-gan"} == {n for n, m in METHODS.items() if m.traits.trains}


@pytest.mark.slow
def test_a_small_run_writes_both_and_for_this_user_alone(tmp_path: Path):
    from understudy.datasets import schema

    line = "{age},Private,{weight},HS-grad,9,Never-married,Sales,Not-in-family,White,{sex},0,0,40,United-States,{pay}"
    names = [c.name for c in schema("adult")]
    for file, rows in zip(document.FILES, (120, 60), strict=True):
        cells = [
            line.format(
                age=17 + i % 60, weight=20_000 + i, sex=("Male", "Female")[i % 2], pay=("<=50K", ">50K")[i % 3 > 1]
            )
            for i in range(rows)
        ]
        (tmp_path / file).write_text("\n".join([",".join(names), *cells]) + "\n")
    plan = document.StudyPlan(("mst", "independent"), (1.0,), seeds=1, rows=100, jobs=1)
    found = document.study(tmp_path, schema("adult"), tmp_path / "out", plan)
    document.write(found, tmp_path / "out")
    assert found.rows == 100 and found.holdout_rows == 50 and not list(found.failures())
    assert "attack-inference" in found.baseline
    assert "Model-first against statistics-first</h3>" in (tmp_path / "out" / document.PAGE).read_text()
    for name in (document.PAGE, document.VERDICT):
        assert (tmp_path / "out" / name).stat().st_mode & 0o777 == 0o600
