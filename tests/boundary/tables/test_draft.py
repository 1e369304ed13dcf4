"""Drafted schemas: the types a person would have chosen, marked as a draft, and readable again."""

from __future__ import annotations

import re
from datetime import date, datetime
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import understudy as us
from understudy.boundary.schema.column import Boolean, Categorical, Datetime, Identifier, Integer, Number, Ordinal
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.schema import CONFIRMED, DRAFT, DRAFT_LINE, UNCHANGED, Schema
from understudy.boundary.tables.draft import draft_schema
from understudy.boundary.tables.drafting.columns import MOST_CATEGORIES
from understudy.boundary.tables.sources import open as open_table
from understudy.errors import TableError


def drafted(values, name="x"):
    """The column drafted for these values; a second column keeps the schema from being empty."""
    return draft_schema(pa.table({name: values, "n": [i / 8 for i in range(len(values))]}))[name]


def from_text(tmp_path, values, name="x"):
    """The same of a CSV file, where nothing is declared of a type."""
    path = tmp_path / "t.csv"
    quoted = [str(v).replace('"', '""') for v in values]
    path.write_text(f'"{name}",n\n' + "".join(f'"{v}",{i / 8}\n' for i, v in enumerate(quoted)), encoding="utf-8")
    return draft_schema(path)[name]


@pytest.mark.parametrize(
    ("values", "column"),
    [
        ([3, 5, 4], Integer("x", minimum=3, maximum=5)),
        ([7, 7, 7], Integer("x", minimum=7, maximum=7)),
        ([0, 1, 1], Categorical("x", values=(0, 1))),
        ([1, 9, 9], Categorical("x", values=(1, 9))),
        ([18, 40, 64], Integer("x", minimum=0, maximum=65)),
        ([0.5, 2.25, None], Number("x", minimum=0.0, maximum=2.3, decimals=2, missing=True)),
        ([1.5, 1.5], Number("x", minimum=1.5, maximum=1.6, decimals=1, bins=1)),
        (["b", "a", "b"], Categorical("x", values=("a", "b"))),
        (["a", "a"], Categorical("x", values=("a",))),
        (["a", "?", "", None], Categorical("x", values=("a",), missing=True)),
        (["yes", "no"], Categorical("x", values=("no", "yes"))),
        (["true", "False"], Boolean("x")),
        ([True, None], Boolean("x", missing=True)),
        (["2024-01-31", "2023-05-01"], Datetime("x", minimum=datetime(2023, 1, 1), maximum=datetime(2024, 12, 31))),
        (
            [date(2024, 1, 31), None],
            Datetime("x", minimum=datetime(2024, 1, 1), maximum=datetime(2024, 1, 31), missing=True),
        ),
        ([None, None], Identifier("x")),
        (["", "?"], Identifier("x")),
        # What a frame stores as texts was meant as texts.
        (["01234", "99999"], Categorical("x", values=("01234", "99999"))),
        (["3", " 5", "4"], Categorical("x", values=("3", "4", "5"))),
    ],
)
def test_a_type_is_drafted_for_each_column(values, column):
    found = drafted(values)
    if isinstance(column, Number) and column.maximum is not None:
        assert found.minimum <= 1.5 and found.maximum >= column.minimum and found.decimals == column.decimals
    else:
        assert found == column


def test_whole_numbers_beyond_the_exact_ones_are_numbers():
    found = drafted([2**60, 5])
    assert isinstance(found, Number) and found.minimum <= 5 and found.maximum >= 2**60


def test_times_of_day_are_drafted_by_the_second():
    column = drafted([datetime(2024, 1, 1, 5, 6, 7, 89), datetime(2024, 1, 2)])
    assert column.resolution == "second" and column.start == datetime(2024, 1, 1)


def test_texts_with_too_many_values_are_drafted_as_identifiers():
    names = [f"person {i}" for i in range(30)]
    assert isinstance(drafted(names), Identifier)
    assert isinstance(drafted(names * 3), Categorical)
    assert isinstance(drafted([f"t{i}" for i in range(MOST_CATEGORIES + 1)] * 3), Identifier)


