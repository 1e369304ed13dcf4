"""Every method without a guarantee by its name, and the one way to get its rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.boundary.schema.schema import Schema
from understudy.errors import InputError, MethodError
from understudy.lab.specimens import arf as adversarial
from understudy.lab.specimens import published_arf, published_select
from understudy.lab.specimens import published_bnp as bnp
from understudy.lab.specimens.specimen import Specimen
from understudy.parameters import suggestion, whole_number

Make = Callable[[Any, Schema | None, float, dict[str, Any]], Specimen]
"""From rows, their schema, the ε that is named and further parameters to synthetic rows."""


@dataclass(frozen=True)
class Kind:
    """A method without a guarantee as a user meets it."""

    name: str
    good_for: str
    limits: str
    make: Make


SPECIMENS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "arf",
            "tables that are public anyway: an adversarial random forest",
            "no privacy whatsoever",
            lambda rows, schema, epsilon, more: adversarial.specimen(rows, schema, **more),
        ),
        Kind(
            published_arf.METHOD,
            "studies: the private forest as its document prints it",
            "no finite ε: its noise is scaled by the rows that it should hide",
            lambda rows, schema, epsilon, more: published_arf.specimen(rows, schema, epsilon, **more),
        ),
        Kind(
            published_select.METHOD,
            "studies: rows selected from a pool as its document prints it",
            "no finite ε: marginals are chosen without privacy, and |D| is published",
            lambda rows, schema, epsilon, more: published_select.specimen(rows, schema, epsilon, **more),
        ),
        Kind(
            bnp.METHOD,
            "studies: the Pitman–Yor urn as its document prints it",
            "no finite ε: it copies rows",
            lambda rows, schema, epsilon, more: bnp.specimen(rows, schema, **more),
        ),
    )
}


def specimen(
    data: Any,
    schema: Schema | str | Path | None = None,
    *,
    method: str,
    epsilon: float = 1.0,
    rows: int | None = None,
    seed: int | None = None,
) -> Specimen:
    """Rows of a method that has no guarantee, whatever `epsilon` says: for studies, and for rows that are public.

    >>> import pyarrow as pa
    >>> made = specimen(pa.table({"age": [31, 47, 52, 31, 47, 52] * 5}), method="arf", rows=4, seed=1)
    >>> made.table.num_rows, made.guarantee
    (4, None)
    """
    if not (isinstance(epsilon, int | float) and math.isfinite(epsilon) and epsilon > 0):
        raise InputError(f"epsilon ({epsilon}) must be a number greater than 0", epsilon)
    if rows is not None:
        whole_number("rows", rows, 1)
    known = Schema.load(schema) if isinstance(schema, str | Path) else schema
    return _named(method).make(data, known, float(epsilon), {"n": rows, "seed": seed})


def _named(name: str) -> Kind:
    if name not in SPECIMENS:
        raise MethodError(f"method {name!r} is not one without privacy; {suggestion(name, SPECIMENS)}", name)
    return SPECIMENS[name]
