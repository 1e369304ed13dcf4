"""What is measured by default: which methods, on which tables, with which ε."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch

from marginals.case import OURS as OUR_TOOL

from .case import PLAIN, Case, tool_of

BEFORE = "e4344ea"
"""The commit that "today" is, where an earlier figure is to be beaten."""
CURVE = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
CELLS = (0.1, 1.0, 10.0)
SEVEN = ("adult_coded", "mushroom", "insurance", "nursery", "votes", "covertype", "census")
"""The 21 cells: these tables at three ε."""
ORDER = ("xor3", "xor4", "xor5", "classes")
OURS = ("rake", "dp-arf", "aim", "mst", "independent")
GAUSSIAN = ("independent", "marginals", "mst", "aim", "rake")
"""Whose noise was to become less."""
RIVALS = ("smartnoise-aim", "smartnoise-mst", "dpmm-aim", "dpmm-mst", "dpmm-privbayes", "mbi-aim")


@dataclass(frozen=True)
class Plan:
    tables: Sequence[str]
    epsilons: Sequence[float]
    methods: Sequence[str]


PLANS = (
    Plan(ORDER, (1.0,), (*OURS, "auto")),
    Plan(("classes",), (1.0,), (f"dp-arf@{BEFORE}", f"rake@{BEFORE}")),
    Plan(SEVEN, CELLS, OURS),
    Plan(("tx2019",), (1.0, 10.0), OURS),
    Plan(("binary",), (1.0,), (*OURS, f"rake@{BEFORE}")),
    Plan(("insurance",), (1.0,), (f"rake@{BEFORE}",)),
    Plan(("insurance",), (0.5,), ("rake",)),
    Plan(("adult_coded",), (1.0,), (f"rake{PLAIN}", "marginals", *(f"{m}@{BEFORE}" for m in GAUSSIAN))),
    Plan(("adult_coded", "insurance", "binary", "tx2019"), (1.0,), RIVALS),
    Plan(("wide",), (0.1,), ("rake", "independent")),
    Plan(("wide120", "wide500"), (1.0,), ("rake", "independent")),
    Plan((*SEVEN, "tx2019", "binary", "wide", "survey"), CURVE, ("rake",)),
)


@dataclass(frozen=True)
class Asked:
    """What of it was asked for; nothing said is everything."""

    only: Sequence[str] = ()
    methods: Sequence[str] = ()
    epsilons: Sequence[float] = ()

    def takes(self, table: str, method: str, epsilon: float) -> bool:
        return (
            (not self.only or any(fnmatch(table, f"*{pattern}*") for pattern in self.only))
            and (not self.methods or method in self.methods)
            and (not self.epsilons or epsilon in self.epsilons)
        )

    def cells(self) -> list[tuple[str, str, float]]:
        """Those of the plans; with methods and ε both named, all of them on every table that is asked for."""
        plans = list(PLANS)
        if self.methods and self.epsilons:
            tables = list(dict.fromkeys(table for plan in PLANS for table in plan.tables))
            plans = [Plan(tables, self.epsilons, self.methods)]
        every = ((t, m, e) for plan in plans for t in plan.tables for e in plan.epsilons for m in plan.methods)
        return [cell for cell in dict.fromkeys(every) if self.takes(*cell)]

    def cases(self, seeds: int, rival_seeds: int) -> Iterator[Case]:
        """Seeds come outermost, so that a run that is stopped has one of everything."""
        for seed in range(max(seeds, rival_seeds)):
            for table, method, epsilon in self.cells():
                if seed < (seeds if tool_of(method) == OUR_TOOL else rival_seeds):
                    yield Case(table, method, epsilon, seed)
