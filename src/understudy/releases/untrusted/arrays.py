"""Arrays out of an .npz of anybody: what it would unpack to is known from its headers before any of it is unpacked."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import CheckFailed
from understudy.releases.untrusted.limits import Limits

END, END_SIGNATURE = struct.Struct("<4s4H2LH"), b"PK\x05\x06"
"""The last bytes of a ZIP archive: how many members it has, and how long the list of them is."""
LONGEST_ENTRY = 1 << 10
"""Of that list: names are as short as `answer_12`."""
KINDS = "iufU"
"""Whole numbers, decimals and texts, by numpy's letters; objects would be unpickled, and that runs code."""
LONGEST_HEADER = 1 << 12
ENDING = ".npy"


def read_arrays(content: bytes, what: str) -> dict[str, NDArray[Any]]:
    """All arrays of an .npz by their names; `what` is the name of the file."""
    try:
        with _bounded(content, what) as archive:
            members = archive.infolist()
            arrays = {m.filename.removesuffix(ENDING): _array(archive, m) for m in members}
            if len(arrays) < len(members) or not all(m.filename.endswith(ENDING) for m in members):
                raise ValueError("members must be arrays, each with a name of its own")
            return arrays
    except CheckFailed:
        raise
    # Whatever zipfile, zlib and numpy say of a file that is none: each raises its own.
    except Exception as error:
        raise CheckFailed(f"{what} can't be read: it was changed or cut short", what) from error


def check_arrays(content: bytes, what: str) -> None:
    """Refuses an .npz that says that it holds more than the limits allow; unpacks nothing."""
    try:
        _bounded(content, what).close()
    except CheckFailed:
        raise
    except Exception as error:
        raise CheckFailed(f"{what} can't be read: it was changed or cut short", what) from error


def _bounded(content: bytes, what: str) -> zipfile.ZipFile:
    _check_list(content, what)
    archive = zipfile.ZipFile(io.BytesIO(content))
    size = sum(member.file_size for member in archive.infolist())
    Limits.here().check(f"{what} unpacks to", size, "unpacked_bytes", "bytes")
    return archive


def demand_names(arrays: Mapping[str, Any], wanted: set[str], what: str) -> None:
    """Refuses arrays that nothing reads: they would be data that nothing in the release accounts for."""
    if arrays.keys() != wanted:
        raise CheckFailed(f"{what} can't be read: it holds other arrays than Understudy writes", what)


def _check_list(content: bytes, what: str) -> None:
    """Before zipfile makes an object of each entry of the list. numpy writes no comment, so the end is at the end."""
    signature, _, _, here, members, length, _, comment = END.unpack(content[-END.size :])
    if signature != END_SIGNATURE or comment or here != members:
        raise ValueError("the list of members is not at the end")
    # From 65,535 on the number stands elsewhere (ZIP64).
    Limits.here().check(f"{what} holds", members, "answers", "arrays")
    if length > LONGEST_ENTRY * members or content[-END.size - 20 :][:4] == b"PK\x06\x07":
        raise ValueError("the list of members is longer than their names")


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """One array; its header must promise as many bytes as the archive does. zipfile hands out no more than that."""
    # The others let a header ask for a dictionary of gigabytes.
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError("another compression")
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        if version != (1, 0):
            raise ValueError("another version of the format")
        shape, in_columns, kind = np.lib.format.read_array_header_1_0(file, max_header_size=LONGEST_HEADER)
        if kind.kind not in KINDS or not kind.isnative or any(n < 0 for n in shape):
            raise ValueError("an array of something else")
        cells = prod(shape)
        size = cells * kind.itemsize
        # An empty array of texts of no length has no bytes, however many it says it has.
        if size != member.file_size - file.tell() or (not kind.itemsize and cells):
            raise ValueError("another size than the header says")
        # One byte more makes zipfile compare its checksum at the end.
        data = file.read(size + 1)
        if len(data) != size:
            raise ValueError("another size than the header says")
    return np.ndarray(shape, kind, buffer=data, order="F" if in_columns else "C")
