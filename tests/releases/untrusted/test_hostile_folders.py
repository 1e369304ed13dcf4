"""Folders that were made to hang, exhaust or deceive whoever checks them; all with fresh hashes and a fresh digest."""

from __future__ import annotations

import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from understudy.boundary.privacy.measurement import RecordedAnswer
from understudy.releases.certificate import digest, versions
from understudy.releases.release import read_record, record_bytes, sha256
from understudy.releases.untrusted.limits import VARIABLE, Limits

FILES = ("certificate.json", "synthetic.csv", "measurements.npz", "schema.toml", "report.html")
SCHEMA = us.Schema.loads(
    """
    [columns.job]
    type = "categorical"
    values = ["clerk", "cook", "nurse"]
    [columns.age]
    type = "integer"
    min = 18
    max = 80
    [columns.person]
    type = "identifier"
    made_up = "P{:06d}"
    """
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    jobs, ages = ["clerk", "cook", "nurse", "cook"] * 50, [20, 30, 40, 50] * 50
    rows = pa.table({"job": jobs, "age": ages, "person": ["x"] * 200})
    release = us.synthesize(us.open(rows, SCHEMA), epsilon=1.0, method="independent")
    return release.save(tmp_path_factory.mktemp("made") / "release")


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "release"))


def sign(folder: Path, change: Callable[[dict[str, Any]], object] = lambda body: None) -> None:
    """Hashes and digest anew, as whoever makes such a folder would."""
    path = folder / "certificate.json"
    body = json.loads(path.read_bytes())
    del body["digest"]
    hashed = {n: sha256((folder / n).read_bytes()) for n in body["files"] if (folder / n).is_file()}
    body["files"] |= hashed
    change(body)
    if "audit" in body:  # the order of keys is part of the format
        body |= {key: body.pop(key) for key in ("schema_status", "ledger")}
    body["digest"] = digest(body)
    path.write_text(json.dumps(body, indent=2, ensure_ascii=False) + "\n")


def refusals(folder: Path) -> list[str]:
    """What `verify`, `replay` and `Release.load` say, each in one line; nothing where they pass."""
    said = []
    for check in (us.verify, us.replay, us.Release.load):
        try:
            check(folder)
            said.append("")
        except us.CheckFailed as error:
            said.append(str(error))
    assert not any("\n" in text for text in said)
    return said


def demand(folder: Path, expected: str, everywhere: bool = True) -> None:
    """Refused with these words: by all, or at least by `replay` and `load`."""
    said = refusals(folder)
    assert all(expected in text for text in (said if everywhere else said[1:])), said


def rewrite_schema(folder: Path, change: Callable[[str], str]) -> None:
    path = folder / "schema.toml"
    path.write_text(change(path.read_text()))
    sign(folder)


# --- files that are none


@pytest.mark.parametrize("name", FILES)
def test_a_pipe_or_a_device_is_never_read(name: str, folder: Path):
    (folder / name).unlink()
    os.mkfifo(folder / name)
    demand(folder, f"{name} is no regular file")
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")
    demand(folder, f"{name} is no regular file")
    (folder / name).unlink()
    (folder / name).mkdir()
    demand(folder, name)


def test_a_link_to_a_regular_file_is_read(folder: Path):
    (folder / "synthetic.csv").rename(folder.parent / "elsewhere.csv")
    (folder / "synthetic.csv").symlink_to(folder.parent / "elsewhere.csv")
    assert refusals(folder) == ["", "", ""]


@pytest.mark.parametrize("name", FILES)
def test_a_huge_file_is_refused_by_its_size(name: str, folder: Path):
    with (folder / name).open("r+b") as file:
        file.truncate(1 << 40)  # sparse: it takes no room on the disk
    demand(folder, f"{name} has 1,048,576.0 MiB, more than the limit of")


# --- measurements


def archive(shape: tuple[int, ...], megabytes: int) -> bytes:
    """An .npz of spaces under a header that promises this shape."""
    head, out = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "|u1", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as whole, whole.open("questions.npy", "w") as file:
        file.write(head.getvalue())
        for _ in range(megabytes):
            file.write(b" " * 10**6)
    return out.getvalue()


def said_to_be(content: bytes, size: int) -> bytes:
    """The same archive, with another unpacked size in its list of members."""
    at = content.rindex(b"PK\x01\x02") + 24
    return content[:at] + size.to_bytes(4, "little") + content[at + 4 :]


