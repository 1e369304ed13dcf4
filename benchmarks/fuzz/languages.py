"""The two small languages: expressions, and SQL questions; valid ones, spoiled ones, words in no order, and noise."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import sqlglot

import understudy as us
from fuzz.case import Case, Target, failed
from fuzz.mutation import ODD_TEXTS, spoiled_words
from understudy.boundary.schema.expression import Kind, parse
from understudy.queries.aggregate_query import AggregateQuery

KINDS = {
    "age": Kind.NUMBER, "pay": Kind.NUMBER, "job": Kind.TEXT, "smoker": Kind.BOOLEAN, "hired": Kind.DATETIME,
    "two words": Kind.TEXT, 'q"uote': Kind.NUMBER, "sélect": Kind.TEXT, "select": Kind.NUMBER, "😀": Kind.BOOLEAN,
}  # fmt: skip
SCHEMA = """\
[unit]
column = "person"
[columns.person]
type = "identifier"
[columns.age]
type = "integer"
min = 0
max = 99
[columns.pay]
type = "number"
min = 0
max = 1000
bins = 10
[columns.job]
type = "categorical"
values = ["cook", "nurse", "it's", "x; --"]
missing = true
[columns.smoker]
type = "boolean"
[columns.hired]
type = "datetime"
min = 2015-01-01
max = 2024-12-31
bins = 5
[columns."two words"]
type = "categorical"
values = ["a", "b"]
"""
NAMES = ("people", "data")
EXPRESSIONS = (
    "age > 40 AND job = 'cook'",
    "NOT (smoker OR pay BETWEEN 10 AND 20.5) AND hired >= DATE '2020-01-31'",
    "job IN ('cook', 'it''s', 'x; --') OR job IS NULL",
    "\"two words\" = 'a' AND age + 2 * pay - 3 < 100",
    "hired > '2020-01-01 10:00' OR hired IS NOT NULL AND smoker = TRUE",
    "age <> -3 AND pay * -1.5e2 <= 7",
    "age = 1 OR age = 2 OR age = 3 OR age = 4",
    "hired + 30 < TIMESTAMP '2021-01-01 00:00:00'",
)
QUESTIONS = (
    "SELECT count(*) FROM people",
    "SELECT job, count(*) FROM people WHERE age > 40 GROUP BY job",
    "SELECT avg(pay), count(distinct person) FROM data WHERE job = 'cook' AND NOT smoker",
    "SELECT median(age) FROM people WHERE hired >= '2021-01-01'",
    "SELECT job, smoker, sum(pay) AS s FROM people WHERE job IN ('it''s', 'x; --') GROUP BY job, smoker",
    "SELECT quantile(pay, 0.9) FROM data WHERE pay BETWEEN 10 AND 20.5 OR \"two words\" = 'a'",
)
WORDS = (
    "; DROP TABLE people", "'; DROP TABLE people; --", "--", "/*", "*/", "/* x */", "UNION SELECT person FROM people",
    "OR 1=1", "' OR ''='", "pg_sleep(10)", "pg_read_file('/etc/passwd')", "(SELECT 1)", "current_user", "::text",
    "CAST(age AS TEXT)", "$$x$$", "$1", "?", ":x", "%s", "{}", "\\'", "E'\\''", "U&'x'", "[1]", "@", "@@version", "#",
    "||", "&&", "~", "!", "^", "/", "%", "INTO OUTFILE 'x'", "FOR UPDATE", "HAVING count(*) > 1", "ORDER BY 1",
    "LIMIT 1", "JOIN people ON true", "LATERAL", "WITH x AS (SELECT 1)", "CASE WHEN age > 1 THEN 1 END", "VALUES (1)",
    "ISNULL", "NOTNULL", "IF", "IF(1,2,3)", "INTERVAL '1' DAY", "DATE '2020-02-30'", "TIMESTAMP 'x'", "DATE", "LIKE",
    "SELECT", "FROM", "WHERE", "GROUP BY", "AND", "OR", "NOT", "IN", "BETWEEN", "IS", "NULL", "TRUE", "FALSE",
    "count(*)", "count(", "count(distinct person)", "avg(pay)", "quantile(pay, 2)", "(", ")", "((((", "))))", ",",
    ".", "*", "+",
    "-", "=", "<>", "!=", "<", "<=", ">", ">=", "==", "<=>", "1", "40", "-1", "1e999", "1e-999", "0x1F", "1_000",
    ".5", "5.",
    "9" * 400, "'cook'", "''", "'2020-01-01'", "'9999-12-31'", "age", "pay", "job", "smoker", "hired", "person",
    "people", "data", '"age"', '"two words"', '"q""uote"', '""', '"', "'", "NOT " * 40, "(" * 40, "age + " * 40,
    "age = 1 OR " * 300,
)  # fmt: skip


def expression(case: Case) -> None:
    """Refused in one line; or its SQL can be read by a parser, and if it is in our language, by ours to the same."""
    text = sentence(case.draw, EXPRESSIONS)
    predicate = case.call("parse", parse, text, KINDS)
    if failed(predicate):
        return
    out = case.call("write", lambda: predicate.sql().sql(dialect="duckdb"))
    if failed(out):
        return
    try:
        again = sqlglot.parse_one(out, dialect="duckdb").sql(dialect="duckdb")
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        case.fail("the SQL of an accepted expression can't be parsed", f"{error} in {out}")
        return
    if again != out:
        case.fail("the SQL of an accepted expression is read as another", f"{out} / {again}")
    if "CAST" not in out and len(out) < 9_000:
        _read_back(case, out)


def _read_back(case: Case, out: str) -> None:
    again = case.call("parse again", parse, out, KINDS)
    # What is written has parentheses that were not typed, so that a long expression may nest too deep then.
    if failed(again):
        if "nests deeper" not in str(again):
            case.fail("the SQL of an accepted expression is refused", f"{again} in {out}")
    elif again.sql().sql(dialect="duckdb") != out:
        case.fail("the SQL of an accepted expression means another one", f"{out} / {again.sql().sql()}")


def question(case: Case) -> None:
    """Refused in one line; or its canonical text is a question, and canonical itself."""
    text = sentence(case.draw, QUESTIONS)
    schema = us.Schema.loads(SCHEMA)
    asked = case.call("parse", AggregateQuery.of, text, schema, NAMES)
    # Canonical texts write dates and fractions as casts, which nobody may type.
    if failed(asked) or "CAST(" in asked.sql:
        return
    again = case.call("parse again", AggregateQuery.of, asked.sql, schema, NAMES)
    if failed(again):
        case.fail("the canonical text of a question is refused", f"{again} in {asked.sql}")
    elif again.sql != asked.sql:
        case.fail("the canonical text of a question is not canonical", f"{asked.sql} / {again.sql}")


def sentence(draw: Random, valid: tuple[str, ...]) -> str:
    """Mostly a valid one that was spoiled a little, which gets further than noise does."""
    kind = draw.random()
    if kind < 0.6:
        others = WORDS if draw.random() < 0.7 else ODD_TEXTS
        return spoiled_words(draw, re.findall(r"\w+|\s+|'[^']*'|.", draw.choice(valid), re.DOTALL), others)
    if kind < 0.72:
        return f"{draw.choice(valid)} {draw.choice(['AND', 'OR', 'AND NOT'])} {draw.choice(valid)}"
    if kind < 0.9:
        known = [w for text in valid for w in text.split()]
        return " ".join(draw.choice(known if draw.random() < 0.6 else WORDS) for _ in range(draw.randint(0, 14)))
    letters = [chr(draw.choice([draw.randrange(128), draw.randrange(0xD7FF)])) for _ in range(draw.randint(0, 60))]
    return "".join(letters)


def check_material(base: Path) -> None:
    for text in EXPRESSIONS[:-1]:
        parse(text, KINDS)
    for text in QUESTIONS:
        AggregateQuery.of(text, us.Schema.loads(SCHEMA), NAMES)


TARGETS = (
    Target(
        "expressions", "expressions, and their SQL read again", 38_000, expression, chunk=400, prepare=check_material
    ),
    Target("questions", "SQL questions, and their canonical text", 38_000, question, chunk=400, prepare=check_material),
)
