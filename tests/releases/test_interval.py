"""`release.count`: the law of its intervals where they follow from the noise, and honesty where they don't."""

from __future__ import annotations

import dataclasses
import itertools
import math
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

import understudy as us
from understudy.boundary.privacy.measurement import RecordedAnswer
from understudy.boundary.schema.expression import parse
from understudy.boundary.schema.partition import Grid
from understudy.errors import InputError, SchemaError
from understudy.inference.values import Values, evaluate
from understudy.releases.condition import Condition
from understudy.releases.interval import LIMITS_MISS, Count, Counter, Statistics
from understudy.releases.observation import RecordedTable

FALSE_ALARM = 1e-9
VALUES, EACH = 200, 400
"""A column of so many values, each so often that no interval reaches 0."""
LINE = f'[columns.x]\ntype = "integer"\nmin = 0\nmax = {VALUES - 1}\nbins = {VALUES}\n'

PEOPLE = """
[columns.job]
type = "categorical"
values = ["clerk", "cook", "nurse"]
missing = true
[columns.age]
type = "integer"
min = 0
max = 99
bins = 20
[columns.smoker]
type = "boolean"
[columns.hired]
type = "datetime"
min = 2020-01-01
max = 2021-12-31
bins = 8
missing = true
"""
ROWS = 4000
QUESTIONS = (
    "true",
    "age >= 40",
    "job is null",
    "job = 'cook' and smoker",
    "not smoker or job in ('clerk', 'nurse')",
    "hired is null",
    "hired >= '2020-04-02' and hired < '2020-07-03'",
)
"""All of them fall between bins."""


def people() -> pa.Table:
    rng = np.random.default_rng(3)
    job = rng.choice(["clerk", "cook", "nurse"], ROWS).astype(object)
    job[rng.random(ROWS) < 0.1] = None
    hired = np.datetime64("2020-01-01") + rng.integers(0, 731, ROWS).astype("timedelta64[D]")
    return pa.table(
        {
            "job": job,
            "age": rng.integers(0, 100, ROWS),
            "smoker": rng.random(ROWS) < np.where(job == "cook", 0.8, 0.2),
            "hired": pa.array(hired.astype("datetime64[s]"), mask=rng.random(ROWS) < 0.2),
        }
    )


def truth(frame: pa.Table, expression: str) -> int:
    import duckdb

    with duckdb.connect() as connection:
        connection.register("frame", frame)
        return int(connection.execute(f"SELECT count(*) FROM frame WHERE {expression}").fetchall()[0][0])


def line_release(head: str = "", **options: object) -> us.Release:
    schema = us.Schema.loads(head + LINE)
    frame = pa.table({"x": np.repeat(np.arange(VALUES), EACH)})
    settings = {"epsilon": 0.2, "method": "independent", "test_only_noise_seed": 5, "seed": 1} | options
    return us.synthesize(us.open(frame, schema), **settings)


def covered(release: us.Release) -> int:
    found = [release.count(f"x = {value}") for value in range(VALUES)]
    assert all(c.exact_noise and c.low > 0 for c in found)
    return sum(c.low <= EACH <= c.high for c in found)


def with_half_the_noise(release: us.Release) -> us.Release:
    """The mutant: a record that claims half of the noise that there is."""
    halved = tuple(RecordedAnswer(a.question | {"scale": a.question["scale"] / 2}, a.value) for a in release.record)
    return dataclasses.replace(release, record=halved)


LEAST_COVERED = int(binom.ppf(FALSE_ALARM, VALUES, 0.95))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("head", ["", 'neighbours = "replace-one"\n'])
def test_the_law_of_measured_cells(head: str, delta: float):
    """Gaussian and Laplace noise, both relations."""
    assert covered(line_release(head, delta=delta)) >= LEAST_COVERED


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_the_law_finds_out_half_the_noise(delta: float):
    assert covered(with_half_the_noise(line_release(delta=delta))) < LEAST_COVERED


def test_the_width_is_that_of_the_noise():
    """One cell of one table: nothing else is known of it, so it is the noisy count and its quantile."""
    release = line_release()
    (answer,) = release.record
    quantile = NormalDist().inv_cdf(0.5 + (0.95 + LIMITS_MISS * 0.05) / 2)
    for value in (0, 7, VALUES - 1):
        counted, noisy, reach = release.count(f"x = {value}"), answer.value[value], quantile * answer.question["scale"]
        assert counted.value == pytest.approx(noisy)
        assert (counted.low, counted.high) == (math.floor(noisy - reach), math.ceil(noisy + reach))


