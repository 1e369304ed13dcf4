"""Releases with a prior: what their certificate says, what replay needs, and which priors are refused.

The command line refuses with exit code 2 and one sentence; `refused` of tests/cli has the rest of such cases.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import understudy as us
from helpers.related_columns import SIZES, TREE, along, schema_of
from helpers.tuning import tune
from understudy.errors import CheckFailed, InputError, UnderstudyError
from understudy.methods.rake import priors as joining
from understudy.releases import priors
from understudy.releases.certificate import digest
from understudy.releases.priors import load_prior, prior_bytes, read_prior
from understudy.releases.release import read_record, record_bytes, sha256
from understudy.releases.untrusted.limits import Limits

SCHEMA = schema_of(SIZES)
TABLE = along(TREE, SIZES, rows=3_000, seed=1)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    tune(monkeypatch, "rake", particles=2000, final_particles=4000, most_picks=20, exchange_rounds=60)


@pytest.fixture
def public(tmp_path: Path) -> Path:
    pacsv.write_csv(along(TREE, SIZES, rows=1_000, seed=2), tmp_path / "public.csv")
    return tmp_path / "public.csv"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    release = us.synthesize(us.open(TABLE, SCHEMA), epsilon=1.0, method="mst")
    return release.save(tmp_path_factory.mktemp("made") / "last-year")


@pytest.fixture
def earlier(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "last-year"))


def released(prior: Path | str, table: pa.Table = TABLE, **asked: Any) -> us.Release:
    return us.synthesize(us.open(table, SCHEMA), epsilon=1.0, prior=prior, **asked)


def test_a_public_table_is_named_in_the_certificate_and_not_needed_again(public: Path, tmp_path: Path) -> None:
    release = released(public)
    content = public.read_bytes()
    said = release.certificate.parameters["prior"]
    assert (said["kind"], said["name"], said["rows"]) == ("public table", "public.csv", 1_000)
    assert said["sha256"] == hashlib.sha256(content).hexdigest()
    assert said["said"].startswith("taken as public:")
    assert release.certificate.guarantee is not None
    assert "taken as public" in release.certificate.guarantee["assumes"]
    assert release.certificate.method == "rake" and "prior" in release.certificate.reason
    folder = release.save(tmp_path / "release")
    public.unlink()
    assert "prior.npz" in us.verify(folder).files
    assert us.replay(folder).rows == release.certificate.rows
    assert us.Release.load(folder).count("a = 0").value == release.count("a = 0").value
    assert "taken as public" in (folder / "report.html").read_text(encoding="utf-8")
    released(folder).save(folder, overwrite=True)  # what holds a prior's tables is a release, and nothing else


def test_a_parquet_file_is_read_as_the_same_rows(public: Path) -> None:
    other = public.with_suffix(".parquet")
    pq.write_table(pacsv.read_csv(public), other)
    first, second = load_prior(public, SCHEMA), load_prior(other, SCHEMA)
    assert [t.columns for t in first.tables] == [t.columns for t in second.tables]
    assert all(np.array_equal(a.counts, b.counts) for a, b in zip(first.tables, second.tables, strict=True))


def test_an_earlier_release_is_named_with_what_it_cost(earlier: Path, tmp_path: Path) -> None:
    release = released(earlier)
    said = release.certificate.parameters["prior"]
    assert (said["kind"], said["name"], said["epsilon"]) == ("earlier release", "last-year", 1.0)
    assert said["sha256"] == sha256((earlier / "certificate.json").read_bytes())
    assert said["said"].endswith("counted besides, and is no part of this claim")
    assert said["paid"] == "its certificate names no ledger"
    assert "earlier release" in release.certificate.guarantee["assumes"]
    folder = release.save(tmp_path / "release")
    shutil.rmtree(earlier)
    assert us.verify(folder).claimed and us.replay(folder).file == "synthetic.csv"
    # Another one after it: what a release measured itself is what it passes on.
    assert released(folder).certificate.parameters["prior"]["name"] == "release"


def test_a_prior_without_its_own_debit_names_none_and_one_with_a_debit_names_it(tmp_path: Path) -> None:
    first = us.synthesize(us.open(TABLE, SCHEMA), epsilon=1.0, method="mst", ledger=tmp_path / "ledger.jsonl")
    second = released(first.save(tmp_path / "first"), ledger=tmp_path / "ledger.jsonl")
    assert second.certificate.parameters["prior"]["paid"] == str(first.certificate.ledger)
    assert second.certificate.ledger is not None and second.certificate.ledger.entry == 2


def test_a_column_that_is_coded_otherwise_is_left_out_and_named(earlier: Path, tmp_path: Path) -> None:
    changed = schema_of(SIZES | {"b": 5})
    release = us.synthesize(us.open(TABLE, changed), epsilon=1.0, prior=earlier)
    assert release.certificate.parameters["prior"]["left_out"] == ["b"]
    assert all("b" not in t.columns for t in release.prior.tables)
    assert us.replay(release.save(tmp_path / "release")).rows


def test_the_tables_come_back_as_they_were_written(public: Path, earlier: Path) -> None:
    for path in (public, earlier):
        prior = load_prior(path, SCHEMA)
        back = read_prior(prior_bytes(prior))
        assert back.to_dict() == prior.to_dict()
        for a, b in zip(prior.tables, back.tables, strict=True):
            assert a.columns == b.columns and a.variance == b.variance and np.array_equal(a.counts, b.counts)
            assert all(map(np.array_equal, a.groups, b.groups))


def test_a_prior_never_meets_a_private_row(public: Path, earlier: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made from the schema and its own file; what is done with it is a function of recorded answers."""
    seen: list[Any] = []
    honest = joining.join
    monkeypatch.setattr(joining, "join", lambda state, prior: (seen.append(prior), honest(state, prior)))
    other = TABLE.slice(1)
    for path in (public, earlier):
        seen.clear()
        for table in (TABLE, other):
            released(path, table)
        assert prior_bytes(seen[0]) == prior_bytes(seen[1])