def test_measurements_that_unpack_to_more_than_the_limit(folder: Path):
    (folder / "measurements.npz").write_bytes(said_to_be(archive((600 * 10**6,), 1), 600 * 10**6))
    sign(folder)
    demand(folder, "measurements.npz unpacks to 572.2 MiB, more than the limit of 512.0 MiB")


@pytest.mark.parametrize("promised", [600 * 10**9, 999, 0, -1])
def test_a_header_of_another_size_than_its_array(promised: int, folder: Path):
    (folder / "measurements.npz").write_bytes(archive((promised,), 1))
    sign(folder)
    demand(folder, "measurements.npz can't be read", everywhere=False)


def test_an_archive_that_says_it_is_small(folder: Path):
    (folder / "measurements.npz").write_bytes(said_to_be(archive((20 * 10**6,), 20), 1000))
    sign(folder)
    demand(folder, "measurements.npz can't be read", everywhere=False)


def test_more_arrays_than_the_limit(folder: Path):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as whole:
        for i in range(300):
            whole.writestr(zipfile.ZipInfo(f"a{i}.npy"), b"")
    content = bytearray(out.getvalue())
    for place in (-14, -12):  # how many there are, in the end of the list
        content[len(content) + place : len(content) + place + 2] = (65_000).to_bytes(2, "little")
    (folder / "measurements.npz").write_bytes(content)
    sign(folder)
    demand(folder, "measurements.npz holds 65,000 arrays, more than the limit of 60,000")


@pytest.mark.parametrize("total", [3 * 10**6, 2**61, -(10**6)])
def test_forged_totals_draw_no_rows(total: int, folder: Path):
    path = folder / "measurements.npz"
    record = [RecordedAnswer(a.question, a.value * 0 + total) for a in read_record(path.read_bytes())]
    path.write_bytes(record_bytes(record))
    sign(folder)
    demand(folder, "and the replay gives", everywhere=False)


FORMS: dict[str, Callable[[Any], Any]] = {
    "cut": lambda v: v[:2],
    "longer": lambda v: np.append(v, v),
    "no row": lambda v: v[:, None],
    "one number": lambda v: np.array(7),
    "nothing": lambda v: np.zeros(0, dtype=np.int64),
    "texts": lambda v: v.astype(str),
    "decimals": lambda v: v * 0.5,
    "past 62 bits": lambda v: v * 0 + (2**63 - 1),
}


@pytest.mark.parametrize("form", FORMS)
def test_an_answer_of_another_form_than_its_question(form: str, folder: Path):
    path = folder / "measurements.npz"
    first, *rest = read_record(path.read_bytes())
    path.write_bytes(record_bytes([RecordedAnswer(first.question, FORMS[form](first.value)), *rest]))
    sign(folder)
    demand(folder, "has not the form of a marginal", everywhere=False)


def test_an_array_that_nothing_asks_for(folder: Path):
    path = folder / "measurements.npz"
    with np.load(path) as arrays:
        held = dict(arrays)
    np.savez_compressed(path, **held, rows=np.arange(9))
    sign(folder)
    demand(folder, "holds other arrays than Understudy writes", everywhere=False)


# --- schema and certificate


def test_a_schema_of_too_many_columns(folder: Path):
    more = "".join(f'[columns.c{i}]\ntype = "boolean"\n' for i in range(6_000))
    rewrite_schema(folder, lambda text: text + more)
    demand(folder, "schema.toml has 6,003 columns, more than the limit of 5,000")
    inline = "".join(f'c{i} = {{ type = "boolean" }}\n' for i in range(40_000))
    rewrite_schema(folder, lambda text: f"[columns]\n{inline}")
    demand(folder, "schema.toml states 80,000 facts, more than the limit of 60,000")


def test_more_rules_than_can_be_parsed(folder: Path):
    rule = " OR ".join(["age > 1"] * 900)
    rewrite_schema(folder, lambda text: text + f'\n[[constraints]]\nthen = "{rule}"\n' * 30)
    demand(folder, "schema.toml states rules of 296,880 characters, more than the limit of 200,000")


def test_more_bins_than_can_be_held(folder: Path):
    fine = 'type = "integer"\nmin = 0\nmax = 99999999\nbins = 100000'
    rewrite_schema(folder, lambda text: text + "".join(f"\n[columns.fine{i}]\n{fine}\n" for i in range(31)))
    demand(folder, "bins, more than the limit of 3,000,000")


