"""Codes of rows that were read once and are asked for again: in memory, and in a file what exceeds a share of it."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.boundary.schema.domain import ColumnSet
from understudy.boundary.tables.connection import spill_directory
from understudy.boundary.tables.counting import CodeBatch

MEMORY_SHARE = 16
"""Codes that would take more than this part of the machine's memory are kept in a file."""


def memory_share() -> int:
    """Bytes; a gigabyte's part where the system doesn't say how much memory there is."""
    try:
        whole_memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        whole_memory = 1 << 30
    return whole_memory // MEMORY_SHARE


class Overflow:
    """A file that only its user may read, and that is gone with its last reader, whatever happens to the process."""

    def __init__(self) -> None:
        folder = Path(spill_directory() or tempfile.gettempdir())
        folder.mkdir(mode=0o700, exist_ok=True)
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - of the next line
        weakref.finalize(self, self._file.close)
        self.size = 0

    def write(self, part: NDArray[Any]) -> None:
        self.size += self._file.write(np.ascontiguousarray(part).data)

    def mapped(self, kind: np.dtype[Any], start: int = 0, length: int | None = None) -> NDArray[Any]:
        """What was written from `start` on. It is memory of the system's, and this process's only where it is read."""
        self._file.flush()
        shape = None if length is None else (length,)
        # A mapping has a handle of its own.
        return np.asarray(np.memmap(self._file, dtype=kind, mode="r", offset=start, shape=shape))


@dataclass(frozen=True)
class _Written:
    """A batch in the file: its columns one after the other, those of wide codes first, so that each is aligned."""

    rows: int
    start: int
    kinds: dict[str, np.dtype[Any]]

    @classmethod
    def of(cls, batch: CodeBatch, file: Overflow) -> _Written:
        kinds = {c: codes.dtype for c, codes in sorted(batch.items(), key=lambda item: -item[1].itemsize)}
        written = cls(len(next(iter(batch.values()))), file.size, kinds)
        for column in kinds:
            file.write(batch[column])
        file.write(np.zeros(-file.size % 8, dtype=np.uint8))
        return written

    def read(self, columns: ColumnSet, file: Overflow) -> CodeBatch:
        # Mapped anew for each reading, so that the process is no larger than a batch of it.
        octets = file.mapped(np.dtype(np.uint8), self.start, self.rows * sum(k.itemsize for k in self.kinds.values()))
        ends = np.cumsum([0, *(self.rows * kind.itemsize for kind in self.kinds.values())])
        places = {c: octets[a:b] for c, a, b in zip(self.kinds, ends[:-1], ends[1:], strict=True)}
        return {c: places[c].view(self.kinds[c]) for c in columns}


@dataclass
class KeptCodes:
    """The codes of all rows, a batch at a time in the order of the scan."""

    columns: ColumnSet
    room: int = field(default_factory=memory_share)
    """Bytes that are kept in memory; what goes beyond is on disk."""
    bytes: int = 0
    _parts: list[CodeBatch | _Written] = field(default_factory=list)
    _file: Overflow | None = None

    def add(self, batch: CodeBatch) -> None:
        """Raises OSError where there is no room on disk."""
        self.bytes += sum(codes.nbytes for codes in batch.values())
        if self.bytes <= self.room:
            self._parts.append(batch)
            return
        self._file = self._file or Overflow()
        self._parts.append(_Written.of(batch, self._file))

    def batches(self, columns: ColumnSet) -> Iterator[CodeBatch]:
        for part in self._parts:
            if isinstance(part, _Written):
                assert self._file is not None
                yield part.read(columns, self._file)
            else:
                yield {c: part[c] for c in columns}
