"""The report of a study: complete, escaped, self-contained, and the layouts of the source documents."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from helpers.made_results import BUDGETS, EVIL, METHODS, study, study_figures
from understudy.errors import InputError
from understudy.lab.evaluation.measure import MeasurePart, MeasureResult
from understudy.lab.studies.layout import LAYOUTS, lay_out
from understudy.lab.studies.report import pictures, render, render_brief
from understudy.lab.studies.study import WITHOUT_GUARANTEE, Trial, summarize
from understudy.methods.method import MODEL_FIRST, STATISTICS_FIRST


def test_the_page_is_self_contained_and_escaped():
    page = render(study(), "adversarial-forests")
    assert page == render(study(), "adversarial-forests")
    assert EVIL not in page and "&lt;script&gt;alert(" in page
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|src=|@import|url\(|<link|<iframe|<img", page)
    assert len(page) < 3_000_000


def test_every_figure_and_every_failure_is_there():
    page = render(study())
    assert "INTERNAL" in page and "1 trial failed" in page and "too large" in page
    assert all(f"<summary>{m.title}</summary>" in page for m in study().measures)
    assert "violations" not in {m.name for m in study().measures}
    assert "nothing to set against them" in page


def test_two_families_are_set_against_each_other():
    families = {"rake": STATISTICS_FIRST, "mst": STATISTICS_FIRST, EVIL: MODEL_FIRST}
    page = render(study(families=families))
    assert "the best of each family" in page and "nothing to set against them" not in page
    assert study(families=families).best(1.0, study().measures[0], MODEL_FIRST)[0] == EVIL  # type: ignore[index]


def test_what_has_no_guarantee_is_marked_and_wins_nothing():
    families = {"rake": WITHOUT_GUARANTEE, "mst": STATISTICS_FIRST, EVIL: MODEL_FIRST}
    found = study(families=families)
    assert found.best(1.0, found.measures[0])[0] == "mst"  # type: ignore[index]
    assert "rake" not in {r.method for r in found.ranking(1.0)}
    page = render(found, "model-or-statistics")
    assert "rake (no guarantee)" in page and "mst (no guarantee)" not in page
    assert "none, whatever ε is named" in page


def test_pictures_are_drawn_and_saved(tmp_path: Path):
    found = pictures(study())
    for figure in found:
        assert ElementTree.fromstring(figure.standalone()).tag.endswith("svg")
    paths = study().save_figures(tmp_path / "drawn")
    assert len(paths) == len(found) and len({p.name for p in paths}) == len(found)
    assert study().save_figures(tmp_path / "png", "png")[0].read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError, match="must be one of svg, png"):
        study().save_figures(tmp_path, "pdf")


def test_the_ranking_is_that_of_the_measures():
    """rake has the least error and the highest AUC everywhere, so it is first by all of them."""
    ranks = study().ranking(1.0)
    assert [r.method for r in ranks] == list(METHODS)
    assert (ranks[0].mean, ranks[0].best, ranks[0].worst) == (1.0, 1.0, 1.0)
    equal = study(trials=tuple(Trial(m, 1.0, 0, 1.0, 1.0, study_figures(1.0)) for m in METHODS))
    assert {r.mean for r in equal.ranking(1.0)} == {2.0}


def test_means_and_intervals():
    """Of 1, 2, 3: mean 2, standard error 1/√3, and Student's t at 97.5 % with two degrees of freedom is 4.3027."""
    found = summarize([1.0, 2.0, 3.0])
    assert found is not None and found.mean == 2.0
    assert found.high - found.mean == pytest.approx(4.30265 / 3**0.5, rel=1e-5)
    assert summarize([]) is None
    alone = summarize([0.5])
    assert alone is not None and (alone.low, alone.high) == (0.5, 0.5)


def test_the_first_document_stands_beside_ours():
    grids = {g.title: g for g in lay_out(study(), "adversarial-forests")}
    wasserstein = grids["Wasserstein distance, ε = 0.5 (table 5)"]
    assert wasserstein.heads == ("feature", "printed: ARF", "printed: DP-ARF", *METHODS)
    assert wasserstein.rows[0] == ("age", "0.7108", "0.7519", "2.0100", "4.0100", "6.0100")
    correlation = grids["Correlation, ε = 1 (table 24)"]
    assert correlation.rows[0][:4] == ("age × bmi", "0.2500", "0.1136", "0.1063")
    accuracy = grids["Classification accuracy, ε = 0.1 (table 19)"]
    assert accuracy.rows == (("all rows", "0.9948", "0.9454", *["0.7500"] * 3),)
    assert "its figures say little" in accuracy.note
    assert grids["Reconstruction attack error, ε = 1 (table 30)"].rows[0][3] == "1.5000"
    assert "Chi-square test, ε = 0.1 (table 16)" in grids


def test_a_table_that_the_document_does_not_have():
    other = study(
        trials=tuple(
            Trial("rake", 1.0, 0, 1.0, 1.0, {"chi2-one-sided": study_figures(1.0)["chi2-one-sided"]}) for _ in "x"
        )
    )
    (grid,) = lay_out(other, "adversarial-forests")
    assert grid.title == "Chi-square test, ε = 1" and grid.rows == (("smoker", "–", "–", "1.0000"),)


def test_the_second_document_prints_trees():
    accuracy, time = lay_out(study(), "selection")
    assert accuracy.heads == ("method", "ε = 0.1", "ε = 0.5", "ε = 1", "ε = 2", "ε = 8")
    assert accuracy.rows[0] == ("printed: DP-Select", "–", "–", "–", "73.66 %", "74.45 %")
    assert accuracy.rows[2] == ("rake", "69.99 %", "77.99 %", "78.99 %", "–", "–")
    assert time.rows[1][1] == "2.0"


def test_the_third_document_prints_nothing():
    titles = [g.title for g in lay_out(study(), "model-or-statistics")]
    assert titles[:2] == ["TSTR accuracy", "TSTR AUC"] and titles[-2] == "Running time in seconds"
    assert lay_out(study(), "model-or-statistics")[1].rows[-1][:2] == ("real rows", "–")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_shown(layout: str):
    assert f"The tables of {layout}" in render(study(), layout)


def test_a_layout_that_is_not_known():
    with pytest.raises(InputError, match="must be one of adversarial-forests, selection, model-or-statistics"):
        lay_out(study(), "unheard-of")


def test_a_notebook_shows_the_winners():
    brief = render_brief(study())
    assert study()._repr_html_() == brief
    assert brief.count("<td>rake</td>") == 2 * len(BUDGETS)  # tv2 and the AUC


def test_what_the_document_prints_as_infinite():
    """Native country on Adult at ε = 0.1; our part of it has no value, and says why."""
    adult = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
    figures = {
        "wasserstein-1": MeasureResult(1.0, parts=tuple(MeasurePart(c, 1.0) for c in adult)),
        "chi2-one-sided": MeasureResult.undefined(
            "none", [MeasurePart("native-country", None, "it is infinite"), MeasurePart("sex", 2.0)]
        ),
    }
    grids = {
        g.title: g for g in lay_out(study(trials=(Trial("rake", 0.1, 0, 1.0, 1.0, figures),)), "adversarial-forests")
    }
    rows = grids["Chi-square test, ε = 0.1 (table 87)"].rows
    assert rows == (("native-country", "∞", "6,387.2342", "–"), ("sex", "1.9867", "41.5534", "2.0000"))
