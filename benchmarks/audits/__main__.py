"""The auditor, measured: `scripts/bench audits honest|tight|mutants|alarms|rivals [--subjects NAME ...] [--seconds S]`.

`honest` audits every subject at ε = 1, `tight` shows how near the proved μ comes to the claimed one where all noise is
Gaussian, `mutants` breaks each of them in every way, `alarms` audits one correct, cheap mechanism many times and counts
how often it is called a violation, and `rivals` audits other tools in their own environments, with their known
violations. Each writes its table to benchmarks/results/audits-*.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence

from places import RAW, TABLES
from scipy.stats import binom

from understudy.lab.audits.audit import audit, audit_mutants
from understudy.lab.audits.audit_plan import SETTINGS, AuditEffort
from understudy.lab.audits.games import games
from understudy.lab.audits.result import Audit
from understudy.lab.audits.subjects import SPECIMENS, subjects, trained

CHEAP, LEVEL, AUDITS = "independent", 0.05, 200
SHORT = AuditEffort("short", main=500, white=50, black=0, seconds=3_600.0, learners=1)
"""As quick, with fewer runs, white-box alone: no clock decides how many. The level is kept with any number."""
WHITE = dataclasses.replace(SETTINGS["full"], name="white", white=240, black=0)
"""The worst pair as in the full setting, of the other pairs a little, and no black box."""
GAUSSIAN = ("independent", "marginals")
"""Methods that spend on Gaussian noise alone."""
TIGHT = (1.0,)
RARE = 1e-3
"""How rarely the stated number of false alarms may be exceeded by an auditor that keeps its level."""


def honest(subjects: Sequence[str], seconds: float | None = None) -> str:
    rows = ["| subject | verdict | white-box μ of claimed | largest ε proved | seconds |", "|---|---|---|---|---|"]
    for name in subjects:
        rows.append(_row(audit(name, time_limit=seconds)))
        print(rows[-1], flush=True)
    return "\n".join(rows)


def _row(found: Audit) -> str:
    tight = "–" if found.tightness is None else f"{100 * found.tightness:.0f} %"
    proved = max((b.epsilon for b in found.bounds), default=0.0)
    return f"| {found.subject} | {found.verdict} | {tight} | {proved:.3f} | {found.seconds:.0f} |"


def tight(subjects: Sequence[str]) -> str:
    from audits.here import Here

    SETTINGS[WHITE.name], games.WorkerPool = WHITE, Here  # type: ignore[misc, assignment]
    header = ("subject", "ε", "verdict", "runs of the worst pair", "μ claimed", "μ proved", "share")
    rows = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    for epsilon in TIGHT:
        for name in subjects:
            found = audit(name, epsilon=epsilon, setting=WHITE.name, jobs=1, out=RAW / f"audits-{name}-{epsilon:g}")
            rows.append(_tight_row(found))
            print(rows[-1], flush=True)
    return "\n".join(rows)


def _tight_row(found: Audit) -> str:
    best = max(found.bounds, key=lambda b: b.mu)
    assert found.claim.mu and found.tightness
    cells = (found.subject, f"{found.claim.epsilon:g}", found.verdict, f"{best.runs:,}", f"{found.claim.mu:.4f}")
    # Cut, not rounded: what is proved must not be said to be more.
    proved = (f"{int(best.mu * 1e4) / 1e4:.4f}", f"{int(found.tightness * 1e3) / 10:.1f} %")
    return f"| {' | '.join((*cells, *proved))} |"


def mutants(subjects: Sequence[str]) -> str:
    matrix = audit_mutants(subjects, progress=lambda text: print(text, flush=True))
    rows = [f"| mutant | {' | '.join(matrix.methods)} |", "|---" * (len(matrix.methods) + 1) + "|"]
    for mutant in matrix.mutants:
        cells = (matrix.cells[mutant, m].partition(":")[0] or "**survived**" for m in matrix.methods)
        rows.append(f"| {mutant} | {' | '.join(cells)} |")
    return "\n".join([*rows, "", f"Survivors: {len(matrix.survivors)}."])


def alarms(subjects: Sequence[str]) -> str:
    """Kept as they come, so that a run that was stopped goes on."""
    path = RAW / "audits-alarms.json"
    found = json.loads(path.read_text()) if path.exists() else []
    from audits.here import Here

    SETTINGS[SHORT.name], games.WorkerPool = SHORT, Here  # type: ignore[misc, assignment]
    while len(found) < AUDITS:
        result = audit(CHEAP, level=LEVEL, setting=SHORT.name, jobs=1)
        found.append({"violated": result.violated, "runs": sum(b.runs for b in result.bounds)})
        path.write_text(json.dumps(found))
        print(len(found), found[-1], flush=True)
    called, most = sum(f["violated"] for f in found), int(binom.isf(RARE, AUDITS, LEVEL))
    runs = sum(f["runs"] for f in found) / len(found)
    return (
        f"{called} of {AUDITS} audits of {CHEAP} at ε = 1 (level {LEVEL:g}, {runs:,.0f} runs each) called it violated;"
        f" an auditor that keeps its level exceeds {most} once in {1 / RARE:,.0f} times."
    )


def rivals(subjects: Sequence[str]) -> str:
    from audits.rivals import table

    return table()


WHAT = {"honest": honest, "tight": tight, "mutants": mutants, "alarms": alarms, "rivals": rivals}


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench audits", description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=list(WHAT))
    parser.add_argument(
        "--subjects", nargs="+", choices=[*subjects(), *trained(), *SPECIMENS], metavar="NAME", help="default: all"
    )
    parser.add_argument("--seconds", type=float, help="of games in each audit of `honest` (default: those of quick)")
    asked = parser.parse_args()
    more = {"seconds": asked.seconds} if asked.what == "honest" else {}
    every = GAUSSIAN if asked.what == "tight" else subjects()
    text = WHAT[asked.what](asked.subjects or every, **more)
    (TABLES / f"audits-{asked.what}.md").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
