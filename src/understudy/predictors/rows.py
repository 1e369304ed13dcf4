"""Rows to predict for, as codes. They are the analyst's own: nothing protects them, and nothing is learned from them.

The encoder is that of private rows (`schema.encoding`): a row falls into the leaf in which it would have been counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import Domain
from understudy.boundary.schema.encoding import codes_of_column
from understudy.boundary.tables.frame import kind_of, to_arrow
from understudy.errors import TableError

Codes = dict[str, NDArray[np.int32]]


def codes_of(frame: Any, domain: Domain, columns: Sequence[str]) -> Codes:
    """The codes of these columns, row by row. The frame may lack the others, and have more."""
    if kind_of(frame) is None:
        raise TableError(
            f"a {type(frame).__name__} can't be predicted for; give a pandas, polars or pyarrow frame", frame
        )
    table = to_arrow(frame, "the frame")
    absent = next((c for c in columns if c not in table.column_names), None)
    if absent is not None:
        raise TableError(f"the frame lacks the column {absent!r}, which the predictor was trained with", absent)
    missing = domain.schema.missing_texts
    return {c: codes_of_column(domain[c], table.column(c), missing).astype(np.int32) for c in columns}