def test_laplace_tails():
    """The quantile of a Laplace variable is ln 20 scales, not 1.96 standard deviations: Cornish–Fisher is near it."""
    release = line_release(delta=0.0)
    (answer,) = release.record
    counted = release.count("x = 3")
    exact = answer.question["scale"] * math.log(1 / (0.05 * (1 - LIMITS_MISS)))
    assert 0.99 * exact - 1 <= (counted.high - counted.low) / 2 <= 1.06 * exact + 1


def test_a_public_total_is_exact_and_helps():
    release = line_release('neighbours = "replace-one"\n')
    whole, half = release.count("true"), release.count("x < 100")
    assert (whole.low, whole.high) == (VALUES * EACH,) * 2 and whole.exact_noise
    assert half.value + release.count("x >= 100").value == pytest.approx(VALUES * EACH, abs=1e-3)
    # σ√100 without the total; with it, what is over is known to be missing, and the noise falls by √2.
    (scale,) = {a.question["scale"] for a in release.record} - {0}
    assert (half.high - half.low) / 2 == pytest.approx(2.005 * scale * math.sqrt(50), rel=0.01)


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.99])
def test_confidence(confidence: float):
    release = line_release()
    found = [release.count(f"x = {value}", confidence=confidence) for value in range(VALUES)]
    held = sum(c.low <= EACH <= c.high for c in found)
    assert binom.ppf(FALSE_ALARM, VALUES, confidence) <= held
    assert confidence > 0.9 or held <= binom.ppf(1 - FALSE_ALARM, VALUES, confidence + 0.05)


# --- The best linear unbiased estimate ------------------------------------------------------------------------------

SMALL = us.Domain.of(
    us.Schema.loads(
        '[columns.a]\ntype = "integer"\nmin = 0\nmax = 5\n[columns.b]\ntype = "integer"\nmin = 0\nmax = 3\n'
        '[columns.c]\ntype = "boolean"'
    )
)
PLAIN = {"a": tuple(range(6)), "b": tuple(range(4)), "c": (0, 1)}
MERGED = {"a": (0, 3, 1, 3, 2, 3), "b": (0, 1, 1, 2), "c": (0, 1)}


def small_tables(rng: np.random.Generator) -> list[RecordedTable]:
    """Tables of overlapping columns, some by groups that cut across what is asked."""

    def table(columns: tuple[str, ...], groups: dict[str, tuple[int, ...]], variance: float) -> RecordedTable:
        grid = Grid(columns, tuple(groups[c] for c in columns))
        counts = rng.integers(0, 500, grid.shape).astype(float)
        return RecordedTable(columns, counts, variance, tuple(map(np.array, grid.groups)))

    return [
        table(("a",), PLAIN, 4.0),
        table(("b",), PLAIN, 9.0),
        table(("b", "a"), PLAIN, 25.0),
        table(("a", "b"), MERGED, 16.0),
        table(("c", "a"), MERGED, 2.0),
        table((), {}, 50.0),
    ]


def by_brute_force(tables: list[RecordedTable], share: np.ndarray) -> tuple[float, float]:
    """Gauss–Markov over every cell of a and b, without classes, blocks or pools; value and variance."""
    cells = list(itertools.product(range(6), range(4)))
    rows, counts, variances = [], [], []
    for table in tables:
        for place in itertools.product(*(range(n) for n in table.counts.shape)):
            groups = dict(zip(table.columns, zip(place, table.groups, strict=True), strict=True))
            if groups.get("c", (0,))[0]:
                continue
            rows.append(
                [all(g[cell["ab".index(c)]] == p for c, (p, g) in groups.items() if c != "c") for cell in cells]
            )
            merged = "c" in table.columns
            counts.append(table.counts.sum(axis=0)[place[1:]] if merged else table.counts[place])
            variances.append(table.variance * (2 if merged else 1))
    design, weights = np.array(rows, dtype=float), 1 / np.array(variances)
    inverse = np.linalg.pinv(design.T @ (design * weights[:, None]))
    return float(share @ inverse @ design.T @ (weights * np.array(counts))), float(share @ inverse @ share)


def small_statistics(tables: list[RecordedTable], condition: Condition) -> Statistics:
    drawn = {c: np.arange(240) % SMALL.size(c) for c in SMALL.names}
    return Counter(SMALL, tables, drawn, 5000.0, 0.1)._statistics(condition)