def test_of_too_many_values_the_frequent_ones_are_listed_and_the_others_become_other():
    values = ["often"] * 900 + [f"t{i}" for i in range(MOST_CATEGORIES + 50)]
    assert drafted(values) == Categorical("x", values=("often",), other="other")


@pytest.mark.parametrize(
    ("values", "column"),
    [
        (["01067", "10115"] * 20, Categorical("x", values=("01067", "10115"))),
        ([5411, 5812, 4111] * 20, Ordinal("x", values=(4111, 5411, 5812))),
        (["1", "10", "2", "N"] * 9, Categorical("x", values=("1", "2", "10", "N"))),
        ([0.5, 1.0, 2.0] * 20, Ordinal("x", values=("0.5", "1.0", "2.0"))),
        (["agree", "neutral", "disagree"] * 9, Ordinal("x", values=("disagree", "neutral", "agree"))),
        (
            ["trifft zu", "trifft nicht zu", "teils/teils"],
            Ordinal("x", values=("trifft nicht zu", "teils/teils", "trifft zu")),
        ),
        (["5-9", "<5", "10-14", "85+"] * 9, Ordinal("x", values=("<5", "5-9", "10-14", "85+"))),
        (["<18", "18-24", "over 24"] * 9, Ordinal("x", values=("<18", "18-24", "over 24"))),
        (["Mar", "Jan", "Feb"] * 9, Ordinal("x", values=("Jan", "Feb", "Mar"))),
        (["M", "S", "XL"] * 9, Ordinal("x", values=("S", "M", "XL"))),
        ([1, 2, 3, 4, 99] * 9, Integer("x", minimum=1, maximum=4, missing=True, missing_values=("99",))),
        (["abc@example.org", "d.e@example.com"] * 40, Categorical("x", values=("abc@example.org", "d.e@example.com"))),
    ],
)
def test_codes_and_scales_of_a_file(tmp_path, values, column):
    found = from_text(tmp_path, values)
    if hasattr(Integer, "special") and isinstance(column, Integer):
        column = Integer("x", minimum=1, maximum=4, special=(99,))
    assert found == column


@pytest.mark.parametrize(
    ("values", "form", "first"),
    [
        (["31.12.2023", "01.02.2024"], "%d.%m.%Y", datetime(2023, 12, 1)),
        (["12/31/2023", "02/01/2023"], "%m/%d/%Y", datetime(2023, 1, 1)),
        (["31/12/2023", "02/01/2023"], "%d/%m/%Y", datetime(2023, 1, 1)),
        (["20.08.2023 03:33:38", "21.12.2023 13:00:00"], "%d.%m.%Y %H:%M:%S", datetime(2023, 8, 1)),
        (["01-Feb-2020", "31-Mar-2021"], "%d-%b-%Y", datetime(2020, 1, 1)),
        (["20200131", "20211130"], "%Y%m%d", datetime(2020, 1, 1)),
        (["2020-01-31T10:00:00", "2021-11-30T00:00:00"], None, datetime(2020, 1, 1)),
    ],
)
def test_the_usual_formats_of_dates_are_found(tmp_path, values, form, first):
    column = from_text(tmp_path, values * 5)
    assert isinstance(column, Datetime) and column.format == form and column.minimum == first


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("id", range(1, 40)),
        ("Unnamed: 0", range(40)),
        ("running", range(40)),
        ("phone", [f"+4917012345{i:02d}" for i in range(40)]),
        ("mail", [f"p{i % 9}@example.org" for i in range(40)]),
        ("u", [f"{i:08x}-0000-4000-8000-000000000000" for i in range(40)]),
        ("page", [f"https://example.org/{i % 8}" for i in range(40)]),
        ("client_id", [10_000_000 + i % 15 for i in range(60)]),
        ("comments", ["I am John Smith of Berlin", "nothing to say at all", "all was fine with us"] * 20),
        ("story", [f"we came at {i} and left soon after that" for i in range(40)]),
    ],
)
def test_what_tells_people_apart_is_left_out(tmp_path, name, values):
    assert isinstance(from_text(tmp_path, list(values), name), Identifier)


def test_a_year_or_a_time_that_runs_is_no_identifier(tmp_path):
    assert isinstance(from_text(tmp_path, range(1900, 2000), "year"), Integer)
    assert isinstance(from_text(tmp_path, range(1, 100), "time"), Integer)


