"""PrivBayes of synthcity as functions that `understudy audit --callable` takes; from the folder benchmarks:

    understudy audit --callable audits.theirs_synthcity:privbayes --python ../.bench/synthcity/bin/python \
        --epsilon 1 --delta 0

synthcity asks for a torch that comes with gigabytes for graphics cards, and imports packages for images, time series
and survival analysis whatever is used of it. PrivBayes uses none of them: they are not installed, and empty modules
stand in for them. The model is fitted without the plugin around it, which would start all noise from the seed 0.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence
from typing import Any

from .coded import of_fruit

RECORDS = 4_000
ABSENT = ("torchvision", "monai", "tsai", "shap", "torchtuples", "pycox", "xgbse", "google")
VALUES: dict[str, list[Any]] = {"colour": ["red", "green", "blue", "violet"], "ripe": [0, 1]}


@of_fruit
def privbayes(frame: Any, epsilon: float, delta: float, seed: int) -> Any:
    """The rows as they are."""
    return _release(frame[list(VALUES)].astype({"ripe": int}), epsilon)


@of_fruit
def privbayes_with_every_value(frame: Any, epsilon: float, delta: float, seed: int) -> Any:
    """With four public rows that hold every value, so that no value is new: what is left to see are the counts."""
    import pandas as pd

    public = pd.DataFrame({name: [values[i % len(values)] for i in range(4)] for name, values in VALUES.items()})
    return _release(pd.concat([public, frame[list(VALUES)].astype({"ripe": int})], ignore_index=True), epsilon)


def _release(rows: Any, epsilon: float) -> Any:
    """Where it can't be fitted, which is seen by everybody, nothing is released."""
    model = _model()(epsilon=epsilon, K=len(VALUES))
    try:
        made = model.fit(rows).sample(RECORDS)
    except (ValueError, RuntimeError):
        return rows.iloc[:0]
    return made.assign(ripe=made["ripe"].astype(bool))


@functools.lru_cache
def _model() -> Any:
    sys.meta_path.insert(0, Absent())
    from synthcity.plugins.privacy.plugin_privbayes import PrivBayes  # type: ignore[import-not-found]

    return PrivBayes


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds an empty module under each of those names."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        known = name.partition(".")[0] in ABSENT
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if known else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return Empty(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


class Empty(types.ModuleType):
    """Any class can be imported from it, and does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})