def test_wrong_relations_are_found_out_and_right_ones_are_used(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[Any] = []
    honest = joining.judge

    def spied(*given: Any) -> Any:
        judged.append(honest(*given))
        return judged[-1]

    monkeypatch.setattr(joining, "judge", spied)
    rows = along(TREE, SIZES, rows=20_000, seed=1)
    us.synthesize(us.open(rows, SCHEMA), epsilon=10.0, prior=public, seed=1, test_only_noise_seed=1)
    table = pacsv.read_csv(public)
    rng = np.random.default_rng(3)
    pacsv.write_csv(pa.table({n: table[n].take(rng.permutation(1_000)) for n in table.column_names}), public)
    us.synthesize(us.open(rows, SCHEMA), epsilon=10.0, prior=public, seed=1, test_only_noise_seed=1)
    assert [j.useful for j in judged] == [True, False]


# --- what is refused


def forged(folder: Path, name: str, content: bytes) -> Path:
    """The file replaced, and the certificate told so."""
    (folder / name).write_bytes(content)
    raw = json.loads((folder / "certificate.json").read_text())
    raw["files"][name] = sha256(content)
    body = {k: v for k, v in raw.items() if k != "digest"}
    text = json.dumps(body | {"digest": digest(body)}, indent=2, ensure_ascii=False) + "\n"
    (folder / "certificate.json").write_text(text)
    return folder


def test_changed_tables_are_found(public: Path, earlier: Path, tmp_path: Path) -> None:
    folder = released(public).save(tmp_path / "release")
    other = prior_bytes(load_prior(earlier, SCHEMA))
    kept = (folder / "prior.npz").read_bytes()
    (folder / "prior.npz").write_bytes(other)
    with pytest.raises(CheckFailed, match=r"prior\.npz was changed"):
        us.verify(folder)
    with pytest.raises(CheckFailed, match="not of the prior"):
        us.replay(forged(folder, "prior.npz", other))
    with pytest.raises(CheckFailed, match="can't be read"):
        us.replay(forged(folder, "prior.npz", kept[:100]))
    (folder / "prior.npz").unlink()
    with pytest.raises(CheckFailed, match="missing"):
        us.verify(folder)


def misshapen(folder: Path) -> Path:
    record = read_record((folder / "measurements.npz").read_bytes())
    for answer in record:
        if len(answer.question.get("columns", ())) == 1:
            object.__setattr__(answer, "value", answer.value[:-1])
    return forged(folder, "measurements.npz", record_bytes(record))


def nonsense(folder: Path) -> Path:
    record = read_record((folder / "measurements.npz").read_bytes())
    for answer in record:
        answer.question["scale"] = "wide"
    return forged(folder, "measurements.npz", record_bytes(record))


HOSTILE: dict[str, Callable[[Path], Path]] = {
    "answers of another shape": misshapen,
    "answers without a scale": nonsense,
    "no archive": lambda folder: forged(folder, "measurements.npz", b"PK"),
    "a schema that is none": lambda folder: forged(folder, "schema.toml", b"\xff\x00"),
    "another schema": lambda folder: forged(folder, "schema.toml", schema_of({"x": 2, "y": 3}).dumps().encode()),
}


@pytest.mark.parametrize("harm", HOSTILE)
def test_a_hostile_folder_is_refused(harm: str, earlier: Path) -> None:
    with pytest.raises(InputError, match="last-year"):
        load_prior(HOSTILE[harm](earlier), SCHEMA)


def test_a_folder_that_was_changed_is_refused(earlier: Path) -> None:
    with (earlier / "measurements.npz").open("ab") as file:
        file.write(b"x")
    with pytest.raises(InputError, match="can't be relied on"):
        load_prior(earlier, SCHEMA)


def test_an_archive_that_is_far_larger_unpacked_is_refused(earlier: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Limits, "here", lambda: Limits(unpacked_bytes=1 << 10))
    with pytest.raises(InputError, match=r"unpacks to .* more than the limit of 1,024 bytes"):
        load_prior(earlier, SCHEMA)


def test_a_release_without_a_guarantee_is_no_prior(tmp_path: Path) -> None:
    seeded = us.synthesize(us.open(TABLE, SCHEMA), epsilon=1.0, method="mst", test_only_noise_seed=1)
    with pytest.raises(InputError, match="guarantees nothing"):
        load_prior(seeded.save(tmp_path / "seeded"), SCHEMA)


def test_a_release_that_protects_otherwise_is_no_prior(earlier: Path) -> None:
    other = us.Schema.loads(SCHEMA.dumps().replace("add-remove", "replace-one"))
    with pytest.raises(InputError, match="another unit or other neighbours"):
        load_prior(earlier, other)


def test_a_table_too_large_is_refused(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(priors, "MOST_VALUES", 5_999)
    with pytest.raises(InputError, match="take a sample of it"):
        load_prior(public, SCHEMA)


def test_odd_values_are_coded_as_private_rows_are(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    lines = ["nan,1,2,0,1,2", "inf,-1,99,x,,2", "1,2,0,1,3,2", ",,,,,", "1e400,-0,٣,0,1,1"]
    path.write_text("a,b,c,d,e,f\n" + "\n".join(lines * 40) + "\n", encoding="utf-8")
    prior = load_prior(path, SCHEMA)
    assert all(np.isfinite(t.counts).all() and t.counts.sum() == 200 for t in prior.tables)
    assert released(path).certificate.guarantee is not None


def test_one_constant_row_is_a_prior_that_says_next_to_nothing(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("a,b\n0,0\n")
    assert [t.columns for t in load_prior(path, SCHEMA).tables] == [("a",), ("b",)]
    assert released(path).certificate.parameters["prior"]["left_out"] == ["c", "d", "e", "f"]


def test_an_audit_is_of_a_release_without_a_prior(public: Path) -> None:
    class Found:
        subject, violated = "rake", False

    with pytest.raises(InputError, match="without a prior"):
        released(public, audit=Found())


def test_another_prior_can_not_continue_a_release(public: Path, earlier: Path, tmp_path: Path) -> None:
    def stopped(release: us.Release) -> None:
        raise KeyboardInterrupt

    places = {"ledger": tmp_path / "ledger.jsonl", "journal": tmp_path / "journal"}
    with pytest.raises(KeyboardInterrupt):
        released(public, deliver=stopped, **places)
    with pytest.raises(UnderstudyError, match="prior"):
        released(earlier, resume=True, **places)
    assert released(public, resume=True, **places).certificate.guarantee is not None


def test_plan_takes_the_method_that_takes_a_prior(public: Path) -> None:
    assert us.plan(SCHEMA, epsilon=1.0, prior=public).method == "rake"


def test_larger_tables_of_an_earlier_release_are_evidence_too(tmp_path: Path) -> None:
    first = us.synthesize(us.open(TABLE, SCHEMA), epsilon=5.0, method="marginals", marginals=[["a", "b", "c", "d"]])
    release = released(first.save(tmp_path / "first"))
    assert ("a", "b", "c", "d") in {t.columns for t in release.prior.tables}
    assert us.replay(release.save(tmp_path / "release")).rows


def test_larger_tables_of_other_rows_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # No pair is in both releases, so that nothing but the margins can tell. Without them the model believes that there
    # are nearly five times as many rows.
    other = pa.concat_tables([TABLE] * 5)
    first = us.synthesize(us.open(other, SCHEMA), epsilon=5.0, method="marginals", marginals=[["a", "b", "c", "d"]])
    folder = first.save(tmp_path / "first")
    assert abs(released(folder).certificate.rows - TABLE.num_rows) < 0.2 * TABLE.num_rows
    monkeypatch.setattr(joining, "margins_agree", lambda table, columns: True)
    assert released(folder).certificate.rows > 2 * TABLE.num_rows
