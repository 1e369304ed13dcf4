"""Codes of a row as bit fields of a few 64-bit words: what an SQL engine hands over, one row after the other.

An engine's answer costs by the value. Fifteen columns of some sixteen codes are one word, which takes an engine little
to make, a connection little to carry, and a reader nothing to parse: words are read as arrays, and a code is a shift
and a mask. No code is null, so that every row has every word.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet, Domain, code_type
from understudy.boundary.schema.late_imports import exp
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.counted_here import CountedHere
from understudy.boundary.tables.counting import CodeBatch
from understudy.boundary.tables.kept import Overflow, memory_share
from understudy.boundary.tables.sql import Expression, Source, select_codes, whole

WORD_BITS = 63
"""Bits of a word that are used: the 64th is a sign, and engines shift signed numbers."""
BATCH = 1 << 17
"""Rows that are unpacked at a time: two blocks of `counting`."""


@dataclass(frozen=True)
class Place:
    """Where the code of a column stands."""

    word: int
    shift: int
    bits: int


@dataclass(frozen=True)
class Packing:
    """The places of the codes of some columns of a domain."""

    domain: Domain
    columns: ColumnSet

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """One after the other, in a new word where the last one is full."""
        found, word, used = [], 0, 0
        for column in self.columns:
            bits = max(1, (self.domain.size(column) - 1).bit_length())
            if used + bits > WORD_BITS:
                word, used = word + 1, 0
            found.append(Place(word, used, bits))
            used += bits
        return tuple(found)

    @property
    def words(self) -> int:
        return self.places[-1].word + 1

    def expressions(self) -> list[Expression]:
        """Each word in SQL, of columns `code_0`, `code_1` and so on that hold whole numbers of 64 bits."""
        words: dict[int, Expression] = {}
        for i, place in enumerate(self.places):
            code: Expression = exp.column(f"code_{i}")
            if place.shift:
                code = exp.Paren(this=exp.BitwiseLeftShift(this=code, expression=whole(place.shift)))
            if place.word in words:
                code = exp.BitwiseOr(this=words[place.word], expression=code)
            words[place.word] = code
        return [words[w] for w in range(self.words)]

    def unpacked(self, words: NDArray[np.int64], columns: ColumnSet) -> CodeBatch:
        """The codes of these columns, from the words of some rows."""
        where = dict(zip(self.columns, self.places, strict=True))
        return {c: self._code(words, c, where[c]) for c in columns}

    def _code(self, words: NDArray[np.int64], column: str, place: Place) -> NDArray[np.integer]:
        shifted = words[:, place.word] >> place.shift
        return (shifted & ((1 << place.bits) - 1)).astype(code_type(self.domain.size(column)))


@dataclass
class PackedRows:
    """All rows of one snapshot of a table, packed: in memory, or in a file that has no name any more."""

    packing: Packing
    room: int = field(default_factory=lambda: memory_share())
    """Bytes that are kept in memory; what goes beyond is on disk."""
    complete: bool = False
    _parts: list[NDArray[np.int64]] = field(default_factory=list)

    def filled(self, parts: Iterable[NDArray[np.int64]]) -> Iterator[NDArray[np.int64]]:
        """Keeps what passes through."""
        left, overflow = self.room, None
        for part in parts:
            left -= part.nbytes
            if left >= 0:
                self._parts.append(part)
            else:
                overflow = overflow or Overflow()
                overflow.write(part)
            yield part
        if overflow is not None:
            self._parts.append(overflow.mapped(np.dtype(np.int64)).reshape(-1, self.packing.words))
        self.complete = True

    def holds(self, columns: ColumnSet) -> bool:
        return set(columns) <= set(self.packing.columns)

    def batches(self, columns: ColumnSet) -> Iterator[CodeBatch]:
        for words in self._parts:
            for first in range(0, len(words), BATCH):
                yield self.packing.unpacked(words[first : first + BATCH], columns)


def joined(parts: Sequence[bytes], words: int) -> NDArray[np.int64]:
    """Words that an engine wrote one after the other, the highest byte first."""
    return np.frombuffer(b"".join(parts), dtype=">i8").astype(np.int64).reshape(-1, words)


class PackedTable(CountedHere):
    """A table whose engine computes codes, and whose rows come here packed to be counted.

    A snapshot keeps them, so that a release of many rounds reads the table once or twice: what is asked first is read
    by itself, and all columns as soon as something else is asked.
    """

    schema: Schema
    _source: Source
    _keeps = False
    """Whether the rows can't change between two questions."""
    _kept: PackedRows | None = None

    @abstractmethod
    def _words(self, query: Expression, words: int) -> Iterator[NDArray[np.int64]]:
        """The answer to a query of this many columns of 64-bit numbers, as arrays of that width."""

    def _codes(self, domain: Domain, columns: ColumnSet) -> Iterator[CodeBatch]:
        """The rows as codes, a batch at a time."""
        kept = self._kept
        known = kept is not None and kept.packing.domain == domain
        if known and kept is not None and kept.holds(columns):
            yield from kept.batches(columns)
            return
        packing = Packing(domain, domain.names if known else columns)
        rows, parts = PackedRows(packing), self._words(self._packed(packing), packing.words)
        if self._keeps:
            parts = rows.filled(parts)
        try:
            for part in parts:
                yield packing.unpacked(part, columns)
        except GeneratorExit:
            # Whoever wants no more of it has no room for more. It is read to its end here all the same: to break off a
            # query would end the transaction of a snapshot, and the next question would read the table anew.
            for _ in parts:
                pass
            raise
        finally:
            if self._keeps and rows.complete:
                self._kept = rows

    def _packed(self, packing: Packing) -> Expression:
        codings = [packing.domain[c] for c in packing.columns]
        types = ["BIGINT"] * len(codings)
        codes = select_codes(self._source, self.schema.unit, codings, self.schema.missing_texts, types)
        words = [exp.alias_(w, f"word_{i}") for i, w in enumerate(packing.expressions())]
        return exp.select(*words, copy=False).from_(codes.subquery("coded", copy=False), copy=False)
