"""A method of another package, found by its entry point, goes wherever ours go; a broken one breaks nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import understudy as us
from understudy.cli import run
from understudy.methods.registry import METHODS, Offered, Registry, choose, find_method, general_methods

MODULE = """
from dataclasses import dataclass

from understudy.methods.forecast.coefficients import COEFFICIENTS
from understudy.methods.independent import CalibratedIndependent
from understudy.methods.method import Method
from understudy.methods.params import Params, parameter


@dataclass(frozen=True)
class ThriftyParams(Params):
    share: float = parameter(0.9, "of the budget that is spent", low=0.1, high=1.0)


@dataclass(frozen=True)
class Thrifty:
    share: float

    def calibrate(self, domain, amount):
        return CalibratedIndependent(domain, amount.part(self.share))


METHOD = Method(
    name="thrifty-counts",
    guarantee="pure ε with delta = 0, else Gaussian differential privacy",
    good_for="tests",
    limits="columns are unrelated to each other",
    build=lambda options, params: Thrifty(params.share),
    params=ThriftyParams,
    coefficients=COEFFICIENTS["independent"],
)
"""
SCHEMA = """
[columns.age]
type = "integer"
min = 0
max = 9
[columns.sex]
type = "categorical"
values = ["f", "m"]
"""


def install(folder: Path, package: str, name: str, source: str, value: str = "") -> None:
    """A package as an installer leaves it: a module, and a folder that says what it offers."""
    module = package.replace("-", "_")
    (folder / f"{module}.py").write_text(source)
    facts = folder / f"{module}-1.5.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.5\n")
    (facts / "entry_points.txt").write_text(f"[understudy.methods]\n{name} = {value or module + ':METHOD'}\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where packages are found, by this process and by those that it starts."""
    (tmp_path / "site").mkdir()
    monkeypatch.syspath_prepend(tmp_path / "site")
    paths = [str(tmp_path / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    rows = "".join(f"{i % 10},{'fm'[i % 2]}\n" for i in range(80))
    (tmp_path / "people.csv").write_text(f"age,sex\n{rows}")
    (tmp_path / "people.toml").write_text(SCHEMA)
    monkeypatch.chdir(tmp_path)
    for module in ("thrifty", "spendthrift", "broken"):
        # Set and deleted, so that what a test imports is forgotten after it.
        monkeypatch.setitem(sys.modules, module, sys)
        monkeypatch.delitem(sys.modules, module)
    return tmp_path / "site"


def look_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(METHODS, "offered", Offered.beside(METHODS.own))


def understudy(*words: object) -> int:
    return run(list(map(str, words)))


def in_a_process(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "understudy", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_in_python_it_is_a_method_like_any_other(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    install(folder, "thrifty", "thrifty-counts", MODULE)
    look_again(monkeypatch)
    assert "thrifty-counts" in us.METHODS and list(us.METHODS)[-1] == "thrifty-counts"
    table = us.open("people.csv", us.Schema.load("people.toml"))
    release = us.synthesize(table, epsilon=1.0, method="thrifty-counts", options={"share": 0.5}, ledger=False)
    release.save(tmp_path / "out")
    assert release.certificate.parameters["options"] == {"share": 0.5}
    assert release.certificate.versions["thrifty"] == "1.5"
    assert us.verify(tmp_path / "out").spent < 1.0 and us.replay(tmp_path / "out").rows > 0
    assert "thrifty-counts" in {f.method for f in us.plan(table.schema, epsilon=1.0).forecasts}
    with pytest.raises(us.MethodError, match=r"share \(2\) must be from 0.1 to 1"):
        us.synthesize(table, epsilon=1.0, method="thrifty-counts", options={"share": 2}, ledger=False)


def test_auto_never_chooses_it(folder: Path, monkeypatch: pytest.MonkeyPatch):
    eager = MODULE.replace("coefficients=", "traits=Traits(general=True, doubt=1e-9),\n    coefficients=")
    install(folder, "thrifty", "thrifty-counts", eager.replace("import Method", "import Method, Traits"))
    look_again(monkeypatch)
    assert METHODS["thrifty-counts"].traits.general and METHODS["thrifty-counts"] not in general_methods()
    schema = us.Schema.load("people.toml")
    assert choose("auto", us.methods.method.Options(), schema, us.Budget(1.0, 1e-6)).method.name in METHODS.own


def test_on_the_command_line_too(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    install(folder, "thrifty", "thrifty-counts", MODULE)
    look_again(monkeypatch)
    wanted = ("--epsilon", 1, "--method", "thrifty-counts", "--option", "share=0.5")
    assert understudy("synth", "people.csv", *wanted, "--out", "out") == 0
    assert understudy("verify", "out") == understudy("replay", "out") == 0
    assert us.releases.checking.read_certificate(Path("out")).parameters["options"] == {"share": 0.5}
    capsys.readouterr()
    assert understudy("methods", "thrifty-counts", "--json") == 0
    assert json.loads(capsys.readouterr().out)["options"][0]["name"] == "share"
    assert understudy("plan", "people.csv", "--epsilon", 1, "--json") == 0
    assert "thrifty-counts" in {f["method"] for f in json.loads(capsys.readouterr().out)["forecasts"]}


@pytest.mark.slow
def test_its_studies_and_audits_run_in_processes_of_their_own(folder: Path):
    install(folder, "thrifty", "thrifty-counts", MODULE)
    study = ("compare", "people.csv", "--methods", "thrifty-counts", "--epsilons", 1, "--seeds", 1, "--out", "study")
    compared = in_a_process(*study)
    assert compared.returncode == 0 and "failed" not in compared.stdout, compared.stdout + compared.stderr
    audited = in_a_process("audit", "thrifty-counts", "--time-limit", 20, "--jobs", 2, "--json")
    assert audited.returncode == 0, audited.stderr
    assert json.loads(audited.stdout)["subject"] == "thrifty-counts"


BROKEN = {
    "does not load": ("torn", "import lost_in_space", "ModuleNotFoundError: No module named 'lost_in_space'"),
    "has no such object": ("torn", "OTHER = 1", "AttributeError: module 'broken' has no attribute 'METHOD'"),
    "is no method": ("torn", "METHOD = 1", "broken:METHOD is no understudy.methods.method.Method"),
    "has another name": ("torn", MODULE, "broken:METHOD calls itself 'thrifty-counts'"),
    "has the name of one of ours": ("mst", MODULE, "understudy has that name itself"),
    "has the name of a specimen": ("arf", MODULE, "understudy has that name itself"),
    "has a name that can't be typed": ("Torn Method", MODULE, "must be small letters and digits, with hyphens"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "source", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_broken_one_is_left_out_with_a_reason(
    name: str, source: str, reason: str, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    install(folder, "broken", name, source)
    look_again(monkeypatch)
    said = METHODS.offered.refused[name]
    assert reason in said and said.startswith(f"method {name!r} of package broken can't be used: ") and "\n" not in said
    assert dict(METHODS) == Registry().own
    if name == "torn":
        with pytest.raises(us.MethodError, match="method 'torn' of package broken can't be used"):
            find_method(name)


def test_two_packages_with_one_name_are_both_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch):
    for package in ("thrifty", "spendthrift"):
        install(folder, package, "thrifty-counts", MODULE)
    look_again(monkeypatch)
    with pytest.raises(us.MethodError, match="2 packages have that name"):
        find_method("thrifty-counts")


def test_one_that_ends_the_program_as_it_is_imported_is_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`understudy methods` ended with it, said nothing, and reported success."""
    install(folder, "broken", "torn", "raise SystemExit(0)")
    look_again(monkeypatch)
    assert METHODS.offered.refused["torn"].startswith("method 'torn' of package broken can't be used: SystemExit")


def test_a_replay_names_the_version_of_the_package_that_is_here(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(folder, "thrifty", "thrifty-counts", MODULE)
    look_again(monkeypatch)
    assert understudy("synth", "people.csv", "--epsilon", 1, "--method", "thrifty-counts", "--out", "release") == 0
    facts = folder / "thrifty-1.5.dist-info" / "METADATA"
    facts.write_text(facts.read_text().replace("1.5", "1.6"))
    written = Path("release/synthetic.csv")
    head, _, *others = written.read_text().splitlines(keepends=True)
    written.write_text("".join([head, *others, "1,f\n"]))
    assert understudy("replay", "release") == 1
    assert "it was made with thrifty 1.5 (here 1.6)" in capsys.readouterr().err


def test_methods_tells_why_one_is_left_out_and_goes_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    install(folder, "broken", "torn", "raise RuntimeError('torn in two')")
    look_again(monkeypatch)
    assert understudy("methods") == 0
    listed = capsys.readouterr().out
    assert "RuntimeError: torn in two." in listed and "rake" in listed
    assert understudy("synth", "people.csv", "--epsilon", 1, "--method", "torn") == 2
    assert capsys.readouterr().err.startswith("understudy: method 'torn' of package broken can't be used")
    assert understudy("synth", "people.csv", "--epsilon", 1, "--method", "independent") == 0
