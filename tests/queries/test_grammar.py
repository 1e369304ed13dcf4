"""What is read, what is refused, and that a refusal is one sentence."""

from __future__ import annotations

import pytest
from townspeople import SCHEMA

from understudy.errors import InputError
from understudy.queries.aggregate_query import AggregateQuery
from understudy.queries.grammar import MAX_CHARACTERS, SelectItem, read


def test_all_of_the_language():
    text = (
        'SELECT sex, "marital-status", Count(*) AS n, count(distinct person), SUM(pay), avg(age), median(age), '
        "quantile(pay, 0.9) FROM people WHERE age > 40 AND job = 'group by' GROUP BY sex, \"marital-status\""
    )
    found = read(text)
    assert found.columns == found.group == ("sex", "marital-status")
    assert (found.table, found.where) == ("people", "age > 40 AND job = 'group by'")
    assert found.items == (
        SelectItem("count", name="n"),
        SelectItem("count", "person", distinct=True),
        SelectItem("sum", "pay"),
        SelectItem("avg", "age"),
        SelectItem("quantile", "age", share=0.5),
        SelectItem("quantile", "pay", share=0.9),
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("select count(*) from data", "SELECT  COUNT( * )\nFROM people"),
        ("select count(*) from data where age>40", "SELECT count(*) AS n FROM people WHERE (age > 40)"),
        ("select median(age) from data", "select quantile(age, 0.50) as m from data"),
        ("select sex, count(*) from data group by sex", 'select "sex", count(*) from people group by "sex"'),
    ],
)
def test_what_means_the_same_is_the_same(one: str, other: str):
    assert AggregateQuery.of(one, SCHEMA, ["people"]).sql == AggregateQuery.of(other, SCHEMA, ["people"]).sql


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("select sum(age) from data", "select avg(age) from data"),
        ("select count(*) from data where job = 'cook'", "select count(*) from data where job = 'x; --'"),
        ("select quantile(age, 0.1) from data", "select quantile(age, 0.2) from data"),
    ],
)
def test_what_differs_is_told_apart(one: str, other: str):
    assert AggregateQuery.of(one, SCHEMA).sql != AggregateQuery.of(other, SCHEMA).sql


REFUSED = {
    "": "is empty",
    "   ": "is empty",
    "DROP TABLE people": "stands where SELECT must",
    "SELECT * FROM data": "stands where a column or an aggregate must",
    "SELECT age FROM data": "no aggregate, and no row may be shown",
    "SELECT count(*) FROM data; SELECT 1": "isn't part of the language",
    "SELECT count(*) FROM data;": "isn't part of the language",
    "SELECT count(*) FROM data -- x": "comment",
    "SELECT /* x */ count(*) FROM data": "comment",
    "SELECT count(*) FROM data WHERE age > 40 /* x */": "comment",
    "SELECT count(*) FROM data /* x": "isn't closed",
    "SELECT count(*) FROM data WHERE job = 'x": "isn't closed",
    "SELECT count(*) FROM other": "table 'other' of the query must be data",
    "SELECT count(*) FROM data, data": "isn't part of the language",
    "SELECT count(*) FROM data JOIN data ON 1=1": "isn't part of the language",
    "SELECT count(*) FROM (SELECT * FROM data)": "stands where the table must",
    "SELECT count(*) FROM data AS d": "isn't part of the language",
    "SELECT count(*) FROM public.data": "isn't part of the language",
    "SELECT count(*) FROM data ORDER BY 1": "isn't part of the language",
    "SELECT count(*) FROM data LIMIT 1": "isn't part of the language",
    "SELECT sex, count(*) FROM data GROUP BY sex HAVING count(*) > 3": "isn't part of the language",
    "SELECT sex, count(*) FROM data GROUP BY sex UNION SELECT 1": "isn't part of the language",
    "SELECT count(*) FROM data WHERE age > (SELECT 1)": "expression",
    "SELECT count(*) FROM data WHERE pg_sleep(10) IS NULL": "calls a function",
    "SELECT count(*) FROM data WHERE age > 40 ORDER BY 1": "expression",
    "SELECT count(*) FROM data WHERE": "stands where a condition must",
    "SELECT count(*) FROM data WHERE GROUP BY sex": "stands where a condition must",
    "SELECT count(*) FROM data WHERE wage > 3": "is not a column of the schema",
    "SELECT count(*) FROM data WHERE person = 'p1'": "is an identifier, which nobody may ask about",
    "SELECT count(age) FROM data": "stands where DISTINCT must",
    "SELECT count(DISTINCT age) FROM data": "must name the unit's column, person",
    "SELECT pg_read_file(age) FROM data": "is a function that there isn't",
    "SELECT sum(age + 1) FROM data": "stands where ) must",
    "SELECT sum(sex) FROM data": "needs a column of type integer or number, not categorical",
    "SELECT avg(hired) FROM data": "needs a column of type integer or number, not datetime",
    "SELECT median(job) FROM data": "needs a column of type integer or number or datetime, not categorical",
    "SELECT quantile(age, 1.5) FROM data": "share from 0 to 1",
    "SELECT quantile(age, -0.5) FROM data": "share from 0 to 1",
    "SELECT quantile(age) FROM data": "stands where , must",
    "SELECT sum(nothing) FROM data": "column 'nothing' is not in the schema",
    "SELECT person, count(*) FROM data GROUP BY person": "is an identifier, by which nothing may be grouped",
    "SELECT sex, count(*) FROM data": "must be those of GROUP BY",
    "SELECT count(*) FROM data GROUP BY sex": "must be those of GROUP BY",
    "SELECT sex, sex, count(*) FROM data GROUP BY sex, sex": "each once",
    "SELECT count(*), sex FROM data GROUP BY sex": "name columns first",
    "SELECT count(*), count(*) FROM data": "'count(*)' stands twice",
    "SELECT age, median(age) FROM data GROUP BY age": "can't be grouped by age itself",
    "SELECT DISTINCT count(*) FROM data": "stands where a column or an aggregate must",
    "SELECT count(*) INTO x FROM data": "stands where FROM must",
    "SELECT 'x', count(*) FROM data": "stands where a column or an aggregate must",
    "WITH d AS (SELECT 1) SELECT count(*) FROM data": "stands where SELECT must",
    "SELECT count(*) FROM data WHERE weight * weight * weight * weight > 1": "may leave the range",
    "SELECT count(*) FROM data WHERE weight * 1e299 > 1": "may leave the range",
    "x" * (MAX_CHARACTERS + 1): "characters, the most is",
}


@pytest.mark.parametrize("sql", REFUSED, ids=lambda sql: sql[:50])
def test_everything_else_is_refused_in_one_sentence(sql: str):
    with pytest.raises(InputError) as refusal:
        AggregateQuery.of(sql, SCHEMA)
    assert REFUSED[sql] in str(refusal.value)
    assert "\n" not in str(refusal.value) and len(str(refusal.value)) < 700


def test_what_is_no_text():
    with pytest.raises(InputError, match="must be a text"):
        read(None)  # type: ignore[arg-type]


def test_arithmetic_within_bounds_is_fine():
    assert AggregateQuery.of("select count(*) from data where age * pay + 3 > 40 - weight * weight", SCHEMA).where
