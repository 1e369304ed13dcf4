"""What the default method was to show, line by line: what was wanted, what was measured, and whether it was met.

Means over the seeds are compared as they are. What other commands or tests show is not listed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rake.summary import NOTHING, Results, Sample, markdown

from .case import PLAIN
from .plan import BEFORE, CELLS, CURVE, GAUSSIAN, SEVEN

TOLERANCE = 2.0
"""A mean is worse than another if it is so by more than so many standard errors of the difference."""


@dataclass(frozen=True)
class Line:
    what: str
    wanted: str
    measured: str
    met: bool | None
    """Nothing where something was not measured."""

    def cells(self) -> list[str]:
        verdict = NOTHING if self.met is None else "yes" if self.met else "**no**"
        return [self.what, self.wanted, self.measured, verdict]


def check(results: Results, whole: bool = True) -> str:
    """All lines, or those alone that something was measured for."""
    lines = [line for part in _PARTS for line in part(results) if whole or line.measured != NOTHING]
    return markdown(["what", "wanted", "measured", "met"], [line.cells() for line in lines])


def _mean(results: Results, table: str, epsilon: float, figure: str, method: str = "rake") -> float:
    sample = results.of(table=table, epsilon=epsilon, method=method).sample(figure)
    return sample.mean if sample.values else math.nan


def _at_most(what: str, value: float, bound: float, form: str = ".4f") -> Line:
    return _line(what, f"≤ {bound:{form}}", value, value <= bound, form)


def _at_least(what: str, value: float, bound: float, form: str = ".4f") -> Line:
    return _line(what, f"≥ {bound:{form}}", value, value >= bound, form)


def _line(what: str, wanted: str, value: float, met: bool, form: str) -> Line:
    if math.isnan(value) or "nan" in wanted:
        return Line(what, wanted.replace("nan", NOTHING), NOTHING if math.isnan(value) else f"{value:{form}}", None)
    return Line(what, wanted, f"{value:{form}}", met)


def _noise(results: Results) -> Iterator[Line]:
    for method in GAUSSIAN:
        now, before = (_mean(results, "adult_coded", 1.0, "noise", m) for m in (method, f"{method}@{BEFORE}"))
        yield _at_most(f"noise of `{method}` × that of {BEFORE}, Adult, ε = 1", now / before, 0.93, ".3f")


def _curves(results: Results) -> Iterator[Line]:
    for table in results.of(method="rake").names("table"):
        samples = {e: results.of(table=table, method="rake", epsilon=e).sample("tv2") for e in CURVE}
        known = [(e, s) for e, s in samples.items() if s.values]
        if len(known) < 2:
            continue
        rises = [f"ε = {e:g}" for (_, a), (e, b) in itertools.pairwise(known) if _is_worse(b, a)]
        shown = ", ".join(f"{s.mean:.4f}" for _, s in known)
        budgets = ", ".join(f"{e:g}" for e, _ in known)
        yield Line(f"TV2 of {table}, ε = {budgets}", "falls", shown, not rises)
    for epsilon, bound in ((1.0, 0.012), (10.0, 0.006)):
        yield _at_most(f"TV2 of survey, ε = {epsilon:g}", _mean(results, "survey", epsilon, "tv2"), bound)


def _is_worse(one: Sample, other: Sample) -> bool:
    errors = [s.error for s in (one, other) if math.isfinite(s.error)]
    return one.mean - other.mean > TOLERANCE * math.hypot(*errors)


def _order(results: Results) -> Iterator[Line]:
    for k in (3, 4, 5):
        yield _at_least(
            f"AUC, parity of {k} of ten bits, ε = 1, `auto`",
            _mean(results, f"xor{k}", 1.0, "gbm_auc", "auto"),
            0.93,
            ".3f",
        )
    before = _mean(results, "classes", 1.0, "accuracy", f"dp-arf@{BEFORE}")
    yield _at_least(
        f"accuracy, ten classes, ε = 1, `auto`; 1.2 × `dp-arf` of {BEFORE}",
        _mean(results, "classes", 1.0, "accuracy", "auto"),
        1.2 * before,
        ".3f",
    )


def _adult(results: Results) -> Iterator[Line]:
    for epsilon, error, auc in ((0.1, 0.077, 0.885), (1.0, 0.0275, 0.912), (10.0, 0.013, 0.919)):
        yield _at_most(f"TV2 of Adult, ε = {epsilon:g}", _mean(results, "adult_coded", epsilon, "tv2"), error)
        yield _at_least(f"AUC of Adult, ε = {epsilon:g}", _mean(results, "adult_coded", epsilon, "gbm_auc"), auc)


def _nist(results: Results) -> Iterator[Line]:
    for epsilon, score in ((1.0, 900.0), (10.0, 940.0)):
        yield _at_least(
            f"NIST's score of tx2019, ε = {epsilon:g}", _mean(results, "tx2019", epsilon, "nist"), score, ".1f"
        )


def _numbers(results: Results) -> Iterator[Line]:
    now, before = (_mean(results, "insurance", 1.0, "correlation", m) for m in ("rake", f"rake@{BEFORE}"))
    yield _at_most(f"error of correlations, insurance, ε = 1; half of {BEFORE}'s", now, before / 2)
    charges = _mean(results, "insurance", 0.5, "wasserstein")
    yield _at_most("Wasserstein distance of charges, insurance, ε = 0.5", charges, 1173, ",.0f")
    for epsilon in (0.5, 1.0):
        absent = results.of(table="insurance", epsilon=epsilon, method="rake").sample("absent").values
        most = max(absent, default=math.nan)
        yield _at_most(f"values with 5 expected rows and none, insurance, ε = {epsilon:g}, any seed", most, 0, ".0f")


def _cells(results: Results) -> Iterator[Line]:
    """Beside every other method of now: none of earlier commits, nor `auto`, which may be the same one."""
    lost, known = [], 0
    for table, epsilon in itertools.product(SEVEN, CELLS):
        methods = results.of(table=table, epsilon=epsilon).names("method")
        others = [m for m in methods if m not in ("rake", "auto") and "@" not in m and PLAIN not in m]
        gaps = []
        for figure in ("tv2", "tv3"):
            theirs = [_mean(results, table, epsilon, figure, m) for m in others]
            bar = min((t for t in theirs if not math.isnan(t)), default=math.nan)
            gaps.append(_mean(results, table, epsilon, figure) - bar)
        known += not math.isnan(sum(gaps))
        if max(gaps) > 0:
            lost.append(f"{table} at {epsilon:g}")
    measured = f"{known - len(lost)} of {known}" + (f"; not {', '.join(lost)}" if lost else "")
    met = known - len(lost) >= 19 if known == len(SEVEN) * len(CELLS) else None
    yield Line("21 cells: lowest TV2 and lowest TV3", "in ≥ 19", measured, met)


def _binary(results: Results) -> Iterator[Line]:
    now, before = (_mean(results, "binary", 1.0, "tv2", m) for m in ("rake", f"rake@{BEFORE}"))
    yield _at_most(f"TV2 of 16 binary columns, ε = 1; 0.9 × {BEFORE}'s", now, 0.9 * before, ".5f")


def _wide(results: Results) -> Iterator[Line]:
    for table, seconds in (("wide120", 60), ("wide500", 600)):
        yield _at_most(f"seconds, {table}, ε = 1", _mean(results, table, 1.0, "seconds"), seconds, ".0f")
    yield _at_most("MB, wide120, ε = 1", _mean(results, "wide120", 1.0, "peak_mb"), 1_200, ".0f")
    bar = _mean(results, "wide", 0.1, "tv2", "independent")
    yield _at_most("TV2 of wide, ε = 0.1; that of `independent`", _mean(results, "wide", 0.1, "tv2"), bar)


def _cost(results: Results) -> Iterator[Line]:
    for method, seconds in (("rake", 6), (f"rake{PLAIN}", 10)):
        what = "with `fast`" if method == "rake" else "without"
        yield _at_most(
            f"seconds, Adult, ε = 1, {what}", _mean(results, "adult_coded", 1.0, "seconds", method), seconds, ".1f"
        )
    yield _at_most("MB, Adult, ε = 1", _mean(results, "adult_coded", 1.0, "peak_mb"), 500, ".0f")


_PARTS: Sequence[Callable[[Results], Iterator[Line]]] = (
    *(_noise, _curves, _order, _adult, _nist, _numbers, _cells, _binary, _wide, _cost),
)
