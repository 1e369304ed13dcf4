"""The publishable report: says everything, escapes everything, loads nothing, and never sounds better than it is."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections import Counter
from datetime import datetime
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import norm

import understudy as us
from understudy.boundary.privacy.budget import Budget, Spend
from understudy.boundary.privacy.ledger.ledger import Receipt
from understudy.boundary.schema.column import (
    Boolean,
    Categorical,
    Column,
    Datetime,
    Identifier,
    Integer,
    Number,
    Ordinal,
)
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import REPLACE_ONE, Rule, Schema, Unit
from understudy.methods.registry import METHODS
from understudy.pages.formatting import upward
from understudy.releases.certificate import REBUILT, TEST_ONLY, UNCONFIRMED, UNCONFIRMED_DRAFT, Certificate
from understudy.releases.imprint import LONGEST, Imprint
from understudy.releases.planning import forecast_of
from understudy.releases.report import MOST_SHOWN, OPEN_SPENDS, SAMPLE, clipped, percent, render
from understudy.releases.report_figures import MOST_BARS, MOST_NAMED_BARS, column_chart, plain

EVIL_NAME = "<script>alert(1)</script>"
EVIL_VALUES = ("\"double\" & 'single'", "</svg></td><b onclick='x'>", "plain")
VOID = {"meta", "br"}
EXTERNAL = (
    "http:",
    "https:",
    "src=",
    "@import",
    "url(",
    "<link",
    "<script",
    "<iframe",
    "<img",
    "<object",
    "javascript:",
)
ROWS = 400
LETTERS = tuple("abcdefghijklmnopqrstuvwxyz")

COLUMNS: tuple[Column, ...] = (
    Identifier("patient"),
    Identifier("record", made_up="R{:03d}"),
    Integer("age", minimum=0, maximum=119, missing=True),
    Integer("children", minimum=0, maximum=6),
    Number("charge", minimum=0.0, maximum=1000.0, bins=64, decimals=2),
    Datetime("seen", minimum=datetime(2020, 1, 1), maximum=datetime(2020, 1, 31)),
    Boolean("smoker"),
    Categorical("ward", values=LETTERS, missing=True),
    Ordinal("grade", values=LETTERS),
    Categorical(EVIL_NAME, values=EVIL_VALUES),
)


class Page(HTMLParser):
    """A page as a browser would see it, which refuses tags that aren't closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.raw, self.open, self.tags, self.links, self.attributes = text, [], Counter(), [], set()
        self.seen, self.folded, self.charts, self._chart = "", "", {}, None
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"
        self.words = re.sub(r"\s+", " ", self.seen + self.folded)

    def handle_starttag(self, tag, attrs):
        self._note(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)
        label = dict(attrs).get("aria-label", "")
        if tag == "svg" and label.startswith("Synthetic distribution of "):
            self._chart = self.charts.setdefault(label.removeprefix("Synthetic distribution of "), [])

    def handle_startendtag(self, tag, attrs):
        self._note(tag, attrs)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()
        if tag == "td":
            self._chart = None

    def handle_data(self, data):
        if "style" in self.open:
            return
        if self.open and self.open[-1] == "title" and self._chart is not None:
            label, count = re.fullmatch(r"(.*): ([\d,]+) rows, .* %", data, re.DOTALL).groups()
            self._chart.append((label, int(count.replace(",", ""))))
        elif "svg" in self.open:
            return
        elif "details" in self.open:
            self.folded += data
        else:
            self.seen += data

    def _note(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes |= {name for name, _ in attrs}
        self.links += [value for name, value in attrs if name in ("href", "xlink:href")]


def external_parts(page: str) -> list[str]:
    return [part for part in EXTERNAL if part in page.lower()]


def private_rows() -> pa.Table:
    rng = np.random.default_rng(5)
    return pa.table(
        {
            "patient": [f"p{i // 2}" for i in range(ROWS)],
            "record": [str(i) for i in range(ROWS)],
            "age": pa.array([None if i % 9 == 0 else int(a) for i, a in enumerate(rng.integers(0, 120, ROWS))]),
            "children": rng.integers(0, 7, ROWS),
            "charge": rng.uniform(0, 1000, ROWS).round(2),
            "seen": [datetime(2020, 1, 1 + int(d)) for d in rng.integers(0, 31, ROWS)],
            "smoker": rng.integers(0, 2, ROWS).astype(bool),
            "ward": [None if i % 7 == 0 else LETTERS[int(k)] for i, k in enumerate(rng.integers(0, 26, ROWS))],
            "grade": [LETTERS[int(k)] for k in rng.integers(0, 26, ROWS)],
            EVIL_NAME: [EVIL_VALUES[int(k)] for k in rng.integers(0, 3, ROWS)],
        }
    )


def release_of(
    columns: tuple[Column, ...] = COLUMNS, *, epsilon: float = 1.0, method: str = "independent", **options
) -> us.Release:
    facts = {k: options.pop(k) for k in ("neighbours", "unit", "rules", "status") if k in options}
    rows = private_rows().select([c.name for c in columns])
    return us.synthesize(us.open(rows, Schema(columns, **facts)), epsilon=epsilon, method=method, **options)


def page_of(release: us.Release, **changes) -> Page:
    certificate = dataclasses.replace(release.certificate, **changes)
    expected = forecast_of(certificate, release.schema, release.total)
    return Page(render(certificate, release.domain, release.arrow, expected=expected, cautions=release.cautions))


@pytest.fixture(scope="module")
def release() -> us.Release:
    return release_of(rules=(Rule("smoker = true", "age < 3"),), rows=1500)


@pytest.fixture(scope="module")
def page(release) -> Page:
    return page_of(release)


def test_names_and_values_are_escaped_everywhere(page):
    assert not page.tags.keys() & {"script", "b"}
    assert not [name for name in page.attributes if name.startswith("on")]
    assert EVIL_NAME in page.words
    assert tuple(label for label, _ in page.charts[EVIL_NAME]) == EVIL_VALUES
    assert all(value in page.folded for value in EVIL_VALUES)


def test_every_column_and_every_spend_is_named(release, page):
    assert all(column.name in page.words for column in release.domain.schema)
    assert all(spend.asked in page.seen for spend in release.certificate.spends)
    assert all(spend.mechanism in page.seen for spend in release.certificate.spends)


def test_facts_of_the_release_are_on_the_page(release, page):
    certificate = release.certificate
    facts = (certificate.method, certificate.reason, certificate.accountant, str(certificate.seed), certificate.created)
    assert all(fact in page.words for fact in facts + tuple(certificate.versions.values()))
    assert "understudy verify DIR" in page.words and "understudy replay DIR" in page.words
    assert "1,500 rows were drawn; this number is the one that was asked for" in page.words
    assert "if age < 3 then smoker = true" in page.words
    assert "made-up values such as R001" in page.words and "left out of the table" in page.words


def test_hundreds_of_spends_are_folded_after_the_first(release):
    spends = tuple(Spend("rounded-gaussian", f"question <{i}>", 1.0, 500.0) for i in range(OPEN_SPENDS + 200))
    page = page_of(release, spends=spends)
    assert all(s.asked in page.seen for s in spends[:OPEN_SPENDS])
    assert all(s.asked in page.folded and s.asked not in page.seen for s in spends[OPEN_SPENDS:])
    assert "The other 200 questions" in page.words


def test_no_more_is_folded_than_must_be(release):
    spends = tuple(Spend("rounded-gaussian", f"question <{i}>", 1.0, 500.0) for i in range(OPEN_SPENDS))
    assert all(s.asked in page_of(release, spends=spends).seen for s in spends)


def test_banner_stands_only_on_a_stamped_release(release, page):
    stamped = page_of(release, secure=False)
    assert f"{TEST_ONLY}: this release guarantees nothing" in stamped.words
    assert "None of these figures is a promise" in stamped.words and "secure source" not in stamped.words
    assert TEST_ONLY not in page.raw and "guarantees nothing" not in page.raw
    assert "secure source" in page.words


def test_seeded_noise_brings_the_banner():
    seeded = release_of(test_only_noise_seed=1)
    assert TEST_ONLY.encode() in seeded.files()["report.html"]


def test_accepted_draft_is_warned_of(release, page):
    columns = dict.fromkeys(release.certificate.columns, UNCONFIRMED)
    warned = page_of(release, columns=columns)
    assert "The schema is an unchecked draft" in warned.words and UNCONFIRMED in warned.words
    assert f"{UNCONFIRMED_DRAFT}: this release guarantees nothing" in warned.words
    assert "With a confirmed schema the same run would have promised" in warned.words
    assert page_of(release, schema_status="draft").words.count("this release guarantees nothing") == 1
    assert "unchecked draft" not in page.words and UNCONFIRMED not in page.words


def test_the_page_says_which_debit_paid(release, page):
    assert "no ledger was debited" in page.words and "No ledger was debited for this release" in page.words
    receipt = Receipt("people.csv.ledger.sqlite", "0123456789abcdef", 3, None)
    paid = page_of(release, ledger=receipt).words
    assert "debit 3 of ledger people.csv.ledger.sqlite (0123456789abcdef); no limit was set" in paid
    assert "No limit was set there when this release was made" in paid and "o ledger was debited" not in paid
    limited = page_of(release, ledger=dataclasses.replace(receipt, limit=us.Budget(3.0, 1e-6))).words
    assert "its limit is epsilon 3 at delta 1e-06" in limited and "o limit was set" not in limited


def test_page_loads_nothing(page):
    assert external_parts(page.raw) == []
    assert page.links and all(link.startswith("#") for link in page.links)


@pytest.mark.parametrize("leak", ['<img src="x.png">', "<style>@import 'x'</style>", "<a href='https://x'>x</a>"])
def test_check_for_loading_rejects_a_mutant(page, leak):
    assert external_parts(page.raw + leak)


def test_links_lead_somewhere(page):
    assert all(f'id="{link[1:]}"' in page.raw for link in page.links)


@pytest.mark.parametrize("tag", ["</section>", "</td>", "</svg>", "</details>", "<main>"])
def test_check_for_balance_rejects_a_mutant(page, tag):
    assert tag in page.raw
    with pytest.raises(AssertionError):
        Page(page.raw.replace(tag, "", 1))


def test_same_input_gives_the_same_bytes(release, page):
    again = Certificate.from_bytes(release.certificate.to_bytes())
    expected = forecast_of(again, release.schema, release.total)
    assert render(again, release.domain, release.arrow, expected=expected, cautions=release.cautions) == page.raw
    assert release.files()["report.html"] == page.raw.encode()


def test_report_is_under_the_certificates_hash(release, tmp_path):
    folder = release.save(tmp_path / "out")
    assert "report.html" in us.verify(folder).files
    (folder / "report.html").write_text("another page")
    with pytest.raises(us.CheckFailed):
        us.verify(folder)


def test_words_for_a_budget_with_delta(page):
    assert "by at most 2.72 (that is eε), except with probability δ = 1e-6, at most 1 in 1,000,000." in page.words
    assert "pure" not in page.words.replace("pure ε with delta", "")


def test_words_for_a_pure_budget():
    pure = page_of(release_of(delta=0))
    assert "This is a pure guarantee: δ is 0, so it holds without exception." in pure.words
    assert "except with probability" not in pure.words and "+ δ" not in pure.words
    assert "Laplace noise" in pure.words and "Gaussian noise discrete" not in pure.words


def test_words_for_add_remove(page):
    assert "odds that any one row is in the private table, or is not, by at most" in page.words
    assert "the row count is private" in page.words and "replaced by another" not in page.words


def test_words_for_replace_one():
    replaced = page_of(release_of(neighbours=REPLACE_ONE))
    assert "odds that any one row holds one record rather than any other by at most" in replaced.words
    assert "the row count is public" in replaced.words and "replaced by another" in replaced.words
    assert "the row count is private" not in replaced.words and "is in the private table" not in replaced.words


def test_words_for_a_row_as_unit(page):
    assert "The promise is made to each row" in page.words and "somebody with k rows" in page.words
    assert "any one person" not in page.words


@pytest.mark.parametrize(("most", "words"), [(1, "with at most 1 row"), (3, "with at most 3 rows")])
def test_words_for_a_person_as_unit(most, words):
    person = page_of(release_of(unit=Unit("patient", most)))
    assert "odds that any one person is in the private table" in person.words
    assert re.search(rf"{words}\b", person.words) and "whoever shares a value of patient" in person.words
    assert "read only to cap the rows of a person" in person.words
    assert "any one row" not in person.words and "somebody with k rows" not in person.words


def test_bought_columns_are_told():
    columns = (Categorical("ward", missing=True), Integer("age", minimum=0, maximum=119))
    bought = page_of(release_of(columns, epsilon=50.0))
    assert "Learned with a part of the budget. 1 column." in bought.words
    assert "Gaussian noise and a threshold" in bought.words and "δ 5e-7" in bought.words


def test_charts_count_every_synthetic_row(release, page):
    modelled = {c.name for c in release.domain.schema.modelled}
    assert set(page.charts) == modelled
    assert {name: sum(n for _, n in bars) for name, bars in page.charts.items()} == dict.fromkeys(modelled, 1500)


def test_charts_have_few_bars(page):
    present = {name: [label for label, _ in bars if label != "missing"] for name, bars in page.charts.items()}
    assert {name: len(labels) for name, labels in present.items()} == {
        "age": 40,  # 120 values, three to a bar
        "children": 7,
        "charge": 32,
        "seen": 31,
        "smoker": 2,
        "ward": MOST_NAMED_BARS,
        "grade": 26,
        EVIL_NAME: 3,
    }
    assert max(map(len, present.values())) <= MOST_BARS


def test_bars_hold_the_counts_of_the_table(release, page):
    children = Counter(map(str, release.arrow["children"].to_pylist()))
    days = Counter(day.isoformat() for day in release.arrow["seen"].to_pylist())
    assert dict(page.charts["children"]) == {str(i): children[str(i)] for i in range(7)}
    assert dict(page.charts["seen"]) == {f"2020-01-{i:02d}": days[f"2020-01-{i:02d}"] for i in range(1, 32)}


def test_merged_bars_hold_their_neighbours(release, page):
    ages = release.arrow["age"].to_pylist()
    assert page.charts["age"][0] == ("0 to 2", sum(a in (0, 1, 2) for a in ages))
    assert page.charts["age"][-2:] == [
        ("117 to 119", sum(a in (117, 118, 119) for a in ages)),
        ("missing", ages.count(None)),
    ]


def test_many_values_show_the_most_frequent_and_the_rest(release, page):
    wards = Counter(w for w in release.arrow["ward"].to_pylist() if w is not None)
    *named, rest, missing = page.charts["ward"]
    assert [n for _, n in named] == [n for _, n in wards.most_common(MOST_NAMED_BARS - 1)]
    assert all(wards[label] == n for label, n in named)
    assert rest == ("17 other values", wards.total() - sum(n for _, n in named))
    assert missing == ("missing", release.arrow["ward"].null_count)


def chart_of(column: Column, values: list) -> object:
    """The picture of one column, as a release that holds these values would show it."""
    domain = Domain.of(Schema((column,)))
    return column_chart(domain[column.name], pa.chunked_array([pa.array(values)]))


def test_labels_under_an_axis_do_not_run_into_one_another():
    # Beside a special value the axis is shorter, and the last label stands left of its place.
    plain = chart_of(Integer("pay", minimum=0, maximum=200_000), [100])
    beside = chart_of(Integer("pay", minimum=0, maximum=200_000, special=("N",)), ["100", "N"])
    assert [t.label for t in plain.ticks] == ["0", "50,000", "100,000", "150,000", "200,000"]
    assert [t.label for t in beside.ticks] == ["0", "100,000", "200,000"]


def test_bars_are_as_wide_as_their_bins_and_as_high_as_these_are_full():
    cuts = (1.0, 10.0, 100.0)
    chart = chart_of(Number("pay", minimum=0.0, maximum=1000.0, cuts=cuts), [0.5] * 10 + [5.0] * 90 + [500.0] * 900)
    places = [(round(b.start, 6), round(b.width, 6)) for b in chart.bars]
    assert places == [(0.0, 0.001), (0.001, 0.009), (0.01, 0.09), (0.1, 0.9)]
    # 10 rows to a unit in the first two bins, none in the third, and one in the widest, which has most rows of all.
    assert [b.height for b in chart.bars] == pytest.approx([1.0, 1.0, 0.0, 0.1])
    assert [t.label for t in chart.ticks] == ["0", "250", "500", "750", "1,000"]
    assert [t.place for t in chart.ticks] == pytest.approx([0.0, 0.25, 0.5, 0.75, 1.0])
    assert chart.middle == ("500", "500", "500")


@pytest.mark.parametrize("column", [c for c in COLUMNS if c.name in ("age", "charge", "seen", "grade")])
def test_bars_cover_the_axis_without_a_gap(release, column):
    chart = column_chart(release.domain[column.name], release.arrow[column.name])
    ends = [b.start + b.width for b in chart.bars]
    assert [b.start for b in chart.bars] == pytest.approx([0.0, *ends[:-1]])
    assert ends[-1] == pytest.approx(1.0)
    assert all(0 <= t.place <= 1 for t in chart.ticks) and len(chart.ticks) >= 2


@pytest.mark.parametrize(
    ("first", "last", "labels"),
    [
        (datetime(2018, 1, 1), datetime(2023, 12, 31), ["2018", "2020", "2022"]),
        (datetime(2020, 1, 1), datetime(2020, 12, 31), ["2020-01", "2020-04", "2020-07", "2020-10"]),
        (datetime(1890, 5, 1), datetime(2020, 1, 1), ["1900", "1950", "2000"]),
        (datetime(2020, 1, 3), datetime(2020, 1, 3), ["2020-01-03", "2020-01-03"]),
    ],
)
def test_an_axis_of_dates_has_round_ones(first, last, labels):
    column = Datetime("seen", minimum=first, maximum=last)
    assert [t.label for t in chart_of(column, [first]).ticks] == labels


def test_whole_numbers_are_named_at_the_middle_of_their_bars():
    chart = chart_of(Integer("children", minimum=0, maximum=2), [0, 1, 1, 2])
    assert [(t.label, round(t.place, 3)) for t in chart.ticks] == [("0", 0.167), ("1", 0.5), ("2", 0.833)]


def test_ten_rows_stand_as_the_file_has_them(release, page):
    lines = release.synthetic_bytes("csv").decode().splitlines()
    shown = re.search(r'<table class="sample">(.*?)</table>', page.raw, re.DOTALL)[1]
    cells = [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", shown)]
    assert len(cells) == SAMPLE * release.arrow.num_columns
    plain_names = [i for i, n in enumerate(release.arrow.column_names) if n in ("record", "age", "charge", "seen")]
    for row, line in enumerate(lines[1 : SAMPLE + 1]):
        written, texts = line.replace('"', "").split(","), cells[row * release.arrow.num_columns :]
        assert [texts[i].replace("missing", "") for i in plain_names] == [written[i] for i in plain_names]
    assert "Ten synthetic rows" in page.words


def test_of_many_columns_the_first_are_shown():
    columns = "".join(f'[columns.c{i}]\ntype = "boolean"\n' for i in range(MOST_SHOWN + 2))
    rows = pa.table({f"c{i}": [True, False] for i in range(MOST_SHOWN + 2)})
    wide = us.synthesize(us.open(rows, Schema.loads(columns)), epsilon=1.0, method="independent", rows=3)
    page = page_of(wide)
    assert page.raw.count('<th scope="col" class="given">') == MOST_SHOWN
    assert f"the first {MOST_SHOWN} of {MOST_SHOWN + 2} columns" in page.words and "3 synthetic rows" in page.words


def test_title_and_publisher_stand_at_the_head_and_everywhere_they_belong(tmp_path):
    said = {"title": "Stays <2023>", "publisher": "Office & Co"}
    release = release_of(rows=50, **said)
    page = page_of(release)
    assert "<h1" in page.raw and "Stays &lt;2023&gt;</h1>" in page.raw
    assert "Published by Office & Co." in page.words
    folder = release.save(tmp_path / "out")
    us.verify(folder)
    us.replay(folder)
    assert us.Release.load(folder).certificate.imprint == Imprint(**said)
    assert all(repr(release).count(text) == 1 for text in said.values())
    silent = release_of(rows=50)
    assert b"imprint" not in silent.files()["certificate.json"] and "Published by" not in page_of(silent).words


@pytest.mark.parametrize("title", ["two\nlines", "\x1b[31m", "a\u2028b", "\ud800", "x" * (LONGEST + 1), 7])
def test_a_title_is_one_short_line(title):
    with pytest.raises(us.InputError, match="title"):
        release_of(title=title)


def test_what_to_beware_of_stands_under_the_head(release):
    page = Page(render(release.certificate, release.domain, release.arrow, cautions=["noise exceeds signal"]))
    assert "Caution: noise exceeds signal." in page.words
    assert "Caution" not in Page(render(release.certificate, release.domain, release.arrow)).words


def test_sums_are_no_counts_of_rows(release):
    spends = (
        Spend("rounded-gaussian", "moment of age, charge", 64.0, 6000.0),
        Spend("rounded-gaussian", "g", 1.0, 10.0),
    )
    page = page_of(release, spends=spends)
    assert "± 20 rows, for 95 in 100 counts" in page.words and "11,7" not in page.raw


def test_the_limit_of_a_method_stands_with_the_method(page):
    limits = METHODS["independent"].limits
    assert page.words.count(limits) == 1
    assert f"Its limits {limits}" in page.words.replace("Its limits", "Its limits ").replace("  ", " ")


def test_single_and_empty_synthetic_columns_are_drawn(release):
    one = Page(render(release.certificate, release.domain, release.arrow.slice(0, 1)))
    assert all(sum(n for _, n in bars) == 1 for bars in one.charts.values())
    none = Page(render(release.certificate, release.domain, release.arrow.slice(0, 0)))
    assert all(sum(n for _, n in bars) == 0 for bars in none.charts.values())


def test_noise_is_told_in_plain_rows(release):
    spends = (
        Spend("rounded-gaussian", "g", 1.0, 10.0),
        Spend("discrete-laplace", "l", 1.0, 10.0),
        Spend("exponential", "e", 1.0, 0.1, cells=4),
        Spend("public", "p", 0.0, 0.0),
    )
    page = page_of(release, spends=spends)
    cells = [c.strip() for c in re.findall(r'data-label="95 % within">(.*?)</td>', page.raw)]
    assert cells == ["± 20 rows", "± 30 rows", "a choice, no count", "exact"]
    assert "reaches from ± 20 to ± 30 rows" in page.words


def coverage(mechanism: str, scale: float, margin: int) -> float:
    """The exact probability that whole noise of this scale stays within ± margin."""
    at = np.arange(-int(60 * scale + 60), int(60 * scale + 60) + 1)
    if mechanism == "rounded-gaussian":
        weights = norm.cdf((at + 0.5) / scale) - norm.cdf((at - 0.5) / scale)
    elif mechanism == "discrete-gaussian":
        weights = np.exp(-(at**2) / (2 * scale**2))
    else:
        weights = np.exp(-np.abs(at) / scale)
    return float(weights[np.abs(at) <= margin].sum() / weights.sum())


@pytest.mark.parametrize("mechanism", ["rounded-gaussian", "discrete-gaussian", "discrete-laplace"])
def test_told_margin_holds_95_per_cent_of_the_noise(release, mechanism):
    scales = (0.2, 0.4, 0.51, 1.0, 3.3, 12.48, 100.0)
    page = page_of(release, spends=tuple(Spend(mechanism, f"at {s}", 1.0, s) for s in scales))
    margins = [int(m) for m in re.findall(r"± (\d+) rows</td>", page.raw)]
    assert len(margins) == len(scales)
    assert all(coverage(mechanism, s, m) >= 0.95 for s, m in zip(scales, margins, strict=True))
    # A mutant that told nine tenths of it would be caught at the largest scale.
    assert coverage(mechanism, scales[-1], int(0.9 * margins[-1])) < 0.95


def test_shares_add_up(release):
    page = page_of(release)
    widths = [float(w) for w in re.findall(r'y="0" width="([\d.]+)" height="26"', page.raw)]
    assert len(widths) == len(release.certificate.spends)
    assert sum(widths) == pytest.approx(1000, abs=0.01 * len(widths))


def test_budget_that_protects_nobody_is_still_drawn(release):
    huge = page_of(release, asked=Budget(1e4, 0.0), spends=(Spend("discrete-laplace", "all", 1.0, 1e-4),))
    assert "by at most 10^4343 (that is eε)" in huge.words and "≤ 100.0 %" in huge.raw
    none = page_of(release, spends=(Spend("thresholded-rounded-gaussian", "keys", 1.0, 9.0, delta=0.5),))
    assert "∞ was spent" in none.words


def test_release_without_spends_is_drawn(release):
    assert "answers to the 0 questions listed at the end" in page_of(release, spends=()).words


def test_unknown_method_is_drawn(release):
    assert "made-elsewhere" in page_of(release, method="made-elsewhere").words


def test_claims_are_never_rounded_down():
    values = [m * 10.0**e for m, e in itertools.product((1.0, 1.00001, 2.5, 9.9999, math.pi), range(-9, 9))]
    shown = [float(upward(v).replace(",", "")) for v in values]
    assert all(v <= s <= 1.0011 * v for v, s in zip(values, shown, strict=True))


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        (upward(1e-5), "1e-5"),
        (upward(0.0), "0"),
        (upward(0.9999999999990906), "1"),
        (upward(math.inf), "∞"),
        (percent(0.0004), "< 0.1 %"),
        (percent(0.0), "0 %"),
        (plain(2019), "2019"),
        (plain(1000.1808370217517), "1000.1808370217517"),
        (plain(-1484705.0), "-1,484,705"),
        (clipped("abcdef", 4), "abc…"),
    ],
)
def test_numbers_are_written_plainly(shown, wanted):
    assert shown == wanted


def test_what_is_derived_and_what_is_rebuilt_say_so(tmp_path):
    schema = Schema.loads(
        '[columns.came]\ntype = "datetime"\nmin = 2020-01-01\nmax = 2020-01-31\n'
        '[columns.left]\ntype = "datetime"\nmin = 2020-01-01\nmax = 2020-03-31\n'
        '[columns.stay]\ntype = "derived"\nof = "left - came"\nmin = 0\nmax = 9\n'
    )
    rows = pa.table({"came": [datetime(2020, 1, 1)] * 40, "left": [datetime(2020, 1, 4)] * 40})
    made = us.synthesize(us.open(rows, schema), epsilon=1.0, method="independent", rows=20)
    assert made.certificate.columns == {"came": "declared", "left": REBUILT, "stay": "declared"}
    page = page_of(made)
    assert "rebuilt from stay" in page.words and "no chart: not counted by itself" in page.words
    assert "no chart: not in the table itself" in page.words and "never" not in page.words.split("Where the budget")[0]
    us.replay(made.save(tmp_path / "out"))
