"""No cell anywhere: a canary stands in every cell, and every public entry point is called, well and badly.

No error, log line, warning, printed line, repr or file may hold one. Exceptions are what a synthetic table may hold by
its model, and what pages that are marked internal are for: each is named where it is made.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import understudy as us
from helpers.planted import CANARY, DAY, NUMBER, SCHEMA, SOURCES, TEXT, Shown, in_arrow, odd_frames, watched
from understudy.cli import run
from understudy.errors import UnderstudyError

KNOWN = us.Schema.loads(SCHEMA)
PUBLIC = us.Schema.loads(SCHEMA.replace('"private"', '["Bonn", "Ulm"]'))
"""The same with listed places, for what can't buy them."""
SEEDED = {"epsilon": 1.0, "test_only_noise_seed": 3, "seed": 3}
Watch = Callable[..., Shown]
TORCH = ("dp-gan", "dp-ctgan", "pate-gan")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of a call; beside it the folders of temporary files and of the user."""
    for name, variable in (("desk", None), ("tmp", "TMPDIR"), ("home", "HOME"), ("given", None)):
        (tmp_path / name).mkdir()
        if variable:
            monkeypatch.setenv(variable, str(tmp_path / name))
    monkeypatch.chdir(tmp_path / "desk")
    return tmp_path / "desk"


@pytest.fixture
def given(desk: Path) -> Path:
    """The folder of the private files, which of course hold canaries."""
    return desk.parent / "given"


@pytest.fixture
def watch(desk: Path, capfd: pytest.CaptureFixture[str]) -> Watch:
    """Runs a call and demands that nothing of it shows a canary, but where `but` says."""

    def call(what: Callable[[], Any], *, but: tuple[str, ...] = ()) -> Shown:
        shown = watched(what, capfd, (desk, desk.parent / "tmp", desk.parent / "home"))
        assert shown.leaks(but) == {}
        return shown

    return call


def test_the_watch_sees_canaries_wherever_they_are(desk: Path, capfd: pytest.CaptureFixture[str]):
    """The watch itself, shown a leak of each kind."""
    import gzip
    import logging
    import sqlite3
    import warnings

    def leaky() -> str:
        print(f"{TEXT}out")
        print(f"at {NUMBER + 3:,}", file=sys.stderr)
        logging.getLogger("other").debug("seen %s", DAY)
        warnings.warn(f"{NUMBER + 0.5}", stacklevel=1)
        pq.write_table(pa.table({"x": [NUMBER]}), desk / "x.parquet")
        np.savez_compressed(desk / "x.npz", x=np.frombuffer(TEXT.encode() * 50, dtype=np.uint8))
        (desk / "x.gz").write_bytes(gzip.compress(TEXT.encode() * 50))
        with sqlite3.connect(desk / "x.sqlite") as database:
            database.execute("CREATE TABLE t (x)")
            database.execute("INSERT INTO t VALUES (?)", (NUMBER,))
        database.close()
        try:
            float(f"{TEXT}chained")
        except ValueError as error:
            raise KeyError("x") from error
        return ""

    shown = watched(leaky, capfd, (desk,))
    files = {"file x.parquet!", "file x.npz!x.npy", "file x.gz!", "file x.sqlite!"}
    assert set(shown.leaks()) == {"stdout", "stderr", "log", "warnings", "error"} | files
    assert set(watched(lambda: repr(9.18273645192837e14), capfd, ()).leaks()) == {"result"}
    assert watched(lambda: 0.19182736451928, capfd, ()).leaks() == {}


# ---------------------------------------------------------------- every source


def good(source: Any, watch: Watch) -> us.Release:
    """A table's whole life: opened, drafted, counted, released, asked, learned from."""
    opened = watch(lambda: us.open(source, KNOWN)).result
    on_server = isinstance(source, str) and source.startswith("postgresql")
    paying = SEEDED | ({"ledger": "ledger.sqlite"} if on_server else {})  # a file has a ledger beside it
    if not on_server:
        watch(lambda: us.draft_schema(source), but=("result",))  # a draft is made of the rows, for the steward alone
    release = watch(lambda: us.synthesize(opened, method="independent", **paying)).result
    assert release is not None
    watch(lambda: us.synthesize(opened, method="mst", **paying))
    for sql in (
        f"SELECT count(*), avg(age) FROM {opened.name!r}".replace("'", '"'),
        f'SELECT place, count(*) FROM "{opened.name}" GROUP BY place',
        f"SELECT smoker, median(pay) FROM \"{opened.name}\" WHERE diagnosis = 'flu' GROUP BY smoker",
    ):
        watch(lambda sql=sql: us.query(opened, sql, epsilon=1.0, test_only_noise_seed=3, ledger="ledger.sqlite"))
    watch(lambda: us.PrivateDecisionTree(noise_seed=3).fit(us.open(source, PUBLIC), target="diagnosis").export_text())
    watch(lambda: us.Curator.on(opened, us.Budget(1.0, 1e-6)))
    return release


