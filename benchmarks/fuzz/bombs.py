"""Release folders made to exhaust whoever reads them: each must be refused, or read, in two seconds and 300 MB."""

from __future__ import annotations

import json
import os
import shutil
import struct
import tomllib
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

import understudy as us
from fuzz.case import MEGABYTES, Case, Target, failed
from fuzz.limits import PATIENCE, Meter
from fuzz.releases import CERTIFICATE, MEASUREMENTS, REPORT, SCHEMA, check_material, sign

MOST_SECONDS, MOST_MEGABYTES = 2.0, 300
UNPACKED = 6 * 10**9
TABLE = "synthetic.csv"
Bomb = Callable[[Path], None]


def _certificate(folder: Path) -> dict[str, Any]:
    body: dict[str, Any] = json.loads((folder / CERTIFICATE).read_text())
    return body


def _sign(folder: Path) -> None:
    sign(folder, _certificate(folder))


def zeros(name: str) -> Bomb:
    """An array of the record that is megabytes on the disk and gigabytes in memory."""

    def make(folder: Path) -> None:
        header = b"{'descr': '<i8', 'fortran_order': False, 'shape': (%d,), }" % (UNPACKED // 8)
        head = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.ljust(117) + b"\n"
        with np.load(folder / MEASUREMENTS, allow_pickle=False) as stored:
            kept = {n: _npy(stored[n]) for n in stored.files if n != name}
        (folder / MEASUREMENTS).write_bytes(_zip(kept, f"{name}.npy", head))
        _sign(folder)

    return make


def _npy(array: np.ndarray[Any, Any]) -> bytes:
    import io

    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _zip(kept: dict[str, bytes], name: str, head: bytes) -> bytes:
    """A ZIP file with one member of zeros; a block is squeezed once and repeated, to save time."""
    block = bytes(1 << 20)
    squeezer = zlib.compressobj(9, zlib.DEFLATED, -15)
    start = squeezer.compress(head) + squeezer.flush(zlib.Z_FULL_FLUSH)
    piece = squeezer.compress(block) + squeezer.flush(zlib.Z_FULL_FLUSH)
    count = UNPACKED // len(block)
    member = start + piece * count + squeezer.flush()
    members = [(f"{n}.npy", zlib.crc32(c), len(c), c, 0) for n, c in kept.items()]
    # The checksum is only compared once all of it was unpacked.
    members.append((name, 0, len(head) + count * len(block), member, 8))
    return _archive(members)


def _archive(members: list[tuple[str, int, int, bytes, int]]) -> bytes:
    body, directory = bytearray(), bytearray()
    for name, checksum, size, content, kind in members:
        large = size >= 0xFFFFFFFF
        shown = 0xFFFFFFFF if large else size
        extra = struct.pack("<HHQ", 1, 8, size) if large else b""
        local = struct.pack(
            "<IHHHHHIIIHH", 0x04034B50, 45, 0, kind, 0, 33, checksum, len(content), shown, len(name), len(extra)
        )
        central = struct.pack(
            "<IHHHHHHIIIHHHHHII", 0x02014B50, 45, 45, 0, kind, 0, 33, checksum, len(content), shown, len(name),
            len(extra), 0, 0, 0, 0, len(body),
        )  # fmt: skip
        directory += central + name.encode() + extra
        body += local + name.encode() + extra + content
    ending = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, len(members), len(members), len(directory), len(body), 0)
    return bytes(body + directory) + ending


def many_rows(folder: Path) -> None:
    body = _certificate(folder)
    body["rows"] = {"synthetic": 200_000_000, "rule": body["rows"]["rule"]}
    body["method"]["parameters"]["rows"] = 200_000_000
    sign(folder, body)


def large_total(folder: Path) -> None:
    """No number of rows is asked for, and the counts of the record are huge: they would all be drawn."""
    body = _certificate(folder)
    body["method"]["parameters"].pop("rows", None)
    with np.load(folder / MEASUREMENTS, allow_pickle=False) as stored:
        arrays = {n: stored[n] if n == "questions" else stored[n] + 100_000_000 for n in stored.files}
    np.savez_compressed(folder / MEASUREMENTS, **arrays)
    sign(folder, body)


def wide_format(folder: Path) -> None:
    _add_columns(folder, {"long": {"type": "identifier", "made_up": "{:2000000000d}"}})


def many_columns(folder: Path) -> None:
    _add_columns(folder, {f"c{i}": {"type": "boolean"} for i in range(200_000)})


def many_bins(folder: Path) -> None:
    fine = {"type": "integer", "min": 0, "max": 99_999_999, "bins": 100_000}
    _add_columns(folder, {f"fine{i}": fine for i in range(100)})


