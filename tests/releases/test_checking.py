"""`verify` and `replay` against accidents (a changed byte) and forgers (a changed claim with a fresh digest)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from understudy.cli import run
from understudy.releases.certificate import FIRST_FORMAT, digest
from understudy.releases.release import read_record, record_bytes, sha256

FILES = ("synthetic.csv", "certificate.json", "measurements.npz", "schema.toml", "report.html")

SCHEMA = us.Schema.loads(
    """
    [columns.job]
    type = "categorical"
    values = ["clerk", "cook", "nurse"]
    [columns.age]
    type = "integer"
    min = 18
    max = 80
    [columns.smoker]
    type = "boolean"
    missing = true
    """
)


def people(rows: int = 200) -> pa.Table:
    rng = np.random.default_rng(5)
    return pa.table(
        {
            "job": rng.choice(["clerk", "cook", "nurse"], rows),
            "age": rng.integers(18, 81, rows),
            "smoker": pa.array(rng.random(rows) < 0.3, mask=rng.random(rows) < 0.1),
        }
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    release = us.synthesize(us.open(people(), SCHEMA), epsilon=1.0, method="marginals", target="smoker")
    return release.save(tmp_path_factory.mktemp("made") / "release")


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "release"))


def test_a_release_whose_method_was_chosen_replays(tmp_path: Path):
    release = us.synthesize(us.open(people(), SCHEMA), epsilon=1.0, target="smoker")
    assert us.replay(release.save(tmp_path / "chosen")).rows == release.certificate.rows


def complaint(folder: Path) -> str:
    """The sentence with which `verify`, or else `replay`, rejects a release."""
    for check in (us.verify, us.replay):
        try:
            check(folder)
        except us.CheckFailed as error:
            return str(error)
    raise AssertionError("neither verify nor replay objected")


def rewrite(folder: Path, change: Callable[[dict[str, Any]], object], *, files: bool = False) -> None:
    """Edits the certificate as a forger would, who knows how digests are made."""
    path = folder / "certificate.json"
    body = json.loads(path.read_bytes())
    del body["digest"]
    change(body)
    if files:
        body["files"] = {name: sha256((folder / name).read_bytes()) for name in body["files"]}
    body["digest"] = digest(body)
    path.write_text(json.dumps(body, indent=2, ensure_ascii=False) + "\n")


def test_a_sound_release_passes(folder: Path):
    found = us.verify(folder)
    assert found.claimed and found.files == (*sorted(found.files[:-1], key=found.files.index), "certificate.json")
    assert set(found.files) == set(FILES)
    again = us.replay(folder)
    certificate = json.loads((folder / "certificate.json").read_bytes())
    assert again.rows == certificate["rows"]["synthetic"] and again.answers == len(certificate["spends"])
    assert found.epsilon == certificate["guarantee"]["epsilon"] == certificate["asked"]["epsilon"]
    assert 0.98 * found.epsilon <= found.spent == certificate["spent"]["epsilon"] <= found.epsilon


def test_a_certificate_has_a_line_for_each_spend_and_keeps_verifying_as_it_was_written_before(folder: Path):
    path = folder / "certificate.json"
    lines, body = path.read_text().splitlines(), json.loads(path.read_bytes())
    assert len(body["spends"]) > 1 and all(
        f"    {json.dumps(s)}" in {x.rstrip(",") for x in lines} for s in body["spends"]
    )
    path.write_text(json.dumps(body, indent=2, ensure_ascii=False) + "\n")
    us.verify(folder)
    us.replay(folder)
    for layout in ({"indent": 4}, {"indent": None}, {"indent": 2, "sort_keys": True}):
        path.write_text(json.dumps(body, ensure_ascii=False, **layout) + "\n")
        assert "certificate.json" in complaint(folder), layout


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("where", [0.0, 0.13, 0.5, 0.77, 1.0])
@pytest.mark.parametrize("bit", [0, 5])
def test_a_flipped_bit(name: str, where: float, bit: int, folder: Path):
    content = bytearray((folder / name).read_bytes())
    content[round(where * (len(content) - 1))] ^= 1 << bit
    (folder / name).write_bytes(content)
    assert name in complaint(folder)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("change", ["append", "cut", "empty", "delete", "folder"])
def test_a_damaged_file(name: str, change: str, folder: Path, capsys: pytest.CaptureFixture[str]):
    path = folder / name
    content = path.read_bytes()
    path.unlink()
    if change == "folder":
        path.mkdir()
    elif change != "delete":
        path.write_bytes({"append": content + b"\n", "cut": content[:-1], "empty": b""}[change])
    assert name in complaint(folder)
    assert run(["verify", str(folder)]) == 1
    told = capsys.readouterr().err
    assert name in told and told.count("\n") == 1


@pytest.mark.parametrize("name", [n for n in FILES if n != "report.html"])
def test_replay_needs_every_file_that_it_rests_on(name: str, folder: Path):
    (folder / name).unlink()
    with pytest.raises(us.CheckFailed, match=name):
        us.replay(folder)


def test_a_folder_that_never_was_a_release_is_the_users_mistake(tmp_path: Path):
    for check in (us.verify, us.replay):
        with pytest.raises(us.ReleaseError, match="give the folder of a release"):
            check(tmp_path)
        with pytest.raises(us.ReleaseError, match="is not a folder"):
            check(tmp_path / "nowhere")


FORGERIES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "smaller epsilon": (lambda c: c["guarantee"].update(epsilon=0.1), "certificate.json"),
    "smaller delta": (lambda c: c["guarantee"].update(delta=1e-12), "certificate.json"),
    "better relation": (lambda c: c["guarantee"].update(neighbours="replace-one"), "certificate.json"),
    "better unit": (lambda c: c["guarantee"].update(unit={"what": "person"}), "certificate.json"),
    "no guarantee": (lambda c: c.update(guarantee=None), "certificate.json"),
    "a stamp": (lambda c: c.update(stamp="APPROVED"), "certificate.json"),
    "smaller sum": (lambda c: c["spent"].update(epsilon=0.1), "certificate.json"),
    "larger sum": (lambda c: c["spends"].append(c["spends"][0]), "certificate.json"),
    "a reason": (lambda c: c.update(no_guarantee_because="nobody asked"), "certificate.json"),
    "another origin": (lambda c: c.update(schema_status="confirmed"), "schema status"),
    "a ledger of another kind": (lambda c: c.update(ledger=7), "certificate.json"),
    "a ledger without an entry": (lambda c: c.update(ledger={"name": "x"}), "certificate.json"),
    "cheaper spend": (lambda c: c["spends"][0].update(rho=1e-9), "certificate.json"),
    "smaller epsilon asked": (lambda c: c["asked"].update(epsilon=0.5), "certificate.json"),
    "spend left out": (lambda c: c["spends"].pop(), "certificate.json"),
    "more noise than was drawn": (lambda c: c["spends"][0].update(scale=1e6), "certificate.json"),
    "unknown mechanism": (lambda c: c["spends"][0].update(mechanism="magic"), "certificate.json"),
    "spends gone": (lambda c: c.pop("spends"), "certificate.json"),
    "spends of another kind": (lambda c: c.update(spends=7), "certificate.json"),
    "impossible budget": (lambda c: c["asked"].update(epsilon=-1), "certificate.json"),
    "other relation": (lambda c: c.update(neighbours="replace-one"), "certificate.json"),
    "other columns": (lambda c: c["columns"].update(job="confirmed"), "columns"),
    "other rows": (lambda c: c["rows"].update(synthetic=7), "rows"),
    "other rule": (lambda c: c["rows"].update(rule="as asked"), "rows rule"),
    "other seed": (lambda c: c.update(postprocessing_seed=1), "synthetic.csv"),
    "other method": (lambda c: c["method"].update(name="independent"), "record"),
    "no such method": (lambda c: c["method"].update(name="magic"), "can't be rebuilt"),
    "other target": (lambda c: c["method"]["parameters"].update(target="job"), "record"),
    "weights of another kind": (lambda c: c["method"]["parameters"].update(weights=[["job", 1]]), "can't be rebuilt"),
    "weights that the method lacks": (
        lambda c: c["method"]["parameters"].update(weights=[[["job", "age"], 5.0]]),
        "method marginals can't weigh",
    ),
    "unknown workload": (lambda c: c["method"]["parameters"].update(workload="quads"), "can't be rebuilt"),
    "target of another kind": (lambda c: c["method"]["parameters"].update(marginals=3), "can't be rebuilt"),
    "a hash left out": (lambda c: c["files"].pop("report.html"), "report.html"),
    "all hashes left out": (lambda c: c.update(files={}), "synthetic"),
    "a hash of something else": (lambda c: c["files"].update({"../../passwd": "0"}), "../../passwd"),
    "another format": (lambda c: c.update(format="understudy-certificate/9"), "certificate.json"),
    "an extra field": (lambda c: c.update(approved="yes"), "certificate.json"),
}


def rebuilt_claim(certificate: dict[str, Any]) -> None:
    """The derived parts of a forged certificate, made to fit: what a careful forger would do."""
    parsed = us.Certificate._from_dict(certificate)
    certificate.update({k: v for k, v in parsed.to_dict().items() if k != "digest"})


@pytest.mark.parametrize("case", FORGERIES)
def test_a_forged_certificate_with_a_fresh_digest(case: str, folder: Path):
    change, expected = FORGERIES[case]
    rewrite(folder, change)
    assert expected in complaint(folder)


@pytest.mark.parametrize(
    "case", ["spend left out", "more noise than was drawn", "other relation", "smaller epsilon asked"]
)
def test_a_consistent_forgery_fails_in_replay(case: str, folder: Path):
    """Claim and spends agree, so `verify` has nothing to object; but the record was made with other noise."""

    def forge(certificate: dict[str, Any]) -> None:
        FORGERIES[case][0](certificate)
        rebuilt_claim(certificate)

    rewrite(folder, forge)
    with pytest.raises(us.CheckFailed):
        us.replay(folder)


def test_a_draft_cannot_pass_as_declared(tmp_path: Path):
    import dataclasses

    table = us.open(people(), dataclasses.replace(SCHEMA, status="draft"))
    release = us.synthesize(table, epsilon=1.0, method="independent", accept_draft_as_public=True)
    folder = release.save(tmp_path / "release")
    assert us.replay(folder).answers == 3
    rewrite(folder, lambda c: c["columns"].update(dict.fromkeys(c["columns"], "declared")))
    with pytest.raises(us.CheckFailed, match="columns"):
        us.replay(folder)
    rewrite(folder, lambda c: c.update(schema_status="declared"))
    rewrite(folder, rebuilt_claim)
    assert us.verify(folder).claimed, "the forgery is consistent"
    with pytest.raises(us.CheckFailed, match="columns"):
        us.replay(folder)


def test_more_spends_than_the_claim_fail(folder: Path):
    """With a fresh digest, and all that follows from the spends made to fit."""

    def forge(certificate: dict[str, Any]) -> None:
        certificate["spends"] = certificate["spends"] * 2
        rebuilt_claim(certificate)

    rewrite(folder, forge)
    with pytest.raises(us.CheckFailed, match=r"amount to epsilon .*, above the 1 asked for"):
        us.verify(folder)


def test_certificates_of_the_first_format_still_hold(folder: Path):
    """It had neither sum nor ledger nor schema status, and claimed the sum of the spends, for drafts too."""

    def forge(certificate: dict[str, Any]) -> None:
        certificate["format"] = FIRST_FORMAT
        parsed = us.Certificate._from_dict(certificate)
        certificate.clear()
        certificate.update({k: v for k, v in parsed.to_dict().items() if k != "digest"})

    rewrite(folder, forge)
    written = json.loads((folder / "certificate.json").read_bytes())
    assert not {"ledger", "schema_status", "spent", "no_guarantee_because"} & written.keys()
    assert 0.98 <= written["guarantee"]["epsilon"] < 1 and us.verify(folder).epsilon == 1.0
    assert us.replay(folder).rows == written["rows"]["synthetic"]


def test_an_old_certificate_of_a_draft_claims_nothing_any_more(tmp_path: Path):
    import dataclasses

    table = us.open(people(), dataclasses.replace(SCHEMA, status="draft"))
    release = us.synthesize(table, epsilon=1.0, method="independent", accept_draft_as_public=True)
    old = dataclasses.replace(release.certificate, format=FIRST_FORMAT, schema_status=None)
    assert json.loads(old.to_bytes())["guarantee"]["epsilon"] <= 1, "as it was written then"
    read = us.Certificate.from_bytes(old.to_bytes())
    assert read.guarantee is None and read.void and read.to_bytes() == old.to_bytes()


def test_a_retouched_table_with_a_fresh_hash(folder: Path):
    """A row edited by hand, every hash made anew: only the replay can tell."""
    path = folder / "synthetic.csv"
    head, first, *rest = path.read_text().splitlines(keepends=True)
    path.write_text(head + "".join(rest) + first)
    rewrite(folder, lambda c: None, files=True)
    assert us.verify(folder).claimed
    with pytest.raises(us.CheckFailed, match=r"synthetic\.csv is not what measurements\.npz"):
        us.replay(folder)


def test_retouched_measurements_with_a_fresh_hash(folder: Path):
    record = list(read_record((folder / "measurements.npz").read_bytes()))
    counts = record[0].value.copy()
    counts.flat[0], counts.flat[-1] = counts.flat[0] + 30, counts.flat[-1] - 30  # the total stays
    record[0] = type(record[0])(record[0].question, counts)
    (folder / "measurements.npz").write_bytes(record_bytes(record))
    rewrite(folder, lambda c: None, files=True)
    assert us.verify(folder).claimed
    with pytest.raises(us.CheckFailed, match=r"synthetic\.csv"):
        us.replay(folder)


def test_a_record_with_an_answer_too_many_or_too_few(folder: Path):
    path = folder / "measurements.npz"
    record = read_record(path.read_bytes())
    path.write_bytes(record_bytes((*record, record[0])))
    with pytest.raises(us.CheckFailed, match="never asked for"):
        us.replay(folder)
    path.write_bytes(record_bytes(record[:-1]))
    with pytest.raises(us.CheckFailed, match="record ends"):
        us.replay(folder)


def test_a_record_of_another_shape(folder: Path):
    path = folder / "measurements.npz"
    record = list(read_record(path.read_bytes()))
    record[0] = type(record[0])(record[0].question, record[0].value.ravel()[:2])
    path.write_bytes(record_bytes(record))
    with pytest.raises(us.CheckFailed):
        us.replay(folder)


def test_a_pickle_in_the_record_is_never_loaded(folder: Path):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("the pickle was loaded",))

    with (folder / "measurements.npz").open("wb") as file:
        np.savez(file, questions=np.array([Bomb()], dtype=object))
    with pytest.raises(us.CheckFailed, match=r"measurements\.npz can't be read"):
        us.replay(folder)


def test_a_schema_with_other_facts(folder: Path):
    path = folder / "schema.toml"
    path.write_text(path.read_text().replace("80", "81"))
    with pytest.raises(us.CheckFailed, match=r"schema\.toml"):
        us.verify(folder)
    with pytest.raises(us.CheckFailed):
        us.replay(folder)