def bad(source: Any, watch: Watch) -> None:
    """Every way to ask for what can't be done."""
    fewer = us.Schema(tuple(c for c in KNOWN.columns if c.name != "place"))
    dated = us.Schema.loads(
        SCHEMA.replace('type = "integer"\nmin = 0\nmax = 99', 'type = "datetime"\nmin = 2020-01-01\nmax = 2020-12-31')
    )
    renamed = us.Schema.loads(SCHEMA.replace("[columns.age]", "[columns.years]"))
    draft = dataclasses.replace(KNOWN, status="draft")
    for schema in (fewer, dated, renamed, draft, "nowhere.toml"):
        watch(lambda schema=schema: us.synthesize(us.open(source, schema), method="independent", **SEEDED))
    table = us.open(source, KNOWN)
    for wish in ({"method": "nothing"}, {"epsilon": -1}, {"rows": -5}, {"target": "nobody"}, {"marginals": [["who"]]}):
        assert watch(lambda wish=wish: us.synthesize(table, **(SEEDED | wish))).error is not None
    for sql in ("SELECT nothing FROM data", "SELECT who FROM data", "SELECT", "SELECT sum(diagnosis) FROM data"):
        assert watch(lambda sql=sql: us.query(table, sql, epsilon=1.0)).error is not None
    watch(lambda: us.PrivateForest().fit(us.open(source, PUBLIC), target="who"))
    watch(lambda: us.PrivateForest().fit(us.open(source, PUBLIC), target="pay"))
    watch(lambda: us.open(us.open(source, KNOWN), KNOWN))


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("kind", SOURCES)
def test_from_every_source(kind: str, given: Path, watch: Watch):
    source = SOURCES[kind](given)
    release = good(source, watch)
    watch(lambda: release.save("out"))
    watch(lambda: (us.verify("out"), us.replay("out")))
    watch(lambda: us.Release.load("out").count("age > 40"))
    watch(lambda: release.save("out"))  # it exists
    bad(source, watch)


@pytest.fixture(scope="module")
def server():
    from helpers.postgres_cluster import cluster, skip_without_server

    with cluster(skip_without_server()) as url:
        yield url


@pytest.mark.slow
def test_from_a_server(server: str, watch: Watch):
    import psycopg

    from helpers.postgres_cluster import load

    address = load(server, "people", in_arrow(texts=True))
    good(address, watch)
    bad(address, watch)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(
            "CREATE VIEW miscast AS SELECT who, place, code, age, pay, seen, smoker, "
            "CAST(CAST(diagnosis AS int) AS text) AS diagnosis FROM people"
        )
        connection.execute(
            "CREATE FUNCTION telling() RETURNS text LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION '%', (SELECT string_agg(who, ' ') FROM people); END $$"
        )
        connection.execute(
            "CREATE VIEW telling AS SELECT telling() AS diagnosis, who, place, code, age, pay, seen, smoker FROM people"
        )
    paying = SEEDED | {"ledger": "ledger.sqlite"}
    for view in ("miscast", "telling"):
        refused = watch(lambda view=view: us.synthesize(us.open(f"{server}::{view}", KNOWN), method="mst", **paying))
        assert isinstance(refused.error, us.TableError)
    assert isinstance(watch(lambda: us.draft_schema(address)).result, us.Schema)


# ---------------------------------------------------------------- every method and product


@pytest.mark.parametrize("method", [m for m in us.METHODS if m not in TORCH])
def test_every_method(method: str, watch: Watch):
    table = us.open(in_arrow(), KNOWN)
    released = watch(lambda: us.synthesize(table, method=method, **(SEEDED | {"epsilon": 3.0})))
    if released.error is None:
        watch(lambda: released.result.save("out", format="parquet"))
    else:
        assert isinstance(released.error, UnderstudyError)


