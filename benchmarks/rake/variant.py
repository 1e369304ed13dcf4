"""Variants of our recipe: other constants, and functions that are replaced in a worker for the time of one release.

An ablation switches one part off; a constant is set to another value, written NAME=VALUE. A name that our code does not
have any more is an error and never a silent measurement of the unchanged recipe.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.queryable import BudgetView
from understudy.boundary.schema.domain import ColumnSet
from understudy.inference.noisy_table import NoisyTable, agree
from understudy.methods.parts.one_ways import measure_columns
from understudy.methods.rake import rake
from understudy.methods.rake.schedule import Schedule
from understudy.methods.rake.tuning import TUNING
from understudy.methods.registry import METHODS

Floats = NDArray[np.float64]
ALL_LEVELS, WHOLE_SCHEDULE = rake.RakeState._levels, Schedule.of
NEVER = 10**9


def finest_level(raking: rake.RakeState, columns: ColumnSet, schedule: Schedule) -> list[int]:
    return ALL_LEVELS(raking, columns, schedule)[-1:]


def rounds_alone(total: float, curator: BudgetView, *settings: Any, **named: Any) -> Schedule:
    """As many picks as with a forest, all of them in rounds; moments, if any, are left out of the comparison."""
    schedule = replace(WHOLE_SCHEDULE(total, curator, *settings, **named), moments=None)
    extra = round(schedule.edges / schedule.per_round)
    rounds = curator.remaining().split([1.0] * (len(schedule.rounds) + extra))
    return replace(schedule, edges=0, rounds=rounds)


def plant_nothing(raking: rake.RakeState, schedule: Schedule) -> None:
    """Particles from independent columns."""
    raking.start()
    raking.particles.rake(raking.tuning.passes, sampling=not raking.whole)


def raw_factors(counts: Floats, expected: Floats, variance: float) -> Floats:
    """What the noisy counts say, and nothing learned from them about how far to believe it."""
    return np.maximum(counts, 0.0) / np.maximum(expected, 1e-300)


def unsmoothed(counts: Floats, variances: Floats) -> Floats:
    return counts


def own_counts(
    columns: Mapping[str, NoisyTable], tables: list[NoisyTable], total: float | None
) -> dict[str, NoisyTable]:
    """Each column by its own counts alone."""
    return agree(columns, [], total)


def unshifted(table: NoisyTable, columns: Mapping[str, NoisyTable]) -> NoisyTable:
    return table


def no_sweep(particles: object, rng: object) -> None:
    pass


def same_price(wanted: Floats) -> Floats:
    """A row too many costs as much in every cell."""
    return np.ones_like(wanted)


def aimed_at_nothing(raking: rake.RakeState, columns: ColumnSet) -> bool:
    return False


@dataclass(frozen=True)
class Variant:
    """What replaces what; names are dotted, under `understudy`. Constants are those of `rake.tuning`."""

    changes: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    target: bool = False


ABLATIONS = {
    "": Variant(),
    "no resolutions": Variant({"methods.rake.rake.RakeState._levels": finest_level}),
    "no forest start": Variant(
        {
            "methods.rake.schedule.Schedule.of": rounds_alone,
            "methods.rake.rake.RakeState.start_from_forest": plant_nothing,
        }
    ),
    "no coarser copies": Variant(constants={"coarser": ()}),
    "no dependence shrinkage": Variant({"inference.shrinkage._posterior": raw_factors}),
    "no smoothing": Variant({"methods.parts.one_ways.smoothed": unsmoothed}),
    "values as counted": Variant({"methods.parts.one_ways.evened": unsmoothed}),
    "columns by all their cells": Variant({"methods.rake.single_columns.POWER_OF_CELLS": 1.0}),
    "no agreement": Variant(
        {"methods.rake.rake.agree": own_counts, "inference.noisy_table.NoisyTable.shifted_to": unshifted}
    ),
    "no Gibbs sampling": Variant({"methods.rake.rake.sweep": no_sweep}),
    "few final particles": Variant(constants={"final_particles": 50_000}),
    "no exchange of rows": Variant(constants={"exchange_rounds": 0}),
    "rows by squares": Variant({"inference.particles.rounding.price_of": same_price}),
    "no cost of noise": Variant(constants={"penalty": 0.0, "threshold": 0.0}),
    "cost by what is expected": Variant(constants={"penalty": 0.6, "threshold": 0.0}),
    "no larger sets": Variant(constants={"larger_sets": 0}),
    "no moments": Variant(constants={"most_moments_share": 0.0}),
    "columns in steps": Variant({"methods.rake.rake.measure_columns": measure_columns}),
    "rounds as planned": Variant(constants={"power_of_cells": 0.0}),
    "with target": Variant(target=True),
    "with target, no triples": Variant(constants={"first_triple_round": NEVER}, target=True),
    "with target, no pairs for it": Variant({"methods.rake.rake.RakeState._is_aimed": aimed_at_nothing}, target=True),
}
BASELINES = dict.fromkeys(("with target, no triples", "with target, no pairs for it"), "with target")
"""What an ablation is compared with, where that is not the plain recipe."""

RAKE = ""
"""A constant of `rake.tuning`, whose field is the name in small letters."""
CONSTANTS = {
    "SELECTION_SHARE": RAKE,
    "PICKS_PER_SIGNAL": RAKE,
    "EDGES_PER_PICK": RAKE,
    "ROUND_PICKS_PER_PICK": RAKE,
    "THRESHOLD": RAKE,
    "PENALTY": RAKE,
    "EDGE_SPREAD": RAKE,
    "ONE_WAY_SPREAD": RAKE,
    "LARGEST_SPREAD": "inference.particles.particles",
    "SMALLEST_SPREAD": "inference.particles.particles",
    "POWER_OF_CELLS": RAKE,
    "SHARE_PER_ERROR": "methods.rake.single_columns",
}
"""The constants that matter, and the modules that they are in."""


def shipped(constant: str) -> float:
    """The value that the recipe has."""
    if CONSTANTS[constant] == RAKE:
        return float(getattr(TUNING, constant.lower()))
    return float(getattr(import_module(f"understudy.{CONSTANTS[constant]}"), constant))


def wants_target(variant: str) -> bool:
    return _variant(variant).target


@contextmanager
def patched(variant: str) -> Iterator[None]:
    """The recipe with these changes, for as long as the context lasts."""
    asked, method = _variant(variant), METHODS["rake"]
    tuning = replace(TUNING, **asked.constants)  # raises where there is no such field
    with ExitStack() as stack:
        for name, value in asked.changes.items():
            stack.enter_context(mock.patch(f"understudy.{name}", value))  # raises where there is no such name
        METHODS["rake"] = replace(method, build=lambda *of: replace(method.build(*of), tuning=tuning))
        stack.callback(METHODS.__setitem__, "rake", method)
        yield


def _variant(variant: str) -> Variant:
    name, equals, value = variant.partition("=")
    if not equals:
        return ABLATIONS[variant]
    if CONSTANTS[name] == RAKE:
        return Variant(constants={name.lower(): float(value)})
    return Variant({f"{CONSTANTS[name]}.{name}": float(value)})
