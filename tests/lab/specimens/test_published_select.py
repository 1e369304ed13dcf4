"""`published-dp-select`: each printed step, and why it is not private."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.schema.domain import Domain
from understudy.errors import InputError, MethodError, ReleaseError
from understudy.inference.row_selection import Goal
from understudy.lab.audits.games.games import SpecimenPlayer, black_box_bound, rounds
from understudy.lab.audits.pairs import pairs
from understudy.lab.audits.result import BLACK_BOX, Claim
from understudy.lab.specimens import all_specimens as registry
from understudy.lab.specimens.published_select import (
    SPECIMEN,
    _blocks,
    composed_epsilon,
    count_pairs,
    exponential_mechanism,
    goal_of,
    important,
    mutual_information,
    partial_epsilon,
    specimen,
)
from understudy.lab.specimens.specimen_result import Specimen, SpecimenKind
from understudy.methods.mst import Mst

SIZES = {"a": 3, "b": 3, "c": 2, "d": 2}
SCHEMA = us.Schema.loads(
    "\n".join(f'[columns.{c}]\ntype = "integer"\nmin = 0\nmax = {n - 1}' for c, n in SIZES.items())
)
DOMAIN = Domain.of(SCHEMA)


def people(rows: int = 200) -> pa.Table:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, rows)
    columns = {"a": a, "b": np.where(rng.random(rows) < 0.8, a, rng.integers(0, 3, rows))}
    return pa.table(columns | {c: rng.integers(0, 2, rows) for c in "cd"})


def counted(table: pa.Table) -> dict[tuple[str, ...], Any]:
    return count_pairs(us.open(table, SCHEMA), DOMAIN)


# --- Algorithm 3


def test_bounded_range_composition_by_hand() -> None:
    """Lemma 6 at ε = 1: t = 1/(1 − 1/e), t − 1 − ln t for each draw, and the deviation; or all ε together."""
    t = 1 / (1 - math.exp(-1))
    expected = 100 * (t - 1 - math.log(t)) + math.sqrt(100 / 2 * math.log(1e5))
    assert composed_epsilon(1.0, 100, 1e-5) == pytest.approx(expected)
    assert composed_epsilon(1.0, 1, 1e-5) == 1.0


@pytest.mark.parametrize(("epsilon", "draws"), [(0.5, 1), (1.0, 10), (1.6, 32_561), (8.0, 6_512), (40.0, 20)])
def test_the_bisection_finds_the_largest_part(epsilon: float, draws: int) -> None:
    delta = draws**-1.1 if draws > 1 else 1e-5
    part = partial_epsilon(epsilon, draws, delta)
    assert composed_epsilon(part, draws, delta) <= epsilon * (1 + 1e-9)
    assert composed_epsilon(part * (1 + 1e-6), draws, delta) > epsilon
    assert part >= epsilon / draws


def test_it_agrees_with_concentrated_privacy_to_leading_order() -> None:
    """ε² /8 for each draw: the printed bound has the same first term, n·ε²/8."""
    above = 1e-3 / -math.expm1(-1e-3) - 1
    assert above - math.log1p(above) == pytest.approx(1e-6 / 8, rel=1e-3)


# --- Algorithm 2


def test_mutual_information_by_hand() -> None:
    assert mutual_information(np.array([[5, 0], [0, 5]])) == pytest.approx(math.log(2))
    assert mutual_information(np.array([[4, 4], [4, 4]])) == pytest.approx(0.0)


def test_the_strongest_tenth_of_the_pairs_is_taken_with_its_weights() -> None:
    counts = counted(people())
    assert list(important(counts, 0.1)) == [("a", "b")]
    half = important(counts, 0.5)
    assert len(half) == 3 and sum(half.values()) == pytest.approx(1.0)
    information = {pair: mutual_information(n) for pair, n in counts.items()}
    assert min(information[p] for p in half) >= max(information[p] for p in information if p not in half)
    ratio = half["a", "b"] / min(half.values())
    assert ratio == pytest.approx(information["a", "b"] / min(information[p] for p in half))


def test_one_row_moves_a_score_by_far_more_than_its_sensitivity() -> None:
    """Columns c and d are nearly independent, a and b constant: one row that moves both of these makes them the pair.

    The printed sensitivity is 2/(|D| + 1), for fixed pairs and weights. The score is minus the weighted distance: by
    hand −1½ for rows that are all in one of four equal cells of c and d, and next to nothing for a and b.
    """
    c, d = [0] * 50 + [1] * 50, [0] * 26 + [1] * 24 + [0] * 24 + [1] * 26
    alike = pa.table({"a": [0] * 100, "b": [0] * 100, "c": c, "d": d})
    more = pa.concat_tables([alike, pa.table({"a": [1], "b": [1], "c": [0], "d": [0]})])
    pool = {c: np.zeros(10, dtype=np.int32) for c in SIZES}
    scores = []
    for table in (alike, more):
        goal = goal_of(pool, DOMAIN, important(counted(table), 0.1), [counted(table)])
        scores.append(-float(goal.distances(np.arange(10), "L1") @ goal.weights))
    assert scores == pytest.approx([-1.48, -2 / 101])
    assert abs(scores[0] - scores[1]) > 50 * 2 / (len(alike) + 1)


def test_for_fixed_pairs_and_weights_the_printed_sensitivity_holds() -> None:
    """Lemma 3 itself is true: a row that is added moves one marginal by less than 2/(|D| + 1)."""
    table, pool = people(), {c: np.random.default_rng(1).integers(0, n, 50).astype(np.int32) for c, n in SIZES.items()}
    weights = important(counted(table), 1.0)
    before = goal_of(pool, DOMAIN, weights, [counted(table)])
    for row in list(itertools.product(*(range(n) for n in SIZES.values())))[::9]:
        more = pa.concat_tables([table, pa.table({c: [v] for c, v in zip(SIZES, row, strict=True)})])
        after = goal_of(pool, DOMAIN, weights, [counted(more)])
        scores = [g.distances(np.arange(50), "L1") @ g.weights for g in (before, after)]
        assert abs(scores[0] - scores[1]) < 2 / (len(table) + 1)


# --- Algorithm 1


def test_a_draw_follows_the_exponential_mechanism() -> None:
    """Three candidates, 20,000 draws: each share is off by 0.03 with probability below 1e-14 (Hoeffding); a mutant of
    twice the exponent is off by more."""
    distances = np.tile([0.0, 0.1, 0.3], (20_000, 1))
    expected = np.exp(-2.0 * distances[0] / (2 * 0.1))
    expected /= expected.sum()
    for epsilon, right in ((2.0, True), (4.0, False)):
        drawn = exponential_mechanism(epsilon, 0.1, np.random.default_rng(0))(distances)
        shares = np.bincount(drawn, minlength=3) / len(drawn)
        assert (np.abs(shares - expected).max() < 0.03) == right


def test_sections_want_the_marginals_of_their_blocks() -> None:
    table, empty = people(10), {c: np.zeros(1, dtype=np.int32) for c in SIZES}
    blocks = _blocks(table, 2)
    assert [len(block) for block in blocks] == [5, 5] and pa.concat_tables(blocks).equals(table)
    goal = goal_of(empty, DOMAIN, {("c", "d"): 1.0}, [counted(block) for block in blocks])
    for section, block in enumerate(blocks):
        cells = 2 * block.column("c").to_numpy() + block.column("d").to_numpy()
        assert goal.shares[section] == pytest.approx(np.bincount(cells, minlength=4) / 5)


@pytest.mark.parametrize("sections", [1, 3, 5])
@pytest.mark.parametrize("distance", ["L1", "L2", "Kolmogorov"])
def test_as_many_rows_as_there_are(sections: int, distance: str) -> None:
    made = specimen(people(100), SCHEMA, 2.0, sections=sections, distance=distance, pool=Mst(), seed=1)
    assert made.table.num_rows == 100
    assert made.table.column_names == list(SIZES)
    assert made.parameters["delta"] == pytest.approx(100**-1.1)
    steps = math.ceil(100 / sections)
    assert made.parameters["epsilon_partial"] == pytest.approx(partial_epsilon(1.6, steps, 100**-1.1))


def test_every_parameter_of_the_document() -> None:
    made = specimen(
        people(60), SCHEMA, 1.0, epsilon_ratio=0.5, pool_size=3.0, candidates=20, marginals=0.5, n=40, seed=2
    )
    assert made.table.num_rows == 40
    assert len(made.parameters["pairs"]) == 3
    assert made.parameters["candidates"] == 20


def test_with_a_generous_epsilon_it_selects_what_it_scores() -> None:
    """It is a method: at a huge ε the chosen pair of columns has the right counts, where the pool has none of them."""
    table = people(300)
    made = specimen(table, SCHEMA, 20_000.0, pool_size=20.0, seed=0)
    real, found = (np.bincount(3 * t.column("a").to_numpy() + t.column("b").to_numpy(), minlength=9) / 300
                   for t in (table, made.table))  # fmt: skip
    assert np.abs(real - found).sum() / 2 < 0.05
    weak = specimen(table, SCHEMA, 0.5, pool_size=20.0, seed=0).table
    found = np.bincount(3 * weak.column("a").to_numpy() + weak.column("b").to_numpy(), minlength=9) / 300
    assert np.abs(real - found).sum() / 2 > 0.2


def test_late_draws_are_all_but_uniform() -> None:
    """Adult's size at ε = 2: after 32,561 rows the best of ten candidates is hardly likelier than the worst."""
    rng, rows = np.random.default_rng(0), 32_561
    goal = Goal.of([rng.integers(0, 50, rows)], [rng.random(50)], [1.0])
    part = partial_epsilon(1.6, rows, rows**-1.1)
    before, candidates = np.arange(rows - 1), rng.integers(0, rows, 10)
    scores = [-float(goal.distances(np.append(before, c), "L1") @ goal.weights) for c in candidates]
    log_odds = (max(scores) - min(scores)) * part / (2 * 2 / (rows + 1))
    assert 0 < log_odds < 0.01


