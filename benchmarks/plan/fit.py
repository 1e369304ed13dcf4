"""Ridge regression of logarithms on the facts of a table, one for each method and figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from marginals.environment import ROOT
from numpy.typing import NDArray

from understudy.synthesizers.forecast import FACTS

from .cells import Cell

PATH = ROOT / "src" / "understudy" / "synthesizers" / "coefficients.py"
RIDGE = 0.3
HOSTILE_WEIGHT = 0.1
"""Tables that were made to break methods are not typical; they only keep the fit from running wild."""
RANGE = 0.8
"""The share of tables that the range of a forecast shall hold."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Figure:
    """What is forecast: by which facts, and within which factor it should be."""

    factor: float
    facts: tuple[str, ...]
    only_real: bool
    ridge: float
    """How firmly methods are held to what they have in common."""

    def judges(self, cell: Cell) -> bool:
        return cell.real or not self.only_real


FIGURES = {
    "error": Figure(1.5, tuple(f for f in FACTS if f != "rows"), only_real=True, ridge=1.0),
    "seconds": Figure(2.0, ("columns' noise", "its square", "columns", "values", "rows"), only_real=False, ridge=0.1),
    "megabytes": Figure(2.0, ("columns' noise", "columns", "values", "rows"), only_real=False, ridge=0.1),
}


@dataclass(frozen=True)
class Fit:
    """Coefficients by figure: of 1, and of each fact."""

    coefficients: Mapping[str, Floats]

    def forecast(self, name: str, cell: Cell) -> float:
        found = float(np.concatenate([[1.0], cell.facts]) @ self.coefficients[name])
        return 1 / (1 + math.exp(-found)) if name == "error" else math.exp(found)


Fits = dict[str, Fit]


def fitted(cells: Sequence[Cell]) -> Fits:
    found = {name: _fit(name, [c for c in cells if name in c.figures]) for name in FIGURES}
    return {m: Fit({name: found[name][m] for name in FIGURES}) for m in sorted({c.method for c in cells})}


def _fit(name: str, cells: Sequence[Cell]) -> dict[str, Floats]:
    """What all methods have in common, and by how much each differs from it, all at once.

    Tables differ more than methods do, and not every method was measured on every table: fitted one by one, a method
    would seem better for having been spared a hard table.
    """
    figure, methods = FIGURES[name], sorted({c.method for c in cells})
    used = [FACTS.index(f) for f in figure.facts]
    facts = np.array([c.facts[used] for c in cells])
    weights = np.array([1.0 if c.real or not figure.only_real else HOSTILE_WEIGHT for c in cells])
    centre = np.average(facts, axis=0, weights=weights)
    spread = np.sqrt(np.average((facts - centre) ** 2, axis=0, weights=weights)) + 1e-9
    scaled = np.column_stack([np.ones(len(cells)), (facts - centre) / spread])
    own = [scaled * np.array([c.method == m for c in cells])[:, None] for m in methods]
    design = np.column_stack([scaled, *own])
    wanted = np.array([_transformed(name, c.figures[name]) for c in cells])
    penalty = np.full(design.shape[1], figure.ridge)
    penalty[: scaled.shape[1]] = RIDGE
    penalty[0] = 1e-6
    solved = np.linalg.solve((design.T * weights) @ design + np.diag(penalty), (design.T * weights) @ wanted)
    common, *each = solved.reshape(len(methods) + 1, -1)
    return {m: _unscaled(common + more, centre, spread, used) for m, more in zip(methods, each, strict=True)}


def _unscaled(slopes: Floats, centre: Floats, spread: Floats, used: Sequence[int]) -> Floats:
    found = np.zeros(len(FACTS) + 1)
    found[1 + np.array(used)] = slopes[1:] / spread
    found[0] = slopes[0] - (slopes[1:] / spread) @ centre
    return found


def _transformed(name: str, value: float) -> float:
    return math.log(value / (1 - value)) if name == "error" else math.log(value)


def written(cells: Sequence[Cell], whole: Fits, others: Mapping[str, Fits]) -> Path:
    """Writes the coefficients as a module; the range of the error is that of tables that a fit had not seen."""
    facts = np.array([c.facts for c in cells])
    lines = [
        '"""The coefficients of `forecast`, fitted to measured releases: written by `scripts/bench plan --write`."""',
        "",
        "from __future__ import annotations",
        "",
        f"LOWEST = {_numbers(facts.min(axis=0))}",
        f"HIGHEST = {_numbers(facts.max(axis=0))}",
        '"""The least and the greatest of each fact that was measured."""',
        "COEFFICIENTS: dict[str, dict[str, list[float]]] = {",
    ]
    for method, fit in whole.items():
        lines.append(f'    "{method}": {{')
        lines += [f'        "{name}": {_numbers(values)},' for name, values in fit.coefficients.items()]
        lines += [f'        "range": [{_range(method, cells, others):.4g}],', "    },"]
    new = PATH.with_suffix(".tmp-new")
    new.write_text("\n".join([*lines, "}", ""]))
    return new.replace(PATH).relative_to(ROOT)


def _range(method: str, cells: Sequence[Cell], others: Mapping[str, Fits]) -> float:
    """How far from the forecast, in logits, that share of real tables lies."""
    seen = [c for c in cells if c.method == method and c.real and "error" in c.figures]
    misses = [
        abs(
            _transformed("error", c.figures["error"])
            - _transformed("error", others[c.table][method].forecast("error", c))
        )
        for c in seen
    ]
    return float(np.quantile(misses, RANGE))


def _numbers(values: Floats) -> str:
    return "[" + ", ".join(f"{v:.6g}" for v in values) + "]"
