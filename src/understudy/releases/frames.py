"""Frames of the user's own beside a release: completed, filled in, and judged by the model's density.

Their rows are not private here: the user knows them, and they come back as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import Identifier
from understudy.boundary.schema.domain import Coding, Domain
from understudy.boundary.schema.spelling import special_name
from understudy.boundary.tables.frame import kind_of, to_arrow
from understudy.errors import MethodError, TableError
from understudy.inference.model import DensityModel, Model
from understudy.releases.drawing import Columns, Rows, complete, seed_or_fresh
from understudy.releases.evidence import Evidence, is_missing
from understudy.releases.synthetic_table import from_values, to_native

if TYPE_CHECKING:
    import narwhals as nw
    import pyarrow as pa

REDRAWS = 30
"""How often a row is drawn again while the model has a missing value where one is to be filled in."""


def complete_frame(model: Model, domain: Domain, frame: Any, seed: int | None) -> Any:
    """The frame with all other released columns, in the order of the schema and in the kind that came in."""
    rng = np.random.Generator(np.random.PCG64(seed_or_fresh(seed)))
    kind, own, table = _opened(frame, "completed")
    given = _evidence(table.select(_modelled(table, domain)), len(own), domain)
    values = complete(model, domain, given, rng)
    return _beside(own, from_values(values, domain.schema), kind, domain)


def _evidence(known: pa.Table, rows: int, domain: Domain) -> Evidence:
    """Of so many rows: a table without columns has none."""
    columns = {name: _distinct(known.column(name), name) for name in known.column_names}
    return Evidence.of_columns(columns, rows, domain)


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


def fill_frame(model: Model, domain: Domain, frame: Any, seed: int | None) -> Any:
    """The frame with its missing cells filled in, in the order and kind that came in."""
    import narwhals as nw
    import pyarrow as pa

    rng = np.random.Generator(np.random.PCG64(seed_or_fresh(seed)))
    kind, own, table = _opened(frame, "filled in")
    names = _modelled(table, domain)
    absent = {name: _absent(table.column(name), domain.schema.missing_texts_of(name), name) for name in names}
    gaps = [name for name in names if absent[name].any()]
    if not gaps:
        return own.to_native()
    parts: dict[str, list[tuple[Rows, pa.Array]]] = {name: [] for name in gaps}
    # Rows that lack the same columns are filled in together, given all the others that they have.
    patterns, places = np.unique(np.stack([absent[name] for name in names], axis=1), axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        lacking = [name for name, gap in zip(names, pattern, strict=True) if gap]
        if not lacking:
            continue
        rows = np.flatnonzero(places.ravel() == number)
        known = table.select([name for name in names if name not in lacking]).take(rows)
        given = _evidence(known, len(rows), domain)
        drawn = from_values(_present(model, domain, given, lacking, rng), domain.schema)
        for name in lacking:
            parts[name].append((rows, drawn.column(name).combine_chunks()))
    filled = {name: _put(table.column(name), parts[name], name) for name in gaps}
    new = to_native(pa.table(filled), kind)
    if kind == "pandas":
        new.index = own.to_native().index
    return own.with_columns(*(_as_category(nw.from_native(new)[name], own[name].dtype) for name in gaps)).to_native()


def _as_category(filled: nw.Series[Any], kind: nw.dtypes.DType) -> nw.Series[Any]:
    """A frame's categories came as texts."""
    import narwhals as nw

    return filled.cast(kind) if isinstance(kind, nw.Categorical | nw.Enum) else filled


def _absent(column: pa.ChunkedArray, texts: Sequence[str], name: str) -> NDArray[np.bool_]:
    """Which cells are missing: empty ones, and the texts that the schema takes for that."""
    distinct, places = _distinct(column, name)
    return np.array([is_missing(value, texts) for value in distinct], dtype=np.bool_)[places]


def _present(
    model: Model, domain: Domain, given: Evidence, lacking: Sequence[str], rng: np.random.Generator
) -> Columns:
    """Whole rows, drawn again where a column to be filled in came out missing, as the model may well have it."""
    values = complete(model, domain, given, rng)
    for _ in range(REDRAWS):
        again = np.flatnonzero(np.any([_without(values, name) for name in lacking], axis=0))
        if not len(again):
            break
        for name, fresh in complete(model, domain, given.at(again), rng).items():
            values[name] = values[name].replaced(again, fresh)
    return values


def _without(values: Columns, name: str) -> NDArray[np.bool_]:
    """Which rows have no value; a special one is none that is missing."""
    return values.get(special_name(name), values[name]).absent()


def _put(column: pa.ChunkedArray, parts: Sequence[tuple[Rows, pa.Array]], name: str) -> pa.Array:
    """A column of the frame with what was drawn in its gaps, and the type that it had."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = np.concatenate([rows for rows, _ in parts])
    mask = np.zeros(len(column), dtype=np.bool_)
    mask[rows] = True
    drawn = pa.concat_arrays([values for _, values in parts]).take(np.argsort(rows))
    kind = column.type
    try:
        return pc.replace_with_mask(column.combine_chunks(), pa.array(mask), drawn.cast(kind))
    except (pa.ArrowException, ValueError):
        raise TableError(
            f"the frame's column {name!r} holds {kind} values, which can't take {drawn.type} values; cast it first",
            name,
        ) from None


def log_density_of(model: Model, domain: Domain, frame: Any, method: str) -> NDArray[np.float64]:
    """The logarithm of the model's density at each row of a frame."""
    if not isinstance(model, DensityModel):
        raise MethodError(
            f"method {method} gives no density; make a release with generative-forest, independent, mst, aim or mwem",
            method,
        )
    _, _, table = _opened(frame, "judged")
    lacking = [name for name in domain.names if name not in table.column_names]
    if lacking:
        raise TableError(f"the frame has no column {lacking[0]!r}, and a density is that of a whole row", lacking)
    given = _evidence(table.select(domain.names), table.num_rows, domain)
    if not given.rows:
        return np.zeros(0)
    logs = model.log_density(dict(given.codes))
    for coding in domain:
        logs = logs - np.log(_widths(coding))[given.codes[coding.name]]
    return logs


def _widths(coding: Coding) -> NDArray[np.float64]:
    """Over how much the probability of each code is spread: numbers of a bin, or its width where these are reals."""
    widths = np.ones(coding.size)
    if coding.edges is not None:
        widths[: coding.levels] = np.diff(np.array(coding.edges))
    return widths


def _opened(frame: Any, verb: str) -> tuple[str, nw.DataFrame[Any], pa.Table]:
    import narwhals as nw

    kind = kind_of(frame)
    if kind is None:
        raise TableError(f"a {type(frame).__name__} can't be {verb}; give a pandas, polars or pyarrow frame", frame)
    own = nw.from_native(frame)
    if isinstance(own, nw.LazyFrame):
        own = own.collect()
    return kind, own, to_arrow(own.to_native(), "the frame")


def _modelled(table: pa.Table, domain: Domain) -> list[str]:
    """The frame's columns that the model knows; identifiers tell nothing of the others, and stay as they are."""
    return [n for n in table.column_names if not isinstance(domain.schema[n], Identifier)]
