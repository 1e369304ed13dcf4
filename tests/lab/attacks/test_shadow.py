"""Shadow models of a named method: who is attacked, in which tables, and what is found of leaky and quiet methods."""

from __future__ import annotations

import functools
import html
import json
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from people import PEOPLE, make_people

import understudy as us
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.rows import Rows
from understudy.errors import InputError, MethodError, SchemaError, UnderstudyError
from understudy.lab.attacks import identification
from understudy.lab.attacks import shadow_models as shadow
from understudy.lab.attacks.attacks import ATTACKS
from understudy.lab.attacks.confidence import ranking
from understudy.lab.attacks.shadow_models import FEWEST_SHADOWS, SHADOW, SHADOWS, Shadows, most_exposed, worlds
from understudy.lab.attacks.threat import ADVANTAGE, NO_ADVANTAGE, NOT_DEFINED, Finding, matrix
from understudy.lab.evaluation.comparison import Comparison

SCHEMA = Schema.loads(PEOPLE)
REPLACED = Schema.loads('neighbours = "replace-one"\n' + PEOPLE)
VISITS = """
{neighbours}
[unit]
column = "person"
max_rows = {rows}
[columns.person]
type = "identifier"
[columns.age]
type = "integer"
min = 0
max = 99
"""


def visits(rows: int, neighbours: str = "") -> Schema:
    return Schema.loads(VISITS.format(rows=rows, neighbours=neighbours))


def leak(table: Any, *asked: object) -> pa.Table:
    """A method that returns its rows."""
    return Rows.of(table._table).everything()


@pytest.fixture
def leaky(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shadow, "shadow_of", leak)
    monkeypatch.setattr(identification, "MOST_GUESSES", 20)


def found_of(setting: Any, method: str, epsilon: float, seed: int = 0, given: Schema = SCHEMA, **asked: Any) -> Finding:
    """The finding alone, without the attacks on a table."""
    rows = asked.pop("rows", 40)
    train, holdout = make_people(rows, 20 + seed), make_people(20, 50 + seed)
    models = Shadows.of(train, given, method, epsilon, asked.pop("delta", 0), asked.pop("shadows", 16))
    return models.found(setting(train, holdout, holdout, seed=seed, given=given))


@pytest.mark.parametrize("at_once", [7, 64, 1_000])
@pytest.mark.parametrize("seed", range(3))
def test_the_person_most_at_risk_is_farthest_from_the_three_nearest(setting, monkeypatch, at_once: int, seed: int):
    """By hand: all distances, the mean of the three smallest but a row's own, and the row where it is largest."""
    monkeypatch.setattr(shadow, "AT_ONCE", at_once)
    faced = setting(make_people(200, seed), make_people(50, seed + 9), make_people(50, seed + 99), seed=seed)
    rows = matrix(faced.features, faced.train).astype(float)
    apart = np.sqrt(np.square(rows[:, np.newaxis] - rows[np.newaxis]).sum(axis=2))
    np.fill_diagonal(apart, np.inf)
    assert most_exposed(faced) == np.sort(apart, axis=1)[:, :3].mean(axis=1).argmax()


@pytest.mark.parametrize("place", [0, 40, 199])
def test_an_odd_person_among_alike_ones_is_most_at_risk(setting, place: int):
    ages = np.full(200, 50)
    ages[place] = 18
    people = make_people(200, 1).set_column(0, "age", pa.array(ages)).select(["age"])
    assert most_exposed(setting(people, people, people)) == place


def test_of_people_who_are_all_alike_somebody_is_chosen(setting):
    people = pa.table({"age": [50] * 30})
    assert 0 <= most_exposed(setting(people, people, people)) < 30


def drawn(people: Any, row: int, schema: Schema, seed: int = 0) -> tuple[list[int], list[int]]:
    inside, outside = worlds(np.asarray(people), row, schema, np.random.default_rng(seed))
    return inside.tolist(), outside.tolist()


