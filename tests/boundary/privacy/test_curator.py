"""The boundary itself: what an ask costs, in which order things happen, and that a refusal costs nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from helpers.randomness import BestRandomness, SilentRandomness
from helpers.tables import CountedOnce, SpyTable, UnreadableTable
from understudy.boundary.privacy.asks import Keys, Marginals, Moments, Partitions, Quantile, Select, Total
from understudy.boundary.privacy.asks.checks import MOST_CELLS
from understudy.boundary.privacy.budget import Amount, Budget, total
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.facts import PublicFacts
from understudy.boundary.privacy.ledger.ledger import Ledger, Receipt
from understudy.boundary.privacy.measurement import FoundValues, Measurement, RecordedAnswer
from understudy.boundary.privacy.mechanisms.noise import LARGEST_SCALE
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.boundary.privacy.mechanisms.score import STEP, Candidate
from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.moment import Moment
from understudy.boundary.schema.partition import Grid
from understudy.boundary.schema.schema import Schema
from understudy.errors import BudgetExhausted, CheckFailed, MethodError, SchemaError, TableError
from understudy.inference.discovery import discover
from understudy.inference.values import check_decodable

COLUMNS = """
[columns.person]
type = "identifier"
[columns.age]
type = "integer"
min = 0
max = 3
[columns.city]
type = "categorical"
values = ["A", "B"]
missing = true
[columns.job]
type = "categorical"
values = "private"
"""
RELATIONS = {
    "add-remove": "",
    "replace-one": 'neighbours = "replace-one"\n',
    "three rows each": '[unit]\ncolumn = "person"\nmax_rows = 3\n',
}
ROWS_PER_UNIT = {"add-remove": 1, "replace-one": 1, "three rows each": 3}
L1 = {"add-remove": 1.0, "replace-one": 2.0, "three rows each": 3.0}
L2 = {"add-remove": 1.0, "replace-one": math.sqrt(2.0), "three rows each": 3.0}
PURE, APPROXIMATE = Budget(1.0, 0.0), Budget(1.0, 1e-6)

PEOPLE = {
    "person": ["p", "q", "r", "s", "t"],
    "age": [0, 1, 3, 3, 99],
    "city": ["A", "B", None, "A", "Z"],
    "job": ["nurse", "nurse", "cook", None, "nurse"],
}
AGES = np.array([1, 1, 0, 3])
CITIES = np.array([2, 1, 2])  # A, B, missing; an unlisted value counts as missing where there is no `other`

GRID = Grid(("age", "city"), ((0, 0, 1, 1), (0, 0, 1)))
CANDIDATES = [
    Candidate(("age",), np.zeros(4), weight=0.5),
    Candidate(("city",), np.array([2.0, 1.0, 2.0])),
    Candidate(("age", "city"), np.full((4, 3), 0.25), weight=2.0),
]

Ask = Callable[[Curator, Amount], Any]
ASKS: dict[str, Ask] = {
    "measure": lambda c, amount: c.ask(Marginals(domain(c.schema), [("age",), ("age", "city")], amount, [1.0, 2.0])),
    "partition": lambda c, amount: c.ask(Partitions(domain(c.schema), [GRID], amount)),
    "moment": lambda c, amount: c.ask(Moments(domain(c.schema), [Moment(GRID, (1, 0, -1, 1))], amount)),
    "total": lambda c, amount: c.ask(Total(amount)),
    "select": lambda c, amount: c.ask(Select(domain(c.schema), CANDIDATES, amount, k=2)),
    "quantile": lambda c, amount: c.ask(Quantile(domain(c.schema), "age", 0.5, amount)),
    "keys": lambda c, amount: c.ask(Keys("job", amount)),
}
READS = {
    "measure": "count_by",
    "partition": "count_by",
    "moment": "count_by",
    "total": "count_rows",
    "select": "count_by",
    "quantile": "count_by",
    "keys": "count_values",
}


def schema_of(relation: str) -> Schema:
    return Schema.loads(RELATIONS[relation] + COLUMNS)


def domain(schema: Schema) -> Domain:
    """The domain of the public columns; `job` has no codes before it is bought."""
    return Domain.of(Schema(tuple(schema[name] for name in ("age", "city"))))


@cache
def table_of(relation: str) -> us.Table:
    return CountedOnce(us.open(pa.table(PEOPLE), schema_of(relation)))


def silent_curator(relation: str, budget: Budget = APPROXIMATE) -> Curator:
    return Curator.on(table_of(relation), budget, randomness=BestRandomness())


def askable(ask: str, budget: Budget) -> bool:
    return not (ask == "keys" and budget.pure)


EVERY = [
    pytest.param(relation, ask, budget, id=f"{ask}, {relation}, {'pure' if budget.pure else budget.accounting}")
    for relation in RELATIONS
    for ask in ASKS
    for budget in (PURE, APPROXIMATE)
    if askable(ask, budget)
]


def declared(relation: str, ask: str, pure: bool) -> float:
    """The sensitivity that the theory gives, written down a second time."""
    match ask:
        case "select":
            return 2.0 * L1[relation] + STEP  # the largest weight is 2
        case "quantile":  # a median: each row that comes or goes moves it by a half, one that is replaced by one
            return ROWS_PER_UNIT[relation] * (1.0 if relation == "replace-one" else 0.5)
        case "total" if relation == "replace-one":
            return 0.0
        case "moment" if relation == "replace-one":
            return 2.0  # from −1 to 1
    return L1[relation] if pure and ask != "keys" else L2[relation]


@pytest.mark.parametrize(("relation", "ask", "budget"), EVERY)
def test_spends_carry_the_sensitivity_of_the_relation(relation: str, ask: str, budget: Budget) -> None:
    curator = silent_curator(relation, budget)
    ASKS[ask](curator, curator.remaining().part(0.5))
    wanted = declared(relation, ask, budget.pure)
    for spend in curator.spends:
        assert wanted <= spend.sensitivity <= wanted * (1 + 1e-15)
        assert (spend.delta > 0) == (ask == "keys")


@pytest.mark.parametrize(("relation", "ask", "budget"), EVERY)
def test_the_cost_fits_the_amount_and_uses_it(relation: str, ask: str, budget: Budget) -> None:
    curator = silent_curator(relation, budget)
    amount = curator.remaining().part(0.5)
    ASKS[ask](curator, amount)
    cost = total(s.cost for s in curator.spends)
    price = cost.epsilon if budget.pure else cost.by(budget.accounting)
    if ask == "total" and relation == "replace-one":
        assert cost == total([])
    else:
        assert price is not None and amount.value * Fraction(999_999, 1_000_000) <= price <= amount.value


@pytest.mark.parametrize(("relation", "ask", "budget"), EVERY)
def test_the_noise_drawn_is_the_noise_recorded(relation: str, ask: str, budget: Budget) -> None:
    silent = SilentRandomness()
    curator = Curator.on(table_of(relation), budget, randomness=silent)
    ASKS[ask](curator, curator.remaining().part(0.5))
    noisy = [s for s in curator.spends if s.mechanism not in ("exponential", "public")]
    assert [(m, s) for m, s, _ in silent.scales] == [(s.mechanism, s.scale) for s in noisy]
    for exponent in silent.exponents:
        spend = curator.spends[0]
        assert Fraction(exponent) * 2 * Fraction(spend.sensitivity) <= Fraction(spend.scale)


@pytest.mark.parametrize(("relation", "ask", "budget"), EVERY)
def test_an_ask_over_budget_touches_neither_rows_nor_noise(
    relation: str, ask: str, budget: Budget, tmp_path: Path
) -> None:
    if ask == "total" and relation == "replace-one":
        pytest.skip("a public row count costs nothing")
    silent = SilentRandomness()
    spy = SpyTable(table_of(relation), silent.events)
    curator = Curator.on(spy, budget, randomness=silent, ledger=tmp_path / "ledger.sqlite")
    silent.events.clear()
    twice = Amount(curator.remaining().value * 2, budget.pure)
    with pytest.raises(BudgetExhausted):
        ASKS[ask](curator, twice)
    assert silent.events == []
    assert (curator.spends, curator.record) == ((), ())
    assert not (tmp_path / "ledger.sqlite").exists()


class SpyLedger:
    """The part of a ledger that a curator uses, writing into a list of events."""

    def __init__(self, events: list[str]) -> None:
        self._events = events

    def identity(self) -> str:
        return "spy"

    def debit(self, *details: Any, **more: Any) -> int:
        self._events.append("ledger")
        return 1

    def receipt(self, entry: int) -> Receipt:
        return Receipt("spied", "", entry, None)


def spied_curator(ask: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Curator, list[str]]:
    silent = SilentRandomness()
    curator = Curator.on(
        SpyTable(table_of("add-remove"), silent.events),
        APPROXIMATE,
        randomness=silent,
        ledger=SpyLedger(silent.events),  # type: ignore[arg-type]
    )
    meter = curator._meter
    check, debit = meter.check, meter.debit

    def spied_check(spends: Any) -> None:
        silent.events.append("dry run")
        check(spends)

    def spied_debit(spends: Any) -> None:
        silent.events.append("meter")
        monkeypatch.setattr(meter, "check", check)  # its own check inside the debit is not the dry run
        debit(spends)

    monkeypatch.setattr(meter, "check", spied_check)
    monkeypatch.setattr(meter, "debit", spied_debit)
    return curator, silent.events


@pytest.mark.parametrize("ask", ASKS)
def test_the_order_of_an_ask(ask: str, monkeypatch: pytest.MonkeyPatch) -> None:
    curator, events = spied_curator(ask, monkeypatch)
    amount = curator.remaining().part(0.5)
    events.clear()
    ASKS[ask](curator, amount)
    draws = {"measure": ["noise"] * 2, "select": ["choose"], "quantile": ["choose"]}.get(ask, ["noise"])
    assert events == ["dry run", READS[ask], "check_readable", "ledger", "meter", *draws]


@pytest.mark.parametrize("ask", ASKS)
def test_an_unreadable_table_costs_nothing(ask: str, tmp_path: Path) -> None:
    silent = SilentRandomness()
    table = UnreadableTable(table_of("add-remove"), silent.events)
    path = tmp_path / "ledger.sqlite"
    curator = Curator.on(table, APPROXIMATE, randomness=silent, ledger=path)
    before = curator.remaining()
    silent.events.clear()
    with pytest.raises(TableError, match="line 7"):
        ASKS[ask](curator, before.part(0.5))
    assert not path.exists()
    assert (curator.spends, curator.record, silent.events) == ((), (), [])
    assert curator.remaining() == before


def test_the_ledger_is_made_by_the_first_debit_and_debited_once(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    curator = Curator.on(table_of("add-remove"), APPROXIMATE, ledger=path, purpose="why", analyst="who")
    assert not path.exists()
    for ask in ("total", "measure"):
        ASKS[ask](curator, curator.remaining().part(0.1))
    (entry,) = Ledger.open(path).entries()
    assert entry.cost == PublicFacts(schema_of("add-remove"), APPROXIMATE).whole
    assert (entry.purpose, entry.analyst, entry.neighbours) == ("why", "who", "add-remove")


@pytest.mark.parametrize("ask", ASKS)
def test_a_ledger_that_refuses_stops_the_draw(ask: str) -> None:
    ledger = Ledger.memory()
    ledger.set_limit(Budget(0.5, 1e-6), "add-remove")
    silent = SilentRandomness()
    curator = Curator.on(table_of("add-remove"), APPROXIMATE, randomness=silent, ledger=ledger)
    with pytest.raises(BudgetExhausted):
        ASKS[ask](curator, curator.remaining().part(0.5))
    assert silent.events == []
    assert (curator.spends, ledger.entries()) == ((), [])


@pytest.mark.parametrize("budget", [PURE, APPROXIMATE], ids=["pure", "with delta"])
@pytest.mark.parametrize("order", [("measure",), ("keys", "measure"), ("measure", "keys")], ids=" then ".join)
def test_no_order_of_asks_spends_more_than_the_ledger_was_debited(budget: Budget, order: tuple[str, ...]) -> None:
    """A strategy that asks for keys last, or never, must not gain the g that their δ could have bought."""
    if budget.pure and "keys" in order:
        pytest.skip("keys have no pure form")
    ledger = Ledger.memory()
    curator = Curator.on(table_of("add-remove"), budget, randomness=SilentRandomness(), ledger=ledger)
    for ask in order:
        ASKS[ask](curator, curator.remaining().part(0.9))
    ASKS["measure"](curator, curator.remaining())
    spent, debited = total(s.cost for s in curator.spends), ledger.spent()
    assert spent.delta <= debited.delta
    if budget.pure:
        assert spent.epsilon <= debited.epsilon
    else:
        assert debited.gdp * Fraction(999_999, 1_000_000) <= spent.gdp <= debited.gdp


def test_a_meter_without_the_ledgers_split_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant of the test above: a curator that only knows its (ε, δ) spends g that nobody was debited for."""
    curator = silent_curator("add-remove")
    amount = curator._meter.remaining()
    monkeypatch.setattr(curator, "_check", curator._meter.check)
    ASKS["measure"](curator, amount)
    assert total(s.cost for s in curator.spends).gdp > PublicFacts(curator.schema, APPROXIMATE).whole.gdp


