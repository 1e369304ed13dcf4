"""Releases with extreme ε, δ, numbers of rows and seeds: refused, or made within the limits of time and memory."""

from __future__ import annotations

import math
from typing import Any

import understudy as us
from fuzz.case import Case, Target, failed
from fuzz.material import SCHEMA_FILE, TABLE
from fuzz.tables import check_material

EPSILONS = (
    5e-324, 1e-300, 1e-30, 1e-12, 1e-9, 1e-6, 1e-3, 0.1, 1.0, 10.0, 100.0, 709.0, 1e4, 1e9, 1e300, math.inf, -1.0, 0.0,
    math.nan, 10**400, True, "1",
)  # fmt: skip
DELTAS = (0.0, 0.0, 5e-324, 1e-300, 1e-30, 1e-12, 1e-6, 1e-6, 0.1, 0.999999, 1.0, 2.0, -1e-9, math.nan, math.inf)
ROWS = (None, None, None, 1, 2, 1_000, 200_000, 200_000_001, 0, -1, 10**30, 1.5, True, "9")
SEEDS = (None, None, 0, 1, 2**31, 2**63, 2**64, 2**200, -1, 1.0, "x")
METHODS = ("independent", "mst", "polya-tree", "mwem", "auto")


def release(case: Case) -> None:
    draw = case.draw
    # One or two are extreme: what is refused for one reason is not tried for another.
    asked: dict[str, Any] = {"epsilon": 1.0, "method": draw.choice(METHODS)}
    extremes = {"epsilon": EPSILONS, "delta": DELTAS, "rows": ROWS, "seed": SEEDS}
    for name in draw.sample(sorted(extremes), draw.randint(1, 2)) + ["epsilon"] * (draw.random() < 0.4):
        asked[name] = draw.choice(extremes[name])
    table = us.open(case.base / TABLE, case.base / SCHEMA_FILE)
    found = case.call("synth", us.synthesize, table, ledger=False, **asked)
    if failed(found):
        if isinstance(found, MemoryError):
            case.fail("more memory than is allowed", asked)
        return
    spent = found.certificate.composed[0]
    if not spent <= found.certificate.epsilon:
        case.fail("more was spent than was asked for", f"{spent} by {asked}")


TARGETS = (Target("extremes", "extreme epsilon, delta, rows and seeds", 250, release, chunk=4, prepare=check_material),)