@pytest.mark.slow
@pytest.mark.parametrize("method", TORCH)
def test_every_method_of_networks(method: str, watch: Watch):
    pytest.importorskip("torch")
    table = us.open(in_arrow(), KNOWN)
    target = "diagnosis" if method == "pate-gan" else None
    shown = watch(lambda: us.synthesize(table, method=method, target=target, rows=20, **SEEDED))
    assert shown.error is None or isinstance(shown.error, UnderstudyError)


def test_a_release_that_is_interrupted(watch: Watch):
    """The journal and the ledger of a release that was paid for and not finished."""
    seen: list[object] = []

    def stop(step: object) -> None:
        seen.append(step)
        if len(seen) == 2:
            raise KeyboardInterrupt

    wishes = {"method": "mst", "ledger": "ledger.sqlite", "journal": "release.journal", "analyst": "ada"}
    asked = {k: v for k, v in SEEDED.items() if k != "test_only_noise_seed"}
    table = us.open(in_arrow(), PUBLIC)
    assert isinstance(watch(lambda: us.synthesize(table, progress=stop, **asked, **wishes)).error, KeyboardInterrupt)
    assert Path("release.journal").exists() and Path("ledger.sqlite").exists()
    watch(lambda: us.synthesize(table, resume=True, **asked, **wishes))
    watch(lambda: us.Ledger.open(Path("ledger.sqlite")).entries())


@pytest.mark.slow
def test_predictors_well_and_badly(watch: Watch):
    frame, rows = in_arrow().to_pandas(), in_arrow()
    features = frame[["age", "pay", "code"]]
    for kind in (us.PrivateDecisionTree, us.PrivateGreedyTree, us.PrivateForest):
        fitted = watch(lambda kind=kind: kind(noise_seed=3, schema=PUBLIC).fit(frame, target="diagnosis")).result
        watch(lambda fitted=fitted: fitted.predict(rows))
        watch(lambda fitted=fitted: fitted.predict_proba(frame))
        watch(lambda fitted=fitted: fitted.score(frame, frame["diagnosis"]))
        watch(lambda fitted=fitted: fitted.update(frame, epsilon=1.0))
        watch(lambda fitted=fitted: fitted.save("predictor.json"))
        watch(lambda: us.PrivateForest.load("predictor.json"))
        for wrong in (
            features,
            frame.to_numpy(),
            frame["who"],
            frame["who"].to_numpy(),
            [[f"{TEXT}a"], [1, 2]],
            None,
            f"{TEXT}path.csv",
            frame.rename(columns={"age": "years"}),
            np.array([[NUMBER, 1], [2, NUMBER]]),
        ):
            watch(lambda wrong=wrong, fitted=fitted: fitted.predict(wrong), but=("result",) if wrong is None else ())
        for labels in (
            None,
            frame["who"],
            frame["pay"],
            frame["who"][:3],
            frame[["who", "place"]],
            [f"{TEXT}one"],
            frame["who"].to_numpy().astype(object),
            frame["pay"].to_numpy(),
        ):
            for data in (features, features.to_numpy(), frame, [[f"{TEXT}a", 2], [1]], f"{TEXT}texts"):
                for extra in ({}, {"schema": PUBLIC}, {"accept_draft_as_public": True}):
                    watch(
                        lambda kind=kind, data=data, labels=labels, extra=extra: kind(noise_seed=3, **extra).fit(
                            data, labels
                        ),
                        but=("name",),
                    )


def test_completing_a_frame(watch: Watch):
    """The rows of that frame are the caller's own, and come back; but no error repeats them."""
    release = us.synthesize(us.open(in_arrow(), PUBLIC), method="mst", **SEEDED)
    planted = in_arrow().slice(60)
    sane = in_arrow().slice(0, 5)
    for frame in (
        planted.select(["diagnosis"]),
        planted.select(["age", "pay"]),
        planted.select(["seen"]),
        planted.select(["who", "code"]),
        planted.select(["place"]),
        sane.select(["diagnosis"]),
        planted,
        planted.select(["age"]).rename_columns(["years"]),
        planted.select(["age"]).to_pandas().astype(object),
    ):
        watch(lambda frame=frame: release.complete(frame), but=("result",))
        watch(
            lambda frame=frame: release.complete(frame.to_pandas() if isinstance(frame, pa.Table) else frame),
            but=("result",),
        )
    for given in ({"diagnosis": "flu"}, {"age": 3}):
        watch(lambda given=given: us.synthesize(us.open(in_arrow(), PUBLIC), method="mst", given=given, **SEEDED))
    for expression in ("age > 40", "nothing > 3", "diagnosis = 'x'", "age >", "who = 'x'"):
        watch(lambda expression=expression: release.count(expression))