def test_the_keys_of_one_column_are_sold_once() -> None:
    curator = silent_curator("add-remove")
    ASKS["keys"](curator, curator.remaining().part(0.1))
    with pytest.raises(BudgetExhausted, match="delta"):
        ASKS["keys"](curator, curator.remaining().part(0.1))


@pytest.mark.parametrize("column", ["age", "city", "person"])
def test_keys_of_a_column_that_is_not_private_are_refused(column: str) -> None:
    curator = silent_curator("add-remove")
    with pytest.raises(MethodError, match=column):
        curator.ask(Keys(column, curator.remaining()))
    assert curator.spends == ()


def test_keys_are_refused_where_the_budget_is_pure() -> None:
    curator = silent_curator("add-remove", PURE)
    with pytest.raises(MethodError, match="delta above 0"):
        curator.ask(Keys("job", curator.remaining()))
    assert curator.spends == ()


def test_gaussian_noise_is_refused_where_the_budget_is_pure() -> None:
    curator = silent_curator("add-remove", PURE)
    with pytest.raises(MethodError, match="isn't pure"):
        curator.ask(Marginals(domain(curator.schema), [("age",)], Amount(Fraction(1, 100), pure=False)))
    assert curator.spends == ()


def test_the_noisy_total_needs_an_amount() -> None:
    with pytest.raises(MethodError, match="number of rows is private"):
        silent_curator("add-remove").ask(Total())


