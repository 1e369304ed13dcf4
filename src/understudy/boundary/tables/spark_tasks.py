"""What runs on Spark's executors: a part of the rows is opened as a frame is, asked, and only the answer goes on.

So there is one encoder, one kernel and one law of capping for frames and for Spark (`tables.frame`), and nothing that
could raise on a value: the engine evaluates no expression of ours but a digest. Answers are whole numbers and are added
up, so that it does not matter how the rows are cut into parts; what a task had counted before it failed, or was run a
second time, Spark drops with the rest of its output.

Spark itself pickles these functions and the question that they carry, as it does with any function that it is given.
A question is made of public facts alone: a schema, columns, partitions. No row is pickled, and nothing is unpickled
that comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.metadata import version
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.column import Column
from understudy.boundary.schema.domain import ColumnSet, Domain
from understudy.boundary.schema.grouped_sums import GroupedSums
from understudy.boundary.schema.late_imports import exp, pa
from understudy.boundary.schema.partition import Partition
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.duck import stored_as
from understudy.boundary.tables.frame import FrameTable, to_arrow
from understudy.boundary.tables.sql import PERSON, Source, select_keys, select_rounded_ids
from understudy.errors import InternalError

CHUNK = 1 << 18
"""Rows that are opened at a time, where the rows of one person need not be seen together."""
PIECE = 1 << 20
"""Counts that travel in one row of an answer: 8 MB."""
COUNTS, CHECKSUM = "counts", "checksum"
"""Under which names an answer holds the counts of all cells, and the sum of the digests of all rows."""
VALUE = "value "
"""Begins the name under which an answer holds how often a value occurs."""
DIGEST = "understudy_checksum"
"""The column of digests, which the engine computes."""
FORM = "name string, place long, counts binary"
"""Of an answer on its way: `counts` are those from `place` on, as 64-bit integers."""

PACKAGE = "understudy"

Answer = dict[str, NDArray[np.int64]]
Task = Callable[[Iterator[Any]], Iterator[Any]]


class RowsPart(FrameTable):
    """Some of the rows, as a frame of which nothing need be checked: the whole table was."""

    def __init__(self, rows: pa.Table, schema: Schema, *, keyed: bool = False) -> None:
        self.schema, self.kind, self.name = schema, "pyarrow", "a part of the rows"
        unit = schema.unit.column if schema.unit else None
        self._rows = to_arrow(valid_texts(rows), self.name, unit=unit)
        self._read, self._keyed = set(), keyed

    @cached_property
    def _source(self) -> Source:  # type: ignore[override]
        # One task has one core; a query that took several would take them from other tasks.
        self._connection.execute("SET threads = 1")
        stored = {name: stored_as(name, kind) for name, kind in self._types.items()}
        return Source(exp.to_table("frame"), stored, keyed=self._keyed)

    def keys(self) -> pa.Table:
        """The columns of `select_keys`."""
        assert self.schema.unit is not None
        return self._run(select_keys(self._source, self.schema.unit, self.schema.missing_texts)).to_arrow_table()

    def rounded_ids(self) -> int:
        """How many ids are doubles that may stand for several people."""
        assert self.schema.unit is not None
        query = select_rounded_ids(self._source, self.schema.unit)
        return 0 if query is None else int(self._fetch(query)[0][0])


@dataclass(frozen=True)
class CountSets:
    """`Table.count_by`."""

    domain: Domain
    sets: tuple[ColumnSet, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        named = dict.fromkeys(c for s in self.sets for c in s) or self.domain.names[:1]
        return tuple(self.domain[c].column for c in named)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [self.domain.shape(s) for s in self.sets]

    def ask(self, table: RowsPart) -> Answer:
        return joined(table.count_by(self.domain, self.sets))


@dataclass(frozen=True)
class CountCells:
    """`Table.count_cells`."""

    domain: Domain
    partitions: tuple[Partition, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(self.domain[c].column for c in dict.fromkeys(c for p in self.partitions for c in p.columns))

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [(p.cells,) for p in self.partitions]

    def ask(self, table: RowsPart) -> Answer:
        return joined(table.count_cells(self.domain, self.partitions))


@dataclass(frozen=True)
class CountTally:
    """`Table.count_tally`. Persons add up too, since all rows of one are in one part."""

    domain: Domain
    tally: GroupedSums

    @property
    def columns(self) -> tuple[Column, ...]:
        by = (self.domain[c].column for c in self.tally.by)
        return (*by, *(self.domain.schema[c] for c in self.tally.values))

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [self.domain.shape(self.tally.by)] * len(self.tally.summands)

    def ask(self, table: RowsPart) -> Answer:
        return joined(table.count_tally(self.domain, self.tally))


@dataclass(frozen=True)
class CountValues:
    """`Table.count_values`: the one answer that holds more than counts, since the values are what is asked for."""

    column: Column
    shapes: ClassVar[list[tuple[int, ...]]] = []

    @property
    def columns(self) -> tuple[Column, ...]:
        return (self.column,)

    def ask(self, table: RowsPart) -> Answer:
        values, counts = table.count_values(self.column.name)
        return {VALUE + value: counts[i : i + 1] for i, value in enumerate(values)}


@dataclass(frozen=True)
class CountRows:
    """`Table.count_rows`."""

    columns: ClassVar[tuple[Column, ...]] = ()
    shapes: ClassVar[list[tuple[int, ...]]] = [()]

    def ask(self, table: RowsPart) -> Answer:
        return {COUNTS: np.array([table.count_rows()], dtype=np.int64)}


@dataclass(frozen=True)
class CountRoundedIds:
    """How many ids can't be told apart (`sql.select_rounded_ids`)."""

    columns: ClassVar[tuple[Column, ...]] = ()
    shapes: ClassVar[list[tuple[int, ...]]] = [()]

    def ask(self, table: RowsPart) -> Answer:
        return {COUNTS: np.array([table.rounded_ids()], dtype=np.int64)}