def _add_columns(folder: Path, columns: dict[str, Any]) -> None:
    schema = tomllib.loads((folder / SCHEMA).read_text())
    schema["columns"] |= columns
    _write(folder, schema)


def many_rules(folder: Path) -> None:
    schema = tomllib.loads((folder / SCHEMA).read_text())
    schema["constraints"] = [{"then": " OR ".join(["age > 1"] * 900)}] * 200
    _write(folder, schema)


def _write(folder: Path, schema: dict[str, Any]) -> None:
    (folder / SCHEMA).write_text(tomli_w.dumps(schema))
    _sign(folder)


def fifo(name: str) -> Bomb:
    def make(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return make


def endless(name: str) -> Bomb:
    def make(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).symlink_to("/dev/zero")

    return make


def sparse(name: str) -> Bomb:
    """A file with a hole of many gigabytes."""

    def make(folder: Path) -> None:
        os.truncate(folder / name, 20 * 10**9)

    return make


def nested(folder: Path) -> None:
    (folder / CERTIFICATE).write_text("[" * 5_000_000)


def nested_questions(folder: Path) -> None:
    with np.load(folder / MEASUREMENTS, allow_pickle=False) as stored:
        arrays = {n: stored[n] for n in stored.files}
    arrays["questions"] = np.frombuffer(b"[" * 200_000 + b"]" * 200_000, dtype=np.uint8)
    np.savez_compressed(folder / MEASUREMENTS, **arrays)
    _sign(folder)


def long_number(folder: Path) -> None:
    text = (folder / CERTIFICATE).read_text()
    (folder / CERTIFICATE).write_text(text.replace('"epsilon": 1.0', f'"epsilon": {"9" * 5_000_000}', 1))


BOMBS: dict[str, Bomb] = {
    "6 GB in an answer": zeros("answer_0"), "6 GB of questions": zeros("questions"), "200 million rows": many_rows,
    "totals of 100 million": large_total, "a made-up text of 2 GB": wide_format, "200,000 columns": many_columns,
    "100 times 100,000 bins": many_bins, "200 long rules": many_rules, "the table is a FIFO": fifo(TABLE),
    "the record is a FIFO": fifo(MEASUREMENTS), "the certificate is a FIFO": fifo(CERTIFICATE),
    "the table is /dev/zero": endless(TABLE), "the certificate is /dev/zero": endless(CERTIFICATE),
    "the report is /dev/zero": endless(REPORT), "the table is 20 GB of hole": sparse(TABLE),
    "the certificate is 20 GB of hole": sparse(CERTIFICATE), "nested JSON": nested,
    "nested questions": nested_questions, "a number of 5 million digits": long_number,
}  # fmt: skip
WAYS: dict[str, Callable[[Path], Any]] = {
    "verify": us.verify,
    "replay": us.replay,
    "load": us.Release.load,
    "count": lambda folder: us.Release.load(folder).count("age > 40"),
}


def bomb(case: Case) -> None:
    """The number of the case says which bomb it is, and how it is read."""
    name = list(BOMBS)[case.index // len(WAYS) % len(BOMBS)]
    way = list(WAYS)[case.index % len(WAYS)]
    folder = case.folder / "release"
    shutil.copytree(case.base / "releases" / "independent", folder)
    BOMBS[name](folder)
    case.outcomes.append(name)
    case.doing = f"{name}, {way}: "
    meter = Meter()
    found = case.call(way, WAYS[way], folder)
    seconds, megabytes = meter.seconds, meter.megabytes
    case.figures |= {"CPU s": seconds, "MB": megabytes}
    # Seconds of the processor, since others may share this machine; what waits for ever is ended by the clock.
    if seconds > MOST_SECONDS * PATIENCE:
        case.fail(f"{name}, {way}: more than {MOST_SECONDS:g} s", f"{seconds:.1f} s, {found!r}")
    if megabytes > MOST_MEGABYTES:
        case.fail(f"{name}, {way}: more than {MOST_MEGABYTES} MB", f"{megabytes:.0f} MB, {found!r}")
    # It was the limit that refused, and without it the memory would have been taken.
    if ran_out_of_memory(found):
        case.fail(f"{name}, {way}: more than the {MEGABYTES} MB that there were", repr(found))
    if not failed(found) and way != "verify":
        case.outcomes.append(f"{name}, {way}: not refused")


def ran_out_of_memory(found: Any) -> bool:
    """Whether an error is one of memory, or was raised because of one."""
    while isinstance(found, BaseException):
        if isinstance(found, MemoryError):
            return True
        found = found.__cause__ or found.__context__
    return False


TARGETS = (
    Target(
        "bombs",
        "folders made to exhaust a reader",
        len(BOMBS) * len(WAYS),
        bomb,
        chunk=1,
        whole=True,
        prepare=check_material,
    ),
)
