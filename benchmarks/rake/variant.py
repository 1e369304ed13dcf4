"""Variants of our recipe: module constants and functions that are replaced in a worker for the time of one release.

An ablation switches one part off; a constant is set to another value, written NAME=VALUE. A name that our code does not
have any more is an error and never a silent measurement of the unchanged recipe.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.privacy.curator import Curator
from understudy.boundary.schema.domain import ColumnSet
from understudy.inference.noisy_table import NoisyTable, agree
from understudy.methods.rake import rake

Floats = NDArray[np.float64]
ALL_LEVELS, WHOLE_SCHEDULE = rake.RakeState._levels, rake.Schedule.of
NEVER = 10**9


def finest_level(raking: rake.RakeState, columns: ColumnSet, schedule: rake.Schedule) -> list[int]:
    return ALL_LEVELS(raking, columns, schedule)[-1:]


def rounds_alone(total: float, curator: Curator, columns: int, keen: bool = False) -> rake.Schedule:
    """As many picks as with a forest, all of them in rounds."""
    schedule = WHOLE_SCHEDULE(total, curator, columns, keen)
    extra = round(schedule.edges / schedule.per_round)
    rounds = curator.remaining().split([1.0] * (len(schedule.rounds) + extra))
    return replace(schedule, edges=0, rounds=rounds)


def plant_nothing(raking: rake.RakeState, schedule: rake.Schedule) -> None:
    """Particles from independent columns."""
    raking._start()
    raking.particles.rake(rake.PASSES, sampling=not raking.whole)


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


def aimed_at_nothing(raking: rake.RakeState, columns: ColumnSet) -> bool:
    return False


@dataclass(frozen=True)
class Variant:
    """What replaces what; names are dotted, under `understudy`."""

    changes: Mapping[str, Any]
    target: bool = False


ABLATIONS = {
    "": Variant({}),
    "no resolutions": Variant({"methods.rake.rake.RakeState._levels": finest_level}),
    "no forest start": Variant(
        {"methods.rake.rake.Schedule.of": rounds_alone, "methods.rake.rake.RakeState.start_from_forest": plant_nothing}
    ),
    "no coarser copies": Variant({"methods.rake.rake.COARSER": ()}),
    "no dependence shrinkage": Variant({"inference.shrinkage._posterior": raw_factors}),
    "no smoothing": Variant({"methods.parts.groundwork.smoothed": unsmoothed}),
    "no agreement": Variant(
        {"methods.rake.rake.agree": own_counts, "inference.noisy_table.NoisyTable.shifted_to": unshifted}
    ),
    "no Gibbs sampling": Variant({"methods.rake.rake.sweep": no_sweep}),
    "few final particles": Variant({"methods.rake.rake.FINAL_PARTICLES": 50_000}),
    "no exchange of rows": Variant({"inference.particles.rounding.ROUNDS": 0}),
    "no cost of noise": Variant({"methods.rake.rake.PENALTY": 0.0, "methods.rake.rake.THRESHOLD": 0.0}),
    "cost by what is expected": Variant({"methods.rake.rake.PENALTY": 0.6, "methods.rake.rake.THRESHOLD": 0.0}),
    "with target": Variant({}, target=True),
    "with target, no triples": Variant({"methods.rake.rake.FIRST_TRIPLE_ROUND": NEVER}, target=True),
    "with target, no pairs for it": Variant({"methods.rake.rake.RakeState._is_aimed": aimed_at_nothing}, target=True),
}
BASELINES = dict.fromkeys(("with target, no triples", "with target, no pairs for it"), "with target")
"""What an ablation is compared with, where that is not the plain recipe."""

CONSTANTS = {
    "SELECTION_SHARE": "methods.rake.rake",
    "PICKS_PER_SIGNAL": "methods.rake.rake",
    "EDGES_PER_PICK": "methods.rake.rake",
    "ROUND_PICKS_PER_PICK": "methods.rake.rake",
    "THRESHOLD": "methods.rake.rake",
    "PENALTY": "methods.rake.rake",
    "EDGE_SPREAD": "methods.rake.rake",
    "ONE_WAY_SPREAD": "methods.rake.rake",
    "LARGEST_SPREAD": "inference.particles.particles",
    "SMALLEST_SPREAD": "inference.particles.particles",
    "FIRST_SHARE": "methods.parts.groundwork",
}
"""The constants that matter, and the modules that they are in."""


def shipped(constant: str) -> float:
    """The value that the recipe has."""
    return float(getattr(import_module(f"understudy.{CONSTANTS[constant]}"), constant))


def wants_target(variant: str) -> bool:
    return _variant(variant).target


@contextmanager
def patched(variant: str) -> Iterator[None]:
    """The recipe with these changes, for as long as the context lasts."""
    with ExitStack() as stack:
        for name, value in _variant(variant).changes.items():
            stack.enter_context(mock.patch(f"understudy.{name}", value))  # raises where there is no such name
        yield


def _variant(variant: str) -> Variant:
    name, equals, value = variant.partition("=")
    return Variant({f"{CONSTANTS[name]}.{name}": float(value)}) if equals else ABLATIONS[variant]