Question = CountSets | CountCells | CountTally | CountValues | CountRows | CountRoundedIds


def counting(question: Question, names: Sequence[str], schema: Schema, *, keyed: bool) -> Task:
    """What answers the question from the rows of one part, whose first columns are these; with keys, from all at once.

    With keys each part has all rows of its persons.
    """
    return partial(_count, version(PACKAGE), question, names, schema, keyed)


def keying(names: Sequence[str], kept: Mapping[str, str], schema: Schema) -> Task:
    """What puts whose it is, and its place among the rows of that person, beside each row that has an id.

    Of the columns go on those that are `kept`, each under the name that the engine has for it.
    """
    return partial(_key, version(PACKAGE), names, kept, schema)


# Bound to their arguments and not written inside the functions above: so they are pickled by their names, and nothing
# of this module but public facts travels.
def _count(
    driver: str, question: Question, names: Sequence[str], schema: Schema, keyed: bool, batches: Iterator[Any]
) -> Iterator[Any]:
    _check_version(driver)
    found: Answer = {}
    for rows in chunks(batches, None if keyed else CHUNK):
        part = RowsPart(_named(rows.drop_columns(DIGEST), names), schema, keyed=keyed)
        found = added(added(found, {CHECKSUM: checksum(rows)}), question.ask(part))
    yield from written(found)


def _key(
    driver: str, names: Sequence[str], kept: Mapping[str, str], schema: Schema, batches: Iterator[Any]
) -> Iterator[Any]:
    _check_version(driver)
    for rows in chunks(batches, CHUNK):
        known = _named(rows, names)
        keys = RowsPart(known.drop_columns(DIGEST), schema).keys()
        columns = {there: known.column(name) for name, there in kept.items()} | {DIGEST: rows.column(DIGEST)}
        columns |= {name: keys.column(name) for name in keys.column_names}
        yield from pa.table(columns).filter(keys.column(PERSON).is_valid()).to_batches()


def _named(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """The rows with the names of the schema for the first columns."""
    return rows.rename_columns([*names, *rows.column_names[len(names) :]])


def add_up(batches: Iterator[Any]) -> Iterator[Any]:
    """Makes one answer of those of many parts, before it leaves the executors."""
    yield from written(read(batches))


def _check_version(driver: str) -> None:
    """Another version might read a row in another way."""
    if version(PACKAGE) != driver:
        raise InternalError(f"understudy {version(PACKAGE)} on an executor must be the driver's, {driver}.", driver)


def chunks(batches: Iterator[Any], most: int | None) -> Iterator[pa.Table]:
    """The batches of a part as tables of some `most` rows; all of them in one without a limit."""
    held: list[Any] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if most is not None and rows >= most:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if rows:
        yield pa.Table.from_batches(held)


def valid_texts(rows: pa.Table) -> pa.Table:
    """The same rows, with � in the place of bytes that are not UTF-8, which a text of Spark's may hold."""
    columns = [_valid(c) for c in rows.columns]
    return pa.Table.from_arrays(columns, names=rows.column_names)


def _valid(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        octets = column.cast(pa.binary(), safe=False).to_pylist()
        texts = [None if o is None else o.decode("utf-8", "replace") for o in octets]
        return pa.chunked_array([pa.array(texts, type=column.type)])
    return column


def checksum(rows: pa.Table) -> NDArray[np.int64]:
    """How many rows, and the sum of their digests modulo 2^64: the same in whichever order they come."""
    digests = rows.column(DIGEST).to_numpy()
    return np.array([len(digests), digests.sum(dtype=np.int64)], dtype=np.int64)


def joined(arrays: Sequence[NDArray[np.int64]]) -> Answer:
    return {COUNTS: np.concatenate([np.zeros(0, dtype=np.int64), *(a.ravel() for a in arrays)])}


def parted(counts: NDArray[np.int64], shapes: Sequence[tuple[int, ...]]) -> list[NDArray[np.int64]]:
    """The inverse of `joined`."""
    ends = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)])
    pieces = zip(ends[:-1], ends[1:], shapes, strict=True)
    return [counts[start:end].reshape(shape) for start, end, shape in pieces]


def added(one: Answer, other: Mapping[str, NDArray[np.int64]]) -> Answer:
    for name, counts in other.items():
        one[name] = one[name] + counts if name in one else counts
    return one


def written(answer: Answer) -> Iterator[Any]:
    """An answer in pieces that fit a message."""
    for name, counts in answer.items():
        for place in range(0, len(counts), PIECE):
            octets = counts[place : place + PIECE].astype("<i8").tobytes()
            yield pa.record_batch({"name": [name], "place": [place], "counts": pa.array([octets], pa.binary())})


def read(batches: Iterator[Any]) -> Answer:
    """The sum of all answers whose pieces these are."""
    pieces: dict[tuple[str, int], NDArray[np.int64]] = {}
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("name", "place", "counts"))
        for name, place, octets in zip(*columns, strict=True):
            counts = np.frombuffer(octets, dtype="<i8").astype(np.int64)
            key = (name, place)
            pieces[key] = pieces[key] + counts if key in pieces else counts
    found: dict[str, list[NDArray[np.int64]]] = {}
    for (name, _), counts in sorted(pieces.items(), key=lambda item: item[0]):
        found.setdefault(name, []).append(counts)
    return {name: np.concatenate(counts) for name, counts in found.items()}
