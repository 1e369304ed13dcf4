"""All attacks together: they scream where rows were copied, are silent where none were, and survive bad input."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from people import make_people

from understudy.errors import InputError, UnderstudyError
from understudy.lab.attacks import identification, membership, threat
from understudy.lab.attacks.attacks import ATTACKS, NO_PROOF, attack_tables
from understudy.lab.attacks.threat import ADVANTAGE, NOT_DEFINED, Finding
from understudy.lab.evaluation.evaluation import NOTICE

CAREFUL = 1 - 1e-4
"""The level at which silence is tested: seven intervals, so less than one seed of a thousand raises an alarm."""


def check_sound(finding: Finding) -> None:
    for found in (finding, *finding.parts.values()):
        known = (found.success, found.baseline, found.advantage, found.interval)
        assert all(k is None for k in known) == bool(found.reason), found
        if found.interval is not None:
            low, high = found.interval
            assert all(map(math.isfinite, (found.success, found.baseline, low, high))), found
            assert low <= found.advantage + 1e-12 and found.advantage <= high + 1e-12, found


@pytest.fixture(scope="module")
def copied(train, holdout, schema):
    return attack_tables(train, holdout, train, schema=schema)


def test_the_training_table_itself_makes_every_attack_scream(copied):
    assert [a.name for a in copied.successful] == [a.name for a in ATTACKS]
    assert all(f.interval[0] > 0 for f in copied.findings.values())


@pytest.mark.parametrize("seed", range(3))
def test_other_people_of_the_population_raise_no_alarm(seed: int, schema, monkeypatch: pytest.MonkeyPatch):
    for module in (threat.newcombe, identification.welch, membership.clopper_pearson, membership.ranking):
        monkeypatch.setattr(module, "__defaults__", (CAREFUL,))
    monkeypatch.setattr(Finding.shares.__func__, "__kwdefaults__", {"level": CAREFUL, "note": ""})
    tables = [make_people(rows, 10 * seed + i) for i, rows in enumerate((400, 300, 400), 100)]
    found = attack_tables(*tables, schema=schema, seed=seed)
    for finding in found.findings.values():
        low, high = finding.interval
        assert low <= 0 <= high


def test_a_tenth_of_copied_rows_is_found(train, holdout, sample, schema):
    found = attack_tables(train, holdout, pa.concat_tables([train.slice(0, 40), sample]), schema=schema)
    assert found["copies"].verdict == ADVANTAGE and found["copies"].parts["equal rows"].success >= 0.1


def test_people_who_are_copied_but_were_not_in_the_table_are_no_advantage(train, holdout, schema):
    """Only a model that learns which kind is nearer may tell them apart, since it may learn it either way."""
    found = attack_tables(train, holdout, holdout, schema=schema)
    assert {a.name for a in found.successful} <= {"membership-distance"}


def test_same_seed_same_findings(copied, train, holdout, schema):
    assert attack_tables(train, holdout, train, schema=schema) == copied
    assert attack_tables(train, holdout, train, schema=schema, seed=1) != copied


def test_findings_are_for_programs_too(copied):
    read = json.loads(copied.to_json())
    assert read["notice"] == NOTICE and read["limits"] == NO_PROOF
    assert read["facts"] == json.loads(json.dumps(dataclasses.asdict(copied.facts)))
    assert read["findings"]["copies"]["parts"]["equal rows"]["success"] == 1.0
    assert {f["verdict"] for f in read["findings"].values()} == {ADVANTAGE}


def test_progress_names_every_attack(train, holdout, schema):
    said: list[str] = []
    attack_tables(train, holdout, train, schema=schema, progress=said.append)
    assert said == ["reading", *(a.title for a in ATTACKS)]


def test_only_named_secrets_are_guessed(train, holdout, schema):
    found = attack_tables(train, holdout, train, schema=schema, secrets=["job", "job"])
    assert set(found["inference"].parts) == {"job"} and found.facts.secrets == ("job",)
    assert attack_tables(train, holdout, train, schema=schema, secrets=[])["inference"].verdict == NOT_DEFINED


@pytest.mark.parametrize(
    ("wish", "said"),
    [({"secrets": ["shoe"]}, "'shoe' is not a column"), ({"seed": -1}, r"seed \(-1\) must be 0 or more")],
)
def test_wrong_wishes_are_refused(wish: dict[str, Any], said: str, train, holdout):
    with pytest.raises(InputError, match=said):
        attack_tables(train, holdout, train, **wish)


def test_no_holdout_no_attack(train):
    with pytest.raises(InputError, match="need a hold-out"):
        attack_tables(train, None, train)
    with pytest.raises(UnderstudyError, match="no rows"):
        attack_tables(train, train.slice(0, 0), train)


def test_an_unknown_attack_is_named(copied):
    with pytest.raises(InputError, match="attack 'magic' is not known"):
        copied["magic"]


N = 40
GOOD = make_people(N, 7)


def _changed(**columns: Any) -> pa.Table:
    table = GOOD
    for name, values in columns.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    return table


SAME = _changed(age=[30] * N, income=[5.0] * N, job=["cook"] * N, smoker=[True] * N, children=[1] * N)
VOID = _changed(income=pa.nulls(N, pa.float64()), job=pa.nulls(N, pa.string()), age=pa.nulls(N, pa.int64()))
ENDLESS = _changed(income=[math.inf, -math.inf, math.nan, *np.linspace(0, 9, N - 3)])
HUGE = _changed(income=[1e308, -1e308, 1e-308, *[1e307] * (N - 3)])
TYPED = _changed(age=["many"] * N, job=list(range(N)), children=[0.5] * N, smoker=["perhaps"] * N)
BAD = {
    "same": SAME,
    "void": VOID,
    "endless": ENDLESS,
    "huge": HUGE,
    "typed": TYPED,
    "one column": GOOD.select(["income"]),
    "one category": GOOD.select(["job"]),
    "other columns": GOOD.drop_columns(["age"]).append_column("new", pa.nulls(N)),
    "two rows": GOOD.slice(0, 2),
    "one row": GOOD.slice(0, 1),
}


@pytest.fixture
def few_guesses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identification, "MOST_GUESSES", 20)


@pytest.mark.slow_after(20)
@pytest.mark.usefixtures("few_guesses")
@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("declared", [True, False], ids=["declared", "drafted"])
def test_bad_tables_give_findings_or_reasons(kind: str, place: int, declared: bool, schema):
    tables = [make_people(N, 8), make_people(N, 9), make_people(N, 10)]
    tables[place] = BAD[kind]
    for finding in attack_tables(*tables, schema=schema if declared else None).findings.values():
        check_sound(finding)


@pytest.mark.usefixtures("few_guesses")
@pytest.mark.parametrize("kind", BAD)
def test_tables_that_are_all_bad_do_too(kind: str, schema):
    found = attack_tables(BAD[kind], BAD[kind], BAD[kind], schema=schema)
    for finding in found.findings.values():
        check_sound(finding)
    assert found.successful == ()  # the same rows on both sides


def test_few_rows_say_nothing(train, holdout, schema):
    found = attack_tables(train, holdout.slice(0, 9), train, schema=schema)
    assert {f.verdict for f in found.findings.values()} == {NOT_DEFINED}
    assert "has 9 rows, and fewer than 10 say nothing" in found["copies"].reason


def test_the_largest_tables_are_drawn_from(train, holdout, schema, monkeypatch: pytest.MonkeyPatch):
    for module, name in ((identification, "MOST_GUESSED"), (membership, "MOST_COMPARED"), (membership, "MOST_ROWS")):
        monkeypatch.setattr(module, name, 50)
    found = attack_tables(train, holdout, train, schema=schema)
    assert found["inference"].note.startswith("50 rows of the table, 50 of the hold-out")
    assert found["membership-distance"].note.startswith("learnt from 50 rows, tested on 50")
    assert found["membership-density"].note.startswith("100 members")
