"""The report of an evaluation: says everything, escapes everything, loads nothing, and stays small."""

from __future__ import annotations

import re

import pytest

from helpers.made_results import (
    CONTROL,
    EVIL,
    NAMES,
    QUOTES,
    REASON,
    UNDEFINED,
    cloud,
    evaluation,
    facts,
    figures,
    matrix,
    pictures,
    shares,
)
from helpers.parsed_page import EXTERNAL, Page
from understudy.lab.evaluation.evaluation import MEASURES, NOTICE
from understudy.lab.evaluation.measure import LOWER, MeasurePart, MeasureResult
from understudy.lab.evaluation.picture_data import Pictures, RowsPicture
from understudy.lab.evaluation.report import MOST_PARTS, OPEN_PICTURES, render, render_brief

MOST_BYTES = 3_000_000


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(render(evaluation()))


def test_it_says_first_that_it_is_internal(page):
    assert page.words.index(NOTICE) < page.words.index("How good a stand-in")
    assert "INTERNAL" in page.words and "<title>Internal: " in page.raw
    assert NOTICE in Page(render_brief(evaluation())).words


def test_facts_are_told(page):
    for fact in ("real.csv, 1,000 rows", "990 rows", "held.csv, 500 rows", "income", "patient", "sex"):
        assert fact in page.words
    assert all(name in page.words for name in NAMES)
    assert "drafted from the real rows, since none was given" in page.words


def test_every_measure_is_told(page):
    found = figures()
    for measure in MEASURES:
        assert measure.title in page.words and measure.section in page.words
        if found[measure.name].value is not None:
            assert measure.explanation in page.words
            assert f"{measure.direction} is better" in page.words


def test_what_is_not_defined_says_why(page):
    title = next(m.title for m in MEASURES if m.name == UNDEFINED)
    assert f"{title} {UNDEFINED} not defined: {REASON}." in page.words
    assert "flat not defined: it is constant" in page.words


def test_headlines_are_in_words(page):
    assert "0.012" in page.words and "On average 1.2 % of the rows would have to change" in page.words
    assert "rank 80.1 % of pairs of held-out rows rightly; from real rows, 90.7 %" in page.words
    assert f"Triples of columns not defined {REASON}" in page.words


def test_without_real_training_rows_nothing_stands_beside():
    found = figures() | {"trtr-auc": MeasureResult.undefined("it needs a hold-out")}
    words = Page(render(evaluation(figures=found))).words
    assert "rank 80.1 % of pairs of held-out rows rightly." in words


def test_worst_parts_come_first():
    lower, higher = (next(m for m in MEASURES if (m.direction == LOWER) == wanted) for wanted in (True, False))
    parts = tuple(MeasurePart(f"part {i}", i / 10) for i in range(5))
    found = {m.name: MeasureResult(0.2, parts=parts) for m in (lower, higher)}
    words = Page(render(evaluation(figures=found))).words
    assert "Worst: part 4 0.400 · part 3 0.300 · part 2 0.200" in words
    assert "Worst: part 0 0 · part 1 0.100 · part 2 0.200" in words


def test_other_measures_alone_are_headlines_too():
    measure = next(m for m in MEASURES if m.name == "js")
    words = Page(render(evaluation(figures={"js": MeasureResult(0.25)}))).words
    assert words.count(measure.title) == 2 and "0.250" in words


def test_long_lists_are_cut():
    parts = tuple(MeasurePart(f"pair {i:05d}", i / 1e5) for i in range(10_000))
    page = Page(render(evaluation(figures=figures() | {"tv2": MeasureResult(0.1, parts=parts)})))
    assert "pair 09999" in page.words and "pair 00000" not in page.words
    assert f"The other {10_000 - MOST_PARTS:,} are better" in page.words


def test_hostile_names_are_harmless(page):
    assert page.tags["script"] == 1
    assert not [name for name in page.attributes if name.startswith("on")]
    assert EVIL in page.words and QUOTES in page.words
    brief = Page(render_brief(evaluation()))
    assert not brief.tags["script"] and EVIL in brief.words
    assert not set(page.raw) & {"\x00", "\x1b", "\ud800"} and page.raw.encode()


