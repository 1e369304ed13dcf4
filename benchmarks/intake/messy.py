"""Messy tables, made up, with the kind that a person would choose for each column.

Kinds: n numbers on a line (integer, number), c a list without an order, o one in order, b two truth values (boolean or
a list of two), d dates, x left out. Several letters: any of them will do.
"""

from __future__ import annotations

import csv
import gzip
import io
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

ROWS = 600
Columns = dict[str, tuple[str, Sequence[Any]]]
SPOKEN = "the staff was very kind but we waited long for a room and nobody could tell us when"
WORDS = SPOKEN.split()
CITIES = ("Köln", "Zürich", "Paris", "Málaga", "Wien")


@dataclass(frozen=True)
class Messy:
    """A file (or a frame), and the truth."""

    name: str
    content: Any
    kinds: dict[str, str]


def text_table(
    name: str, columns: Columns, *, delimiter: str = ",", encoding: str = "utf-8", quote: str = '"', every: bool = False
) -> Messy:
    out = io.StringIO()
    quoting = csv.QUOTE_ALL if every else csv.QUOTE_MINIMAL
    writer = csv.writer(out, delimiter=delimiter, quotechar=quote, quoting=quoting, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows(zip(*(v for _, v in columns.values()), strict=True))
    content = out.getvalue().encode(encoding)
    return Messy(name, gzip.compress(content) if name.endswith(".gz") else content, _kinds(columns))


def _kinds(columns: Columns) -> dict[str, str]:
    return {c: kind for c, (kind, _) in columns.items()}


# --- Values -----------------------------------------------------------------------------------------------------------


def pick(rng: Any, values: Sequence[Any], n: int = ROWS, p: Sequence[float] | None = None) -> list[Any]:
    return [values[i] for i in rng.choice(len(values), n, p=p)]


def amounts(rng: Any, n: int = ROWS) -> list[float]:
    return [round(float(v), 2) for v in rng.lognormal(5, 1.5, n) + 0.01]


def days(rng: Any, form: str, n: int = ROWS) -> list[str]:
    start = np.datetime64("2021-01-01T00:00:00")
    return [(start + np.timedelta64(int(s), "s")).item().strftime(form) for s in rng.integers(0, 6e7, n)]


def german(value: float, thousands: str = "", places: int = 2) -> str:
    return f"{value:,.{places}f}".replace(",", "§").replace(".", ",").replace("§", thousands)


def sentences(rng: Any, n: int = ROWS) -> list[str]:
    return [" ".join(pick(rng, WORDS, int(rng.integers(5, 18)))) for _ in range(n)]


def with_some(rng: Any, values: Sequence[Any], marker: Any, share: float = 0.05) -> list[Any]:
    return [marker if u < share else v for v, u in zip(values, rng.random(len(values)), strict=True)]


# --- Tables -----------------------------------------------------------------------------------------------------------


def bank(rng: Any) -> Columns:
    return {
        "Konto": ("x", [f"DE{rng.integers(10, 99)}{''.join(map(str, rng.integers(0, 10, 18)))}" for _ in range(ROWS)]),
        "Betrag": ("n", [german(v - 200) for v in amounts(rng)]),
        "Saldo": ("n", [german(v) for v in amounts(rng)]),
        "Buchung": ("d", days(rng, "%d.%m.%Y")),
        "Zeit": ("d", days(rng, "%d.%m.%Y %H:%M:%S")),
        "Ort": ("c", pick(rng, CITIES)),
        "Art": ("c", pick(rng, ("Überweisung", "Lastschrift", "Dauerauftrag"))),
    }


def thousands(rng: Any, mark: str, decimal: str) -> Columns:
    def written(v: float, places: int) -> str:
        return f"{v:,.{places}f}".replace(",", "§").replace(".", decimal).replace("§", mark)

    return {
        "price": ("n", [written(float(v), 2) for v in rng.uniform(500, 90_000, ROWS)]),
        "people": ("n", [written(float(v), 0) for v in rng.integers(800, 2_000_000, ROWS)]),
        "share": ("n", [written(float(v), 3) for v in rng.random(ROWS)]),
        "region": ("c", pick(rng, ("north", "south", "east"))),
    }


def us_dates(rng: Any) -> Columns:
    return {
        "hired": ("d", days(rng, "%m/%d/%Y")),
        "seen": ("d", days(rng, "%m/%d/%Y %H:%M")),
        "born": ("d", days(rng, "%d-%b-%Y")),
        "left": ("d", with_some(rng, days(rng, "%B %d, %Y"), "")),
        "stamp": ("d", days(rng, "%Y%m%d")),
        "iso": ("d", days(rng, "%Y-%m-%dT%H:%M:%S")),
        "slashed": ("d", days(rng, "%Y/%m/%d")),
        "salary": ("n", list(rng.integers(30_000, 150_000, ROWS))),
    }


def codes(rng: Any) -> Columns:
    zips = [f"{z:05d}" for z in rng.integers(100, 99_999, 40)]
    industries = [int(v) * 10 for v in rng.choice(np.arange(17, 993), 180, replace=False)]
    return {
        "zip": ("c", pick(rng, zips, 4000)),
        "mcc": ("c", pick(rng, (5411, 5812, 4111, 6011, 5999, 7995, 5732), 4000)),
        "icd": ("c", pick(rng, ("I10", "E11.9", "J45", "M54.5", "F32.1"), 4000)),
        "industry": ("c", pick(rng, industries, 4000)),
        "ward": ("c", pick(rng, ("01", "02", "10", "11"), 4000)),
        "district_code": ("c", pick(rng, list(range(101, 125)), 4000)),
        "children": ("nco", pick(rng, range(6), 4000)),
        "density": ("noc", pick(rng, (357.4, 450.9, 1338.4, 2134.8, 3731.1), 4000)),
        "dose": ("noc", pick(rng, (10, 50, 100, 500), 4000)),
        "pay": ("n", [int(v) // 50 * 50 for v in rng.lognormal(7.5, 0.6, 4000)]),
    }


def markers(rng: Any) -> Columns:
    return {
        "income": ("n", with_some(rng, [int(v) for v in rng.lognormal(10, 0.7, ROWS)], "N", 0.3)),
        "rent": ("n", with_some(rng, with_some(rng, amounts(rng), "refused"), "don't know")),
        "weight": ("n", with_some(rng, [round(float(v), 1) for v in rng.normal(75, 12, ROWS)], -99)),
        "hours": ("n", with_some(rng, [int(v) for v in rng.integers(1, 60, ROWS)], 999)),
        "since": ("n", with_some(rng, [int(v) for v in rng.integers(0, 900, ROWS)], -1, 0.6)),
        "age": ("n", [int(v) for v in rng.integers(18, 99, ROWS)]),
        "visits": ("n", with_some(rng, [int(v) for v in rng.poisson(20, ROWS)], "NA")),
        "state": ("c", with_some(rng, pick(rng, ("new", "open", "done")), "?")),
        "joined": ("d", with_some(rng, days(rng, "%Y-%m-%d"), "unknown")),
    }


def people(rng: Any) -> Columns:
    first, last = ("Ann", "Bob", "Cem", "Dora", "Eva", "Finn"), ("Li", "Ay", "Roth", "Sand", "Tau", "Ulm", "Voss")
    full = [
        f"{a} {b}-{c}" for a, b, c in zip(pick(rng, first), pick(rng, last), rng.integers(100, 999, ROWS), strict=True)
    ]
    return {
        "id": ("x", list(range(1, ROWS + 1))),
        "uuid": ("x", [str(uuid.UUID(bytes=rng.bytes(16))) for _ in range(ROWS)]),
        "name": ("x", full),
        "email": ("x", [f"{n.lower().replace(' ', '.')}@example.org" for n in full]),
        "phone": ("x", [f"+49{v}" for v in rng.integers(10**9, 10**10, ROWS)]),
        "mobile": ("x", [int(v) for v in rng.integers(15_000_000_000, 17_999_999_999, ROWS)]),
        "fax": ("x", [f"(0{a}) {b}" for a, b in rng.integers(100, 99_999, (ROWS, 2))]),
        "homepage": ("x", [f"https://example.org/~{v}" for v in rng.integers(0, 10**6, ROWS)]),
        "iban": ("x", [f"DE{v:020d}" for v in rng.integers(10**15, 10**17, ROWS)]),
        "customer_no": ("x", [int(v) for v in rng.choice(90_000, ROWS, replace=False) + 10_000]),
        "ip": ("x", [".".join(map(str, v)) for v in rng.integers(1, 255, (ROWS, 4))]),
        "sex": ("c", pick(rng, ("f", "m", "d"))),
        "height": ("n", [int(v) for v in rng.normal(172, 9, ROWS)]),
        "member_since": ("nd", [int(v) for v in rng.integers(1990, 2024, ROWS)]),
    }


def free_text(rng: Any) -> Columns:
    few = ("very bad service, I am John Smith 555-1234", "all was fine with us", "no comment from my side")
    return {
        "respondent": ("x", list(range(1, ROWS + 1))),
        "comments": ("x", pick(rng, few)),
        "story": ("x", sentences(rng)),
        "remark": ("x", with_some(rng, sentences(rng), "", 0.8)),
        "stars": ("nco", pick(rng, range(1, 6))),
        "product": ("c", pick(rng, ("Coffee machine, large", "Coffee machine, small", "Kettle with a long name"))),
    }


LIKERT = ("strongly disagree", "disagree", "neutral", "agree", "strongly agree")
GERMAN = ("trifft gar nicht zu", "trifft eher nicht zu", "teils/teils", "trifft eher zu", "trifft voll zu")
FRENCH = ("pas du tout d'accord", "plutôt pas d'accord", "plutôt d'accord", "tout à fait d'accord")


def survey(rng: Any) -> Columns:
    return {
        "q1": ("o", pick(rng, [w.capitalize() for w in LIKERT])),
        "q2": ("o", with_some(rng, pick(rng, GERMAN), "")),
        "q3": ("o", pick(rng, FRENCH)),
        "q4": ("nco", with_some(rng, pick(rng, range(1, 6)), 99)),
        "q5": ("o", pick(rng, ("never", "rarely", "sometimes", "often", "always"))),
        "q6": ("o", pick(rng, ("1 - not at all", "2", "3", "4", "5 - very much"))),
        "age_group": ("o", pick(rng, ("<18", "18-24", "25-34", "35-49", "50-64", "65+"))),
        "age5": ("o", pick(rng, ("<5", "5-9", "10-14", "15-19"))),
        "level": ("o", pick(rng, ("low", "medium", "high"))),
        "pain": ("o", pick(rng, ("none", "mild", "moderate", "severe"))),
        "month": ("o", pick(rng, ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"))),
        "day": ("o", pick(rng, ("Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag"))),
        "size": ("o", pick(rng, ("S", "M", "L", "XL"))),
        "income": ("o", pick(rng, ("$0 - $9,999", "$10,000 - $19,999", "$20,000 - $49,999", "$50,000 or more"))),
        "children": ("oc", pick(rng, ("0", "1", "2", "3", "more"))),
        "party": ("c", pick(rng, ("red", "green", "blue", "none of these"))),
    }


def truths(rng: Any) -> Columns:
    pairs = {
        "yn": "yes no",
        "jn": "ja nein",
        "letters": "Y N",
        "short": "T F",
        "words": "true false",
        "loud": "TRUE FALSE",
    }
    pairs |= {"on": "on off", "oui": "oui non", "x": "0 1", "ones": "1 2", "float": "0.0 1.0"}
    columns: Columns = {name: ("b", pick(rng, words.split())) for name, words in pairs.items()}
    columns["gaps"] = ("b", with_some(rng, pick(rng, ("Yes", "No")), ""))
    columns["score"] = ("n", [round(float(v), 3) for v in rng.random(ROWS)])
    return columns


def wide(rng: Any) -> Columns:
    columns: Columns = {}
    for i in range(50):
        columns[f"m{i}"] = ("n", [round(float(v), 3) for v in rng.normal(i, 1 + i, ROWS)])
        columns[f"k{i}"] = ("c", pick(rng, ("a", "b", "c", "d")[: 2 + i % 3]))
        columns[f"i{i}"] = ("n", [int(v) for v in rng.integers(0, 50 + 40 * i, ROWS)])
        columns[f"d{i}"] = ("d", days(rng, "%Y-%m-%d"))
    return columns


def clients(rng: Any) -> Columns:
    n = 3000
    return {
        "client_id": ("x", [int(v) + 10_000_001 for v in rng.integers(0, 250, n)]),
        "tx": ("x", list(range(n))),
        "booked": ("d", days(rng, "%Y-%m-%d %H:%M:%S", n)),
        "amount": ("n", amounts(rng, n)),
        "mcc": ("c", pick(rng, (5411, 5812, 4111, 6011, 5999), n)),
        "channel": ("c", pick(rng, ("web", "pos", "atm"), n)),
        "store_id": ("c", pick(rng, (11, 12, 17, 23, 35, 36), n)),
    }


def odd_names(rng: Any) -> Columns:
    return {
        "select": ("c", pick(rng, ("from", "where", "order by"))),
        "Größe in cm": ("n", [int(v) for v in rng.normal(172, 9, ROWS)]),
        "a.b": ("n", [round(float(v), 2) for v in rng.random(ROWS)]),
        'say "hi"': ("c", pick(rng, ('"', "'", "`"))),
        "100 %": ("n", [round(float(v), 1) for v in rng.uniform(0, 100, ROWS)]),
        "columns": ("c", pick(rng, ("x", "y"))),
        "naïve ärger": ("c", pick(rng, ("ä", "ö", "ü"))),
        "case": ("x", list(range(1, ROWS + 1))),
    }


def hollow(rng: Any) -> Columns:
    return {
        "Unnamed: 0": ("x", list(range(ROWS))),
        "nothing": ("x", [""] * ROWS),
        "always": ("cn", ["x"] * ROWS),
        "seven": ("cn", [7] * ROWS),
        "half": ("n", with_some(rng, [round(float(v), 4) for v in rng.random(ROWS)], "", 0.5)),
        "rare": ("c", with_some(rng, ["usual"] * ROWS, "odd", 0.01)),
    }


def skewed(rng: Any) -> Columns:
    gains = np.where(rng.random(ROWS) < 0.9, 0, rng.lognormal(8, 1, ROWS)).astype(int)
    return {
        "gain": ("n", gains.tolist()),
        "claim": ("n", amounts(rng)),
        "tiny": ("n", [f"{v:.3e}" for v in rng.lognormal(-12, 1, ROWS)]),
        "big": ("n", [int(v) for v in rng.lognormal(18, 2, ROWS)]),
        "city": ("c", pick(rng, [f"city {i}" for i in range(60)], p=(w := 1 / np.arange(1, 61)) / w.sum())),
        "signed": ("n", [round(float(v), 2) for v in rng.standard_cauchy(ROWS)]),
    }


def few_rows(rng: Any) -> Columns:
    return {
        "age": ("n", [int(v) for v in rng.integers(20, 80, 15)]),
        "job": ("c", pick(rng, ("cook", "clerk", "nurse"), 15)),
        "pay": ("n", amounts(rng, 15)),
        "start": ("d", days(rng, "%Y-%m-%d", 15)),
    }


def many_values(rng: Any) -> Columns:
    n = 20_000
    weights = 1 / np.arange(1, 801)
    return {
        "town": ("c", pick(rng, [f"Town {i}" for i in range(800)], n, weights / weights.sum())),
        "hospital": ("x", [f"{a} & {b} Clinic" for a, b in rng.integers(0, 3000, (n, 2))]),
        "plate": ("x", [f"K-{a}{b}" for a, b in rng.integers(100, 9999, (n, 2))]),
        "temperature": ("n", [round(float(v), 1) for v in rng.normal(37, 0.7, n)]),
    }


def frame(rng: Any) -> Messy:
    """As a program has it in memory: its types are to be believed."""
    import pandas as pd

    columns: Columns = {
        "plz": ("c", pd.Series(pick(rng, ("01234", "99999", "10115")))),
        "number_as_text": ("c", pd.Series(pick(rng, ("1", "2", "17")))),
        "grade": ("o", pd.Categorical(pick(rng, ("lo", "mid", "hi")), ["lo", "mid", "hi"], ordered=True)),
        "blood": ("c", pd.Categorical(pick(rng, ("A", "B", "0")))),
        "smoker": ("b", rng.random(ROWS) < 0.3),
        "seen": ("d", pd.to_datetime(days(rng, "%Y-%m-%d %H:%M:%S"))),
        "weight": ("n", rng.normal(75, 10, ROWS)),
        "visits": ("n", pd.array(with_some(rng, [int(v) for v in rng.integers(0, 40, ROWS)], None), dtype="Int64")),
    }
    return Messy("frame", pd.DataFrame({c: v for c, (_, v) in columns.items()}), _kinds(columns))


def workbook(rng: Any) -> Messy | None:
    """None without the package that writes such files."""
    try:
        from openpyxl import Workbook
    except ImportError:
        return None
    columns: Columns = {
        "plz": ("c", pick(rng, ("01067", "10115", "80331"))),
        "amount": ("n", amounts(rng)),
        "booked": ("d", [np.datetime64("2023-01-01").item() for _ in range(ROWS)]),
        "count": ("n", [int(v) for v in rng.integers(0, 90, ROWS)]),
        "ok": ("b", [bool(v) for v in rng.integers(0, 2, ROWS)]),
        "kind": ("c", pick(rng, ("Bär", "Katze", None))),
    }
    columns["booked"] = (
        "d",
        [np.datetime64("2023-01-01").item().replace(day=int(d)) for d in rng.integers(1, 29, ROWS)],
    )
    book, out = Workbook(), io.BytesIO()
    book.active.append(list(columns))
    for row in zip(*(v for _, v in columns.values()), strict=True):
        book.active.append(list(row))
    book.save(out)
    return Messy("book.xlsx", out.getvalue(), _kinds(columns))


def tables() -> list[Messy]:
    """All of them, the same at every run."""
    rng = np.random.Generator(np.random.PCG64(5))
    plain: dict[str, Callable[[Any], Columns]] = {
        "us_dates": us_dates, "codes": codes, "markers": markers, "people": people, "free_text": free_text,
        "truths": truths, "wide": wide, "clients": clients, "hollow": hollow, "skewed": skewed, "few_rows": few_rows,
        "many_values": many_values, "survey": survey, "odd_names": odd_names,
    }  # fmt: skip
    made = [text_table(f"{name}.csv", make(rng)) for name, make in plain.items()]
    made += [
        text_table("bank_latin1.csv", bank(rng), delimiter=";", encoding="latin-1"),
        text_table("bank_bom.csv", bank(rng), delimiter=";", encoding="utf-8-sig"),
        text_table("bank_utf16.csv", bank(rng), delimiter=";", encoding="utf-16"),
        text_table("bank_tabs.tsv", bank(rng), delimiter="\t", encoding="utf-16"),
        text_table("odd_cp1252.csv", odd_names(rng) | {"€": ("b", pick(rng, ("€", "$")))}, encoding="cp1252"),
        text_table("german.csv", thousands(rng, ".", ","), delimiter=";"),
        text_table("english.csv", thousands(rng, ",", "."), every=True),
        text_table("swiss.csv", thousands(rng, "'", "."), delimiter=";"),
        text_table("french.csv", thousands(rng, "\u00a0", ","), delimiter=";", encoding="cp1252"),
        text_table("pipes.txt", survey(rng), delimiter="|"),
        text_table("quotes.csv", us_dates(rng) | {"who": ("c", pick(rng, ("a, b", "c, d")))}, quote="'", every=True),
        text_table("packed.csv.gz", clients(rng), every=True),
        text_table("packed_latin1.csv.gz", bank(rng), delimiter=";", encoding="latin-1"),
        frame(rng),
    ]
    book = workbook(rng)
    return [*made, *([book] if book else [])]