def test_worlds_differ_by_the_row():
    assert drawn(range(5), 3, SCHEMA) == ([3, 0, 1, 2, 4], [0, 1, 2, 4])


def test_large_tables_are_drawn_from_and_keep_the_row():
    inside, outside = drawn(range(5_000), 4_321, SCHEMA)
    assert inside == [4_321, *outside] and len(set(inside)) == 1_000
    assert drawn(range(5_000), 4_321, SCHEMA) == (inside, outside)
    assert drawn(range(5_000), 4_321, SCHEMA, 1) != (inside, outside)


def test_worlds_have_as_many_rows_where_their_number_is_public():
    assert drawn(range(5), 3, REPLACED) == ([3, 1, 2, 4], [0, 1, 2, 4])
    inside, outside = drawn(range(5_000), 4_321, REPLACED)
    assert len(inside) == len(outside) == 1_000 and inside[1:] == outside[1:] and 4_321 not in outside


def test_a_person_leaves_with_all_rows_that_count():
    people = [7, 5, 7, 6, 7, 5]
    assert drawn(people, 4, visits(2)) == ([4, 0, 1, 3, 5], [1, 3, 5])
    assert drawn(people, 4, visits(9)) == ([4, 0, 2, 1, 3, 5], [1, 3, 5])
    assert drawn(people, 4, visits(1, 'neighbours = "replace-one"')) == ([4, 3], [1, 3])


def test_others_remain_beside_a_person_of_many_rows():
    inside, outside = drawn(np.repeat([1, 0], [2_000, 50]), 7, visits(1_500))
    assert len(inside) == 1_510 and set(inside[1_500:]) == set(outside) and set(outside) <= set(range(2_000, 2_050))


def test_one_person_alone_can_not_be_told_from_others(setting):
    people, schema = pa.table({"person": [1] * 30 + [2] * 9, "age": [90, *range(29), *[30] * 9]}), visits(3)
    models = Shadows.of(people, schema, "independent", 1.0, None, 16)
    found = models.found(setting(people, people, people, given=schema))
    assert found.reason == "of the others there are 9 rows, and fewer than 10 say nothing"


@pytest.mark.usefixtures("leaky")
def test_a_method_that_returns_its_rows_is_told_by_one_person(train, holdout, sample):
    said: list[str] = []
    found = us.attack(
        train, holdout, sample, schema=SCHEMA, method="mst", epsilon=1.0, shadows=17, progress=said.append
    )
    assert found["shadow"].verdict == ADVANTAGE and found["shadow"].success == 1.0
    assert [a.name for a in found.attacks] == [*(a.name for a in ATTACKS), "shadow"]
    assert said[-19:] == [SHADOW.title, *(f"{SHADOW.title}: run {i} of 18" for i in range(1, 19))]
    assert found["shadow"].note == (
        "mst with epsilon 1 at delta 1e-06, on 400 training rows with the person who is farthest from all others or "
        "without; 8 runs to learn from, 10 to test"
    )
    assert json.loads(found.to_json())["findings"]["shadow"]["verdict"] == ADVANTAGE
    page = html.unescape(found.to_html())
    assert SHADOW.meaning in page and "eight attacks of up to one in five" in page
    assert SHADOW.title in found._repr_html_()


def test_without_a_method_nothing_is_added(train, holdout, sample, monkeypatch):
    monkeypatch.setattr(identification, "MOST_GUESSES", 20)
    found = us.attack(train, holdout, sample, schema=SCHEMA)
    assert list(found.findings) == [a.name for a in ATTACKS]
    assert "shadow models" not in found.to_html() and "shadow" not in found.to_json()
    with pytest.raises(InputError, match="attack 'shadow' is not known"):
        found["shadow"]


