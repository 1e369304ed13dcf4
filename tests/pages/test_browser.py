"""Reports in a browser: they ask for nothing, complain of nothing, and can be read by day, by night and on a phone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from playwright.sync_api import Browser

import understudy as us
from helpers.browser import SMALL_TEXT, UNDRAWN, UNSEEN_TEXT, Visit, opened_browser, program
from helpers.made_results import evaluation, matrix, pictures, study
from understudy.lab.evaluation.picture_data import Pictures
from understudy.lab.evaluation.report import render
from understudy.pages.curves import Dot, Reference, Series, curves, dots
from understudy.pages.dial import Slice, donut, gauge

# Where the tests must be complete, a browser that is missing is an error and no excuse.
required = "UNDERSTUDY_BROWSER_REQUIRED" in os.environ
pytestmark = pytest.mark.skipif(program() is None and not required, reason="no Chromium or Chrome is installed")

WIDTHS = (1280, 390)
CHECK, EVALUATION, STUDY, RELEASE = "check", "evaluation", "study", "release"
ENOUGH = 4.5
"""Contrast by WCAG 2.2 (AA)."""
ENOUGH_ON_A_CELL = 3.5
"""A number on a coloured cell is in the table beside it too."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened_browser() as found:
        yield found


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    paths = {name: folder / f"{name}.html" for name in (CHECK, EVALUATION, STUDY, RELEASE)}
    check().save(paths[CHECK])
    evaluation().save(paths[EVALUATION])
    study().save(paths[STUDY], "adversarial-forests")
    paths[RELEASE].write_bytes(release().files()["report.html"])
    return paths


def release() -> us.Release:
    """With a missing value, a rule, and more questions than are shown at once."""
    rng = np.random.default_rng(1)
    columns = "".join(f'[columns.c{i}]\ntype = "integer"\nmin = 0\nmax = 9\nmissing = true\n' for i in range(8))
    rows = pa.table({f"c{i}": pa.array(rng.integers(0, 10, 400), mask=rng.random(400) < 0.1) for i in range(8)})
    return us.synthesize(us.open(rows, us.Schema.loads(columns)), epsilon=1.0, method="aim", seed=1)


def check() -> us.Check:
    """With something of every kind to say, and a value that has no space to break a line at."""
    columns = "".join(f'[columns.c{i}]\ntype = "integer"\nmin = 0\nmax = 5\n' for i in range(8))
    unit = '[unit]\ncolumn = "who"\nmax_rows = 2\n[columns.who]\ntype = "identifier"\n'
    words = '[columns.word]\ntype = "categorical"\nvalues = ["Male", "Female"]\n[[constraints]]\nthen = "c0 < c1"\n'
    rows = {f"c{i}": [j % 10 for j in range(400)] for i in range(8)}
    table = pa.table({"who": [f"p{j % 90}" for j in range(400)], **rows, "word": ["male", "a" * 90] * 200})
    return us.check(us.open(table, us.Schema.loads(unit + columns + words), name="people"))


@pytest.fixture(params=[CHECK, EVALUATION, STUDY, RELEASE])
def path(request: pytest.FixtureRequest, reports: dict[str, Path]) -> Path:
    return reports[request.param]


def faint(visit: Visit, enough: float) -> list[tuple[float, bool, str]]:
    return [found for found in visit.contrasts if found[0] < (ENOUGH_ON_A_CELL if found[1] else enough)]


@pytest.mark.slow_after(1)
def test_nothing_is_asked_for_and_nothing_goes_wrong(browser, path):
    visit = Visit.of(browser, path)
    assert visit.requests == [visit.address] and visit.complaints == []
    visit.page.close()


def test_a_page_that_asks_for_more_is_found_out(browser, reports, tmp_path):
    """The checks themselves, on a page without our policy that loads a picture."""
    leaking = tmp_path / "leak.html"
    leaking.write_text(
        "<img src='missing.png'><svg role=img><title>empty</title></svg><p style='width:3000px;color:#eee'>x"
    )
    visit = Visit.of(browser, leaking)
    assert len(visit.requests) == 2 and visit.complaints and visit.overflow > 0
    assert visit.page.evaluate(UNDRAWN) == ["empty"] and faint(visit, 4.5)
    visit.page.close()