def test_hostile_reasons_and_notes_are_harmless():
    parts = (MeasurePart(EVIL, None, EVIL, EVIL), MeasurePart(CONTROL, 0.5, note=QUOTES))
    page = Page(render(evaluation(figures={m.name: MeasureResult(None, EVIL, parts, EVIL) for m in MEASURES})))
    assert page.tags["script"] == 1
    page = Page(render(evaluation(figures={m.name: MeasureResult(1e-3, "", parts, EVIL) for m in MEASURES})))
    assert page.tags["script"] == 1


def test_only_our_script_may_run(page):
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/]{43}='", page.raw)
    assert "unsafe-inline" in page.raw and "default-src 'none'" in page.raw
    assert "script-src 'unsafe-inline'" not in page.raw


def external_parts(raw: str) -> list[str]:
    return [part for part in EXTERNAL if part in raw.lower()]


@pytest.mark.parametrize("write", [render, render_brief])
def test_page_loads_nothing(write):
    assert external_parts(write(evaluation())) == []


@pytest.mark.parametrize("leak", ['<img src="x.png">', "<style>@import 'x'</style>", "<a href='//x'>x</a>"])
def test_check_for_loading_rejects_a_mutant(page, leak):
    assert external_parts(page.raw + leak)


def test_links_lead_somewhere_and_ids_are_single(page):
    assert page.links and all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert len(page.ids) == len(set(page.ids))


def test_every_picture_is_there_with_its_numbers(page):
    drawn = len(pictures().columns) + len(pictures().cumulative) + 3 + 1 + 1
    assert page.raw.count('role="img"') == drawn == page.raw.count('<details class="data">')
    opened, _, folded = page.raw.partition('<details class="more">')
    assert opened.count('role="img"') == OPEN_PICTURES
    assert folded.count('role="img"') == drawn - OPEN_PICTURES


def test_rows_of_both_tables_stand_apart(page):
    real, synthetic = page.raw.index(">Real</h3>"), page.raw.index(">Synthetic</h3>")
    assert real < synthetic and "missing" in page.raw[real:synthetic]
    # In the page alone, whose first words are that it is internal: not in what a notebook shows, nor in the JSON.
    found = evaluation(pictures=Pictures((), None, None, rows=RowsPicture(("x",), (("a real value",),), ())))
    assert "a real value" in render(found)
    assert "a real value" not in render_brief(found) + found.to_json() + repr(found)


def test_pictures_that_can_not_be_had_say_why():
    none = Pictures((), None, None, (("matrix", "it needs two columns"), ("cloud", "all columns are constant")))
    page = Page(render(evaluation(pictures=none)))
    assert "Heat maps are not defined: it needs two columns." in page.words
    assert "The principal axes are not defined: all columns are constant." in page.words
    assert 'role="img"' not in page.raw


def test_no_figures_at_all_are_still_a_page():
    page = Page(render(evaluation(figures={}, pictures=Pictures((), None, None))))
    assert NOTICE in page.words and Page(render_brief(evaluation(figures={})))


@pytest.mark.slow
def test_wide_tables_stay_small():
    names = tuple(f"a column with a rather long name {i}" for i in range(200))
    wide = Pictures(tuple(shares(n, 30) for n in names), matrix(names), cloud(3000))
    parts = tuple(MeasurePart(f"{a} × {b}", 0.5) for a in names[:40] for b in names[:40])
    found = {m.name: MeasureResult(0.5, parts=parts) for m in MEASURES}
    page = render(evaluation(pictures=wide, figures=found))
    assert len(page.encode()) < MOST_BYTES
    assert "160 further columns are left out" in Page(page).words


def test_same_input_gives_the_same_bytes(page):
    assert render(evaluation()) == page.raw


def test_evaluations_write_themselves(tmp_path):
    found = evaluation()
    found.save(tmp_path / "evaluation.html")
    assert (tmp_path / "evaluation.html").read_bytes() == render(found).encode()
    assert found._repr_html_() == render_brief(found) and facts() == found.facts


@pytest.mark.parametrize("tag", ["</td>", "</svg>", "</details>", "<main>"])
def test_check_for_balance_rejects_a_mutant(page, tag):
    assert tag in page.raw
    with pytest.raises(AssertionError):
        Page(page.raw.replace(tag, "", 1))