@pytest.mark.parametrize("form", ["{:2000000000d}", "{0:{0}d}", "{:>999999999}", "{:0101d}"])
def test_a_made_up_value_of_any_width(form: str, folder: Path):
    rewrite_schema(folder, lambda text: text.replace("P{:06d}", form))
    demand(folder, "a width of at most 100")


@pytest.mark.parametrize("bound", ["9" * 5000, "9" * 400, "[" * 5000 + "]" * 5000, "0001-01-01T00:00:00+14:00", "nan"])
def test_a_bound_that_no_schema_has(bound: str, folder: Path):
    rewrite_schema(folder, lambda text: text.replace("max = 80", f"max = {bound}"))
    demand(folder, "schema.toml can't be read")


def test_a_certificate_of_too_many_rows(folder: Path):
    def forge(rows: int) -> Callable[[dict[str, Any]], object]:
        return lambda c: (c["rows"].update(synthetic=rows), c["method"]["parameters"].update(rows=rows))

    sign(folder, forge(200_000_000))
    demand(folder, "200,000,000 rows of 3 columns, which are 600,000,000 values, more than the limit of 100,000,000")
    sign(folder, forge(1_000_000))
    demand(folder, "rows in certificate.json are 1,000,000, and synthetic.csv has", everywhere=False)


def test_labels_that_would_fill_the_memory(folder: Path):
    rewrite_schema(folder, lambda text: text.replace('"nurse"', '"' + "n" * 300_000 + '"'))
    sign(folder, lambda c: c["rows"].update(synthetic=20_000))
    demand(folder, "20,000 rows, which may take")


def nested(levels: int) -> list[Any]:
    return [nested(levels - 1)] if levels else []


CERTIFICATES: dict[str, Callable[[dict[str, Any]], object]] = {
    "nested": lambda c: c["method"]["parameters"].update(x=nested(60)),
    "a number of 70 bits": lambda c: c["rows"].update(synthetic=2**70),
    "rows that are true": lambda c: c["rows"].update(synthetic=True),
    "a cost beyond all numbers": lambda c: c["spends"][0].update(sensitivity=1e300, scale=1e-300),
    "no scale": lambda c: c["spends"][0].update(scale=0.0),
    "a prior of texts": lambda c: c["spends"][0].update(mechanism="posterior-draws", prior=["x"]),
    "steps of another kind": lambda c: c["spends"][0].update(steps="many"),
    "many trainings": lambda c: c.update(
        spends=[s | {"mechanism": "sampled-gaussian", "steps": 9, "rate": 0.1} for s in c["spends"] * 5]
    ),
    "files that are a list": lambda c: c.update(files=list(c["files"])),
    "files that are numbers": lambda c: c["files"].update({"report.html": 7}),
    "a method that is a text": lambda c: c.update(method="mst"),
    "parameters that are a list": lambda c: c["method"].update(parameters=[]),
    "a seed that is a text": lambda c: c.update(postprocessing_seed="7"),
    "another time": lambda c: c.update(created="yesterday"),
    "versions that speak to a terminal": lambda c: c["versions"].update(numpy="\x1b]0;PWNED\x07"),
    "a package that does": lambda c: c["versions"].update({"\x9b2J": "1"}),
    "a ledger of lists": lambda c: c.update(ledger={"name": [], "identity": [], "entry": []}),
    "a limit without epsilon": lambda c: c.update(ledger={"name": "", "identity": "", "entry": 1, "limit": {"x": 1}}),
    "an audit that is a text": lambda c: c.update(audit="passed"),
    "an audit without figures": lambda c: c.update(audit={"verdict": "no violation found", "setting": "full"}),
}


@pytest.mark.parametrize("case", CERTIFICATES)
def test_a_certificate_of_another_form(case: str, folder: Path):
    sign(folder, CERTIFICATES[case])
    demand(folder, "certificate.json")


NO_CERTIFICATES = ("[" * 200_000, "[" + "[]," * 4_000_000 + "[]]", f'{{"a": {"9" * 5000}}}', "7", '"\\ud800"', "\x00")


@pytest.mark.parametrize("content", NO_CERTIFICATES, ids=range(len(NO_CERTIFICATES)))
def test_a_certificate_that_is_no_certificate(content: str, folder: Path):
    (folder / "certificate.json").write_text(content)
    demand(folder, "certificate.json")


