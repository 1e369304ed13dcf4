"""The report of an audit: says what was claimed, tried and found, escapes everything, loads nothing, can be read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from helpers.browser import SMALL_TEXT, UNDRAWN, UNSEEN_TEXT, Visit, opened_browser, program
from helpers.made_audits import (
    BOUNDS,
    GAUSSIAN,
    HALVED,
    PURE,
    REASON,
    REFUTING,
    STATED,
    ZCDP,
    audit,
    blind,
    bound,
    hostile,
    many_checks,
    matrix,
    violation,
)
from helpers.made_results import CONTROL, EVIL, QUOTES
from helpers.parsed_page import EXTERNAL, Page
from understudy.lab.audits.report import (
    MOST_CHECKS,
    MOST_GAMES,
    at_least,
    claim_parameters,
    claimed_curve,
    pictures,
    reached,
    render,
    render_brief,
    render_matrix,
    summary,
)
from understudy.lab.audits.result import LIMITS, Audit, delta_from_gaussian

REQUIRED = "UNDERSTUDY_BROWSER_REQUIRED" in os.environ
needs_browser = pytest.mark.skipif(program() is None and not REQUIRED, reason="no Chromium or Chrome is installed")

AUDITS: dict[str, Audit] = {
    "none": audit(),
    "violation": violation(),
    "weak": audit(power=0.3, claim=ZCDP),
    "pure": audit(claim=PURE, power=None),
    "stated": audit(claim=STATED),
    "blind": blind(),
    "hostile": hostile(EVIL),
}


@pytest.fixture(scope="module")
def good() -> Page:
    return Page(render(audit()))


@pytest.fixture(scope="module")
def bad() -> Page:
    return Page(render(violation()))


# --- what is said


def test_the_verdict_comes_first_in_colour_and_words(good, bad):
    assert "No violation found (power 0.99 against halved noise)" in good.words
    assert "Violation at 95 %" in bad.words
    assert good.raw.count('class="verdict none"') == 1 and bad.raw.count('class="verdict bad"') == 1
    for page in (good, bad):
        assert page.words.index("Verdict") < page.words.index(LIMITS) < page.words.index("Claimed and proved")
    assert "certified" not in good.words.lower()


@pytest.mark.parametrize(("power", "tone"), [(None, "weak"), (0.0, "weak"), (0.79, "weak"), (0.8, "none")])
def test_a_weak_audit_does_not_look_like_a_strong_one(power, tone):
    assert f'class="verdict {tone}"' in render(audit(power=power))


def test_the_claim_and_the_facts_are_told(good):
    told = ("ε = 1 at δ = 1e-6; μ = 0.228; ρ = 0.026", "add-remove: one unit added or removed", "mst (method)")
    told += ("at most 5 % of audits of a correct method", "1 min 35 s", "2024-05-06T07:08:09Z", "numpy 2.1.0", "quick")
    assert [fact for fact in told if fact not in good.words] == []


def test_every_step_is_told_with_its_meaning_outcome_and_checks(bad):
    for step in violation().steps:
        assert step.title in bad.words and step.meaning in bad.words
        assert all(check.name in bad.words and check.found in bad.words for check in step.checks)
    assert "2. Noise conformance violation" in bad.words and "1. Sensitivity passed" in bad.words
    assert "5. One run not made" in bad.words and f"Not made: {REASON}." in bad.words


def test_violations_stand_in_the_verdict_and_before_other_checks(bad):
    assert bad.words.index(HALVED.found) < bad.words.index("Claimed and proved")
    section = bad.words[bad.words.index("2. Noise conformance") :]
    assert section.index(HALVED.name) < section.index("check of noise")


def test_a_long_step_hides_what_passed_and_no_violation():
    number = MOST_CHECKS + 5
    page = Page(render(audit(steps=many_checks(number))))
    hidden = page.raw.split("<details><summary>Show")[1].split("</details>")[0]
    assert (
        "7 more checks found no violation" in page.words
    )  # 21 questions, one plain check, one violation; 16 are shown
    assert hidden.count('class="badge passed"') == 7 and HALVED.name not in hidden


def test_pairs_and_bounds_are_tables(good):
    for pair in audit().pairs:
        assert f"{pair.name} {pair.difference}" in good.words
    assert "equal rows one more row that differs in everything ≥ 0.814" in good.words
    row = "equal rows, white box log-likelihood ratio 7,000 53.5 % ≥ 0.814 ≥ 0.162 ≥ 0.0132 0.00417 nothing"
    assert row in re.sub(r"\s+", " ", good.words)


def test_what_a_game_refutes_is_said(good, bad):
    assert REFUTING.refutes in bad.words and 'class="refuting"' in bad.raw
    assert 'class="refuting"' not in good.raw


def test_power_is_explained():
    assert "finds 99.8 %." in Page(render(audit())).words
    assert "finds 30.0 %: it says little that it found nothing." in Page(render(audit(power=0.3))).words
    assert "can't be known" in Page(render(audit(power=None))).words


def test_tightness_is_a_headline_where_mu_is_claimed():
    assert "Of the claimed μ 71 % were proved: how much" in Page(render(audit())).words  # 0.2 · 0.8149 / 0.228 = 0.7148
    assert "Of the claimed μ 241 % were proved: more than is claimed" in Page(render(violation())).words
    assert "Of the claimed μ" not in render(audit(claim=ZCDP))


def test_the_verdict_in_one_sentence():
    said = "mst claims ε = 1 at δ = 1e-6, and 4 checks found no violation; the largest ε that was proved is 0.814."
    assert summary(audit()) == said
    broken = "mst with half-noise does not keep its claim of ε = 1 at δ = 1e-6: 1 of 5 checks found a violation"
    assert summary(violation()) == f"{broken} (noise conformance)."
    assert summary(blind()) == "Nothing could be checked of the claim of mst, ε = 1 at δ = 1e-6."
    pure = "mst claims pure ε = 1, and 4 checks found no violation"
    assert summary(audit(claim=PURE, bounds=())) == f"{pure}; no game was played."
    assert summary(audit(claim=PURE, bounds=(bound(epsilon=0.0),))) == f"{pure}; its games proved nothing."


def test_an_audit_of_nothing_is_a_page_too():
    page = Page(render(blind()))
    assert page.tags["svg"] == 1 and "No game proved a bound" in page.words and "#bounds" not in page.links
    assert page.words.count("Not made: it is a callable.") == 5


def test_a_notebook_gets_the_verdict_and_the_steps():
    page = Page(render_brief(violation()))
    assert "mst with half-noise: Violation at 95 %" in page.words and HALVED.found in page.words
    assert LIMITS in page.words and REASON in page.words and page.tags["script"] == 0


# --- pictures


def test_the_curve_is_that_of_the_claim_and_holds_every_bound():
    figure = claimed_curve(GAUSSIAN, BOUNDS)
    claimed = [row for row in figure.numbers.rows if row[0] == "claimed"]
    assert [row[1] for row in claimed] == ["0", "0.25", "0.5", "0.75", "1", "1.25", "1.5", "1.75", "2"]
    assert claimed[4][2] == f"{min(delta_from_gaussian(0.228, 1.0), 1e-6):.3g}"
    assert figure.svg.count("<circle") == 3 + 2  # one for each bound, and two in the key
    assert "Gaussian of the largest proved μ, 0.162" in figure.svg


def spots(svg: str) -> list[tuple[float, float]]:
    drawn = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', svg)
    return [(float(x), float(y)) for x, y in drawn]


def curve_of(svg: str) -> list[tuple[float, float]]:
    outline = re.search(r'<path d="M([^"Z]+)" fill="none" stroke="var\(--ink\)"', svg)
    assert outline is not None
    return [(float(x), float(y)) for x, y in (p.split() for p in outline[1].split("L"))]


def test_a_bound_at_the_claim_lies_on_the_curve():
    """The curve of a stated claim passes through (ε, δ), and so does a bound of just that size."""
    svg = claimed_curve(STATED, [bound(epsilon=1.0)]).svg
    (x, y), *_ = spots(svg)
    assert min(abs(a - x) + abs(b - y) for a, b in curve_of(svg)) < 0.02


def test_the_plane_is_as_wide_as_the_largest_bound():
    inside = spots(claimed_curve(STATED, [bound(epsilon=9.0)]).svg)[0][0]
    assert inside < 346 - 12
    assert spots(claimed_curve(STATED, [bound(epsilon=float("inf"))]).svg)[0][0] == pytest.approx(346 - 12)


def test_a_pure_claim_falls_to_zero_and_bounds_lie_there():
    """From (e − 1)/(e + 1) at ε = 0 to nothing at ε = 1."""
    figure = claimed_curve(PURE, [bound(epsilon=0.4)])
    assert figure.numbers.rows[0][2] == "0.462" and figure.numbers.rows[4][2] == "0"
    lowest = max(y for _, y in curve_of(figure.svg))
    assert spots(figure.svg)[0][1] == pytest.approx(lowest)


def test_what_refutes_has_another_shape():
    figure = claimed_curve(GAUSSIAN, [REFUTING])
    assert "refutes the claim" in figure.svg and "<circle" not in figure.svg
    assert 'fill="var(--alarm)" stroke' in figure.svg


@pytest.mark.parametrize(
    ("claim", "symbols"), [(GAUSSIAN, ["ε", "μ"]), (ZCDP, ["ε", "ρ"]), (STATED, ["ε"]), (PURE, ["ε"])]
)
def test_games_are_drawn_in_every_currency_of_the_claim(claim, symbols):
    assert [c.symbol for c in claim_parameters(claim)] == symbols
    assert len(pictures(audit(claim=claim))) == 1 + len(symbols)
    assert len(pictures(audit(claim=claim, bounds=()))) == 1


def test_a_bar_reaches_the_line_exactly_at_the_claim():
    epsilon = claim_parameters(STATED)[0]
    svg = reached([bound(epsilon=1.0)], epsilon).svg
    bars = re.findall(r'<rect x="([\d.]+)" y="[\d.]+" height="9" rx="2" width="([\d.]+)"', svg)
    line = re.findall(r'<line x1="([\d.]+)" [^>]*stroke-width="2"', svg)
    assert float(bars[1][0]) + float(bars[1][1]) == pytest.approx(float(line[0]), abs=0.02)
    assert "above the claim" not in svg and "above the claim" in reached([bound(epsilon=1.01)], epsilon).svg


def test_many_games_are_cut_but_not_from_the_numbers():
    games = [bound(f"pair {i}", epsilon=0.9 - i / 100) for i in range(MOST_GAMES + 3)]
    figure = reached(games[::-1], claim_parameters(STATED)[0])
    assert f"and 3 more, all at {at_least(0.78)} or below" in figure.svg and "pair 12" not in figure.svg
    assert [row[0] for row in figure.numbers.rows] == [f"pair {i}, white box" for i in range(MOST_GAMES + 3)]


def test_bounds_are_rounded_down():
    assert (at_least(0.99999), at_least(1.2399), at_least(0.0005879)) == ("0.999", "1.23", "0.000587")
    assert (at_least(0.0), at_least(123.9), at_least(float("inf"))) == ("0", "123", "∞")


# --- mutants


def test_the_matrix_says_what_caught_each():
    page = Page(render_matrix(matrix()))
    assert "No mutant survived" in page.words and "5 of 5 mutants were caught." in page.words
    assert re.search(r"half-noise\s+noise conformance\s+noise conformance", page.words)
    assert re.search(r"skipped-debit\s+sensitivity\s+sensitivity every answer is paid for", page.words)
    assert re.search(r"index-blocks\s+does not apply\s+sensitivity", page.words)
    assert 'class="verdict none"' in page.raw and "badge failed" not in page.raw.split("</style>")[2]


def test_a_survivor_is_shown():
    page = Page(render_matrix(matrix(("half-noise", "mst"))))
    assert "1 mutant survived" in page.words and "4 of 5 mutants were caught." in page.words
    assert 'class="verdict bad"' in page.raw and re.search(r"half-noise\s+survived\s+noise conformance", page.words)


def test_a_matrix_escapes_names():
    hurt = replace(matrix(), mutants=(EVIL,), methods=(QUOTES,), cells={(EVIL, QUOTES): EVIL})
    page = Page(render_matrix(hurt))
    assert page.tags["script"] == 1 and EVIL not in page.raw


# --- safety


@pytest.mark.parametrize("name", AUDITS)
def test_nothing_is_loaded_and_links_lead_somewhere(name):
    page = Page(render(AUDITS[name]))
    assert not [e for e in EXTERNAL if e in page.raw.split("</style>", 1)[1].replace("http://www.w3.org", "")]
    assert all(link[0] == "#" and link[1:] in page.ids for link in page.links) and len(set(page.ids)) == len(page.ids)


@pytest.mark.parametrize("text", [EVIL, QUOTES, CONTROL, "{{ 7 * 7 }}"])
def test_nothing_hostile_gets_in(text):
    for page, scripts in ((Page(render(hostile(text))), 1), (Page(render_brief(hostile(text))), 0)):
        assert page.tags["script"] == scripts and EVIL not in page.raw and "49" not in page.words
        assert not {a for a in page.attributes if a.startswith("on")} and "\x00" not in page.raw
        page.raw.encode()


def test_same_input_same_bytes():
    assert render(violation()) == render(violation()) and render_matrix(matrix()) == render_matrix(matrix())


# --- in a browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with opened_browser() as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pages = {name: render(found) for name, found in AUDITS.items()} | {
        "matrix": render_matrix(matrix(("half-noise", "mst")))
    }
    made = tmp_path_factory.mktemp("audits")
    for name, page in pages.items():
        (made / f"{name}.html").write_text(page)
    return made


@pytest.mark.slow_after(1)
@needs_browser
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", [*AUDITS, "matrix"])
def test_a_page_is_drawn_whole_asks_for_nothing_and_fits(browser, folder, name, width):
    visit = Visit.of(browser, folder / f"{name}.html", width)
    assert visit.requests == [visit.address] and visit.complaints == [] and visit.overflow <= 0
    assert [visit.page.evaluate(found) for found in (UNDRAWN, UNSEEN_TEXT, SMALL_TEXT)] == [[], [], []]
    visit.page.close()


@pytest.mark.slow_after(1)
@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["none", "violation", "weak", "matrix"])
def test_texts_stand_out(browser, folder, name, scheme):
    visit = Visit.of(browser, folder / f"{name}.html", scheme=scheme)
    assert len(visit.contrasts) > 20 and [c for c in visit.contrasts if c[0] < 4.5] == []
    visit.page.close()


@pytest.mark.slow
@needs_browser
def test_without_scripts_it_is_whole_and_hostile_names_do_nothing(browser, folder):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((folder / "violation.html").as_uri())
    assert page.locator("text=Violation at 95 %").first.is_visible() and not page.locator("#theme").is_visible()
    context.close()
    visit = Visit.of(browser, folder / "hostile.html")
    said = []
    visit.page.on("dialog", lambda dialog: said.append(dialog.message))
    visit.page.reload()
    assert said == [] and visit.page.locator("text=alert('x')").first.is_visible()
    visit.page.close()


@pytest.mark.slow
@needs_browser
def test_print_is_on_white_paper_with_every_check(browser, folder):
    visit = Visit.of(browser, folder / "violation.html", scheme="dark")
    visit.page.emulate_media(media="print", color_scheme="dark")
    assert visit.background == "rgb(255, 255, 255)" and visit.page.locator("table.checks tr").count() == 4 * 2 + 1
    assert all(row.is_visible() for row in visit.page.locator("table.checks tr").all())
    visit.page.close()
