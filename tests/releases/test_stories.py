"""From a raw file to a release at ε = 1, with the changes that a steward makes: what went wrong once ends well."""

from __future__ import annotations

import random
from pathlib import Path

import pandas as pd
import pytest

import understudy as us

pytestmark = pytest.mark.slow


def made(path: Path, schema: us.Schema) -> pd.DataFrame:
    """The synthetic rows, of a table that its confirmed schema fits."""
    table = us.open(path, schema.confirm(by="the steward"))
    assert not us.check(table).to_mend
    return us.synthesize(table, epsilon=1.0, ledger=False, method="rake").table.to_pandas()


def test_nobody_leaves_a_hospital_before_they_come(shared_data: Path):
    path = shared_data / "healthcare.csv"
    drafted = us.draft_schema(path)
    stay = {"type": "derived", "of": '"Discharge Date" - "Date of Admission"', "min": 0, "max": 60}
    rows = made(path, drafted.edit({"Discharge Date": {"max": "2024-03-31"}, "stay": stay}))
    days = (pd.to_datetime(rows["Discharge Date"]) - pd.to_datetime(rows["Date of Admission"])).dt.days
    real = pd.read_csv(path, parse_dates=["Date of Admission", "Discharge Date"])
    stays = (real["Discharge Date"] - real["Date of Admission"]).dt.days
    assert days.min() >= 0
    assert abs(days.median() - stays.median()) <= 1
    # Each of the 30 days that nobody stayed for is declared, and may keep a few rows of noise.
    assert (days > stays.max()).mean() < 0.03


def test_an_income_that_does_not_apply_stays_apart_from_the_numbers(shared_data: Path):
    path = shared_data / "nist" / "texas" / "tx2019.csv"
    drafted = us.draft_schema(path)
    assert drafted["PINCP"].special == ("N",)
    rows, real = made(path, drafted), pd.read_csv(path, dtype=str)
    assert abs((rows["PINCP"] == "N").mean() - (real["PINCP"] == "N").mean()) < 0.02
    income, wanted = (pd.to_numeric(t["PINCP"], errors="coerce").dropna() for t in (rows, real))
    assert abs(income.median() - wanted.median()) < 0.1 * wanted.median()
    assert set(rows["PUMA"].astype(str)) <= set(real["PUMA"])


def test_amounts_with_commas_codes_with_zeros_and_several_rows_of_a_client(tmp_path: Path):
    draw, lines = random.Random(4), ["kunde;telefon;datum;betrag;plz;zweck"]
    for client in range(3_000):
        phone, home = f"+49 151 {draw.randint(1_000_000, 9_999_999)}", draw.choice(["01067", "04109", "99084"])
        for _ in range(draw.choice([1, 2, 3])):
            amount = f"{-draw.lognormvariate(3.2, 1.2):.2f}".replace(".", ",")
            why = f"Herr Müller bittet um Rückruf wegen Karte {draw.randint(1, 9_999)}"
            lines.append(f"{client};{phone};{draw.randint(1, 28):02d}.05.2024;{amount};{home};{why}")
    (tmp_path / "bank.csv").write_bytes("\n".join(lines).encode("latin-1"))
    drafted = us.draft_schema(tmp_path / "bank.csv")
    rows = made(tmp_path / "bank.csv", drafted.with_unit("kunde", max_rows=3))
    assert list(rows.columns) == ["datum", "betrag", "plz"]
    assert set(rows["plz"]) <= {"01067", "04109", "99084"}
    real = pd.read_csv(tmp_path / "bank.csv", sep=";", decimal=",", encoding="latin-1")
    assert abs(rows["betrag"].median() - real["betrag"].median()) < 0.15 * abs(real["betrag"].median())


def test_one_wrong_capital_is_found_with_what_was_meant(tmp_path: Path):
    (tmp_path / "people.csv").write_text("sex\n" + "male\nFemale\n" * 100)
    schema = us.Schema.loads('[columns.sex]\ntype = "categorical"\nvalues = ["Female", "Male"]')
    found = us.check(us.open(tmp_path / "people.csv", schema))
    assert "'male', 100 rows: did you mean 'Male'?" in found.verdict
