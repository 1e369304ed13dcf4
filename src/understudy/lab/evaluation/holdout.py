"""The rows that methods may learn from, and those that are held out: given, or a fifth chosen at random."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import SPACES
from understudy.boundary.schema.schema import Schema
from understudy.boundary.schema.spelling import spell
from understudy.boundary.tables.rows import Rows
from understudy.boundary.tables.sources import open as open_table
from understudy.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

SHARE, SEED = 0.2, 0
RANDOM = f"{SHARE:.0%} of the rows, seed {SEED}"
FEWEST_ROWS = 10


@dataclass(frozen=True)
class HoldoutSplit:
    """Real rows, as they are stored, in two parts."""

    name: str
    train: pa.Table
    holdout: pa.Table
    given: bool
    """Whether the hold-out was given; otherwise it was chosen at random."""

    @classmethod
    def of(cls, data: Any, schema: Schema, holdout: Any = None) -> HoldoutSplit:
        """Reads the data, and the hold-out where one is given; both must have the columns of the schema."""
        name, rows = _read(data, schema, "the data")
        if holdout is not None:
            _, held = _read(holdout, schema, "the hold-out")
            _check_rows("the hold-out", held.num_rows, 1)
            _check_rows(name, rows.num_rows, 1)
            return cls(name, rows, held, given=True)
        _check_rows(name, rows.num_rows, FEWEST_ROWS)
        out = held_out(people(rows, schema), SEED)
        return cls(name, rows.filter(~out), rows.filter(out), given=False)

    def marks(self, key: bytes) -> tuple[str, str]:
        """What tells these data from others, and this hold-out from others, to whoever has the key."""
        if self.given:
            return mark(key, self.train), mark(key, self.holdout)
        # A hold-out that was chosen at random follows from the data and the seed.
        return mark(key, self.train, self.holdout), RANDOM


def held_out(people: NDArray[np.int64], seed: int) -> NDArray[np.bool_]:
    """Which rows are held out: those of a fifth of all people, so that no person stands on both sides."""
    # Sorted numbers, then a seeded permutation: the split is a function of the rows and the seed alone.
    persons = np.unique(people)
    order = np.random.Generator(np.random.PCG64(seed)).permutation(persons)
    return np.isin(people, order[: max(1, round(SHARE * len(persons)))])


def mark(key: bytes, *tables: pa.Table) -> str:
    """The HMAC-SHA-256 of columns and rows.

    Without a secret key, whoever has a hash of all rows and all rows but one could try out what the last one is.
    """
    import pyarrow as pa

    made = hmac.new(key, digestmod=hashlib.sha256)
    for table in tables:
        sink = pa.BufferOutputStream()
        # A copy in one piece: a filtered table may hold its rows in other pieces each time.
        whole = table.combine_chunks().replace_schema_metadata()
        with pa.ipc.new_stream(sink, whole.schema) as writer:
            writer.write_table(whole)
        made.update(sink.getvalue())
    return made.hexdigest()


def _read(source: Any, schema: Schema, name: str) -> tuple[str, pa.Table]:
    """All columns as they are stored, so that a method meets the same values as in the file."""
    rows = Rows.of(source, name, schema)
    table = rows.everything()
    open_table(table, schema, name=rows.name)  # for its refusals: a method would meet them later, one case at a time
    # A copy in one piece: pieces, and what stands where a value is missing, would differ from reading to reading.
    return rows.name, table.take(np.arange(table.num_rows)).combine_chunks()


def people(rows: pa.Table, schema: Schema) -> NDArray[np.int64]:
    """A number for the person of each row, told apart as by a table: a row without an id is nobody else's."""
    if schema.unit is None:
        return np.arange(rows.num_rows)
    numbers: dict[str, int] = {}
    absent = ("", *schema.missing_texts)
    found = np.empty(rows.num_rows, dtype=np.int64)
    for place, value in enumerate(rows.column(schema.unit.column).to_pylist()):
        text = (spell(value, exactly=True) or "").strip(SPACES)
        if text in absent:
            found[place] = -1 - place  # negative, and so no number of anybody with an id
        else:
            found[place] = numbers.setdefault(text, len(numbers))
    return found


def _check_rows(name: str, rows: int, fewest: int) -> None:
    if rows < fewest:
        more = "; give a hold-out, or more rows" if fewest > 1 else ""
        raise InputError(f"{name} has {rows} rows, but a study needs at least {fewest}{more}", rows)
