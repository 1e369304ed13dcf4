"""Rows to learn from (a table behind the boundary, a frame with a schema, or arrays), and rows to predict for."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import Categorical, Integer
from understudy.boundary.schema.derived import Derived
from understudy.boundary.schema.domain import Coding, Domain
from understudy.boundary.schema.encoding import codes_of_column, codes_of_derived
from understudy.boundary.schema.schema import Schema
from understudy.boundary.schema.spelling import spell
from understudy.boundary.tables.draft import draft_schema
from understudy.boundary.tables.frame import kind_of, to_arrow
from understudy.boundary.tables.sources import open as open_table
from understudy.boundary.tables.sources import open_frame
from understudy.boundary.tables.table import Table, is_table
from understudy.errors import TableError
from understudy.predictors.estimator import UnusableInputError, as_labels, as_matrix, check_names

CLASS = "class"
"""What the classes are called when they come as an array without a name."""
MOST_DRAFTED_CLASSES = 1000
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,400})(\.0)?")


@dataclasses.dataclass(frozen=True)
class TrainingData:
    """A table behind the boundary, and the name of its target."""

    table: Table
    target: str


def training_data(estimator: Any, data: Any, labels: Any, target: str | None) -> TrainingData:
    """Puts rows and classes behind the boundary; a table that is open already stays where it is."""
    if is_table(data):
        if labels is not None:
            raise UnusableInputError("a table holds its classes itself; give the name of the target and no y", target)
        _count_features(estimator, data.schema)
        return TrainingData(data, _named(target, data.schema))
    frame, named = _frame(estimator, data, labels, target)
    schema = _schema(estimator, frame, named, in_frame=labels is None)
    if labels is None:
        _count_features(estimator, schema)
    kind = kind_of(frame)
    if kind is None:
        return TrainingData(open_table(frame, schema), _named(named, schema))
    # `open_frame` starts no engine as long as none is needed.
    return TrainingData(open_frame(frame, schema, kind, f"a {kind} frame"), _named(named, schema))


def _count_features(estimator: Any, schema: Schema) -> None:
    """Of a table with its target among its columns: rows to predict for may have any others beside those it needs."""
    estimator.n_features_in_ = len(schema.modelled) - 1
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def rows_frame(estimator: Any, data: Any, columns: tuple[str, ...]) -> Any:
    """Rows to predict for as a frame; the columns of an array are those that it was fitted with, in their order."""
    if _is_frame(data):
        if hasattr(estimator, "feature_names_in_"):
            check_names(estimator, data, reset=False)
        return data
    return _named_columns(as_matrix(estimator, data, reset=False), columns)


def codes_of(frame: Any, domain: Domain, columns: Sequence[str]) -> dict[str, NDArray[np.int32]]:
    """The codes of these columns, row by row. The frame may lack the others, and have more.

    Rows to predict for are the analyst's own: nothing protects them, and nothing is learned from them. The encoder is
    that of private rows, so that a row falls into the leaf in which it would have been counted.
    """
    if kind_of(frame) is None:
        raise TableError(
            f"a {type(frame).__name__} can't be predicted for; give a pandas, polars or pyarrow frame", frame
        )
    table = to_arrow(frame, "the frame")
    needed = [s.name for c in columns for s in (getattr(domain[c].column, "sources", ()) or (domain[c],))]
    absent = next((c for c in needed if c not in table.column_names), None)
    if absent is not None:
        raise TableError(f"the frame lacks the column {absent!r}, which the predictor was trained with", absent)
    # Encoded as private rows are, also what counts as missing.
    missing = domain.schema.missing_texts
    return {c: _codes(domain[c], table, missing).astype(np.int32) for c in columns}


def _codes(coding: Coding, table: Any, missing: Sequence[str]) -> NDArray[np.unsignedinteger]:
    if isinstance(coding.column, Derived):
        return codes_of_derived(coding, table, missing)
    return codes_of_column(coding, table.column(coding.name), missing)


def _frame(estimator: Any, data: Any, labels: Any, target: str | None) -> tuple[Any, str]:
    """Features and classes in one frame."""
    if _is_frame(data) and labels is None:
        if target is None:
            raise UnusableInputError("fit requires y to be passed, but the target y is None; or name a target", target)
        return data, target
    # A series has a name, an array has none.
    name = target or getattr(labels, "name", None) or CLASS
    if _is_frame(data):
        check_names(estimator, data, reset=True)
        table = to_arrow(data, "the frame")
    else:
        matrix = as_matrix(estimator, data, reset=True)
        # An array has the columns of a schema that has as many; otherwise they are numbered, as scikit-learn does.
        listed: tuple[str, ...] = ()
        if isinstance(estimator.schema, Schema):
            listed = tuple(c for c in estimator.schema.names if c != name)
        if len(listed) != matrix.shape[1]:
            listed = ()
        table = _named_columns(matrix, listed)
    if name in table.column_names:
        raise UnusableInputError(f"the frame has the target {name!r} already; leave out y, or rename it", name)
    return table.append_column(name, _array(as_labels(labels, table.num_rows))), name


def _is_frame(data: Any) -> bool:
    """A frame whose columns have names; numbered ones are those of an array."""
    return kind_of(data) is not None and not any(isinstance(name, int) for name in getattr(data, "columns", ()))


def _named_columns(matrix: NDArray[Any], names: tuple[str, ...]) -> Any:
    import pyarrow as pa

    names = names or tuple(f"x{i}" for i in range(matrix.shape[1]))
    return pa.table({name: _array(matrix[:, i]) for i, name in enumerate(names)})


def _array(values: NDArray[Any]) -> Any:
    """A column of an array. Its type is that of all rows together, so that of one value must not matter.

    Beside a text numpy turns truth values and numbers into texts: so a text that numpy would make of one is that one.
    """
    import pyarrow as pa

    if values.dtype.kind == "U":
        return pa.array([_of_text(str(v)) for v in values], type=pa.string())
    if values.dtype.kind == "S":
        return pa.array([_of_text(spell(v)) for v in values], type=pa.string())
    if values.dtype.kind in "OcV":
        return pa.array([_of_object(v) for v in values.tolist()], type=pa.string())
    if values.dtype.kind == "f":
        return pa.array(_by_digits(values))
    if values.dtype.kind in "mM":
        values = values.astype(f"{values.dtype.kind}8[us]")  # numpy has units that Arrow lacks
    # Arrow refuses numbers of the other byte order.
    return pa.array(np.ascontiguousarray(values.astype(values.dtype.newbyteorder("="))))


def _by_digits(values: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Doubles; one that single precision holds is the number that it is written as: 0.7, and not 0.699999988.

    numpy writes a float32 as 0.7 beside a text, and hands it on as 0.699999988 beside a double.
    """
    doubles = values.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        single = doubles.astype(np.float32)
        short = (single == doubles) & (doubles != np.floor(doubles))
    if short.any():
        distinct, places = np.unique(single[short], return_inverse=True)
        doubles[short] = np.array([float(str(v)) for v in distinct])[places]
    return doubles


