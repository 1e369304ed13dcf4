"""Lists of arguments for the command line: commands and options that exist, with values of every kind."""

from __future__ import annotations

import contextlib
import io
import shutil
from pathlib import Path
from random import Random

import typer

from fuzz.case import Case, Target, failed, inside
from fuzz.material import LEDGER, SCHEMA_FILE, TABLE, desk_in
from fuzz.mutation import ODD_NUMBERS, ODD_TEXTS
from fuzz.tables import QUESTIONS, check_material, differing
from understudy.cli import run

SECRET = "hunter2secret"
ADDRESSES = tuple(
    f"{scheme}://ada:{SECRET}@127.0.0.1:1/town{rest}"
    for scheme in ("postgresql", "postgres", "POSTGRESQL", "postgresql+psycopg", "mysql")
    for rest in ("", "::people")
)
USUAL: dict[tuple[str, ...], tuple[tuple[str, ...], ...]] = {
    ("synth",): ((TABLE,),),
    ("schema",): ((TABLE,),),
    ("methods",): (("rake", "mst"),),
    ("plan",): ((TABLE,),),
    ("verify",): (("release",),),
    ("replay",): (("release",),),
    ("count",): (("release",), ("age > 40", "job = 'cook'")),
    ("query",): ((TABLE,), QUESTIONS),
    ("evaluate",): ((TABLE,), ("release",)),
    ("budget", "show"): ((TABLE,),),
    ("budget", "set"): ((TABLE,),),
    ("budget", "unit"): ((TABLE,),),
    ("budget", "history"): ((TABLE,),),
    ("budget", "share"): ((TABLE,), ("ada", "bob"), ("0.25", "1")),
    ("budget", "export"): ((TABLE,), ("out.json", "out.csv")),
    ("budget", "backup"): ((TABLE,), ("backup.sqlite", "release", LEDGER)),
    ("budget", "restore"): ((TABLE,), ("backup.sqlite", LEDGER, TABLE, "nowhere")),
    ("budget", "forget"): ((TABLE,),),
    ("check",): ((TABLE,),),
}
"""What each command wants; one in six of these is exchanged for something else."""
VALUES: dict[str, tuple[str, ...]] = {
    "--epsilon": ("1", "0.5", "0", "-1", "1e-9", "nan", "inf", "1e400", "x"),
    "--delta": ("0", "1e-6", "0.5", "1", "-1", "nan", "x"),
    "--method": ("independent", "independent", "mst", "auto", "nobody", "arf", "bnp", "polya-tree"),
    "--rows": ("1", "50", "0", "-1", "200000001", "1e3", "x"),
    "--seed": ("0", "7", "-1", "x", str(2**64), "9" * 30),
    "--schema": (SCHEMA_FILE, "nowhere.toml", TABLE, ".", "/dev/null"),
    "--ledger": ("other.sqlite", "nowhere/l", ".", TABLE, SCHEMA_FILE, "/dev/null"),
    "--out": ("new", "deep/new", "release", TABLE, ".", "/proc/x", "x\x00y", "x" * 300),
    "--target": ("smoker", "age", "nobody"), "--format": ("csv", "parquet", "xml"), "--confidence": ("0.9", "0", "2"),
    "--given": ("job=cook", "job=", "=x", "age=300", "nobody=1"), "--marginal": ("job,smoker", "job", "a,b"),
    "--weight": ("job,smoker=5", "job=5", "x"), "--option": ("x=1", "=", "cap=2"), "--analyst": ("ada", "\x1b[1m"),
    "--error": ("3%", "0.03", "0", "-1", "1e-300", "100%", "nan", "%", "x"),
    "--report": ("r.html", "r.json", "r.pdf", "."),
    "--failure-delta": ("0", "1e-7", "1", "nan"), "--training-epsilon": ("0", "1", "1e9", "nan", "x"),
    "--journal": ("j", "release", TABLE, "/dev/null"),
    "--neighbours": ("add-remove", "replace-one", "x"), "--prior": ("release", TABLE, "nowhere"),
}  # fmt: skip
OTHERS = (
    TABLE, "release", "people.parquet", "nowhere.csv", ".", SCHEMA_FILE, "/dev/null", "age > 40", "0.25", "out.json",
    *ADDRESSES,
)  # fmt: skip
OUTSIDE = ("--install-completion", "--show-completion", "--figures", "--audit")
"""Options that change this user's shell, or take minutes."""