def test_it_can_not_be_saved_as_a_release() -> None:
    made = specimen(people(20), SCHEMA, seed=0)
    assert made.certificate["guarantee"] is None
    with pytest.raises(ReleaseError, match="has no privacy guarantee"):
        made.save("folder")


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"epsilon": 0.0}, r"epsilon \(0.0\) must be above 0"),
        ({"epsilon_ratio": 1.0}, r"epsilon_ratio \(1.0\) must be above 0 and below 1"),
        ({"marginals": 0.0}, r"marginals \(0.0\) must be above 0 and at most 1"),
        ({"sections": 0}, r"sections \(0\) must be at least 1"),
        ({"pool_size": 0.5}, r"pool_size \(0.5\) must be at least 1"),
        ({"distance": "cosine"}, "must be one of L1, L2, Kolmogorov"),
    ],
)
def test_bad_parameters_are_refused(wish: dict[str, object], message: str) -> None:
    with pytest.raises((InputError, MethodError), match=message):
        specimen(people(20), SCHEMA, **wish)  # type: ignore[arg-type]


def test_one_column_has_no_pairs() -> None:
    with pytest.raises(InputError, match="needs at least two columns"):
        specimen(pa.table({"a": [0, 1, 2]}), us.Schema.loads('[columns.a]\ntype = "integer"\nmin = 0\nmax = 2'))


def test_the_auditor_catches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """From outside alone, by the number of rows: |D| rows are selected. At a level of 5 % some 20 right guesses of
    either table prove an ε of about 1.4, where 1 is claimed; too few of one table come once in 10⁵ runs."""

    def make(data: Any, schema: Any, epsilon: float, more: dict[str, Any]) -> Specimen:
        return specimen(data, schema, epsilon, **more)

    monkeypatch.setitem(registry.SPECIMENS, SPECIMEN.name, SpecimenKind(SPECIMEN.name, "", "", make))
    budget, pair = Budget(1.0, 1e-6), pairs()[0]
    found = rounds(SpecimenPlayer(SPECIMEN.name, pair, budget), BLACK_BOX, 80)
    bound = black_box_bound(pair.name, found, 0.05, Claim(budget.epsilon, budget.delta, "add-remove"))
    assert bound.statistic == "number of rows at least 21"
    assert bound.refutes.startswith("epsilon is at least")