@pytest.mark.parametrize("budget", [PURE, APPROXIMATE], ids=["pure", "with delta"])
def test_the_public_total_is_exact_even_with_noise(budget: Budget) -> None:
    curator = Curator.on(table_of("replace-one"), budget)
    assert curator.ask(Total()).counts.tolist() == [5]
    assert curator.ask(Total()).variance == 0
    assert curator.guarantee[0] == 0


BILLION = """
[columns.a]
type = "integer"
min = 0
max = 99999
bins = 100000
[columns.b]
type = "integer"
min = 0
max = 99999
bins = 100000
"""


@pytest.mark.parametrize("ask", ["measure", "partition", "select"])
def test_too_many_cells_are_refused_unread(ask: str) -> None:
    schema, silent = Schema.loads(BILLION), SilentRandomness()
    table = SpyTable(us.open(pa.table({"a": [1, 2], "b": [1, 2]}), schema), silent.events)
    curator = Curator.on(table, PURE, randomness=silent)
    silent.events.clear()
    each, amount = tuple(range(100_000)), curator.remaining()
    asks: dict[str, Callable[[], Any]] = {
        "measure": lambda: curator.ask(Marginals(Domain.of(schema), [("a", "b")], amount)),
        "partition": lambda: curator.ask(Partitions(Domain.of(schema), [Grid(("a", "b"), (each, each))], amount)),
        "select": lambda: curator.ask(Select(Domain.of(schema), [Candidate(("a", "b"), np.zeros(1))], amount)),
    }
    with pytest.raises(MethodError, match=f"10,000,000,000 cells and may have at most {MOST_CELLS:,}"):
        asks[ask]()
    assert (silent.events, curator.spends) == ([], ())