# ---------------------------------------------------------------- what nobody can read


@pytest.mark.slow_after(5)
@pytest.mark.parametrize("name", odd_frames())
def test_frames_that_no_rule_reads(name: str, watch: Watch):
    frame = odd_frames()[name]
    release = us.synthesize(
        us.open(pa.table({"x": [1, 2], "y": [1, 2]}), us.Schema.loads(TWO["integer"])),
        epsilon=1.0,
        method="independent",
    )
    for declared in TWO.values():
        schema = us.Schema.loads(declared)
        watch(lambda schema=schema: us.synthesize(us.open(frame, schema), method="independent", **SEEDED))
        watch(lambda schema=schema: us.PrivateForest(schema=schema, noise_seed=3).fit(frame, target="y"))
    text = us.Schema.loads(TWO["text"])
    watch(lambda: us.draft_schema(frame), but=("result",))
    watch(lambda: us.evaluate(frame, frame, schema=text, measures=["tv1"]))
    watch(lambda: us.evaluate(frame, frame, measures=["tv1"]))
    watch(lambda: us.anonymity(frame, ["x"], ["y"], schema=text))
    watch(lambda: us.attack(frame, frame, frame), but=("result",))
    watch(lambda: len(release.complete(frame)))  # the user's own frame comes back, and may not even be printable
    watch(lambda: us.compare(frame, text, methods=["nothing"], out="study"))
    watch(lambda: us.specimen(frame, text, method="arf"), but=("result",))


TWO = {
    kind: f"[columns.x]\n{lines}\nmissing = true\n[columns.y]\ntype = \"categorical\"\nvalues = [1, 2]\n"
    for kind, lines in {
        "integer": 'type = "integer"\nmin = 0\nmax = 9',
        "text": 'type = "categorical"\nvalues = ["a", "b"]',
        "datetime": 'type = "datetime"\nmin = 2020-01-01\nmax = 2020-12-31',
        "boolean": 'type = "boolean"',
    }.items()
}  # fmt: skip


# ---------------------------------------------------------------- internal products


@pytest.mark.slow
def test_evaluation_attacks_and_studies(watch: Watch):
    rows = in_arrow()
    synthetic = us.synthesize(us.open(rows, PUBLIC), method="independent", **SEEDED).arrow
    found = watch(lambda: us.evaluate(rows, synthetic, schema=PUBLIC, holdout=rows, target="diagnosis")).result
    watch(lambda: found.save("evaluation.json"))
    attacked = watch(lambda: us.attack(rows, rows, synthetic, schema=PUBLIC)).result
    watch(lambda: attacked.save("attacks.html"))
    watch(lambda: us.anonymity(rows, ["age", "place"], ["diagnosis"], schema=PUBLIC))
    wishes = {"methods": ["independent", "mst"], "epsilons": [1.0], "seeds": 1, "measures": ["tv1"], "jobs": 2}
    studied = watch(lambda: us.compare(rows, PUBLIC, out="study", **wishes)).result
    watch(lambda: studied.save("study.html"))
    for wrong in (
        rows.drop_columns(["age"]),
        rows.rename_columns([*rows.column_names[:-1], "smokes"]),
        rows.slice(0, 0),
        7,
    ):
        watch(lambda wrong=wrong: us.evaluate(wrong, synthetic, schema=PUBLIC))
        watch(lambda wrong=wrong: us.evaluate(rows, wrong, schema=PUBLIC))
        watch(lambda wrong=wrong: us.attack(rows, wrong, synthetic, schema=PUBLIC))
        watch(lambda wrong=wrong: us.compare(wrong, PUBLIC, out="other", **wishes))
        watch(lambda wrong=wrong: us.draft_schema(wrong), but=("result",))
    watch(lambda: us.plan(PUBLIC, epsilon=1.0))
    watch(lambda: us.audit("independent", out="audit", time_limit=1.0, jobs=1))


# ---------------------------------------------------------------- the command line