def test_marked_numbers_keep_their_markers_apart(tmp_path):
    marked = from_text(tmp_path, [*range(1000, 40_000, 500), "N", "N", "refused"])
    assert isinstance(marked, Integer)
    special = getattr(marked, "special", ())
    assert set(special or marked.missing_values) == {"N", "refused"}
    sentinel = from_text(tmp_path, [*range(20), *range(20), -99, -99])
    assert set(map(str, getattr(sentinel, "special", ()) or sentinel.missing_values)) == {"-99"}
    assert sentinel.minimum == 0


def test_skewed_numbers_get_round_cuts(tmp_path):
    values = [round(float(np.exp(x)), 2) for x in np.linspace(0, 9, 400)]
    column = from_text(tmp_path, values)
    assert isinstance(column, Number) and 8 < len(column.cuts) <= 60
    assert 400 > sum(v < column.cuts[len(column.cuts) // 2] for v in values) > 100


def test_a_frame_is_believed():
    frame = pd.DataFrame(
        {
            "zip": ["01234", "99999"],
            "size": pd.Categorical(["lo", "hi"], ["lo", "mid", "hi"], ordered=True),
            "blood": pd.Categorical(["B", "A"]),
            "ok": [True, False],
            "seen": pd.to_datetime(["2024-01-01", "2024-02-01"]),
        }
    )
    schema = draft_schema(frame)
    assert schema["zip"] == Categorical("zip", values=("01234", "99999"))
    assert schema["size"] == Ordinal("size", values=("lo", "mid", "hi"))
    assert schema["blood"] == Categorical("blood", values=("A", "B"))
    assert isinstance(schema["ok"], Boolean) and isinstance(schema["seen"], Datetime)
    assert schema.file is None


def test_a_draft_says_so_in_its_first_line_and_is_read_back(tmp_path):
    schema = draft_schema(pa.table({"age": [1, 2], "job": ["?", "cook"], "we ird.\"k'ey": [1.5, 2.0]}))
    schema.save(tmp_path / "d.toml")
    for text in (schema.dumps(), schema.commented, (tmp_path / "d.toml").read_text(encoding="utf-8")):
        assert schema.status == DRAFT and schema.missing_values == ("?",)
        assert text.splitlines()[0] == DRAFT_LINE and DRAFT_LINE.startswith("# DRAFT")
        assert Schema.loads(text) == schema
        confirmed = text.replace('status = "draft"', 'status = "confirmed"')
        # A release has what `dumps` gives, and not the digest by which a draft is known again.
        assert Schema.loads(confirmed).status == (CONFIRMED if text == schema.dumps() else UNCHANGED)
        assert Schema.loads(confirmed.replace("max = 2", "max = 3", 1)).status == CONFIRMED
    assert "different values" in schema.commented and "different values" not in schema.dumps()


def test_a_release_says_that_a_draft_was_confirmed_unchanged_and_holds_no_note(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,a,b\n" + "".join(f"{i},{i % 3},{i % 7 / 2}\n" for i in range(60)), encoding="utf-8")
    text = draft_schema(path).commented.replace('status = "draft"', 'status = "confirmed"')
    for schema, status in (
        (Schema.loads(text), UNCHANGED),
        (Schema.loads(text.replace("max = 2", "max = 9")), CONFIRMED),
    ):
        made = us.synthesize(us.open(path, schema), epsilon=1, method="independent")
        made.save(tmp_path / status)
        kept = (tmp_path / status / "schema.toml").read_text(encoding="utf-8")
        assert made.certificate.schema_status == status and f'status = "{status}"' in kept
        assert made.certificate.guarantee is not None
        assert "sha256" not in kept and "different values" not in kept
        us.verify(tmp_path / status)
        us.replay(tmp_path / status)


def test_rules_units_and_derived_columns_are_proposed_as_comments_that_can_be_uncommented(tmp_path):
    rows = 400
    started = np.datetime64("2023-01-01") + np.arange(rows) * 37 % 300
    frame = pa.table(
        {
            "patient": [f"p{i % 80:03d}" for i in range(rows)],
            "admitted": started,
            "discharged": started + np.arange(rows) % 11,
            "age": [i % 90 for i in range(rows)],
            "married": ["no" if i % 90 < 15 or i % 2 else "yes" for i in range(rows)],
            "sold": [0 if i % 3 else i % 17 for i in range(rows)],
            "earned": [0 if i % 3 else (i % 17) * (i % 5) for i in range(rows)],
        }
    )
    text = draft_schema(frame).commented
    assert '#[unit]\n#column = "patient"' in text
    assert """of = '"discharged" - "admitted"'""" in text
    schema = Schema.loads(re.sub(r"(?m)^#(?! )(.+)$", r"\1", text.replace("# DRAFT", "# # DRAFT")))
    found = {(r.condition, r.then) for r in schema.rules}
    assert (None, '"discharged" >= "admitted"') in found
    assert ('"age" < 16', "\"married\" = 'no'") in found
    assert ('"sold" = 0', '"earned" = 0') in found
    assert schema.unit.column == "patient" and schema.unit.max_rows == 5
    assert len(schema.rules) <= 20


def test_ids_that_come_back_are_found_beside_decimal_commas(tmp_path):
    lines = [f"{i % 40};{i % 9},5" for i in range(200)]
    (tmp_path / "bank.csv").write_text("\n".join(["client_id;amount", *lines]) + "\n")
    drafted = draft_schema(str(tmp_path / "bank.csv"))
    assert '#[unit]\n#column = "client_id"\n#max_rows = 5' in drafted.commented
    assert drafted.file.marks_of("amount").decimal == ","


@pytest.mark.parametrize("token", ["?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"])
def test_usual_tokens_of_a_missing_value_are_found(tmp_path, token):
    path = tmp_path / "t.csv"
    path.write_text(f"x,y\na,1\n{token},2\nb,{token}\n", encoding="utf-8")
    schema = draft_schema(path)
    assert schema.missing_values == (token,)
    assert schema["x"] == Categorical("x", values=("a", "b"), missing=True)
    assert schema["y"].missing


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table])
def test_every_kind_of_frame_is_drafted_alike(frame):
    schema = draft_schema(frame({"a": [1, 2, 3], "b": ["x", "y", "x"]}))
    assert schema.columns == (Integer("a", minimum=1, maximum=3), Categorical("b", values=("x", "y")))


def test_nothing_to_model_is_refused():
    with pytest.raises(TableError, match="no schema can be drafted: every column is an identifier"):
        draft_schema(pa.table({"x": [None, None]}))
    with pytest.raises(TableError, match="a dict can't be read; give a frame or a path"):
        draft_schema({"x": [1]})
    with pytest.raises(TableError, match="does not exist, or is not a file"):
        draft_schema("nowhere.csv")


KINDS = {
    "adult.train.csv": {"age": Integer, "workclass": Categorical, "fnlwgt": Integer, "income": Categorical},
    "insurance.csv": {"age": Integer, "bmi": Number, "smoker": Categorical, "charges": Number, "children": Integer},
    "healthcare.csv": {
        "Name": Identifier,
        "Date of Admission": Datetime,
        "Gender": Categorical,
        "Hospital": Identifier,
    },
    "mushroom.csv": {"class": Categorical, "bruises": Boolean, "stalk-root": Categorical},
    "votes.csv": {"Class": Categorical, "immigration": Categorical},
    "nursery.csv": {"parents": Categorical, "classification": Categorical},
    "covertype.csv": {"elevation": Integer, "cover_type": Categorical},
}


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("name", KINDS)
def test_real_tables_get_the_types_a_person_would_choose(shared_data, name):
    path = shared_data / name
    schema = draft_schema(path)
    assert {c: type(schema[c]) for c in KINDS[name]} == KINDS[name]
    assert Schema.loads(schema.dumps()) == schema
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    assert list(schema.names) == list(frame.columns)
    domain = Domain.of(schema)
    assert sum(c.missing and not c.missing_values for c in schema.modelled) == sum(
        (frame[c.name] == "?").any() for c in schema.modelled
    )
    for coding, counts in zip(
        domain, open_table(path, schema).count_by(domain, [(n,) for n in domain.names]), strict=True
    ):
        assert counts.sum() == len(frame)
        if coding.labels is not None and isinstance(coding.labels[0], str):  # a draft lists exactly what is there
            assert np.all(counts > 0)


@pytest.mark.parametrize("odd", ["\x85", "\u2028", "\x0b", "a\x1cb", "\r"])
def test_a_label_with_an_odd_line_break_leaves_the_draft_readable(odd: str) -> None:
    draft = draft_schema(pa.table({"kind": [f"x{odd}y", "z"] * 20}))
    assert Schema.loads(draft.commented)["kind"].values == draft["kind"].values


def test_days_that_no_calendar_has_are_no_dates() -> None:
    draft = draft_schema(pa.table({"when": ["8926-13-07", "2020-02-31"] * 20, "age": list(range(40))}))
    assert not isinstance(draft["when"], Datetime)


def test_a_time_after_the_last_year_of_python_is_a_bound_that_python_has(tmp_path: Path) -> None:
    path = tmp_path / "times.parquet"
    far = "TIMESTAMP '294246-01-01'"
    rows = f"SELECT if(i = 7, {far}, TIMESTAMP '2024-03-05' + to_days(i)) AS seen FROM range(60) AS t(i)"
    duckdb.sql(
        f"COPY (SELECT seen, i::INTEGER % 5 AS many FROM ({rows}), range(1) AS u(i)) TO '{path}' (FORMAT parquet)"
    )
    drafted = draft_schema(path)["seen"]
    assert isinstance(drafted, Datetime) and drafted.minimum.year == 2024 and drafted.maximum.year >= 9998


def test_names_and_numbers_at_the_edges_are_drafted_or_refused() -> None:
    with pytest.raises(TableError, match=r"column name 'n\\x00' holds a zero character"):
        draft_schema(pa.table({"n\0": list(range(40))}))
    tiny = draft_schema(pa.table({"n": [5e-324 * (i % 7) for i in range(70)], "m": [i % 9 for i in range(70)]}))
    assert "n" in tiny.names
    early = [datetime(1, 1, 1 + i % 28, 3) for i in range(80)]
    later = [datetime(1, 2, 1 + i % 28, 3) for i in range(80)]
    drafted = draft_schema(pa.table({"came": early, "left": later}))
    assert isinstance(drafted["came"], Datetime)


def test_a_number_inside_the_others_is_no_marker() -> None:
    years = [8] * 20 + [12, 15, 16, 17, 18, 19, 20, 21] * 20
    zones = [8] * 5 + [-10, -9, -8, -7, -6, -5] * 20
    draft = draft_schema(pa.table({"education": years, "tz": zones + [-5] * (len(years) - len(zones))}))
    assert draft["education"].special == () and getattr(draft["tz"], "special", ()) == ()


def test_ids_of_repeated_surveys_are_left_out_and_places_are_lists() -> None:
    rng = np.random.default_rng(1)
    people = np.sort(rng.choice(5000, 80, replace=False)).repeat(6)
    places = np.sort(rng.choice(90_000, 40, replace=False))
    table = pa.table(
        {"nr": people, "wave": [1, 2, 3, 4, 5, 6] * 80, "school": rng.choice(places, 480), "subject": people % 7}
    )
    draft = draft_schema(table)
    assert isinstance(draft["nr"], Identifier) and isinstance(draft["subject"], Identifier)
    assert '#column = "nr"' in draft.commented
    assert draft["school"].type == "categorical" and draft["wave"].type == "integer"


def test_a_note_calls_bounds_rounded_only_where_they_are() -> None:
    text = draft_schema(pa.table({"short": [1, 2, 3] * 20, "long": [13 * i for i in range(60)]})).commented
    assert "the bounds are the least and the greatest value of the rows" in text and "were rounded outwards" in text


def test_a_name_with_control_characters_can_be_proposed_as_a_unit() -> None:
    frame = pa.table({"\x01patient": [f"p{i % 80:03d}" for i in range(400)], "age": [i % 90 for i in range(400)]})
    text = draft_schema(frame).commented
    assert '#column = "\\U00000001patient"' in text and Schema.loads(text).status == DRAFT


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("Kunden-Nr", [100_000 + 7 * (i % 60) for i in range(200)]),
        ("Fallnummer", [100_000 + 7 * (i % 60) for i in range(200)]),
        ("Vertrags-Nr", [100_000 + 7 * (i % 60) for i in range(200)]),
        ("Name", [f"{a} {b}" for a in ("Jörg", "Käthe", "Paul") for b in ("Müller", "Weiß", "Öztürk")] * 40),
        ("Vorname", ["Jörg", "Käthe", "Paul"] * 200),
    ],
)
def test_numbers_and_names_of_clients_are_left_out_though_they_come_back(tmp_path, name, values):
    few = name in ("Name", "Vorname")
    values = [f"{v}{'abcdefghijklm'[i % 13]}" if few else v for i, v in enumerate(values)]  # more than twenty of them
    assert isinstance(from_text(tmp_path, values, name), Identifier)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("Name", [f"tariff {i % 25}" for i in range(600)]),
        ("Room Number", [101 + i % 90 for i in range(200)]),
        ("Filial-Nr", [4000 + i % 15 for i in range(600)]),
        ("Kunden", [i % 60 for i in range(200)]),
    ],
)
def test_names_of_things_and_counts_are_no_identifiers(tmp_path, name, values):
    assert not isinstance(from_text(tmp_path, values, name), Identifier)