@pytest.mark.parametrize("k", [0, 4])
def test_a_selection_of_more_than_there_is_costs_nothing(k: int) -> None:
    curator = silent_curator("add-remove")
    with pytest.raises(MethodError, match=f"k \\({k}\\) of a selection must be from 1 to its 3 candidates"):
        curator.ask(Select(domain(curator.schema), CANDIDATES, curator.remaining(), k=k))
    assert curator.spends == ()


@pytest.mark.parametrize(("column", "probability"), [("city", 0.5), ("age", 1.5), ("age", math.nan)])
def test_an_impossible_quantile_costs_nothing(column: str, probability: float) -> None:
    curator = silent_curator("add-remove")
    with pytest.raises(MethodError, match="quantile"):
        curator.ask(Quantile(domain(curator.schema), column, probability, curator.remaining()))
    assert curator.spends == ()


@pytest.mark.parametrize("ask", ["measure", "partition", "total"])
def test_noise_beyond_the_samplers_is_refused_before_the_debit(ask: str) -> None:
    """The samplers refuse such a scale themselves; by then it would be paid."""
    curator = Curator.on(table_of("add-remove"), PURE)
    tiny = Amount(Fraction(1, 2**42), pure=True)
    assert tiny.noise_scale(1.0) > LARGEST_SCALE
    with pytest.raises(MethodError, match="noise scale"):
        ASKS[ask](curator, tiny)
    assert curator.spends == ()


