"""Counts of columns, pairs and triples: by hand, against a count in plain Python, and for very long lists of values."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from understudy.boundary.schema.column import Categorical
from understudy.boundary.schema.schema import Schema
from understudy.lab.evaluation.comparison import Comparison
from understudy.lab.evaluation.measures.contingency import (
    MEASURES,
    MOST_TRIPLES,
    _dense_codes,
    combinations,
    joint_counts,
    total_variation,
)

BY_NAME = {m.name: m for m in MEASURES}


def value_of(name: str, comparison: Comparison) -> float:
    value = BY_NAME[name].of(comparison).value
    assert value is not None
    return value


def by_hand(comparison: Comparison, names: list[str]) -> float:
    real, synthetic = (
        Counter(zip(*(s.codes[n].tolist() for n in names), strict=True))
        for s in (comparison.real, comparison.synthetic)
    )
    n, m = comparison.real.rows, comparison.synthetic.rows
    return sum(abs(real[k] / n - synthetic[k] / m) for k in real | synthetic) / 2


def test_a_case_that_a_person_can_compute() -> None:
    real = pa.table({"a": ["x", "x", "y", "y"], "b": ["u", "v", "u", "v"]})
    synthetic = pa.table({"a": ["x", "x", "x", "y"], "b": ["u", "u", "u", "v"]})
    comparison = Comparison.of(real, synthetic)
    # a: 1/2, 1/2 against 3/4, 1/4; b the same. Pairs: 1/4 each against xu 3/4, yv 1/4.
    assert value_of("tv1", comparison) == 0.25
    assert value_of("tv2", comparison) == 0.5


def test_all_agree_with_a_count_in_plain_python(people: pa.Table, others: pa.Table) -> None:
    comparison = Comparison.of(people, others.slice(0, 700))
    for name, of in (("tv1", 1), ("tv2", 2), ("tv3", 3)):
        figure = BY_NAME[name].of(comparison)
        assert len(figure.parts) == math.comb(5, of)
        expected = [by_hand(comparison, p.name.split(" × ")) for p in figure.parts]
        assert [p.value for p in figure.parts] == pytest.approx(expected, abs=1e-12)
        assert figure.value == pytest.approx(np.mean(expected))


def test_identical_tables_have_no_distance(people: pa.Table) -> None:
    comparison = Comparison.of(people, people)
    assert [value_of(n, comparison) for n in ("tv1", "tv2", "tv3", "k-marginal")] == [0.0, 0.0, 0.0, 1000.0]


def test_shuffled_columns_are_right_alone_and_wrong_together(
    people: pa.Table, shuffled: pa.Table, others: pa.Table
) -> None:
    lost, sampled = Comparison.of(people, shuffled), Comparison.of(people, others)
    assert value_of("tv1", lost) == 0.0
    assert value_of("tv2", lost) > 1.2 * value_of("tv2", sampled)
    assert total_variation(lost, [lost["job"], lost["smoker"]]) > 5 * total_variation(
        sampled, [sampled["job"], sampled["smoker"]]
    )


def test_the_score_of_nist_is_a_thousand_less_half_the_l1_distance(people: pa.Table, shuffled: pa.Table) -> None:
    comparison = Comparison.of(people, shuffled)
    score, triples = BY_NAME["k-marginal"].of(comparison), BY_NAME["tv3"].of(comparison)
    assert score.value == pytest.approx(1000 * (1 - triples.value))
    assert [p.name for p in score.parts] == [p.name for p in triples.parts]


def test_thousands_of_values_are_counted_where_they_occur() -> None:
    rng = np.random.default_rng(1)
    tables = [pa.table({c: [f"v{i}" for i in rng.integers(0, 3000, 2500)] for c in ("a", "b", "c")}) for _ in range(2)]
    comparison = Comparison.of(*tables, schema=Schema(tuple(Categorical(c) for c in "abc")))
    variables = [comparison[c] for c in ("a", "b", "c")]
    real, synthetic = joint_counts(comparison.real, comparison.synthetic, variables)
    assert len(real) == len(synthetic) <= 5000 < math.prod(v.size for v in variables)
    assert total_variation(comparison, variables) == pytest.approx(by_hand(comparison, ["a", "b", "c"]))
    assert total_variation(comparison, variables[:2]) == pytest.approx(by_hand(comparison, ["a", "b"]))


def test_codes_never_overflow() -> None:
    """2^24 · 2^40 is 0 in 64 bits, so these rows would look alike."""
    columns = [np.array([0, 2**24, 0, 2**24]), np.array([0, 0, 1, 1]), np.array([5, 5, 5, 5])]
    codes, count = _dense_codes(columns, [2**40, 2**40, 2**40])
    assert count == 4 and sorted(codes.tolist()) == [0, 1, 2, 3]


def test_random_triples_are_distinct_and_follow_the_seed() -> None:
    first, again, other = (combinations(14, 3, MOST_TRIPLES, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert len(set(first)) == MOST_TRIPLES and all(a < b < c < 14 for a, b, c in first)
    assert combinations(5, 3, MOST_TRIPLES, 1) == combinations(5, 3, MOST_TRIPLES, 2)


def test_the_note_says_how_many_triples() -> None:
    wide = pa.table({f"c{i}": ["a", "b", "b"] for i in range(14)})
    figure = BY_NAME["tv3"].of(Comparison.of(wide, wide))
    assert figure.note == "over 300 random ones of 364 triples" and len(figure.parts) == 300


def test_too_few_columns_have_a_reason() -> None:
    one = pa.table({"a": ["x", "y"]})
    figure = BY_NAME["tv2"].of(Comparison.of(one, one))
    assert figure.value is None and figure.reason == "it needs 2 columns, and the tables share 1"


@pytest.mark.parametrize("measure", MEASURES, ids=lambda m: m.name)
def test_broken_tables_give_figures_or_reasons(measure, broken_comparison: Comparison, check_sound) -> None:
    check_sound(measure, measure.of(broken_comparison))
