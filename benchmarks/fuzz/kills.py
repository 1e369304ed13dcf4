"""`synth`, killed at chosen calls or at any time, and then repeated as its messages say.

However it died, in the end there is one debit and one release, which verifies and replays, and nothing else is left.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import time
from pathlib import Path

import understudy as us
from fuzz.case import Case, Target
from fuzz.children import CALLS, Deadly, in_child
from fuzz.material import JOURNAL, LEDGER, SCHEMA_FILE, SYNTH, TABLE, desk_in
from understudy.cli import run

HARMLESS = {TABLE, SCHEMA_FILE, LEDGER, "out", f"{LEDGER}-journal"}
"""The last is SQLite's: one that it had only begun holds nothing, and goes with the next debit."""
TRIES = 4


def at_a_call(case: Case) -> None:
    """Before or after the n-th call of one kind."""
    desk = desk_in(case.folder, case.base)
    counts = json.loads(_counted(str(case.base)))
    kind = case.draw.choice([name for name in CALLS if counts.get(name)])
    deadly = Deadly(kind, case.draw.randint(1, counts[kind]), before=case.draw.random() < 0.5)
    code = in_child(functools.partial(_deadly_synth, deadly), said_in(case))
    case.outcomes.append("killed" if code == -signal.SIGKILL else "ended by itself")
    finish(case, desk)


def at_any_time(case: Case) -> None:
    """After a part of the time that a whole run takes."""
    desk = desk_in(case.folder, case.base)
    seconds = case.draw.random() * _undisturbed(str(case.base))
    code = in_child(lambda: run(SYNTH), said_in(case), seconds)
    case.outcomes.append("killed" if code == -signal.SIGKILL else "ended by itself")
    finish(case, desk)


def _deadly_synth(deadly: Deadly) -> int:
    deadly.install()
    return run(SYNTH)


def said_in(case: Case) -> Path:
    """Beside the folder of the case, in which nothing may be left."""
    return case.folder.parent / f"{case.folder.name}.said"


def finish(case: Case, desk: Path) -> None:
    """Goes on as a user would, and looks at what there is."""
    said = said_in(case)
    try:
        for _ in range(TRIES):
            if (desk / "out").exists() and not (desk / JOURNAL).exists():
                break
            resuming = ["--resume"] if (desk / JOURNAL).exists() else []
            # A release that is whole, whose journal was still there: the same command writes it again.
            resuming += ["--overwrite"] if (desk / "out").exists() else []
            code = in_child(functools.partial(run, [*SYNTH, *resuming]), said)
            text = said.read_text(errors="replace")
            if code == 0:
                break
            case.outcomes.append(f"refused with {code}")
            if _may_go(text, desk):
                (desk / JOURNAL).unlink()
            else:
                case.fail("what was killed can't go on", text)
                return
        else:
            case.fail("what was killed does not come to an end")
            return
        _check(case, desk)
    finally:
        said.unlink(missing_ok=True)


def _may_go(text: str, desk: Path) -> bool:
    """Whether the message asks for the journal to be deleted, and nothing is lost by that."""
    if "is finished, and can't be resumed; delete the journal" in text:
        return True
    return "delete it, and start anew" in text and not debits(desk)


def _check(case: Case, desk: Path) -> None:
    if (count := debits(desk)) != 1:
        case.fail(f"{count} debits for one release")
    for command in ("verify", "replay"):
        if in_child(functools.partial(run, [command, "out"]), said_in(case)):
            case.fail(f"the release does not {command}", said_in(case).read_text(errors="replace"))
    if left := sorted(p.name for p in desk.iterdir() if p.name not in HARMLESS):
        kinds = sorted({name.partition("tmp-")[0] for name in left})
        case.fail(f"left behind: {', '.join(kinds)}", left)


def debits(desk: Path) -> int:
    path = desk / LEDGER
    return len(us.Ledger.open(path, create=False).entries()) if path.exists() and path.stat().st_size else 0


@functools.cache
def _counted(base: str) -> str:
    """How often a whole run makes each call."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        found = Path(name) / "counts"

        def count() -> int:
            os.environ["XDG_STATE_HOME"] = name  # this ledger will be gone, and its rows are asked for again
            desk_in(Path(name), Path(base))
            deadly = Deadly()
            deadly.install()
            code = run(SYNTH)
            found.write_text(json.dumps(deadly.counts))
            return code

        in_child(count, Path(name) / "said")
        return found.read_text()


@functools.cache
def _undisturbed(base: str) -> float:
    """Seconds of a whole run."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        begun = time.monotonic()

        def once() -> int:
            os.environ["XDG_STATE_HOME"] = name
            return run([*SYNTH]) if desk_in(Path(name), Path(base)) else 1

        in_child(once, Path(name) / "said")
        return time.monotonic() - begun


def check_material(base: Path) -> None:
    """Imports what the command needs, and starts no engine: see `children.in_child`."""
    import duckdb  # noqa: F401
    import scipy.optimize  # noqa: F401

    import understudy.cli.app
    import understudy.cli.synth
    import understudy.releases.report  # noqa: F401


TARGETS = (
    Target("calls", "kill -9 of synth at a call, then resumed", 230, at_a_call, 60.0, 4, prepare=check_material),
    Target("moments", "kill -9 of synth at any time, then resumed", 80, at_any_time, 60.0, 4, prepare=check_material),
)