@pytest.mark.parametrize(
    "parameters",
    [
        {"marginals": [[["age"]]]},
        {"marginals": 10**300},
        {"given": []},
        {"given": {"age": [[]]}},
        {"options": {"rounds": 1e300}},
        {"workload": []},
        {"pool": "\x1b[2J"},
        {"draws": 2**63},
        {"weights": [[["age", "job"], "x"]]},
        {"approved": "by the ministry"},
        {"rows": 1e308},
    ],
)
def test_parameters_of_another_kind(parameters: dict[str, Any], folder: Path):
    sign(folder, lambda c: c["method"]["parameters"].update(parameters))
    assert all(refusals(folder)[1:])


def test_limits_can_be_raised(folder: Path, monkeypatch: pytest.MonkeyPatch):
    more = "".join(f'[columns.c{i}]\ntype = "boolean"\n' for i in range(6_000))
    rewrite_schema(folder, lambda text: text + more)
    said = refusals(folder)[1]
    assert said.endswith("if you trust where it comes from, set UNDERSTUDY_LIMITS=2")
    monkeypatch.setenv(VARIABLE, "2")
    assert Limits.here().columns == 10_000 and Limits.here().nesting == Limits().nesting
    assert us.verify(folder).claimed
    for wrong in ("0.5", "much", "nan", "1e99"):
        monkeypatch.setenv(VARIABLE, wrong)
        with pytest.raises(us.InputError, match=r"UNDERSTUDY_LIMITS .* must be a number from 1 to 1,000,000"):
            us.verify(folder)


def test_large_releases_are_within_the_limits():
    usual = Limits()
    assert usual.values >= 500 * 100_000 and usual.columns >= 500


# --- what says something else than the release


def forge_report(folder: Path, change: Callable[[str], str]) -> None:
    path = folder / "report.html"
    before = path.read_text()
    path.write_text(change(before))
    assert path.read_text() != before
    sign(folder)


RUNS = {
    "script": lambda page: page.replace("</main>", "<script>alert(1)</script></main>"),
    "upper case": lambda page: page.replace("</main>", "<SCRIPT>alert(1)</SCRIPT></main>"),
    "handler": lambda page: page.replace("<main>", '<main onclick="alert(1)">'),
    "picture": lambda page: page.replace("</main>", '<img src="https://example.org/x.png"></main>'),
    "frame": lambda page: page.replace("</main>", '<iframe src="https://example.org"></iframe></main>'),
    "form": lambda page: page.replace("</main>", '<form action="https://example.org"></form></main>'),
    "link out": lambda page: page.replace("</main>", '<a href="https://example.org">verify</a></main>'),
    "redirect": lambda page: page.replace("<title>", '<meta http-equiv="refresh" content="0;url=//x"><title>', 1),
    "comment": lambda page: page.replace("</main>", "<!-- <b> --></main>"),
    "unfinished tag": lambda page: page + "<script ",
    "no policy": lambda page: page.replace("default-src 'none'", "default-src *"),
    "something before the policy": lambda page: page.replace("<head>", "<head><title>x</title>"),
    "import": lambda page: page.replace("<style>", "<style>@import '//example.org/x.css';"),
    "hidden url": lambda page: page.replace("<style>", "<style>p{background:u\\72l(//example.org)}"),
    "another page": lambda page: "<h1>all is well</h1>",
}


@pytest.mark.parametrize("case", RUNS)
def test_a_report_that_runs_or_loads_something(case: str, folder: Path):
    forge_report(folder, RUNS[case])
    demand(folder, "report.html")


@pytest.mark.parametrize(
    "change",
    [
        lambda page: page.replace("ε = 1<", "ε = 0.001<"),
        lambda page: page.replace("an attacker", "an attacker "),
        lambda page: page + "\n",
        lambda page: page.replace("</main>", "<p>Approved.</p></main>"),
        lambda page: page.replace("<svg", "<svg ", 1),
    ],
)
def test_a_report_that_says_something_else_fails_the_replay(change: Callable[[str], str], folder: Path):
    forge_report(folder, change)
    assert us.verify(folder).claimed
    demand(folder, "report.html is not what the rest of the release gives", everywhere=False)


