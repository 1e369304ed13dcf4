"""Ten thousand malicious, malformed and valid texts against a real server.

None reaches it as anything but a count, no refusal changes a byte of the ledger, and every refusal is one sentence.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp
from townspeople import SCHEMA

from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.ledger.ledger import Ledger
from understudy.boundary.schema.grouped_sums import GroupedSums
from understudy.boundary.tables.table import Table
from understudy.errors import BudgetExhausted, InputError
from understudy.queries.aggregate_query import AggregateQuery
from understudy.queries.grammar import read
from understudy.queries.query import query

INPUTS = 10_500
LIMIT = 0.005
"""Room for fifty answers of 0.0001: then valid questions are refused, too."""
VALID = [
    "SELECT count(*) FROM people",
    "SELECT sex, count(*) FROM people WHERE age > 40 GROUP BY sex",
    "SELECT avg(pay), count(distinct person) FROM data WHERE job = 'cook' AND NOT smoker",
    "SELECT median(age) FROM people WHERE hired >= '2021-01-01'",
    "SELECT sex, smoker, sum(pay) AS s FROM people WHERE job IN ('it''s', 'x; --') GROUP BY sex, smoker",
    "SELECT quantile(weight, 0.9) FROM data WHERE pay BETWEEN 10 AND 20.5 OR ill = 'flu'",
]
POISON = [
    "; DROP TABLE people", "'; DROP TABLE people; --", "--", "/*", "*/", "/* x */",
    "UNION SELECT person FROM people", "OR 1=1", "' OR ''='", "pg_sleep(10)", "pg_read_file('/etc/passwd')",
    "(SELECT person FROM people LIMIT 1)", "current_user", "CAST(age AS TEXT)", "age::text", "$$x$$", "$1", "?",
    ":x", "%s", "%(x)s", "{}", "\\", "\\'", "E'\\''", "U&'x'", "\x00", "\u2019", "\ufeff", "\u0661", "ＳＥＬＥＣＴ",
    "`", "[1]", "@", "@@version", "#", "||", "&&", "~", "!", "INTO OUTFILE 'x'", "FOR UPDATE",
    "HAVING count(*) > 1", "ORDER BY 1", "LIMIT 1", "JOIN people ON true", "LATERAL", "WITH x AS (SELECT 1)",
    "CASE WHEN age > 1 THEN 1 END", "COPY people TO STDOUT", "SET ROLE x", "VALUES (1)", "nextval('x')",
    "lo_import('/etc/passwd')", "{{ 7 }}", "{% x %}", "SELECT", "FROM", "WHERE", "GROUP BY", "count(*)",
    "count(", ")", "(((", "\n", "\t", "1e999", "0x1F", "1_000", "'", '"', '""', '"person"', "person", "TRUE",
    "NULL", "IS", "NOT", "*", ",", ".",
]  # fmt: skip


def pieces(text: str) -> list[str]:
    return re.findall(r"\w+|\s+|'[^']*'|.", text)


def mutated(text: str, draw: random.Random) -> str:
    """A valid query with something put in, taken out, doubled or swapped, one to three times."""
    parts = pieces(text)
    for _ in range(draw.randint(1, 3)):
        place = draw.randrange(len(parts)) if parts else 0
        match draw.randrange(5):
            case 0:
                parts.insert(place, draw.choice(POISON))
            case 1:
                parts.insert(place, f" {draw.choice(POISON)} ")
            case 2 if parts:
                parts.pop(place)
            case 3 if parts:
                parts.insert(place, parts[draw.randrange(len(parts))])
            case _ if parts:
                parts[place] = draw.choice(POISON)
    return "".join(parts)


def soup(draw: random.Random) -> str:
    """Words and signs of the language, in no order at all."""
    words = [p for v in VALID for p in pieces(v) if p.strip()] + POISON
    return " ".join(draw.choice(words) for _ in range(draw.randint(0, 14)))


def valid(draw: random.Random) -> str:
    asked = draw.choice(["count(*)", "sum(pay)", "avg(age)", "median(weight)", "count(distinct person)"])
    return f"select {asked} from people where age {draw.choice(['>', '<=', '<>'])} {draw.randrange(200)}"


def gibberish(draw: random.Random) -> str:
    return "".join(chr(draw.choice([draw.randrange(128), draw.randrange(0xD7FF)])) for _ in range(draw.randint(0, 40)))


def inputs(seed: int = 20) -> list[str]:
    draw = random.Random(seed)
    makers = [
        lambda: mutated(draw.choice(VALID), draw),
        lambda: soup(draw),
        lambda: gibberish(draw),
        lambda: valid(draw),
    ]
    return [draw.choices(makers, [62, 20, 16, 2])[0]() for _ in range(INPUTS)]


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def statements(server: str) -> list[str]:
    """Everything that the server was told to do, each on one line."""
    (folder,) = parse_qs(urlsplit(server).query)["host"]
    log = (Path(folder) / "log").read_text(errors="replace")
    told = re.split(r"^(?=LOG:|DETAIL:|ERROR:|STATEMENT:|FATAL:|WARNING:)", log, flags=re.MULTILINE)
    found = [re.match(r"LOG:\s+(?:statement|execute [^:]*): (.*)", t, re.DOTALL) for t in told]
    return [" ".join(f.group(1).split()) for f in found if f]


SETTING = r"pg_catalog\.set_config\('\w+', '[^']*', true\)"
HARMLESS = re.compile(rf"SELECT {SETTING}(, {SETTING})*|BEGIN[A-Z ]*READ ONLY|COMMIT|ROLLBACK")


def is_a_count(statement: str) -> bool:
    """One SELECT, of nothing but codes of groups and aggregates."""
    if HARMLESS.fullmatch(statement):
        return True
    trees = sqlglot.parse(statement, dialect="postgres")
    return len(trees) == 1 and isinstance(trees[0], exp.Select) and all(map(_harmless, trees[0].expressions))


def _harmless(shown: exp.Expression) -> bool:
    if isinstance(shown, exp.Column):
        return re.fullmatch(r"understudy_code_\d+", shown.name) is not None
    inside = shown.this if isinstance(shown, exp.Alias) else shown
    if isinstance(inside, exp.Coalesce):
        inside = inside.this.this  # of the cast
    return isinstance(inside, exp.Count | exp.Sum)


@pytest.mark.slow
def test_nothing_but_counts_reaches_the_server(server: str, on_server: Table, tmp_path: Path):
    path = tmp_path / "ledger"
    with Ledger.open(path) as ledger:
        ledger.set_limit(Budget(LIMIT, 0.0), "add-remove")
    query(on_server, VALID[0], epsilon=1e-4, delta=0, ledger=path)
    before, seen = digest(path), len(statements(server))
    outcome: Counter[str] = Counter()
    for text in inputs():
        try:
            query(on_server, text, epsilon=1e-4, delta=0, ledger=path)
            outcome["answered"] += 1
            before = digest(path)
        except (InputError, BudgetExhausted) as refusal:
            assert "\n" not in str(refusal) and digest(path) == before, text
            outcome[type(refusal).__name__] += 1
    told = statements(server)[seen:]
    assert sum(outcome.values()) == INPUTS and outcome["answered"] > 50 and outcome["BudgetExhausted"] > 10, outcome
    assert len(told) > 50 and [t for t in told if not is_a_count(t)] == []
    assert Ledger.open(path).standing().epsilon <= LIMIT * (1 + 1e-9)


def test_the_check_sees_what_is_no_count():
    assert is_a_count("SELECT COUNT(*) AS sum_0 FROM (SELECT 1) AS understudy_cleaned")
    for bad in (
        "SELECT * FROM people",
        "SELECT SUM(x) AS sum_0, max(person) FROM people",
        "SELECT person, COUNT(*) AS sum_0 FROM (SELECT 1) AS x GROUP BY person",
        "SELECT COUNT(*) AS sum_0 FROM (SELECT 1) AS x; DROP TABLE people",
        "DROP TABLE people",
    ):
        assert not is_a_count(bad)


@given(st.text(max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_or_refused(text: str):
    try:
        read(text)
    except InputError as refusal:
        assert "\n" not in str(refusal)


@given(st.text(max_size=20), st.sampled_from(["job", "ill", "sex"]))
@settings(max_examples=100, deadline=None)
def test_any_text_may_be_a_literal_and_stays_one(value: str, column: str):
    """Whatever stands in quotes is a bound value of the statement, and no part of its words."""

    from understudy.boundary.schema.domain import Domain
    from understudy.boundary.schema.grouped_sums import RowCount
    from understudy.boundary.tables.dialect import bound_query
    from understudy.boundary.tables.sql import Source, Stored
    from understudy.boundary.tables.sums_sql import select_sums

    literal = value.replace("'", "''")
    try:
        where = AggregateQuery.of(f"select count(*) from data where {column} = '{literal}'", SCHEMA).where
    except InputError:
        return
    source = Source(exp.to_table("t"), {n: Stored(n, "text") for n in SCHEMA.names}, exp.column("ctid"))
    plain = bound_query(select_sums(source, SCHEMA, Domain(SCHEMA, ()), GroupedSums((), where, (RowCount(),)), "INT"))
    other = AggregateQuery.of(f"select count(*) from data where {column} = 'zzz'", SCHEMA).where
    twin = bound_query(select_sums(source, SCHEMA, Domain(SCHEMA, ()), GroupedSums((), other, (RowCount(),)), "INT"))
    assert value in plain.values and re.sub(r"\$\d+", "$", plain.text) == re.sub(r"\$\d+", "$", twin.text)
