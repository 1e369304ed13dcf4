"""Other tools through `understudy audit --callable`, each in its own environment, and ours through the same door.

An audit is played in sittings of five minutes, whose number was fixed beforehand, and what it found is kept in
benchmarks/results/audits-rivals.json: `scripts/bench audits rivals` goes on where it was stopped, and plays nothing
that is there. `python -m audits.rivals NAME` plays one sitting of one rival and says what was found so far.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marginals.environment import BENCH, PINS, ROOT, python_of

from understudy.attacks.audit import Audit
from understudy.audits.auditing import audit
from understudy.audits.game import cut
from understudy.errors import InputError

RESULTS = Path(__file__).resolve().parents[1] / "results" / "audits-rivals.json"
SECONDS = 300.0
EPSILON, DELTA = 1.0, 1e-6
HEAD = "| subject | claim | runs of each game | largest ε proved | verdict | statistic | pair | seconds |"


@dataclass(frozen=True)
class Rival:
    """A function, where it runs, and how many sittings it gets."""

    tool: str
    method: str
    module: str
    sittings: int

    @property
    def name(self) -> str:
        return f"{self.tool}-{self.method}"

    @property
    def title(self) -> str:
        return f"{self.tool} {PINS.get(self.tool, '')} {self.method}".replace("  ", " ")

    @property
    def python(self) -> Path:
        return python_of("ours" if self.tool == "understudy" else self.tool)

    @property
    def function(self) -> str:
        return f"benchmarks.audits.{self.module}:{self.method}"

    @property
    def command(self) -> str:
        """All sittings in one."""
        python = "" if self.tool == "understudy" else f"--python .bench/{self.tool}/bin/python "
        limit = f"--setting full --time-limit {self.sittings * SECONDS:g} --jobs 1"
        return f"understudy audit --callable {self.function} {python}--epsilon {EPSILON:g} --delta {DELTA:g} {limit}"


RIVALS = (
    Rival("dpmm", "privbayes", "theirs_dpmm", 5),
    Rival("smartnoise", "mwem", "theirs_smartnoise", 3),
    Rival("understudy", "privbayes", "ours", 1),
    Rival("understudy", "mst", "ours", 1),
)


def table() -> str:
    for rival in RIVALS:
        while len(kept().get(rival.name, {}).get("seconds", ())) < rival.sittings:
            print(sitting(rival), flush=True)
    commands = "\n".join(f"    {r.command}" for r in RIVALS)
    rows = "\n".join(row(r, kept()[r.name]) for r in RIVALS)
    return f"{HEAD}\n|---|---|---|---|---|---|---|---|\n{rows}\n\n{commands}"


def sitting(rival: Rival) -> str:
    """Goes on with the games of one rival."""
    known = kept()
    before = known.get(rival.name, {})
    known[rival.name] = before | _found(rival) | {"seconds": [*before.get("seconds", []), SECONDS]}
    RESULTS.write_text(json.dumps(known, indent=1) + "\n")
    return row(rival, known[rival.name])


def _found(rival: Rival) -> dict[str, Any]:
    asked: dict[str, Any] = {"function": rival.function, "python": rival.python, "setting": "full", "jobs": 1}
    out = BENCH / "audits" / rival.name
    try:
        return facts(audit(epsilon=EPSILON, delta=DELTA, time_limit=SECONDS, out=out, **asked))
    except InputError:  # too few runs to say anything yet; they are kept
        return {}


def facts(found: Audit) -> dict[str, Any]:
    best = max(found.bounds, key=lambda b: b.epsilon)
    runs = [b.runs for b in found.bounds]
    return {
        "runs": [min(runs), max(runs)],
        "epsilon": best.epsilon,
        "told": best.accuracy,
        "statistic": best.statistic,
        "pair": best.pair,
        "verdict": found.verdict,
        "games": [(b.pair, b.runs, b.epsilon, b.accuracy, b.statistic) for b in found.bounds],
    }


def row(rival: Rival, found: dict[str, Any]) -> str:
    if "runs" not in found:
        return f"| {rival.title} | too few runs in {sum(found['seconds']):.0f} s |"
    least, most = found["runs"]
    runs = f"{least:,}" if least == most else f"{least:,}–{most:,}"
    told = f"{found['statistic']} (told rightly: {100 * found['told']:.0f} %)"
    facts = (rival.title, f"({EPSILON:g}, {DELTA:g})", runs, cut(found["epsilon"]), found["verdict"], told)
    return f"| {' | '.join(facts)} | {found['pair']} | {sum(found['seconds']):.0f} |"


def kept() -> dict[str, Any]:
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


if __name__ == "__main__":
    assert Path.cwd() == ROOT, f"run it from {ROOT.name}"
    print(sitting(next(r for r in RIVALS if r.name == sys.argv[1])))
