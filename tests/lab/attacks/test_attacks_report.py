"""The report of attacks: says what each would mean and how far it got, escapes everything, loads nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.made_results import EVIL, QUOTES
from helpers.parsed_page import EXTERNAL, Page
from understudy.errors import InputError
from understudy.lab.attacks.attacks import ATTACKS, NO_PROOF, AttackFacts, Attacks
from understudy.lab.attacks.report import summary
from understudy.lab.attacks.shadow_models import SHADOW
from understudy.lab.attacks.threat import Finding
from understudy.lab.evaluation.evaluation import NOTICE

SILENT = Finding(0.21, 0.2, 0.01, (-0.015, 0.034), note="a note")
GUESSED = Finding.beside_guessing(0.55, (0.49, 0.61))
LOUD = Finding(0.9, 0.2, 0.7, (0.6, 0.75))
REASON = "there is no <column> beside it"


def facts(**changed: object) -> AttackFacts:
    plain = {
        "train": "train.csv",
        "holdout": "held.csv",
        "synthetic": EVIL,
        "train_rows": 1_000,
        "holdout_rows": 500,
        "synthetic_rows": 990,
        "columns": (EVIL, QUOTES, "age"),
        "left_out": ("patient",),
        "secrets": ("age", QUOTES),
        "drafted": True,
        "seed": 3,
    }
    return AttackFacts(**{**plain, **changed})


def made(**changed: Finding) -> Attacks:
    findings = {a.name: SILENT for a in ATTACKS}
    findings["inference"] = SILENT.with_parts({EVIL: SILENT, "age": Finding.undefined("it is constant")})
    return Attacks(facts(), findings | {name.replace("_", "-"): f for name, f in changed.items()})


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(made(copies=LOUD, linkability=Finding.undefined(REASON), membership_density=GUESSED).to_html())


def test_it_says_first_that_it_is_internal(page):
    assert page.words.index(NOTICE) < page.words.index("What would an attacker learn?")
    assert "<title>Internal: " in page.raw and NO_PROOF in page.words
    assert NOTICE in Page(made()._repr_html_()).words


def test_facts_are_told(page):
    for fact in (
        "train.csv, 1,000 rows",
        "held.csv, 500 rows",
        "990 rows",
        "patient",
        "drafted from the training rows",
    ):
        assert fact in page.words


def test_every_attack_is_told_with_its_meaning_and_verdict(page):
    for attack in ATTACKS:
        assert attack.title in page.words
        assert attack.meaning in page.words or attack.name == "linkability"
    assert "Copies: advantage" in page.words and "Reconstruction: no advantage seen" in page.words
    assert "90.0 % for rows of the table, 20.0 % for rows that were never in it;" in page.words
    assert "the advantage lies between −1.5 points and 3.4 points." in page.words
    assert "55.0 %, beside 50.0 % by guessing" in page.words
    assert f"Linkability linkability not defined: {REASON}." in page.words and "it is constant" in page.words


def test_every_gauge_marks_no_advantage_and_has_its_numbers(page):
    drawn = len(ATTACKS) - 1
    assert page.raw.count("<svg") == drawn and page.raw.count("beside no advantage at 0") == drawn
    assert page.words.count("no advantage 0") == drawn


def test_the_verdict_in_one_sentence():
    assert summary(made()) == "No advantage was seen in 7 attacks."
    assert summary(made(copies=LOUD)) == "1 of 7 attacks found an advantage: copies."
    nothing = Attacks(facts(), {"copies": Finding.undefined(REASON)})
    assert summary(nothing) == "No attack could be made."
    assert Page(nothing.to_html()).tags["svg"] == 0


def test_shadow_models_are_told_only_where_a_method_was_named(page):
    shown = Page(made(shadow=Finding.beside_guessing(0.9, (0.8, 0.95), EVIL)).to_html())
    assert f"{SHADOW.title}: advantage" in shown.words and SHADOW.meaning in shown.words
    assert "attacks the method instead of the table" in shown.words and "not the table." in shown.words
    assert "one of eight attacks of up to one in five" in shown.words
    assert "1 of 8 attacks found an advantage: membership by shadow models." in shown.words and EVIL not in shown.raw
    assert shown.raw.count("<svg") == len(ATTACKS) + 1
    assert "hadow" not in page.words and "one of seven attacks of up to one in six" in page.words


@pytest.mark.parametrize(("attacks", "one_in"), [(7, 6), (8, 5)])
def test_the_share_of_false_alarms_is_that_of_independent_attacks(attacks: int, one_in: int):
    assert int(1 / (1 - (1 - 0.025) ** attacks)) == one_in


def test_nothing_hostile_gets_in_and_nothing_is_loaded(page):
    assert page.tags["script"] == 1 and EVIL not in page.raw
    assert not [e for e in EXTERNAL if e in page.raw.split("</style>")[1].replace("http://www.w3.org", "")]
    assert all(link.startswith("#") for link in page.links) and len(set(page.ids)) == len(page.ids)


def test_same_input_same_bytes():
    assert made(copies=LOUD).to_html() == made(copies=LOUD).to_html()


def test_it_is_saved_by_its_ending(tmp_path: Path):
    made().save(tmp_path / "a.html")
    made().save(tmp_path / "a.json")
    assert (tmp_path / "a.html").read_text() == made().to_html()
    assert (tmp_path / "a.json").read_text() == made().to_json()
    assert len(made(copies=Finding.undefined(REASON)).save_figures(tmp_path / "drawn")) == len(ATTACKS) - 1
    with pytest.raises(InputError, match=r"must end in \.html or \.json"):
        made().save(tmp_path / "a.txt")
