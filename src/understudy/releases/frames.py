"""Frames of the user's own beside a release: completed, filled in, and judged by the model's density.

Their rows are not private here: the user knows them, and they come back as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import Identifier
from understudy.boundary.schema.domain import Domain
from understudy.boundary.tables.frame import kind_of, to_arrow
from understudy.errors import TableError
from understudy.inference.model import Model
from understudy.releases.drawing import complete, seed_or_fresh
from understudy.releases.evidence import Evidence
from understudy.releases.synthetic_table import from_values, to_native

if TYPE_CHECKING:
    import narwhals as nw
    import pyarrow as pa


def complete_frame(model: Model, domain: Domain, frame: Any, seed: int | None) -> Any:
    """The frame with all other released columns, in the order of the schema and in the kind that came in."""
    import narwhals as nw

    kind = kind_of(frame)
    if kind is None:
        raise TableError(f"a {type(frame).__name__} can't be completed; give a pandas, polars or pyarrow frame", frame)
    rng = np.random.Generator(np.random.PCG64(seed_or_fresh(seed)))
    own = nw.from_native(frame)
    if isinstance(own, nw.LazyFrame):
        own = own.collect()
    table = to_arrow(own.to_native(), "the frame")
    # Identifiers are never modelled, so the frame's tell nothing of the other columns.
    known = [n for n in table.column_names if not isinstance(domain.schema[n], Identifier)]
    given = Evidence.of_columns({name: _distinct(table.column(name), name) for name in known}, len(own), domain)
    values = complete(model, domain, given, rng)
    return _beside(own, from_values(values, domain.schema), kind, domain)


def _distinct(column: pa.ChunkedArray, name: str) -> tuple[list[object], NDArray[np.integer]]:
    """The distinct values of a column, None last where one is missing, and the place of each row's among them."""
    import pyarrow as pa

    try:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        encoded = column.combine_chunks().dictionary_encode()
        distinct = encoded.dictionary.to_pylist()
    except (pa.ArrowException, ValueError):  # such as a text that is none
        raise TableError(f"the frame's column {name!r} holds {column.type} values, which can't be read", name) from None
    places = encoded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
    if encoded.null_count:
        distinct.append(None)
    return distinct, places


def _beside(own: nw.DataFrame[Any], drawn: pa.Table, kind: str, domain: Domain) -> Any:
    """The frame's own columns, untouched, with the drawn ones among them."""
    import narwhals as nw

    lacking = [n for n in drawn.column_names if n not in own.columns]
    if not lacking:
        return own.to_native()
    new = to_native(drawn.select(lacking), kind)
    if kind == "pandas":
        new.index = own.to_native().index  # otherwise rows would be matched by their labels, and not by their places
    whole = nw.concat([own, nw.from_native(new)], how="horizontal")
    return whole.select([n for n in domain.schema.names if n in whole.columns]).to_native()