@pytest.mark.parametrize("expression", ["a = 1 and b = 2", "a in (1, 2, 4) and b < 2", "a > b", "a = b"])
def test_estimates_are_the_best_linear_unbiased_ones(expression: str):
    tables, condition = small_tables(np.random.default_rng(2)), Condition.of(expression, SMALL)
    statistics = small_statistics(tables, condition)
    found = statistics.unbiased(statistics.condition.share.ravel())
    value, variance = by_brute_force(tables, condition.share[np.ix_(*condition.classes)].ravel())
    assert found is not None
    assert (found.value, found.noise) == (pytest.approx(value, rel=1e-6), pytest.approx(variance, rel=1e-6))
    assert statistics.assisted(statistics.condition.share.ravel()).deviation <= found.deviation * (1 + 1e-9)


@pytest.mark.parametrize("expression", ["a < 3", "b = 0 or a = 5", "true", "a in (0, 3) and b <> 1", "a > b", "c"])
def test_estimates_from_exact_counts_are_exact(expression: str):
    """Weights of noisy cells may be what they will: without noise they must give the count itself."""
    rows = {c: np.random.default_rng(i).integers(0, SMALL.size(c), 900) for i, c in enumerate(SMALL.names)}
    exact = []
    for t in small_tables(np.random.default_rng(2)):
        if t.columns:
            cells = Grid(t.columns, tuple(tuple(g.tolist()) for g in t.groups)).assign(rows)
            counts = np.bincount(cells, minlength=t.counts.size).reshape(t.counts.shape)
            exact.append(dataclasses.replace(t, counts=counts))
    statistics = small_statistics(exact, Condition.of(expression, SMALL))
    found = statistics.unbiased(statistics.condition.share.ravel())
    values = {"a": Values(rows["a"]), "b": Values(rows["b"]), "c": Values(rows["c"] == 1)}
    true = evaluate(parse(expression, SMALL.schema.kinds), values, 900).true.sum()
    assert found is not None and found.value == pytest.approx(true, abs=1e-6)


def test_what_no_table_holds_has_no_unbiased_estimate():
    tables = [t for t in small_tables(np.random.default_rng(2)) if set(t.columns) != {"a", "b"}]
    statistics = small_statistics(tables, Condition.of("a = 1 and b = 2", SMALL))
    assert statistics.unbiased(statistics.condition.share.ravel()) is None


# --- What is inferred -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def frame() -> pa.Table:
    return people()


@pytest.fixture(scope="module")
def releases(frame: pa.Table) -> dict[str, us.Release]:
    table = us.open(frame, us.Schema.loads(PEOPLE))
    settings = {"epsilon": 1.0, "test_only_noise_seed": 4, "seed": 2}
    return {m: us.synthesize(table, method=m, **settings) for m in ("independent", "mst", "aim", "privbayes")}


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_without_noise_counts_of_measured_tables_are_true(frame: pa.Table, neighbours: str, delta: float):
    schema = us.Schema.loads(f'neighbours = "{neighbours}"\n' + PEOPLE)
    release = us.synthesize(
        us.open(frame, schema),
        epsilon=9_999,
        delta=delta,
        method="marginals",
        marginals=[("job", "smoker"), ("age",), ("hired",)],
    )
    for question in QUESTIONS:
        counted, true = release.count(question), truth(frame, question)
        assert counted.exact_noise and counted.low <= true <= counted.high <= counted.low + 3, question
        assert counted.value == pytest.approx(true, abs=0.9)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("method", ["independent", "mst", "aim", "privbayes"])
def test_intervals_hold_at_a_fixed_noise(method: str, frame: pa.Table, releases: dict[str, us.Release]):
    """Seeded noise, so no false alarms: of 20 questions one or two may miss."""
    parts = [("age < 35", "age > 71"), ("job = 'cook'", "job <> 'clerk'"), ("smoker", "not smoker")]
    asked = [
        " and ".join(p) for k in (2, 3) for some in itertools.combinations(parts, k) for p in itertools.product(*some)
    ]
    found = [(releases[method].count(q), truth(frame, q)) for q in asked]
    assert len(found) == 20 and sum(c.low <= true <= c.high for c, true in found) >= 18
    assert all(c.high - c.low < 0.3 * ROWS for c, _ in found)


def test_what_nobody_measured_is_said_to_be_inferred(releases: dict[str, us.Release]):
    counted = releases["independent"].count("smoker and job = 'cook'")
    assert not counted.exact_noise
    assert counted.basis == "inferred by the model, since no table holds its 2 columns; approximate"
    # No more than there are cooks.
    assert counted.high <= releases["independent"].count("job = 'cook'", confidence=0.999).high