@pytest.mark.slow
def test_every_command(given: Path, desk: Path, watch: Watch):
    data = SOURCES["csv"](given)
    (given / "people.toml").write_text(SCHEMA)
    (desk / "listed.toml").write_text(SCHEMA.replace('"private"', '["Bonn", "Ulm"]'))
    ledger = ("--ledger", "ledger.sqlite")
    seeded = ("--test-only-noise-seed", "3", "--seed", "3")

    def command(*arguments: str, code: int | None = 0, but: tuple[str, ...] = ()) -> None:
        shown = watch(lambda: run([*arguments]), but=but)
        assert code is None or (shown.error is None and shown.result == code), shown

    command("synth", data, "--epsilon", "1", "--out", "out", *ledger, *seeded)
    command("synth", data, "--epsilon", "1", "--out", "out", *ledger, code=2)
    command("synth", data, "--epsilon", "x", code=2)
    command("synth", data, "--epsilon", "1", "--schema", "nowhere.toml", code=2)
    command("synth", data, "--epsilon", "1", "--method", "arf", "--schema", "listed.toml", *ledger, code=2)
    command("schema", data, but=("stdout",))
    command("schema", data, "--out", str(given / "draft.toml"))
    command("check", data, "--schema", "listed.toml", code=None, but=("stdout",))
    command("methods")
    command("plan", data, "--epsilon", "1")
    command("verify", "out")
    command("replay", "out")
    command("count", "out", "age > 40")
    command("count", "out", "nothing > 40", code=2)
    command("query", data, "SELECT count(*) FROM people", "--epsilon", "1", *ledger)
    command("query", data, "SELECT place, count(*) FROM people GROUP BY place", "--epsilon", "1", *ledger, *seeded[:2])
    command("query", data, "SELECT who FROM people", "--epsilon", "1", *ledger, code=2)
    command("budget", "set", data, "--epsilon", "3", *ledger, code=None)
    command("budget", "share", data, "ada", "0.5", *ledger, code=None)
    for name in ("show", "history"):
        command("budget", name, data, *ledger, code=None)
    command("budget", "export", data, "history.csv", *ledger, code=None)
    command("evaluate", data, "out", "--report", str(given / "evaluation.html"), "--schema", "listed.toml")
    command("attack", data, data, "out", "--report", "attack.html", "--schema", "listed.toml")
    command("compare", data, "--methods", "independent", "--epsilons", "1", "--seeds", "1", "--schema", "listed.toml")
    command("audit", "independent", "--time-limit", "1", "--jobs", "1", code=None)
    whole = Path(data).read_bytes()
    (given / "ragged.csv").write_bytes(whole + f"{TEXT}ragged,3,4\n".encode())
    (given / "latin.csv").write_bytes(whole.replace(b"canary-diagnosis-1", b"canary-\xe9"))
    (given / "broken.parquet").write_bytes(Path(SOURCES["parquet"](given)).read_bytes()[:-40] + TEXT.encode())
    (given / "broken.duckdb").write_bytes(TEXT.encode() * 999)
    for name in ("ragged.csv", "latin.csv", "broken.parquet", "broken.duckdb::people", "nowhere.csv"):
        for call in (
            ("schema",),
            ("synth", "--epsilon", "1", "--schema", "listed.toml", *ledger),
            ("query", "SELECT count(*) FROM people", "--epsilon", "1", "--schema", "listed.toml", *ledger),
            ("evaluate", "out", "--schema", "listed.toml"),
            ("compare", "--schema", "listed.toml", "--out", "study"),
            ("attack", data, "out", "--schema", "listed.toml"),
        ):
            if (name, *call) == ("latin.csv", "schema"):  # its encoding is found out, and the draft shown
                command("schema", str(given / name), but=("stdout",))
            else:
                command(call[0], str(given / name), *call[1:], code=2)
    miscast = SOURCES["duckdb"](given).replace("::people", "::miscast")
    for call in (("schema",), ("synth", "--epsilon", "1", "--schema", "listed.toml", *ledger), ("evaluate", "out")):
        command(call[0], miscast, *call[1:], code=2)


def test_an_unforeseen_error_is_named_by_its_place(given: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch):
    """Errors of other libraries quote values; the command line says where they came from instead."""
    data = SOURCES["csv"](given)
    (given / "people.toml").write_text(SCHEMA)

    def broken(*_: object, **__: object) -> None:
        float(f"{TEXT}quoted")

    monkeypatch.setattr("understudy.cli.synth.open_table", broken)
    shown = watch(lambda: run(["synth", data, "--epsilon", "1"]))
    assert shown.result == 70 and b"a bug of ours (ValueError at cli" in shown.texts["stderr"]
    assert CANARY.search(shown.texts["stderr"]) is None
