"""The table of results: mean ± standard deviation over the seeds."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from results_cache import Result

from .case import OURS, same_task

SCORES = ("tv1", "tv2", "tv3", "lr_auc", "gbm_auc", "tree10_acc")
HEADER = ("tool", "method", "seeds", "seconds", "faster", "cpu", "MB", *SCORES)


@dataclass(frozen=True)
class Group:
    """The results of one method of one tool on one table at one ε."""

    tool: str
    method: str
    results: tuple[Result, ...]

    @property
    def done(self) -> list[Result]:
        return [r for r in self.results if "failed" not in r]

    @property
    def seconds(self) -> float:
        return statistics.fmean(r["seconds"] for r in self.done)

    def cells(self, rivals: Sequence[Group]) -> list[str]:
        if not self.done:
            return [self.tool, self.method, "0", f"failed: {self.results[0]['failed']}"]
        peak = max(r["peak_mb"] for r in self.done)
        times, cpu = (spread([r[k] for r in self.done if k in r], 2) for k in ("seconds", "cpu"))
        scores = [spread([r["scores"][s] for r in self.done if s in r["scores"]], 4) for s in SCORES]
        return [self.tool, self.method, str(len(self.done)), times, self._ratio(rivals), cpu, str(peak), *scores]

    def _ratio(self, rivals: Sequence[Group]) -> str:
        """How many times as fast as the fastest rival of the same method."""
        same = [r.seconds for r in rivals if same_task(r.method) == same_task(self.method)]
        return f"{min(same) / self.seconds:.1f}×" if same else "–"


def spread(values: Sequence[float], digits: int) -> str:
    """Mean ± standard deviation; a single value has no spread."""
    if not values:
        return "–"
    mean = f"{statistics.fmean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.{digits}f}"


def render(results: Iterable[Result]) -> str:
    """One Markdown table for each table and ε, the smallest ε first."""
    blocks: dict[tuple[str, float], list[Result]] = {}
    for result in results:
        blocks.setdefault((result["table"], result["epsilon"]), []).append(result)
    return "\n\n".join(_block(*key, blocks[key]) for key in sorted(blocks))


def _block(table: str, epsilon: float, results: Sequence[Result]) -> str:
    groups = list(_groups(results))
    rivals = [g for g in groups if g.tool != OURS and g.done]
    title = f"### {table}, epsilon {epsilon:g}\n\n{_conditions(results)}\n"
    return "\n".join([title, _line(HEADER), _line(["---"] * len(HEADER)), *(_line(g.cells(rivals)) for g in groups)])


def _groups(results: Sequence[Result]) -> Iterator[Group]:
    keys = sorted({(same_task(r["method"]), r["tool"] != OURS, r["tool"], r["method"]) for r in results})
    for _, _, tool, method in keys:
        yield Group(tool, method, tuple(r for r in results if (r["tool"], r["method"]) == (tool, method)))


def _conditions(results: Sequence[Result]) -> str:
    versions = sorted({" ".join([r["tool"], r["version"], *_code(r)]) for r in results if "version" in r})
    loads = [r["load"] for r in results]
    days = sorted(r["date"][:10] for r in results)
    cores = max(r["cores"] for r in results)
    return (
        f"{', '.join(versions)}; {cores} cores, load at start {min(loads):.1f} to {max(loads):.1f}; "
        f"{days[0]}{'' if days[0] == days[-1] else f' to {days[-1]}'}; delta {results[0]['delta']:g}. "
        "`faster` is against the fastest rival of the same method."
    )


def _code(result: Result) -> list[str]:
    return [f"({result['code']})"] if "code" in result else []


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join([*cells, *[""] * (len(HEADER) - len(cells))]) + " |"