@pytest.mark.slow
def test_a_quiet_method_raises_an_alarm_by_luck_alone(setting, monkeypatch: pytest.MonkeyPatch):
    """Four runs of each world are ranked: by luck, 2 of 70 orders are an alarm (all above, or all but one pair).

    At ε = 0.1 an event of four runs is at most e^0.4 times as likely in one world as in the other, so a seed raises an
    alarm with less than p = 0.043, and all of 7 seeds do with p⁷ < 1e-9; the first alone with p.
    """
    quiet = [found_of(setting, "independent", 0.1, seed).verdict for seed in range(7)]
    assert quiet.count(ADVANTAGE) < 7 and quiet[0] == NO_ADVANTAGE
    monkeypatch.setattr(shadow, "shadow_of", leak)
    assert {found_of(setting, "independent", 0.1, seed).verdict for seed in range(7)} == {ADVANTAGE}


@functools.cache
def orders(above: int, below: int, pairs: int) -> int:
    """Orders of two kinds of runs in which so many pairs of them are the right way round."""
    if above == 0 or below == 0 or pairs < 0:
        return int(pairs == 0)
    return orders(above - 1, below, pairs - below) + orders(above, below - 1, pairs)


@pytest.mark.parametrize(
    ("shadows", "one_in", "least"), [(FEWEST_SHADOWS, 35, 15 / 16), (20, 36, 22 / 25), (SHADOWS, 38, 0.76)]
)
def test_luck_alone_is_rare_and_an_alarm_is_possible(shadows: int, one_in: int, least: float):
    """A quarter of the runs tests each world; all orders of them are counted, and those that are an alarm."""
    tested = shadows // 4
    alarms = [p for p in range(tested**2 + 1) if ranking(p / tested**2, tested, tested)[0] > 0.5]
    lucky = sum(orders(tested, tested, p) for p in alarms)
    assert (math.comb(2 * tested, tested) // lucky, alarms[0] / tested**2) == (one_in, least)


def test_of_fewer_runs_even_a_perfect_ranking_is_hardly_more_than_luck():
    """Three of each kind are in the right order once in 20 times; of two, no order is an alarm."""
    assert orders(3, 3, 9) / math.comb(6, 3) == 1 / 20 and ranking(1.0, 2, 2)[0] < 0.5


def test_hardly_any_noise_is_seen(setting):
    """At ε = 1,000 the counts are nearly exact, and what is drawn from them tells of the one person out of twelve."""
    assert found_of(setting, "independent", 1_000.0, rows=12).verdict == ADVANTAGE


def test_the_same_seed_finds_the_same(setting):
    first, again, *others = (found_of(setting, "independent", 1.0, s) for s in (3, 3, 4, 5, 6))
    # Eight runs to test with have few outcomes, so that two seeds may agree by chance.
    assert first == again and any(first != other for other in others)


@pytest.mark.parametrize(("given", "verdict"), [(SCHEMA, ADVANTAGE), (REPLACED, NO_ADVANTAGE)])
def test_a_public_number_of_rows_tells_nothing(setting, monkeypatch, given: Schema, verdict: str):
    """A method that gives away how many rows there are, and nothing else."""
    monkeypatch.setattr(shadow, "shadow_of", lambda table, *asked: make_people(500, 1).slice(0, table.count_rows()))
    found = found_of(setting, "independent", 1.0, given=given)
    assert found.verdict == verdict and ("somebody else in their place" in found.note) == (given is REPLACED)


@pytest.mark.usefixtures("leaky")
def test_a_person_of_several_rows_is_attacked(setting):
    schema, rng = visits(3), np.random.default_rng(0)
    people = pa.table({"person": rng.integers(0, 15, 40), "age": np.r_[rng.integers(20, 30, 39), 90]})
    models = Shadows.of(people, schema, "independent", 1.0, None, 16)
    faced = setting(people, people, people, given=schema)
    assert most_exposed(faced) == 39 and models.found(faced).verdict == ADVANTAGE


def test_a_draft_and_an_open_table_will_do(train, holdout, setting, monkeypatch):
    monkeypatch.setattr(identification, "MOST_GUESSES", 20)
    few, asked = train.slice(0, 40), {"method": "independent", "epsilon": 1, "shadows": 16}
    found = us.attack(few, holdout, few, **asked)
    assert found.facts.drafted and found["shadow"].verdict in (ADVANTAGE, NO_ADVANTAGE)
    found = us.attack(us.open(few, SCHEMA), holdout, few, **asked)
    assert not found.facts.drafted and "delta 1e-06, on 40 training rows" in found["shadow"].note


def test_few_rows_say_nothing(train, holdout):
    found = us.attack(train, holdout.slice(0, 9), train, schema=SCHEMA, method="mst", epsilon=1)
    assert found["shadow"].verdict == NOT_DEFINED and "fewer than 10" in found["shadow"].reason


def test_the_attack_itself_knows_no_method(setting, train):
    assert SHADOW.of(setting(train, train, train)).reason == "no method was named"


@pytest.mark.parametrize(
    ("asked", "kind", "said"),
    [
        ({"epsilon": 1.0}, InputError, r"epsilon \(1.0\) is that of shadow models; name their method too"),
        ({"delta": 0}, InputError, r"delta \(0\) is that of shadow models"),
        ({"shadows": 40}, InputError, r"shadows \(40\) is that of shadow models"),
        ({"method": "mst"}, InputError, "need an epsilon"),
        ({"method": "mts", "epsilon": 1}, MethodError, "method 'mts' is not known; did you mean 'mst'"),
        ({"method": "mst", "epsilon": 0}, InputError, r"epsilon \(0\) must be"),
        ({"method": "mst", "epsilon": 1, "delta": 2}, InputError, r"delta \(2\) must be"),
        (
            {"method": "mst", "epsilon": 1, "shadows": 15},
            InputError,
            r"shadows \(15\) must be a whole number of at least 16",
        ),
        ({"method": "mst", "epsilon": 1, "shadows": 16.0}, InputError, r"shadows \(16.0\) must be a whole number"),
        ({"method": "mst", "epsilon": 1, "shadows": True}, InputError, r"shadows \(True\) must be a whole number"),
        ({"method": "mst", "epsilon": 1, "seed": -1}, InputError, r"seed \(-1\) must be 0 or more"),
        ({"method": "marginals", "epsilon": 1}, MethodError, "marginals"),
    ],
)
def test_wrong_wishes_are_refused_before_anything_is_attacked(train, holdout, asked, kind, said):
    steps: list[str] = []
    with pytest.raises(kind, match=said):
        us.attack(train, holdout, train, schema=SCHEMA, progress=steps.append, **asked)
    assert steps in ([], ["reading"])


def test_columns_that_the_method_needs_are_missed_at_once(train, holdout):
    steps: list[str] = []
    with pytest.raises(UnderstudyError, match="age"):
        us.attack(
            train.drop_columns(["age"]),
            holdout,
            train,
            schema=SCHEMA,
            method="mst",
            epsilon=1,
            progress=steps.append,
        )
    assert steps == []


def test_comparisons_read_all_shadows_with_the_same_codes(monkeypatch: pytest.MonkeyPatch):
    """One reading for all: a value would else stand for itself in one output, and for a range of values in another."""
    read: list[Any] = []
    compare = Comparison.of.__func__
    monkeypatch.setattr(Comparison, "of", classmethod(lambda cls, *a, **k: read.append(a) or compare(cls, *a, **k)))
    people = make_people(30, 1)
    shadow.shadow_membership(lambda table, seed: table, people, 4, schema=SCHEMA, shadows=16)
    assert len(read) == 1 and read[0][1].num_rows == 8 * 30 + 8 * 29


def test_a_schema_that_is_no_schema_is_refused(train, holdout, tmp_path):
    (tmp_path / "bad.toml").write_text("columns = 3")
    with pytest.raises(SchemaError):
        us.attack(train, holdout, train, schema=tmp_path / "bad.toml", method="mst", epsilon=1)