def _of_object(value: Any) -> str | None:
    if isinstance(value, str):
        return _of_text(value)
    if isinstance(value, float | np.floating):
        return spell(float(_by_digits(np.array([value]))[0]))
    return spell(value)


def _of_text(text: str | None) -> str | None:
    """What numpy has written: 1 for `1.0` and for `True`, nothing for `nan`; it puts no zeros in front of a number."""
    if text in ("True", "False"):
        return "1" if text == "True" else "0"
    if text is None or text in ("nan", "NaT"):
        return None
    if _WHOLE.fullmatch(text):
        return spell(int(text.removesuffix(".0")))
    return spell(text)


def _schema(estimator: Any, frame: Any, target: str, *, in_frame: bool) -> Schema:
    """The declared schema; without one, a draft from the rows, where the caller accepts it as public."""
    schema = estimator.schema
    if isinstance(schema, Schema):
        return schema
    if schema is not None:
        return Schema.load(schema)
    if not estimator.accept_draft_as_public:
        raise UnusableInputError(
            "a frame needs a schema, which says what is public about it; give schema=, or open the table with one", None
        )
    # A draft reads the rows: values and bounds are then public by the caller's word alone, and nothing is guaranteed.
    drafted = draft_schema(frame)
    if estimator.kind_of_estimator == "regressor":
        return drafted
    return drafted.with_columns([_classes(drafted, target, in_frame=in_frame)])


def _classes(drafted: Schema, target: str, *, in_frame: bool) -> Any:
    """The target of a draft as classes, and not as a range of numbers."""
    column = drafted[target]
    # A list of numbers has become one of texts (`_array`), and whoever gave numbers wants numbers back. In a frame,
    # texts are texts.
    if not in_frame and isinstance(column, Categorical) and all(_WHOLE.fullmatch(str(v)) for v in column.labels):
        return dataclasses.replace(column, values=tuple(sorted(int(str(v)) for v in column.labels)))
    if isinstance(column, Integer) and column.minimum is not None and column.maximum is not None:
        if column.maximum - column.minimum >= MOST_DRAFTED_CLASSES:
            raise UnusableInputError(f"Unknown label type: the target {target!r} has a range of numbers", target)
        return Categorical(target, column.missing, tuple(range(column.minimum, column.maximum + 1)))
    if column.type in ("number", "datetime", "identifier"):
        raise UnusableInputError(f"Unknown label type: the target {target!r} is drafted as {column.type}", target)
    return column


def _named(target: str | None, schema: Schema) -> str:
    if target is None:
        raise UnusableInputError("a target must be named: the column that shall be predicted", target)
    return schema[target].name
