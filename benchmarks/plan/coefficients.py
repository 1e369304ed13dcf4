"""Writes the fitted numbers to the file that `understudy.methods.forecast.forecast` reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from marginals.environment import ROOT

from understudy.methods.forecast.forecast import cost_facts

from .cells import Cell
from .fit import ErrorFit, Floats, family_of

PATH = ROOT / "src" / "understudy" / "methods" / "forecast" / "coefficients.json"


def written(
    cells: Sequence[Cell], errors: ErrorFit, ranges: Mapping[str, float], costs: Mapping[str, Mapping[str, Floats]]
) -> Path:
    """With the least and the greatest of the facts that time and memory of a method were measured with."""
    methods = []
    for method, numbers in errors.methods.items():
        tables = len({family_of(c.table) for c in cells if c.real and c.method == method and "error" in c.figures})
        facts = np.array([cost_facts(c.facts, c.bought) for c in cells if c.method == method and _costed(c)])
        found = {"error": _numbers(numbers)} | {n: _numbers(costs[n][method]) for n in costs}
        found |= {"lowest": _numbers(facts.min(0)), "highest": _numbers(facts.max(0))}
        found |= {"range": f"[{ranges[method]:.4g}]", "tables": f"[{tables}]"}
        fields = ", ".join(f'"{name}": {values}' for name, values in found.items())
        methods.append(f'  "{method}": {{{fields}}}')
    body = f' "shape": {_numbers(errors.shape)},\n "related": {_numbers(errors.related)},\n "methods": {{\n'
    new = PATH.with_suffix(".tmp-new")
    new.write_text("{\n" + body + ",\n".join(methods) + "\n }\n}\n")
    return new.replace(PATH).relative_to(ROOT)


def _costed(cell: Cell) -> bool:
    return "seconds" in cell.figures and "megabytes" in cell.figures


def _numbers(values: Sequence[float] | Floats) -> str:
    return "[" + ", ".join(f"{v:.6g}" for v in values) + "]"