@pytest.mark.parametrize("ages", [[], [3]], ids=["no row", "one row"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_table_of_fewer_than_two_rows_is_refused(relation: str, ages: list[int]) -> None:
    rows = {"person": ["p"], "age": [3], "city": ["A"], "job": ["cook"]}
    columns = {name: pa.array(values[: len(ages)], pa.array(values).type) for name, values in rows.items()}
    with pytest.raises(TableError, match="at least 2 rows"):
        Curator.on(us.open(pa.table(columns), schema_of(relation)), APPROXIMATE)


def test_rows_beyond_the_cap_of_one_person_do_not_make_a_table() -> None:
    one = {name: [values[0]] * 4 for name, values in PEOPLE.items()}
    schema = Schema.loads('[unit]\ncolumn = "person"\nmax_rows = 1\n' + COLUMNS)
    with pytest.raises(TableError, match="at least 2 rows"):
        Curator.on(us.open(pa.table(one), schema), APPROXIMATE)


def test_a_person_with_several_rows_can_not_be_replaced_while_the_row_count_is_public() -> None:
    with pytest.raises(SchemaError, match="replace-one"):
        Schema.loads(RELATIONS["replace-one"] + RELATIONS["three rows each"] + COLUMNS)


@pytest.mark.parametrize("relation", RELATIONS)
def test_without_noise_every_answer_is_exact(relation: str) -> None:
    curator = silent_curator(relation, Budget(100.0, 1e-6))
    ages, joint = ASKS["measure"](curator, curator.remaining().part(0.1))
    (cells,) = ASKS["partition"](curator, curator.remaining().part(0.1))
    assert ages.counts.tolist() == AGES.tolist()
    assert joint.counts.sum(axis=1).tolist() == AGES.tolist()
    assert joint.counts.sum(axis=0).tolist() == CITIES.tolist()
    assert cells.counts.tolist() == [2, 0, 1, 2]
    assert ASKS["total"](curator, curator.remaining().part(0.1)).counts.tolist() == [5]
    # Errors: 0.5 × 5 for the ages; 0 for the cities; 2 × (5 cells of 1 or 2 against a quarter, and the empty ones).
    assert ASKS["select"](curator, curator.remaining().part(0.1)) == [2, 0]
    assert ASKS["quantile"](curator, curator.remaining().part(0.1)) == 2.0
    assert ASKS["keys"](curator, curator.remaining().part(0.1)).values == ()


def test_without_noise_keys_are_those_above_the_threshold() -> None:
    schema = schema_of("add-remove")
    jobs = ["nurse"] * 60 + ["cook"] * 50 + ["spy"]
    rows = {"person": [str(i) for i in range(111)], "age": [1] * 111, "city": ["A"] * 111, "job": jobs}
    curator = Curator.on(us.open(pa.table(rows), schema), Budget(20.0, 1e-6), randomness=SilentRandomness())
    keys = curator.ask(Keys("job", curator.remaining().part(0.5)))
    assert (keys.values, keys.counts.tolist()) == (("cook", "nurse"), [50, 60])
    assert curator.spends[0].delta == PublicFacts(schema, curator.budget).key_delta == 5e-7


@pytest.mark.parametrize("ask", ASKS)
def test_what_is_handed_out_can_not_be_changed(ask: str) -> None:
    curator = silent_curator("add-remove")
    answer = ASKS[ask](curator, curator.remaining().part(0.5))
    handed = [a.value for a in curator.record]
    if isinstance(answer, Measurement | FoundValues):
        handed.append(answer.counts)
    elif isinstance(answer[0] if isinstance(answer, list) else None, Measurement):
        handed += [m.counts for m in answer]
    for array in handed:
        assert not array.flags.writeable
        if array.size:
            with pytest.raises(ValueError, match="read-only"):
                array[...] = array


ALL = ("total", "keys", "measure", "partition", "select", "quantile")


def ask_all(curator: Curator, asks: tuple[str, ...] = ALL) -> list[Any]:
    return [ASKS[ask](curator, curator.remaining().part(0.1)) for ask in asks]


def as_text(answers: list[Any]) -> str:
    with np.printoptions(threshold=10_000):
        return repr(answers)


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_replay_hands_out_what_was_recorded(relation: str) -> None:
    original = Curator.on(table_of(relation), APPROXIMATE)
    answers = ask_all(original)
    copy = Curator.replaying(original.schema, APPROXIMATE, original.record)
    assert as_text(ask_all(copy)) == as_text(answers)
    assert copy.spends == original.spends
    assert [a.question for a in copy.record] == [a.question for a in original.record]
    assert copy.guarantee == original.guarantee
    with pytest.raises(CheckFailed, match="the record ends before question"):
        ASKS["total"](copy, copy.remaining())


@pytest.mark.parametrize("place", range(len(ALL)))
def test_a_replay_refuses_another_question(place: int) -> None:
    original = Curator.on(table_of("add-remove"), APPROXIMATE)
    ask_all(original)
    swapped = [*ALL]
    swapped[place] = "quantile" if swapped[place] != "quantile" else "partition"
    copy = Curator.replaying(original.schema, APPROXIMATE, original.record)
    with pytest.raises(CheckFailed, match="is not the one that the method asks"):
        ask_all(copy, tuple(swapped))


def test_a_replay_refuses_the_same_question_at_another_price() -> None:
    original = Curator.on(table_of("add-remove"), APPROXIMATE)
    ASKS["total"](original, original.remaining().part(0.5))
    copy = Curator.replaying(original.schema, APPROXIMATE, original.record)
    with pytest.raises(CheckFailed, match="question 1"):
        ASKS["total"](copy, copy.remaining().part(0.6))


def test_a_replay_is_metered_too() -> None:
    copy = Curator.replaying(schema_of("add-remove"), APPROXIMATE, [RecordedAnswer({"ask": "total"}, np.array([5]))])
    with pytest.raises(BudgetExhausted):
        ASKS["total"](copy, Amount(copy.remaining().value * 2, pure=False))


@pytest.mark.parametrize("secure", [True, False])
def test_secure_says_what_the_noise_rests_on(secure: bool) -> None:
    randomness = ExactRandomness.system() if secure else ExactRandomness.seeded(1)
    assert Curator.on(table_of("add-remove"), PURE, randomness=randomness).secure is secure
    assert Curator.replaying(schema_of("add-remove"), PURE, [], secure=secure).secure is secure


@pytest.mark.parametrize("scale", [1e-4, 0.01, 0.5, 1.0, 30.0, 2.0**40])
def test_the_variance_of_laplace_noise_is_never_nought(scale: float) -> None:
    variance = Measurement((), np.zeros(1, dtype=np.int64), "discrete-laplace", scale).variance
    ratio = math.exp(-1 / scale)
    assert variance > 0 and math.isfinite(1 / variance)
    if 0.01 < scale < 100:
        k = np.arange(1, 10_000)
        exact = 2 * float((k**2 * ratio**k).sum()) * (1 - ratio) / (1 + ratio)
        assert variance == pytest.approx(exact, rel=1e-9)
    if scale > 100:
        assert variance == pytest.approx(2 * scale**2, rel=1e-3)


def bought(column: str, values: list[Any]) -> Schema:
    """What discovery makes of one private column, without noise."""
    schema = Schema.loads(f"[columns.x]\n{column}")
    table = us.open(pa.table({"x": values}), schema)
    curator = Curator.on(table, Budget(20.0, 1e-6), randomness=SilentRandomness())
    return discover(schema, curator)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ('type = "number"\nmin = "private"\nmax = "private"\ndecimals = 2', 0.0),
        ('type = "number"\nmin = 0.3\nmax = "private"\ndecimals = 2', 0.4),
        ('type = "number"\nmin = "private"\nmax = "private"\ndecimals = 0\nbins = 10', 0.7),
        ('type = "number"\nmin = "private"\nmax = "private"\ncuts = [10, 20]', 1.0),
        ('type = "integer"\nmin = "private"\nmax = "private"\ncuts = [10, 20]', 1000),
        ('type = "integer"\nmin = "private"\nmax = "private"', 0),
    ],
)
def test_bought_bounds_can_be_decoded_whatever_the_values_are(column: str, value: float) -> None:
    """All values in one narrow bucket must not end in a refusal: the budget is spent by then."""
    schema = bought(column, [value] * 500)
    found: Any = schema["x"]
    assert found.minimum <= value <= found.maximum
    check_decodable(Domain.of(schema))


def test_keys_that_differ_by_trailing_nulls_are_one() -> None:
    """An array of texts drops trailing NULs, so both would be listed under one name."""
    found: Any = bought('type = "categorical"\nvalues = "private"', ["a", "a\0"] * 250)["x"]
    assert found.values == ("a", "other")