def test_a_report_of_another_version_is_never_passed_in_silence(folder: Path, capsys: pytest.CaptureFixture[str]):
    from understudy.cli import run

    forge_report(folder, lambda page: page.replace("an attacker", "nobody"))
    sign(folder, lambda c: c["versions"].update(understudy="0.0.9"))
    found, again = us.verify(folder), us.replay(folder)
    for note in (found.not_compared, again.not_compared):
        assert note is not None and "report.html" in note and "made by understudy 0.0.9 (here " in note
    for command in ("verify", "replay"):
        assert run([command, str(folder)]) == 0
        assert "report.html" in capsys.readouterr().out
    # Naming other engines, which have no part in its words, is no excuse.
    here = versions()["understudy"]
    sign(folder, lambda c: c["versions"].update(understudy=here, numpy="1.0", pyarrow="1.0", python="3.0"))
    demand(folder, "report.html is not what the rest of the release gives", everywhere=False)


def test_what_understudy_wrote_is_compared_word_for_word(folder: Path):
    rewrite_schema(folder, lambda text: f"# confirmed by the ministry\n{text}")
    demand(folder, "schema.toml is not what the rest of the release gives", everywhere=False)


def test_a_reason_that_nobody_had(folder: Path):
    sign(folder, lambda c: c["method"].update(reason="recommended by the authority"))
    demand(folder, "the reason in certificate.json is not what", everywhere=False)


# --- audits


def audit(**changes: Any) -> dict[str, Any]:
    bound = {"pair": "x", "view": "white box", "statistic": "ratio", "runs": 100, "level": 0.01, "accuracy": 0.5}
    plain = {
        "verdict": "no violation found (power 0.97 against halved noise)",
        "steps": {"Taint": "passed", "Game": "not made: too slow"},
        "subject": "independent",
        "setting": "quick",
        "claim": {"epsilon": 1.0, "delta": 1e-6, "neighbours": "add-remove", "rho": None, "mu": 0.2},
        "level": 0.05,
        "bounds": [bound | {"epsilon": 0.5, "rho": 0.0, "mu": 0.1, "refutes": ""}],
        "power": 0.978,
        "seconds": 9.0,
        "created": "2026-01-01T00:00:00+00:00",
        "versions": versions(),
    }
    return plain | changes


FORGED: dict[str, dict[str, Any]] = {
    "another method": {"subject": "mst"},
    "another budget": {"claim": audit()["claim"] | {"epsilon": 0.1}},
    "another delta": {"claim": audit()["claim"] | {"delta": 0.0}},
    "other neighbours": {"claim": audit()["claim"] | {"neighbours": "replace-one"}},
    "another version": {"versions": versions() | {"understudy": "9.9"}},
    "no version": {"versions": {}},
    "a better verdict": {"verdict": "proved to be private"},
    "a better power": {"verdict": "no violation found (power 0.99 against halved noise)"},
    "a step that failed": {"steps": {"Taint": "violation"}},
    "no step": {"steps": {}},
    "a bound above the claim": {"bounds": [audit()["bounds"][0] | {"epsilon": 1.5}]},
    "a mu above the claim": {"bounds": [audit()["bounds"][0] | {"mu": 0.3}]},
    "a bound that refutes": {"bounds": [audit()["bounds"][0] | {"refutes": "epsilon"}]},
    "an impossible power": {"power": 2.0, "verdict": "no violation found (power 2.00 against halved noise)"},
    "an impossible level": {"level": 0},
}


@pytest.mark.parametrize("case", FORGED)
def test_an_audit_that_contradicts_the_certificate_or_itself(case: str, folder: Path):
    sign(folder, lambda c: c.update(audit=audit(**FORGED[case])))
    said = refusals(folder)
    assert "audit" in said[0] and said[2] == said[0], said


def test_a_sound_audit_is_said_to_be_claimed(folder: Path, capsys: pytest.CaptureFixture[str]):
    from understudy.cli import run

    sign(folder, lambda c: c.update(audit=audit()))
    assert us.verify(folder).audit == "claimed by the publisher, not recomputed here"
    run(["verify", str(folder)])
    assert "audit: claimed by the publisher, not recomputed here" in capsys.readouterr().out


# --- priors


def test_a_hostile_folder_is_no_prior(folder: Path):
    (folder / "measurements.npz").unlink()
    os.mkfifo(folder / "measurements.npz")
    with pytest.raises(us.ReleaseError, match=r"can't be relied on: measurements\.npz is no regular file"):
        us.plan(SCHEMA, epsilon=1.0, prior=folder)
