"""`arf` on raw rows: arfpy's options, missing values, many categories, conditions; and never a release."""

from __future__ import annotations

import json
import math
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from understudy.boundary.schema.column import Boolean, Categorical, Datetime, Identifier, Integer, Number, Ordinal
from understudy.boundary.schema.schema import Schema
from understudy.errors import InputError, MethodError, ReleaseError
from understudy.lab.specimens import arf as adversarial
from understudy.lab.specimens.arf import Arf
from understudy.lab.specimens.points import Points


def people(rows: int = 240, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 65, rows)
    smoker = rng.random(rows) < 0.3
    charges = np.round(100 * age + 9000 * smoker + rng.normal(0, 300, rows), 2)
    return pa.table({"age": age, "smoker": np.where(smoker, "yes", "no"), "charges": charges})


SCHEMA = Schema(
    (
        Integer("age", minimum=18, maximum=64),
        Categorical("smoker", values=("no", "yes")),
        Number("charges", minimum=0, maximum=20_000, decimals=2),
    )
)


def model(rows: pa.Table | None = None, **options: object) -> Arf:
    chosen = {"schema": SCHEMA, "seed": 1, "verbose": False, "num_trees": 8} | options
    return Arf(people() if rows is None else rows, **chosen)  # type: ignore[arg-type]


def test_rows_have_the_types_and_the_relations_of_the_original() -> None:
    found = model()
    found.forde()
    made = found.forge(2000)
    assert made.schema.names == ["age", "smoker", "charges"]
    assert (made.schema.field("age").type, made.schema.field("smoker").type) == (pa.int64(), pa.string())
    charges, smoker = made["charges"].to_numpy(), np.array(made["smoker"].to_pylist())
    assert np.array_equal(charges, np.round(charges, 2))
    # Smokers pay 9,000 more; the mean of 600 rows errs by less than 1,000 even with 6 deviations of 4,000.
    assert charges[smoker == "yes"].mean() - charges[smoker == "no"].mean() == pytest.approx(9000, abs=1500)


def test_the_options_and_defaults_of_arfpy() -> None:
    import inspect

    defaults = {n: p.default for n, p in inspect.signature(Arf).parameters.items() if p.default is not p.empty}
    theirs = {"num_trees": 30, "delta": 0, "max_iters": 10, "early_stop": True, "verbose": True, "min_node_size": 5}
    assert {name: defaults[name] for name in theirs} == theirs
    assert next(iter(inspect.signature(Arf).parameters)) == "x"
    forde = inspect.signature(Arf.forde).parameters
    assert {n: forde[n].default for n in ("dist", "oob", "alpha")} == {"dist": "truncnorm", "oob": False, "alpha": 0}


def test_verbose_prints_the_accuracy_of_each_round(capsys: pytest.CaptureFixture[str]) -> None:
    found = model(verbose=True, max_iters=1)
    printed = capsys.readouterr().out
    assert printed.startswith(f"Initial accuracy is {found.accuracy[0]}")
    model()
    assert capsys.readouterr().out == ""


def test_further_arguments_go_to_the_forest() -> None:
    found = model(max_depth=1, max_iters=0)
    assert len(found.grown.leaves) <= 2 * 8


def test_rows_are_forged_only_after_the_density_is_known() -> None:
    with pytest.raises(MethodError, match="forde"):
        model().forge(5)


def test_the_same_seed_gives_the_same_rows() -> None:
    one, other = (adversarial.specimen(people(), SCHEMA, seed=4).table for _ in range(2))
    assert one.equals(other)
    assert not one.equals(adversarial.specimen(people(), SCHEMA, seed=5).table)


