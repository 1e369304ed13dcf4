"""Tables of Spark's: what differs from other engines. What does not is in the conformance suite.

Each test runs on Sail; those marked slow on Spark itself too, in one Java process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import understudy as us
from helpers.orchard import ADD_REMOVE, TARGET, frame, people
from helpers.randomness import BestRandomness
from helpers.spark_sessions import in_spark
from understudy.boundary.privacy.asks import Marginals
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.ledger.ledger import Ledger
from understudy.boundary.privacy.mechanisms.randomness import ExactRandomness
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables import spark_tasks
from understudy.boundary.tables.spark import is_spark_frame
from understudy.boundary.tables.spark_tasks import CountSets, CountValues, add_up, counting, parted, read, written
from understudy.boundary.tables.table import Table, is_table, snapshot_of
from understudy.cli import run
from understudy.errors import InternalError, MethodError, TableError
from understudy.methods.method import Options
from understudy.predictors.classifiers import PrivateForest
from understudy.predictors.predictor import PrivatePredictor
from understudy.releases.synthesis import Plan, synthesize_with

TOML = """
missing_values = ["?"]
[columns.row]
type = "integer"
min = 0
max = 9
[columns.pay]
type = "number"
min = 0
max = 100
bins = 6
missing = true
[columns.day]
type = "datetime"
min = 2020-01-01
max = 2020-12-31
bins = 12
missing = true
[columns.word]
type = "categorical"
values = ["a", "b", "c"]
other = "d"
[columns.key]
type = "categorical"
values = "private"
"""
SCHEMA = Schema.loads(TOML)
PUBLIC = Schema(tuple(c for c in SCHEMA if c.name != "key"), missing_values=SCHEMA.missing_values)
DOMAIN = us.Domain.of(PUBLIC)
ENGINES = ["sail", pytest.param("spark", marks=pytest.mark.slow)]


@pytest.fixture(params=ENGINES)
def session(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(f"{request.param}_session")


@pytest.fixture
def spark(spark_session: Any) -> Any:
    """Spark itself, where Sail has nothing of the kind."""
    return spark_session


def rows_of(count: int) -> pa.Table:
    rng = np.random.default_rng(5)
    days = rng.integers(18_000, 18_900, count).astype("datetime64[D]")
    return pa.table(
        {
            "row": rng.integers(0, 10, count),
            "pay": pa.array(rng.normal(50, 30, count), mask=rng.random(count) < 0.1),
            "day": pa.array(days),
            "word": pa.array(rng.choice(["a", " b", "c ", "other", "?", ""], count)),
            "key": pa.array(rng.choice(["x", "y", " x ", "z"], count)),
        }
    )


def everything(table: Table) -> list[np.ndarray]:
    """Every pair of columns."""
    names = DOMAIN.names
    return table.count_by(DOMAIN, [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]])


def same_counts(one: Table, other: Table) -> bool:
    return all((a == b).all() for a, b in zip(everything(one), everything(other), strict=True))


# ---------------------------------------------------------------- what is opened


def test_a_frame_of_spark_is_known_and_is_no_table(session: Any):
    rows = in_spark(session, rows_of(3))
    assert is_spark_frame(rows) and not is_table(rows) and not is_spark_frame(rows_of(3))
    assert us.open(rows, SCHEMA).kind == "spark"
    assert us.open(rows, SCHEMA, name="people").identity == "frame people"


def test_nothing_of_spark_is_imported_before_it_is_needed():
    code = "import sys, pyarrow as pa, understudy as us; "
    code += "us.open(pa.table({'row': [1]}), us.Schema.loads(sys.argv[1])); "
    code += "sys.exit(any(m.split('.')[0] in ('pyspark', 'pysail') for m in sys.modules))"
    one = '[columns.row]\ntype = "integer"\nmin = 0\nmax = 9'
    assert subprocess.run([sys.executable, "-c", code, one], check=False).returncode == 0


def test_an_address_opens_a_parquet_file_as_the_server_sees_it(sail_address: str, tmp_path: Path):
    pq.write_table(rows_of(200), tmp_path / "rows.parquet")
    table = us.open(f"{sail_address}::{tmp_path / 'rows.parquet'}", SCHEMA)
    assert (table.kind, table.count_rows()) == ("spark", 200)
    assert table.identity == f"{sail_address}::{tmp_path / 'rows.parquet'}"
    assert same_counts(table, us.open(tmp_path / "rows.parquet", SCHEMA))


@pytest.mark.parametrize(
    ("inside", "said"),
    [("", "must end with the table"), ("::no_such", "can't be read by Spark: there is no table of that name")],
)
def test_an_address_that_leads_nowhere_is_refused_in_one_sentence(sail_address: str, inside: str, said: str):
    with pytest.raises(TableError, match=said):
        us.open(sail_address + inside, SCHEMA)


@pytest.mark.parametrize("address", ["sc://127.0.0.1:1::t", "sc://127.0.0.1:99999::t", "sc://::t"])
def test_a_server_that_is_not_there_is_refused_at_once(address: str):
    with pytest.raises(TableError, match="the Spark server can't be reached; check the address"):
        us.open(address, SCHEMA)


def test_a_unit_needs_a_declared_order(session: Any):
    schema = Schema.loads(TOML + '[unit]\ncolumn = "key"\nmax_rows = 2\n')
    with pytest.raises(TableError, match=r'no order of their own .* \[unit\] column = "key", order = '):
        us.open(in_spark(session, rows_of(3)), schema)


def test_training_is_refused_before_anything_is_asked(session: Any):
    curator = Curator.on(us.open(in_spark(session, rows_of(30)), SCHEMA), Budget(1.0, 1e-6))
    with pytest.raises(MethodError, match="is a spark table, which hands out counts only; export it to a file"):
        curator.demand_codes()


# ---------------------------------------------------------------- the same answers


def released(table: Table, method: str) -> dict[str, bytes]:
    """The files of a release with a seed for all its randomness."""
    plan = Plan.of(table.schema, Budget(2.0, 1e-6), method, Options(), 300, 7)
    release = synthesize_with(table, plan, randomness=ExactRandomness.seeded(11))
    files = release.files("csv")
    return {name: files[name] for name in ("synthetic.csv", "measurements.npz")}


@pytest.mark.parametrize("method", ["rake", "independent"])
def test_a_release_is_that_of_duckdb_byte_for_byte(session: Any, method: str, tmp_path: Path):
    rows = rows_of(900)
    pq.write_table(rows, tmp_path / "rows.parquet")
    assert released(us.open(in_spark(session, rows), SCHEMA), method) == released(
        us.open(tmp_path / "rows.parquet", SCHEMA), method
    )


def learned(table: Table) -> PrivatePredictor:
    """Without noise, and with the best split of every level."""
    predictor = PrivateForest(3.0, trees=2, depth=2)
    predictor.schema_, predictor.target_, predictor.seed_ = table.schema, TARGET, 7
    predictor._learn(Curator.on(table, Budget(3.0, 0.0), randomness=BestRandomness()), predictor.hyperparameters())
    return predictor


def test_a_forest_is_that_of_a_frame(session: Any):
    rows = frame(people(300, seed=3))
    one, other = (learned(us.open(source, ADD_REMOVE)) for source in (rows, in_spark(session, rows)))
    pairs = list(zip(one.leaves_, other.leaves_, strict=True))
    assert pairs and all(a.tree == b.tree and (a.counts == b.counts).all() for a, b in pairs)


QUERY = "SELECT word, COUNT(*), SUM(pay), AVG(pay) FROM data WHERE day >= '2020-03-01' GROUP BY word"


def test_a_query_has_the_answer_of_a_frame(session: Any):
    rows = rows_of(700)
    found = [
        us.query(us.open(source, SCHEMA), QUERY, epsilon=1e4, ledger=False)
        for source in (rows, in_spark(session, rows))
    ]
    (one, other) = ([[figure.value for figure in group.figures] for group in answer] for answer in found)
    np.testing.assert_allclose(one, other, rtol=1e-2)


def test_the_command_line_takes_an_address(sail_address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    pq.write_table(rows_of(400), tmp_path / "rows.parquet")
    (tmp_path / "s.toml").write_text(TOML)
    data, ledger = f"{sail_address}::{tmp_path / 'rows.parquet'}", str(tmp_path / "l.sqlite")
    where = ["--schema", str(tmp_path / "s.toml"), "--ledger", ledger]
    made = [
        "--epsilon",
        "2",
        "--delta",
        "1e-6",
        "--method",
        "independent",
        "--rows",
        "50",
        "--out",
        str(tmp_path / "out"),
    ]
    assert run(["synth", data, *where, *made]) == 0
    assert len((tmp_path / "out" / "synthetic.csv").read_text().splitlines()) == 51
    assert run(["query", data, "SELECT COUNT(*) FROM data WHERE row < 5", "--epsilon", "1", *where]) == 0
    assert run(["synth", data, "--schema", where[1], *made, "--overwrite"]) == 2
    assert "ledger" in capsys.readouterr().err
    assert len(Ledger.open(tmp_path / "l.sqlite").entries()) == 2


# ---------------------------------------------------------------- whatever a row holds

LAST = np.iinfo(np.int64)
NUMBERS = [0.0, -0.0, 5e-324, -1e308, 1.8e308, np.inf, -np.inf, np.nan, None, 9.5, 1e16, 0.1 + 0.2]
TEXTS = ["a", "A", "", " ", "\u00a0b", "?", "nan", "1e999", "-", "+-1", "1_0", "0x1", "☃" * 50, "\x00", "\x1f", "a\nb"]
TEXTS += [
    "2020-02-30",
    "9999-12-31",
    "0001-01-01",
    "2020-03-01 12:00+14:00",
    "' OR 1=1 --",
    '"',
    "\\",
    None,
    "٣",
    "\ud7ff",
]


def hostile(count: int) -> dict[str, pa.Array]:
    rng = np.random.default_rng(9)
    alphabet = np.array([*"0123456789-+.eE_:TZ ", "nan", "inf", "é", "\t"])
    made = ["".join(rng.choice(alphabet, rng.integers(0, 12))) for _ in range(2000)]
    texts = rng.choice(np.array([*TEXTS, *made], dtype=object), count)
    whole = rng.choice(np.array([0, 1, -1, LAST.min, LAST.max, 2**53, 7], dtype=np.int64), count)
    moments = rng.choice(np.array([-62135596800, 0, 253402300799, 1583020800, -1]), count).astype("datetime64[s]")
    return {
        "row": pa.array(whole, mask=rng.random(count) < 0.1),
        "pay": pa.array(rng.choice(np.array(NUMBERS, dtype=object), count).tolist(), pa.float64()),
        "day": pa.array(moments.astype("datetime64[us]"), mask=rng.random(count) < 0.1),
        "word": pa.array(texts.tolist(), pa.string()),
        "key": pa.array(texts[::-1].tolist(), pa.string()),
    }


@pytest.mark.parametrize("stored", ["typed", "texts"])
def test_hostile_rows_raise_nothing_and_count_as_in_a_frame(session: Any, stored: str):
    """100,000 rows, with ANSI mode as the engine has it."""
    columns = hostile(100_000)
    if stored == "texts":
        columns = {name: columns["word" if i % 2 else "key"] for i, name in enumerate(columns)}
    rows = pa.table(columns)
    one, other = us.open(in_spark(session, rows), SCHEMA), us.open(rows, SCHEMA)
    assert same_counts(one, other)
    assert [list(v) for v in one.count_values("key")] == [list(v) for v in other.count_values("key")]


@pytest.mark.slow
def test_bytes_that_are_no_text_raise_nothing(spark: Any):
    """Sail holds texts as Arrow does, and so none that are not UTF-8."""
    rows = spark.sql("SELECT CAST(X'61ff' AS STRING) AS word UNION ALL SELECT 'a'")
    schema = Schema(tuple(c for c in SCHEMA if c.name == "word"))
    (counts,) = us.open(rows, schema).count_by(us.Domain.of(schema), [("word",)])
    assert counts.tolist() == [1, 0, 0, 1]


def test_texts_are_made_valid_byte_by_byte():
    broken = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0\3\0\0\0"), pa.py_buffer(b"a\xffb")]
    )
    assert spark_tasks.valid_texts(pa.table({"t": broken})).column(0).to_pylist() == ["a�", "b"]


# ---------------------------------------------------------------- one state of the table


def test_a_table_that_changes_between_two_scans_is_refused_and_paid_once(session: Any, tmp_path: Path):
    path = tmp_path / "rows" / "part.parquet"
    path.parent.mkdir()
    pq.write_table(rows_of(50), path)
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    table = us.open(session.read.parquet(str(path.parent)), SCHEMA)
    curator = Curator.on(table, Budget(1.0, 1e-6), ledger=ledger, randomness=BestRandomness(), keys=[])
    curator.ask(Marginals(DOMAIN, [("row",)], curator.remaining().part(0.3)))
    changed = rows_of(50).to_pylist()
    changed[0]["word"] = "c" if changed[0]["word"] != "c" else "b"  # one value, in a column that is not asked for
    pq.write_table(pa.Table.from_pylist(changed, rows_of(50).schema), path)
    with pytest.raises(
        TableError, match=r"was changed while it was released.*give a fixed version of it|can't be read"
    ):
        curator.ask(Marginals(DOMAIN, [("pay",)], curator.remaining().part(0.3)))
    assert len(ledger.entries()) == 1


def test_a_release_begins_with_a_state_of_its_own(session: Any):
    table = us.open(in_spark(session, rows_of(20)), SCHEMA)
    table._seen = (1, 2)
    with pytest.raises(TableError, match="was changed while it was released"):
        table.count_rows()
    later = snapshot_of(table)
    assert later.version() is None and later.count_rows() == 20
    assert later.version().startswith("20 ")


def test_two_columns_that_swap_a_null_are_a_change(session: Any):
    schema = Schema(tuple(c for c in SCHEMA if c.name in ("row", "pay")))
    versions = []
    for row, pay in ((None, 5.0), (5, None)):
        rows = pa.table({"row": pa.array([row], pa.int64()), "pay": pa.array([pay], pa.float64())})
        table = us.open(in_spark(session, rows), schema)
        table.count_rows()
        versions.append(table.version())
    assert versions[0] != versions[1]


# ---------------------------------------------------------------- tasks that fail


def once_failing(marker: str, how: str) -> Any:
    """A step before ours that fails in its first run after it has handed on rows: by an error, or by being killed."""

    def step(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield batch
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            if how == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError("it failed")

    return step


@pytest.mark.slow
@pytest.mark.parametrize("how", ["an error", "killed"])
def test_a_task_that_is_run_again_counts_once(spark: Any, how: str, tmp_path: Path):
    rows = rows_of(30_000)
    given = in_spark(spark, rows).repartition(4)
    flaky = given.mapInArrow(once_failing(str(tmp_path / "failed"), how), given.schema)
    table = us.open(flaky, SCHEMA)
    assert same_counts(table, us.open(rows, SCHEMA))
    assert (tmp_path / "failed").exists()


def test_where_a_task_is_not_run_again_nothing_is_spent(sail_session: Any, tmp_path: Path):
    given = in_spark(sail_session, rows_of(500))
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    table = us.open(given, SCHEMA)
    curator = Curator.on(table, Budget(1.0, 1e-6), ledger=ledger, randomness=BestRandomness(), keys=[])
    flaky = table._frame.mapInArrow(once_failing(str(tmp_path / "failed"), "an error"), table._frame.schema)
    curator._gate._table.uncached._frame = flaky
    asked = Marginals(DOMAIN, [("row",)], curator.remaining().part(0.3))
    with pytest.raises(TableError, match=r"can't be read by Spark: a job failed"):
        curator.ask(asked)
    assert ledger.entries() == []
    assert curator.ask(asked)[0].counts.sum() == 500  # the same question, and nothing of the failed task is in it
    assert len(ledger.entries()) == 1


# ---------------------------------------------------------------- what leaves the executors


def test_an_answer_is_counts_alone(session: Any):
    """Whatever the number of rows: one line for all counts, and one for the check that the table is the same."""
    table = us.open(in_spark(session, rows_of(3000)), SCHEMA)
    job = table._job(CountSets(DOMAIN, (("row", "word"), ("day",)))).mapInArrow(add_up, spark_tasks.FORM)
    found = job.toArrow()
    assert sorted(found.column("name").to_pylist()) == ["checksum", "counts"]
    assert sum(map(len, found.column("counts").to_pylist())) == 8 * (2 + 10 * 4 + 13)


def test_what_travels_to_the_executors_is_public_facts():
    """No module is sent by value, and a question holds no rows: only what its schema says and the columns' names."""
    cloudpickle = pytest.importorskip("pyspark.cloudpickle", reason="pyspark is not installed")
    sent = cloudpickle.dumps(counting(CountSets(DOMAIN, (("row",),)), ["row"], PUBLIC, keyed=False))
    assert b"spark_tasks" in sent and b"co_code" not in sent and len(sent) < 20_000


def test_another_version_on_an_executor_is_refused():
    with pytest.raises(InternalError, match=r"on an executor must be the driver's, 0\.0\.1"):
        spark_tasks._check_version("0.0.1")


def test_answers_come_back_from_their_pieces(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(spark_tasks, "PIECE", 3)
    counts = np.arange(10)
    pieces = [*written({"counts": counts}), *written({"counts": counts, "value é": np.array([4])})]
    found = read(iter(pieces))
    assert found["counts"].tolist() == (2 * counts).tolist() and found["value é"].tolist() == [4]
    (one, two) = parted(found["counts"], [(2, 4), (2,)])
    assert one.shape == (2, 4) and two.tolist() == [16, 18]


def test_an_answer_of_values_has_no_other_texts(session: Any):
    table = us.open(in_spark(session, rows_of(300)), SCHEMA)
    found = table._ask(CountValues(SCHEMA["key"]))
    assert {name for name in found if name != "checksum"} == {"value x", "value y", "value z"}
