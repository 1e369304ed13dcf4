"""Every method without a guarantee by its name, and the one way to get its rows."""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from understudy.boundary.schema.schema import Schema
from understudy.errors import InputError, MethodError
from understudy.lab import specimens
from understudy.lab.specimens.specimen_result import Specimen, SpecimenKind
from understudy.methods.registry import NOT_PRIVATE
from understudy.parameters import suggestion, whole_number


def _declared() -> dict[str, SpecimenKind]:
    """The `SPECIMEN` of every module of this package that has one, by name."""
    names = (m.name for m in pkgutil.iter_modules(specimens.__path__))
    modules = (importlib.import_module(f"{specimens.__name__}.{name}") for name in names)
    found = [module.SPECIMEN for module in modules if hasattr(module, "SPECIMEN")]
    return {kind.name: kind for kind in sorted(found, key=lambda kind: kind.name)}


SPECIMENS = _declared()
# Methods may not import the lab. So the registry learns here which names it must refuse, for releases and for plug-ins.
NOT_PRIVATE.update(SPECIMENS)


def specimen(
    data: Any,
    schema: Schema | str | Path | None = None,
    *,
    method: str,
    epsilon: float = 1.0,
    rows: int | None = None,
    seed: int | None = None,
    options: Mapping[str, object] | None = None,
) -> Specimen:
    """Rows of a method that has no guarantee, whatever `epsilon` says: for studies, and for rows that are public.

    Args:
        data: The rows to learn from: a frame or a path.
        schema: The public facts; by default a draft.
        method: Which one, such as "arf".
        epsilon: What a published method calls its ε.
        rows: How many rows to make; by default as many as there are.
        seed: Makes them repeatable.
        options: The method's own, such as `{"num_trees": 10}`; `understudy methods NAME` lists them.

    Returns:
        A `Specimen`: the rows, and what made them.

    Raises:
        InputError: The method, an option or a bound is not what it must be.

    >>> import pyarrow as pa
    >>> made = specimen(pa.table({"age": [31, 47, 52, 31, 47, 52] * 5}), method="arf", rows=4, seed=1)
    >>> made.table.num_rows, made.guarantee
    (4, None)
    """
    if not (isinstance(epsilon, int | float) and math.isfinite(epsilon) and epsilon > 0):
        raise InputError(f"epsilon ({epsilon}) must be a number greater than 0", epsilon)
    if rows is not None:
        whole_number("rows", rows, 1)
    if isinstance(schema, str | Path):
        schema = Schema.load(schema)
    if method not in SPECIMENS:
        raise MethodError(f"method {method!r} is not one without privacy; {suggestion(method, SPECIMENS)}", method)
    kind = SPECIMENS[method]
    own = asdict(kind.params.of(method, options or {}))
    return kind.make(data, schema, float(epsilon), {"n": rows, "seed": seed} | own)