def test_a_table_has_no_guarantee_and_is_never_a_release(tmp_path: Path) -> None:
    found = adversarial.specimen(people(), SCHEMA, seed=4)
    assert found.guarantee is None
    assert found.certificate["guarantee"] is None
    assert json.loads(found.table.schema.metadata[b"understudy"])["guarantee"] is None
    with pytest.raises(ReleaseError, match="arf has no privacy guarantee"):
        found.save(tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_rows_given_some_columns_keep_them() -> None:
    found = model()
    found.forde(alpha=0.1)
    made = found.forge(given={"smoker": ["yes", "no", "yes"], "age": [20, 40, 60]})
    assert made["smoker"].to_pylist() == ["yes", "no", "yes"]
    assert made["age"].to_pylist() == [20, 40, 60]
    many = found.forge(400, given={"smoker": "yes"})
    assert set(many["smoker"].to_pylist()) == {"yes"}
    # Of smokers the charges are about 9,000 + 100 × 41; without the condition they would be some 6,400 lower.
    assert many["charges"].to_numpy().mean() == pytest.approx(13_100, abs=1500)
    with pytest.raises(InputError, match="given must name columns"):
        found.forge(given={"height": 3})
    with pytest.raises(InputError, match="not both"):
        found.forge(3, given={"age": [1, 2, 3]})


def test_missing_values_stay_about_as_frequent_and_in_their_place() -> None:
    rng = np.random.default_rng(3)
    old = rng.random(600) < 0.5
    columns = {
        "age": pa.array(np.where(old, 60, 20), mask=np.zeros(600, dtype=bool)),
        "income": pa.array(rng.normal(50, 5, 600).round(1), mask=old & (rng.random(600) < 0.8)),
        "job": pa.array(["clerk" if o else None for o in old]),
    }
    schema = Schema(
        (
            Integer("age", minimum=0, maximum=99),
            Number("income", minimum=0, maximum=100, decimals=1, missing=True),
            Categorical("job", values=("clerk",)),  # not declared as missing, and missing all the same
        )
    )
    found = model(pa.table(columns), schema=schema)
    found.forde(alpha=0.01)
    made = found.forge(3000)
    is_old = made["age"].to_numpy() > 40
    gone = np.array(made["income"].is_null())
    assert gone[is_old].mean() == pytest.approx(0.8, abs=0.1)
    assert gone[~is_old].mean() < 0.05
    assert np.array(made["job"].is_null())[~is_old].mean() > 0.9
    assert np.isfinite(found.log_likelihood(pa.table(columns))).all()


def test_hundreds_of_categories() -> None:
    labels = [f"city {i:03d}" for i in range(300)]
    rows = pa.table({"city": labels * 6, "size": [float(i) for i in range(300)] * 6})
    found = model(
        rows, schema=Schema((Categorical("city", values=tuple(labels)), Number("size", minimum=0, maximum=300)))
    )
    found.forde()
    made = found.forge(3000)
    seen = set(made["city"].to_pylist())
    assert seen <= set(labels)
    assert len(seen) > 128
    codes = np.array([labels.index(c) for c in made["city"].to_pylist()])
    assert np.corrcoef(codes, made["size"].to_numpy())[0, 1] > 0.9


def test_out_of_bag_the_density_knows_other_rows_only() -> None:
    found = model()
    every, unseen = found.forde(), found.forde(oob=True)
    assert unseen.coverage.sum() == pytest.approx(1.0)
    age, grown = found.points.values[:, 0], found.grown
    for number in range(len(grown.leaves)):
        row, tree = np.nonzero(grown.leaf == number)
        others = row[grown.unseen[row, tree]]
        assert every.columns[0].mean[number] == pytest.approx(age[row].mean())  # type: ignore[union-attr]
        expected = age[others].mean() if len(others) else math.nan
        assert unseen.columns[0].mean[number] == pytest.approx(expected, nan_ok=True)  # type: ignore[union-attr]
        assert (unseen.coverage[number] > 0) == (len(others) > 1)
    assert found.forge(50).num_rows == 50


def test_likelihood_prefers_rows_of_the_same_kind() -> None:
    found = model(people(800), num_trees=20)
    found.forde(alpha=0.1)
    fresh = people(200, seed=9)
    shuffled = fresh.set_column(
        2, "charges", pa.array(np.random.default_rng(1).permutation(fresh["charges"].to_numpy()))
    )
    assert found.log_likelihood(fresh).mean() > found.log_likelihood(shuffled).mean() + 1
    strange = fresh.set_column(1, "smoker", pa.array(["maybe"] * 200))
    assert np.isneginf(found.log_likelihood(strange)).all()


def test_finite_bounds_keep_numbers_in_the_range_that_was_seen() -> None:
    found = model()
    found.forde()
    free = found.forge(4000)["age"].to_numpy()
    found.forde(finite_bounds=True)
    kept = found.forge(4000)["age"].to_numpy()
    seen = people()["age"].to_numpy()
    assert free.max() > seen.max()
    assert (kept.min(), kept.max()) >= (seen.min(), 0) and kept.max() <= seen.max()


def test_every_type_of_column_comes_back() -> None:
    rng = np.random.default_rng(5)
    rows = pa.table(
        {
            "name": [f"person {i}" for i in range(120)],
            "size": rng.choice(["small", "medium", "large"], 120),
            "member": rng.choice(["true", "false"], 120),
            "floor": rng.integers(1, 4, 120),
            "came": pa.array(rng.integers(18_000, 18_100, 120).astype("datetime64[D]")),
        }
    )
    schema = Schema(
        (
            Identifier("name", made_up="P{:03d}"),
            Ordinal("size", values=("small", "medium", "large")),
            Boolean("member"),
            Categorical("floor", values=(1, 2, 3)),
            Datetime("came", minimum=date(2019, 1, 1), maximum=date(2021, 1, 1)),  # type: ignore[arg-type]
        )
    )
    points = Points.of(rows, schema)
    assert points.sizes == (3, 2, 3, 0)
    assert points.labels[:3] == (("small", "medium", "large"), (False, True), (1, 2, 3))
    back = points.table(points.values)
    assert back["came"].to_pylist() == rows["came"].to_pylist()
    assert back["size"].to_pylist() == rows["size"].to_pylist()
    assert back["floor"].to_pylist() == rows["floor"].to_pylist()
    assert back["member"].to_pylist() == [m == "true" for m in rows["member"].to_pylist()]
    assert back["name"][0].as_py() == "P001"


def test_frames_come_back_in_their_own_kind_and_need_no_schema() -> None:
    import pandas as pd

    found = Arf(people().to_pandas(), num_trees=4, verbose=False, seed=1)
    found.forde()
    made = found.forge(10)
    assert isinstance(made, pd.DataFrame)
    assert list(made.columns) == ["age", "smoker", "charges"]
    assert made["age"].dtype.kind == "i"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.forde(dist="normal"), "dist"),
        (lambda m: m.forde(alpha=-1.0), "alpha"),
        (lambda m: m.forde(alpha=math.nan), "alpha"),
        (lambda m: (m.forde(), m.forge(0)), r"n \(0\)"),
    ],
)
def test_what_can_not_be_is_refused(call: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(model(num_trees=2))  # type: ignore[operator]


def test_tables_of_too_few_rows_and_infinite_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="no rows"):
        model(people().slice(0, 0))
    with pytest.raises(InputError, match="too few"):
        model(people().slice(0, 1)).forde()
    with pytest.raises(InputError, match="infinite"):
        model(people().set_column(2, "charges", pa.array([math.inf] * 240)))