def test_the_unit_is_proposed_by_the_number_of_a_client_and_never_by_a_free_text(tmp_path):
    lines = [f"0151 {i % 50:07d};{100_000 + 7 * (i % 50)};asked to be called back on day {i % 70}" for i in range(300)]
    (tmp_path / "b.csv").write_text("\n".join(["Telefon;Kunden-Nr;Bemerkung;n", *(f"{x};{len(x) % 5}" for x in lines)]))
    text = draft_schema(tmp_path / "b.csv").commented
    units = re.findall(r'#\[unit\]\n#column = "(.+)"', text)
    assert units == ["Kunden-Nr", "Telefon"]


def test_empty_ids_are_nobody_in_what_a_cap_would_keep(tmp_path):
    lines = [f"{f'p{i % 50}' if i % 2 else ''};{i % 7}" for i in range(400)]
    (tmp_path / "b.csv").write_text("\n".join(["patient;n", *lines]))
    assert "25 ids in 200 rows; of the rows, max_rows = 1 would keep 12 %" in draft_schema(tmp_path / "b.csv").commented


def test_a_slip_of_the_pen_and_the_fate_of_rare_values_are_said() -> None:
    text = draft_schema(pa.table({"sex": ["Female", "Male"] * 200 + ["male"], "n": list(range(401))})).commented
    assert "'male' looks like a slip of the pen for 'Male'" in text
    assert "one of the values has fewer than 10 rows (the rarest 1): drop what only a few people can have" in text
    assert "rows whose value is not listed count as 'Female', unless the list has an other" in text
    assert "slip" not in draft_schema(pa.table({"sex": ["F", "f"] * 200, "n": list(range(400))})).commented


def test_a_step_is_drafted_where_all_values_have_it() -> None:
    rng = np.random.default_rng(3)
    incomes = 100 * rng.integers(5, 900, 400)
    draft = draft_schema(pa.table({"all": incomes, "most": np.where(np.arange(400) % 9, incomes, incomes + 7)}))
    assert draft["all"].step == 100 and draft["most"].step is None
    assert "all values that were seen are multiples of 100" in draft.commented
    # Cuts of a skewed column leave no bin without a multiple, which other values would have to fill.
    skewed = draft_schema(pa.table({"gain": np.where(np.arange(400) % 4, 0, incomes), "n": list(range(400))}))["gain"]
    assert skewed.step == 100 and skewed.cuts and all(cut % 100 == 0 for cut in skewed.cuts)
    assert Schema.loads(draft.commented)["all"] == draft["all"]


def test_a_day_of_birth_has_no_weekday_to_keep() -> None:
    days = np.datetime64("1950-01-01") + np.arange(400) * 31
    text = draft_schema(pa.table({"Geburtsdatum": days, "visit": days, "n": list(range(400))})).commented
    assert "weekday(visit)" in text and "weekday(Geburtsdatum)" not in text
