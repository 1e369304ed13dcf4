"""The same questions, without noise, of a frame and of a server: the same answers."""

from __future__ import annotations

import pytest
from townspeople import Silent

import understudy as us
from understudy.queries.asking import names_of, query_with
from understudy.queries.inquiry import Inquiry
from understudy.queries.question import Question
from understudy.tables.table import Table

QUESTIONS = [
    "select count(*), count(distinct person), sum(pay), avg(weight) from people",
    "select sex, smoker, count(*), sum(age) from people where job <> 'cook' group by sex, smoker",
    "select ill, median(pay), quantile(hired, 0.2) from people where age > 30 group by ill",
    "select hired, count(*) from people where hired - 10 < '2022-02-02' group by hired",
    "select avg(pay) from people where pay * age > 3 * weight + 0.1 or job = 'x; --'",
    "select job, avg(age) from people where not (smoker and sex is not null) group by job",
]


@pytest.mark.parametrize("sql", QUESTIONS)
def test_a_server_answers_as_a_frame_does(sql: str, table: Table, on_server: Table):
    answers = []
    for source in (table, on_server):
        inquiry = Inquiry(Question.of(sql, source.schema, names_of(source)), source.schema, 0.95)
        answers.append(query_with(source, inquiry, us.Budget(3.0, 1e-6), randomness=Silent()))
    assert answers[0].groups == answers[1].groups