def test_our_policy_stops_foreign_scripts(browser, reports, tmp_path):
    page = reports[EVALUATION].read_text().replace("</main>", "<script>document.title = 'taken'</script></main>")
    (tmp_path / "taken.html").write_text(page)
    visit = Visit.of(browser, tmp_path / "taken.html")
    assert visit.page.title() != "taken" and any("Content Security Policy" in c for c in visit.complaints)
    visit.page.close()


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("width", WIDTHS)
def test_every_picture_is_drawn_and_nothing_overflows(browser, path, width):
    visit = Visit.of(browser, path, width)
    assert path.stem == CHECK or visit.page.locator("svg[role=img]").count() > 3  # a check is words and numbers
    assert visit.page.evaluate(UNDRAWN) == []
    assert visit.overflow <= 0
    visit.page.close()


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", [EVALUATION, STUDY])
def test_texts_of_pictures_can_be_read(browser, reports, name, width):
    visit = Visit.of(browser, reports[name], width)
    assert visit.page.evaluate(UNSEEN_TEXT) == []
    assert visit.page.evaluate(SMALL_TEXT) == []
    visit.page.close()


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out(browser, path, scheme):
    visit = Visit.of(browser, path, scheme=scheme)
    assert len(visit.contrasts) > 100 and faint(visit, ENOUGH) == []
    visit.page.close()


@pytest.mark.slow
def test_colours_change_by_keyboard(browser, reports):
    visit = Visit.of(browser, reports[EVALUATION])
    by_day = visit.background
    visit.page.keyboard.press("Tab")
    button = visit.page.locator(":focus")
    assert button.get_attribute("id") == "theme" and button.get_attribute("aria-pressed") == "false"
    visit.page.keyboard.press("Enter")
    assert visit.background != by_day and button.get_attribute("aria-pressed") == "true"
    assert faint(visit, ENOUGH) == []
    visit.page.keyboard.press("Space")
    assert visit.background == by_day
    visit.page.close()


def test_night_can_be_made_day(browser, reports):
    visit = Visit.of(browser, reports[EVALUATION], scheme="dark")
    by_night = visit.background
    visit.page.keyboard.press("Tab")
    visit.page.keyboard.press("Space")
    assert visit.background != by_night
    visit.page.close()


def test_print_is_on_white_paper(browser, reports):
    visit = Visit.of(browser, reports[EVALUATION], scheme="dark")
    visit.page.emulate_media(media="print", color_scheme="dark")
    assert visit.background == "rgb(255, 255, 255)"
    visit.page.close()


@pytest.mark.slow
def test_a_release_of_15_columns_prints_on_few_pages(browser, tmp_path):
    """Its hundreds of questions are left out; whoever signs has the claim, the rows, the columns and the limits."""
    columns = "".join(
        f'[columns.c{i}]\ntype = "ordinal"\nvalues = {[f"value {j}" for j in range(12)]}\n' for i in range(15)
    )
    rows = pa.table({f"c{i}": [f"value {(i + j) % 12}" for j in range(600)] for i in range(15)})
    made = us.synthesize(us.open(rows, us.Schema.loads(columns)), epsilon=1.0, method="aim", seed=1)
    (tmp_path / "report.html").write_bytes(made.files()["report.html"])
    printed = Visit.of(browser, tmp_path / "report.html").page.pdf(prefer_css_page_size=True)
    pages, size = re.findall(rb"/Type\s*/Page\b", printed), re.search(rb"/MediaBox\s*\[([^]]*)\]", printed)
    assert 2 <= len(pages) <= 6
    assert [round(float(side)) for side in size[1].split()] == [0, 0, 595, 842]


def test_other_pictures_and_a_large_matrix_fit_too(browser, tmp_path):
    """Every kind of chart that the evaluation itself has no use for, in the frame of a page."""
    names = tuple(f"column {i}" for i in range(40))
    found = pictures()
    page = render(evaluation(pictures=Pictures(found.columns[:1], matrix(names), found.cloud)))
    (tmp_path / "large.html").write_text(page)
    visit = Visit.of(browser, tmp_path / "large.html", 390)
    assert visit.page.evaluate(UNDRAWN) == [] and visit.overflow <= 0 and visit.page.evaluate(SMALL_TEXT) == []
    points = tuple((e, 0.5 + e / 30, 0.45 + e / 30, 0.55 + e / 30) for e in (0.1, 1.0, 10.0))
    others = (
        curves(
            [Series(f"m{i}", points) for i in range(9)],
            title="AUC",
            across="ε",
            up="AUC",
            reference=Reference("real", 0.9),
        ),
        dots([Dot("aim", 0.9, 0.8, 0.95)], title="AUC", across="AUC"),
        donut([Slice("a", 2.0), Slice("b", 1.0)], title="Budget", centre="ε = 1"),
        gauge(0.6, 0.5, 1.0, title="Attack", mark=Reference("guessing", 0.5)),
    )
    visit.page.evaluate(
        "svg => { document.querySelector('.pictures').innerHTML = svg; }", "".join(f.svg for f in others)
    )
    assert visit.page.evaluate(UNDRAWN) == [] and visit.page.evaluate(UNSEEN_TEXT) == []
    visit.page.close()
