"""Writes the fitted numbers as the module `understudy.methods.forecast.coefficients`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from marginals.environment import ROOT

from understudy.methods.forecast.forecast import cost_facts

from .cells import Cell
from .fit import ErrorFit, Floats, family_of

MEANING = "By method. Of the error: what it wastes of its budget, and what it does not reach; both as logarithms."
PATH = ROOT / "src" / "understudy" / "methods" / "forecast" / "coefficients.py"


def written(
    cells: Sequence[Cell],
    errors: ErrorFit,
    ranges: Mapping[str, float],
    costs: Mapping[str, Mapping[str, Floats]],
    kept: Mapping[str, Mapping[str, Sequence[float]]],
) -> Path:
    """With the least and the greatest of the facts that time and memory of a method were measured with."""
    methods = {m: _fitted(cells, m, errors, ranges[m], costs) for m in errors.methods} | kept
    lines = [
        '"""The coefficients of `forecast`, fitted to measured releases: written by `scripts/bench plan --write`."""',
        "",
        "from __future__ import annotations",
        "",
        f"SHAPE = {_numbers(errors.shape)}",
        '"""What the errors of all methods have in common: the fields of `forecast.forecast.Shape`."""',
        f"RELATED = {_numbers(errors.related)}",
        '"""Mean and spread, over public tables, of the logarithm of how closely pairs of columns are related."""',
        "COEFFICIENTS: dict[str, dict[str, list[float]]] = {",
    ]
    for method, fitted in sorted(methods.items()):
        lines += [f'    "{method}": {{', *(f'        "{n}": {_numbers(v)},' for n, v in fitted.items()), "    },"]
    new = PATH.with_suffix(".tmp-new")
    new.write_text("\n".join([*lines, "}", f'"""{MEANING}"""', ""]))
    return new.replace(PATH).relative_to(ROOT)


def _fitted(
    cells: Sequence[Cell], method: str, errors: ErrorFit, reach: float, costs: Mapping[str, Mapping[str, Floats]]
) -> dict[str, Sequence[float] | Floats]:
    tables = {family_of(c.table) for c in cells if c.real and c.method == method and "error" in c.figures}
    facts = np.array([cost_facts(c.facts, c.bought) for c in cells if c.method == method and _costed(c)])
    return {
        "error": errors.methods[method],
        **{name: found[method] for name, found in costs.items()},
        "lowest": facts.min(0),
        "highest": facts.max(0),
        "range": [float(f"{reach:.4g}")],
        "tables": [len(tables)],
    }


def _costed(cell: Cell) -> bool:
    return "seconds" in cell.figures and "megabytes" in cell.figures


def _numbers(values: Sequence[float] | Floats) -> str:
    return "[" + ", ".join(f"{v:.6g}" for v in values) + "]"
