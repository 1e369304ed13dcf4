"""What every method must satisfy, whoever wrote it: one suite over all of `METHODS`.

Sensitivities, taint and mutants belong to it as well; they are in tests/lab/audits/test_auditing.py, which takes its
subjects from the same methods, and tests/boundary/privacy/test_taint.py.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import understudy as us
from helpers.randomness import BestRandomness
from helpers.tuning import tune
from understudy.boundary.privacy.budget import Budget
from understudy.methods.forecast.spending import Public
from understudy.methods.method import MODEL_FIRST, STATISTICS_FIRST, Method, Options
from understudy.methods.params import Params, parse_options
from understudy.methods.registry import AUTO, METHODS, NAME, choose, general_methods, own_methods
from understudy.releases.synthesis import Plan, synthesize_with

COLUMNS = {"a": 3, "b": 2, "c": 4}
SCHEMA = us.Schema.loads(
    "\n".join(f'[columns.{c}]\ntype = "integer"\nmin = 0\nmax = {size - 1}' for c, size in COLUMNS.items())
)
ROWS = 60
FRAME = pa.table({c: [i // (j + 1) % size for i in range(ROWS)] for j, (c, size) in enumerate(COLUMNS.items())})

CHANGED: dict[str, dict[str, Any]] = {
    "aim": {"model_megabytes": 0.5},
    "dp-arf": {"trees": 2, "leaves": 4},
    "dp-ctgan": {"steps": 2, "lessons": 1, "hidden": 0, "rate": 0.2},
    "dp-gan": {"steps": 2, "lessons": 1, "hidden": 2, "pace": 0.01},
    "dp-select": {"distance": "L2", "sections": 2, "pool_share": 0.5},
    "dualquery": {"rounds": 3, "drawn": 2},
    "generative-forest": {"trees": 3, "leaves": 8, "strength": 5.0},
    "mwem": {"rounds": 2},
    "pate-gan": {"rounds": 2, "votes": 3, "lessons": 1},
    "polya-tree": {"exponent": 1.0},
    "privbayes": {"usefulness": 0.5},
    "privsyn": {"pairs": 2},
}
"""Options that are not the defaults; every method that has some must be here."""


def trained(method: str) -> bool:
    return METHODS[method].traits.trains


def told(method: str) -> dict[str, Any]:
    """What a method has to be told, as `synthesize` takes it."""
    options = METHODS[method].variants[-1].options(list(COLUMNS))
    return {"marginals": options.marginals, "by": options.by}


def cases(chosen: Callable[[Method], bool] = lambda method: True) -> list[Any]:
    """Names of methods; those that train are slow, and need their extra."""
    absent = pytest.mark.skipif(find_spec("torch") is None, reason="the extra gan is not installed")
    names = [m.name for m in METHODS.own.values() if chosen(m)]
    return [pytest.param(n, marks=[pytest.mark.slow, absent]) if trained(n) else n for n in names]


def made(method: str, **wishes: Any) -> us.Release:
    named = {"epsilon": 2.0, "delta": 1e-6, "rows": 20, "seed": 1, "test_only_noise_seed": 5, "ledger": False}
    return us.synthesize(us.open(FRAME, SCHEMA), method=method, **(named | told(method) | wishes))


@pytest.mark.parametrize("method", METHODS.own)
def test_it_declares_itself(method: str):
    of = METHODS[method]
    assert of.name == method and NAME.fullmatch(method)
    assert all(text and not text.endswith(".") for text in (of.guarantee, of.good_for, of.limits))
    assert of.traits.family in (STATISTICS_FIRST, MODEL_FIRST)
    assert issubclass(of.params, Params) and of.params() == of.params.of(method, {})
    assert dataclasses.fields(of.params()) == () or method in CHANGED
    assert all(declared.help and declared.bound for declared in of.params.declared().values())


def test_auto_has_one_method_for_each_of_its_rules():
    own = own_methods().values()
    assert [m.name for m in own if m.traits.takes_marginals] == ["marginals"]
    assert [m.name for m in general_methods()] == ["aim", "independent", "mst", "rake"]
    assert [m.name for m in general_methods() if not m.traits.keeps_relations] == ["independent"]


@pytest.mark.parametrize("method", cases())
def test_a_release_with_its_own_options_is_verified_and_replayed(method: str, tmp_path: Path):
    release = made(method, options=CHANGED.get(method, {}))
    release.save(tmp_path / "out")
    assert us.verify(tmp_path / "out").spends == len(release.certificate.spends)
    assert us.replay(tmp_path / "out").rows == 20
    assert release.certificate.parameters.get("options", {}) == CHANGED.get(method, {})


@pytest.mark.parametrize("method", CHANGED)
def test_options_as_text_are_the_same_as_values(method: str):
    texts = [f"{name}={value}" for name, value in CHANGED[method].items()]
    read, params = METHODS[method].params.of(method, parse_options(texts)), METHODS[method].params(**CHANGED[method])
    assert read == params and read.changed() == CHANGED[method]
    assert METHODS[method].params.of(method, read.changed()) == params


@pytest.mark.parametrize("method", cases(lambda m: not m.traits.trains))
def test_a_release_with_default_options_does_not_name_them(method: str):
    plan = planned(method, Budget(2.0, 1e-6))
    assert "options" not in plan.options.to_dict() and plan.options.own == {}
    default = {f.name: f.default for f in dataclasses.fields(METHODS[method].params)}
    assert planned(method, Budget(2.0, 1e-6), own=default).options == plan.options


@pytest.mark.parametrize("method", cases())
def test_it_is_pure_or_refused(method: str):
    """A method that says it has no pure form refuses a delta of 0 before anything is spent."""
    if METHODS[method].traits.pure:
        spends = made(method, delta=0).certificate.spends
        assert not any(spend.mechanism.endswith("gaussian") for spend in spends)
        return
    with pytest.raises(us.MethodError, match="no pure form"):
        made(method, delta=0)


def planned(method: str, budget: Budget, own: dict[str, Any] | None = None, columns: str = "") -> Plan:
    said = METHODS[method].variants[0].options(list(COLUMNS))
    if columns:
        said = Options(targets=(columns,))
    return Plan.of(SCHEMA, budget, method, dataclasses.replace(said, own=own or {}), 20, 11)


@pytest.mark.parametrize(
    ("method", "target"),
    [("independent", ""), ("marginals", "a"), ("mst", ""), ("mwem", ""), ("aim", ""), ("rake", ""), ("privbayes", "")],
)
def test_what_it_says_that_it_spends_is_what_it_spends(method: str, target: str, monkeypatch: pytest.MonkeyPatch):
    """With the best of all noise, that is none: as many sets of columns as predicted, for the same budget together.

    Gaussian noise of deviation σ costs 1/(2σ²), however the sets share what they cost. How many `rake` measures in the
    end follows from the grids that it picks first; without that it is as predicted.
    """
    tune(monkeypatch, "rake", power_of_cells=0.0)
    many = pa.concat_tables([FRAME] * 500)
    plan = planned(method, Budget(3.0, 1e-6), columns=target)
    release = synthesize_with(us.open(many, SCHEMA), plan, randomness=BestRandomness(secure=False))
    asked = [a.question for a in release.record if a.question["ask"] in ("marginal", "partition")]
    together = [q for q in asked if len(q.get("columns", q.get("partition", {}).get("columns", ()))) > 1]
    expected = METHODS[method].expected_spending(Public.of(SCHEMA, plan.budget, many.num_rows))
    assert len(together) == expected.sets
    cost = sum(q["scale"] ** -2 for q in together)
    assert math.isclose(cost, expected.sets / expected.noise**2 if expected.sets else 0.0, rel_tol=1e-3)


WRONG = {
    "an option that is misspelt": ("dp-select", {"distence": "L2"}, "did you mean 'distance'"),
    "an option of another method": ("mst", {"rounds": 2}, r"method mst has no options; leave rounds \(2\) out"),
    "a value of the wrong type": ("mwem", {"rounds": 2.5}, r"rounds \(2.5\) must be a whole number from 1 to 10,000"),
    "a truth for a number": ("mwem", {"rounds": True}, r"rounds \(True\) must be a whole number"),
    "a text for a number": ("dp-select", {"pool_share": "much"}, r"pool_share \('much'\) must be above 0 and below 1"),
    "a number out of bounds": ("dp-gan", {"rate": 0.9}, r"rate \(0.9\) must be from 0.001 to 0.5"),
    "no number": ("aim", {"model_megabytes": math.nan}, r"model_megabytes \(nan\) must be from 0.1 to 10000"),
    "a choice that there is not": ("dp-select", {"distance": "L3"}, r"distance \('L3'\) must be one of entropy, L1"),
    "options that exclude each other": ("dp-select", {"sections": 2}, "are for rows that are chosen one by one"),
    "more votes than can be compared": ("pate-gan", {"rounds": 1000, "votes": 1000}, "must be at most 10,000"),
    "an option for any method": (AUTO, {"rounds": 2}, "auto may choose any; name the method too"),
}  # fmt: skip


@pytest.mark.parametrize(("method", "options", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_option_is_refused_before_anything_is_spent(
    method: str, options: dict[str, Any], message: str, tmp_path: Path
):
    ledger = tmp_path / "ledger"
    with pytest.raises(us.MethodError, match=message) as refused:
        us.synthesize(us.open(FRAME, SCHEMA), epsilon=1.0, method=method, options=options, ledger=ledger)
    assert "\n" not in str(refused.value) and not ledger.exists()


def test_an_audit_of_default_options_is_not_one_of_others():
    plan = planned("mwem", Budget(1.0, 1e-6), own={"rounds": 2})
    with pytest.raises(us.InputError, match="an audit is of the method with its default options, and rounds was"):
        plan.audited(object())  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["distance", "=L2", "distance=", ""])
def test_an_option_is_a_name_and_a_value(text: str):
    with pytest.raises(us.MethodError, match="must be a name and a value"):
        parse_options([text])


def test_the_pool_has_options_of_its_own_defaults():
    """Those of dp-select are not told to the method that makes its pool."""
    said = Options(pool="aim", own={"distance": "L2"})
    assert choose("dp-select", said, SCHEMA, Budget(1.0, 1e-6)).method.name == "dp-select"
    assert Plan.of(SCHEMA, Budget(1.0, 1e-6), "dp-select", said, None, 1).recipe.pool.model_megabytes == 16.0  # type: ignore[attr-defined]