def arguments(case: Case) -> None:
    """Every list ends in a result, a refusal or the parser's complaint; and a refusal changes nothing."""
    desk = desk_in(case.folder, case.base)
    shutil.copy(case.base / "ledger.sqlite", desk / LEDGER)
    shutil.copytree(case.base / "releases" / "independent", desk / "release")
    shutil.copy(case.base / "people.parquet", desk)
    listed = _listed(case.draw)
    before, out, err = inside(desk), io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = case.call("command", run, listed)
    said = err.getvalue()
    if failed(code):
        return
    case.outcomes.append(f"exit {code}")
    if code not in (0, 1, 2, 3):
        case.fail(f"exit {code}: {said.partition('a bug of ours (')[2].partition(')')[0] or said[:80]}", listed)
    if code and (changed := differing(before, inside(desk))):
        case.fail("a refusal changed or left files", f"{changed} by {listed}: {said}")
    if SECRET in said or SECRET in out.getvalue():
        case.fail("a password is shown", f"{said} by {listed}")
    # The parser's own complaints have several lines, with the usage first.
    lines = [said] if said.startswith("understudy: ") else said.splitlines()
    for line in lines:
        case.check_printed("command", line, said.partition(" ")[0])


def _listed(draw: Random) -> list[str]:
    """A sound list of which some parts were exchanged, and to which some options were added."""
    command = draw.choice(list(USUAL))
    if command == ("evaluate",) and draw.random() < 0.8:  # it takes seconds where the others take a tenth of one
        command = draw.choice([c for c in USUAL if c != ("evaluate",)])
    known = _options()[command]
    listed = [*command, *(_value(draw, draw.choice(usual)) for usual in USUAL[command])]
    if "--epsilon" in known and draw.random() < 0.95:
        listed += ["--epsilon", _value(draw, draw.choice(VALUES["--epsilon"][:2]))]
    if "--analyst" in known and draw.random() < 0.9:
        listed += ["--analyst", "ada"]
    if command == ("synth",):
        listed += ["--method", draw.choice(["independent", "mst"]), "--rows", "30"]
    for _ in range(draw.choice([0, 0, 1, 1, 2, 3])):
        name = draw.choice(known)
        listed.append(name)
        if name in VALUES:
            listed.append(_value(draw, draw.choice(VALUES[name])))
    kind = draw.random()
    if kind < 0.04:
        draw.shuffle(listed)
    elif kind < 0.1:
        del listed[draw.randrange(len(listed))]
    return listed


def _value(draw: Random, usual: str) -> str:
    kind = draw.random()
    if kind < 5 / 6:
        return usual
    if kind < 11 / 12:
        return draw.choice(OTHERS)
    return draw.choice([*ODD_TEXTS, *map(str, ODD_NUMBERS), "-", "--", "a\udcffb"])


def _options() -> dict[tuple[str, ...], list[str]]:
    """The options that each command really has."""
    from understudy.cli.app import app

    if not _KNOWN:
        root = typer.main.get_command(app)
        for words in USUAL:
            found = root
            for word in words:
                found = found.commands[word]  # type: ignore[attr-defined]
            names = [o for p in found.params for o in p.opts if o.startswith("--")]
            _KNOWN[words] = [n for n in names if n not in OUTSIDE and n != "--help"]
    return _KNOWN


_KNOWN: dict[tuple[str, ...], list[str]] = {}


def check_arguments(base: Path) -> None:
    check_material(base)
    _options()


TARGETS = (Target("arguments", "lists of arguments of the command line", 2_200, arguments, prepare=check_arguments),)