def test_a_bin_that_is_cut_is_not_exact(frame: pa.Table, releases: dict[str, us.Release]):
    between, cut = releases["independent"].count("age >= 40"), releases["independent"].count("age >= 42")
    assert between.exact_noise and not cut.exact_noise
    assert cut.basis == "measured in 1 table; approximate inside the bins that it cuts"
    assert cut.high - cut.low > between.high - between.low
    assert cut.low <= truth(frame, "age >= 42") <= cut.high


def test_a_skewed_bin_is_covered():
    """All rows sit on one value of a bin, which is the worst that a bin can hold."""
    schema = us.Schema.loads('[columns.age]\ntype = "integer"\nmin = 0\nmax = 99\nbins = 20')
    frame = pa.table({"age": [42] * 500 + [7] * 500})
    release = us.synthesize(us.open(frame, schema), epsilon=5.0, method="independent", test_only_noise_seed=1)
    for question, true in (("age > 42", 0), ("age <= 42 and age >= 40", 500)):
        counted = release.count(question)
        assert counted.low <= true <= counted.high and not counted.exact_noise


def test_values_outside_of_the_domain(releases: dict[str, us.Release]):
    counted = releases["mst"].count("age > 200")
    assert (counted.value, counted.low, counted.high, counted.exact_noise) == (0.0, 0, 0, True)
    assert counted.basis == "no row of the declared domain can satisfy it"
    with pytest.raises(us.InputError, match="'astronaut' of column 'job' is not declared"):
        releases["mst"].count("job IN ('astronaut')")


def test_private_bounds_are_no_part_of_the_domain(frame: pa.Table):
    """The purchase of bounds leaves a histogram of the column over other buckets in the record."""
    schema = us.Schema.loads(PEOPLE.replace("max = 99\nbins = 20", 'max = "private"\nbins = 32'))
    release = us.synthesize(us.open(frame, schema), epsilon=500.0, method="independent", test_only_noise_seed=1)
    counted, true = release.count("age >= 64"), truth(frame, "age >= 64")
    assert counted.low <= true <= counted.high <= counted.low + 20


def test_given_values_do_not_change_what_is_counted(frame: pa.Table):
    table, settings = us.open(frame, us.Schema.loads(PEOPLE)), {"epsilon": 1.0, "test_only_noise_seed": 3, "seed": 4}
    plain = us.synthesize(table, method="mst", **settings)
    given = us.synthesize(table, method="mst", given={"job": "cook"}, **settings)
    for question in ("job = 'clerk'", "smoker and age > 41 and hired is null"):
        assert given.count(question) == plain.count(question)


def test_loaded_releases_answer_the_same(tmp_path: Path, releases: dict[str, us.Release]):
    for method in ("mst", "privbayes"):
        loaded = us.Release.load(releases[method].save(tmp_path / method))
        for question in (*QUESTIONS, "age > 41 and smoker and job is null", "age > 3 and hired > '2020-05-05'"):
            assert loaded.count(question) == releases[method].count(question)


def test_rules_bind_the_model(frame: pa.Table):
    ruled = us.Schema.loads(PEOPLE + '[[constraints]]\nif = "age < 50"\nthen = "smoker = false"\n')
    free = us.Schema.loads(PEOPLE)
    found = [
        us.synthesize(us.open(frame, s), epsilon=1.0, method="independent", test_only_noise_seed=3, seed=4)
        .count("age < 50 and smoker")
        .value
        for s in (ruled, free)
    ]
    assert found[0] < found[1]


# --- What is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("wage > 3", "«wage» in the expression «wage > 3» is not a column of the schema: perhaps you mean age."),
        ("age >", "can't be read"),
        ("age = 'old'", "compares numbers with text"),
        ("", "is empty"),
        ("lower(job) = 'cook'", "calls a function, and there are none"),
    ],
)
def test_bad_expressions(expression: str, said: str, releases: dict[str, us.Release]):
    with pytest.raises(SchemaError) as refusal:
        releases["mst"].count(expression)
    assert said in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize("confidence", [0.0, 0.49, 1.0, math.nan, -1])
def test_bad_confidence(confidence: float, releases: dict[str, us.Release]):
    with pytest.raises(InputError, match=r"confidence \(.*\) must be from 0.5 to 0.9999"):
        releases["mst"].count("smoker", confidence=confidence)


def test_a_count_shows_itself_in_a_line_and_as_a_table():
    found = Count(1215.77, 898, 1534, 0.95, True, "measured in <3> tables")
    assert repr(found) == "<Count: rows about 1,216; 95 % interval 898 to 1,534; basis measured in <3> tables>"
    assert "measured in &lt;3&gt; tables" in found._repr_html_()
