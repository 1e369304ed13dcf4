"""Tables with a canary in every cell, and a watch over everything that a call shows or leaves behind."""

from __future__ import annotations

import gzip
import io
import logging
import re
import sqlite3
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

TEXT = "canary-"
NUMBER = 918_273_645_192_837
"""Of fifteen digits: the chance that a number printed for another reason begins with its first thirteen is 1.1e-13. All
tests print fewer than 5,000 numbers that hang on chance (most noise is seeded): a false alarm in 6e-10 of runs.
"""
DAY = date(1873, 3, 1)
CANARY = re.compile(
    rb"canary-|(?<![\d.])9182736451928|9\.182736451928|918,273,645,192|1873-0[34]|1873, ?0?[34],|0[34]\.1873|0[34]/1873"
)
PLANTED, ORDINARY = 24, 60

SCHEMA = """
missing_values = ["?"]
[columns.who]
type = "identifier"
[columns.diagnosis]
type = "categorical"
values = ["cold", "flu"]
missing = true
[columns.place]
type = "categorical"
values = "private"
missing = true
[columns.code]
type = "categorical"
values = [1, 2, 3]
missing = true
[columns.age]
type = "integer"
min = 0
max = 99
bins = 10
[columns.pay]
type = "number"
min = 0
max = 100
bins = 10
decimals = 1
[columns.seen]
type = "datetime"
min = 2020-01-01
max = 2020-12-31
bins = 12
[columns.smoker]
type = "boolean"
missing = true
"""


def columns(texts: bool) -> dict[str, list[Any]]:
    """Ordinary rows, which give methods something to learn, and rows with a canary in every cell.

    With `texts` truth values are texts too, and so can hold a canary.
    """
    planted: dict[str, list[Any]] = {
        "who": [f"{TEXT}who-{i}" for i in range(PLANTED)],
        "diagnosis": [f"{TEXT}diagnosis-{i}" for i in range(PLANTED)],
        "place": [f"{TEXT}place-{i}" for i in range(PLANTED)],
        "code": [NUMBER + i for i in range(PLANTED)],
        "age": [NUMBER + 100 + i for i in range(PLANTED)],
        "pay": [NUMBER + 200.5 + i for i in range(PLANTED)],
        "seen": [DAY + timedelta(days=i) for i in range(PLANTED)],
        "smoker": [f"{TEXT}smoker-{i}" if texts else None for i in range(PLANTED)],
    }
    ordinary: dict[str, list[Any]] = {
        "who": [f"{TEXT}who-{PLANTED + i}" for i in range(ORDINARY)],
        "diagnosis": [("cold", "flu", "?")[i % 3] for i in range(ORDINARY)],
        "place": [("Bonn", "Ulm")[i % 2] for i in range(ORDINARY)],
        "code": [1 + i % 3 for i in range(ORDINARY)],
        "age": [20 + i for i in range(ORDINARY)],
        "pay": [1.5 * i for i in range(ORDINARY)],
        "seen": [date(2020, 1 + i % 12, 3) for i in range(ORDINARY)],
        "smoker": [(str(i % 2 == 0).lower() if texts else i % 2 == 0) for i in range(ORDINARY)],
    }
    return {name: ordinary[name] + planted[name] for name in planted}


def in_arrow(texts: bool = False) -> pa.Table:
    return pa.table(columns(texts))


def in_csv(path: Path) -> str:
    pacsv.write_csv(in_arrow(texts=True), path)
    return str(path)


def in_parquet(path: Path) -> str:
    pq.write_table(in_arrow(), path)
    return str(path)


def in_duckdb(path: Path) -> str:
    with duckdb.connect(str(path)) as connection:
        connection.register("given", in_arrow(texts=True))
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
        # Reading these fails, with a message of the engine's that quotes a cell.
        connection.execute(
            "CREATE VIEW miscast AS SELECT * REPLACE (CAST(diagnosis AS INTEGER) AS diagnosis) FROM people"
        )
    return f"{path}::people"


SOURCES: dict[str, Callable[[Path], Any]] = {
    "pandas": lambda _: in_arrow().to_pandas(),
    "pandas-objects": lambda _: pd.DataFrame(columns(texts=True), dtype=object),
    "polars": lambda _: pl.from_arrow(in_arrow()),
    "pyarrow": lambda _: in_arrow(),
    "csv": lambda folder: in_csv(folder / "people.csv"),
    "parquet": lambda folder: in_parquet(folder / "people.parquet"),
    "duckdb": lambda folder: in_duckdb(folder / "people.duckdb"),
}


class Unprintable:
    """A value that can't be read, and says so with the value."""

    def __str__(self) -> str:
        raise ValueError(f"{TEXT}unprintable")

    __repr__ = __str__


def in_pandas(values: Any) -> Any:
    return pd.Series(values, dtype=object if isinstance(values, list) else None)


def odd_frames() -> dict[str, Any]:
    """Frames that no rule can read, or only just; each has a canary in its column `x`."""
    texts = [f"{TEXT}{i}" for i in range(12)]
    pandas: dict[str, Any] = {
        "lists": [[t] for t in texts],
        "dicts": [{"a": t} for t in texts],
        "bytes": [t.encode() + b"\xff" for t in texts],
        "complex": [complex(NUMBER, i) for i in range(12)],
        "surrogates": [f"{t}\udcff" for t in texts],
        "unprintable": [Unprintable() for _ in texts],
        "frames": [pd.DataFrame({"a": [t]}) for t in texts],
        "mixed": [*texts[:6], NUMBER, NUMBER + 0.5, DAY, None, True, b"\xff" + texts[0].encode()],
        "complex numbers": np.array([complex(NUMBER, i) for i in range(12)]),
        "huge": [10**400 + NUMBER] * 12,
        "intervals": pd.arrays.IntervalArray.from_breaks(range(NUMBER, NUMBER + 13)),
        "periods": pd.period_range(DAY, periods=12, freq="D"),
        "durations": pd.to_timedelta([NUMBER + i for i in range(12)]),
        "categories": pd.Categorical(texts),
    }
    frames: dict[str, Any] = {f"pandas {k}": pd.DataFrame({"x": in_pandas(v), "y": 1}) for k, v in pandas.items()}
    polars = {
        "lists": pl.Series([[t] for t in texts]),
        "structs": pl.Series([{"a": t} for t in texts]),
        "binary": pl.Series([t.encode() for t in texts]),
        "objects": pl.Series([Unprintable() for _ in texts], dtype=pl.Object),
        "durations": pl.Series([timedelta(seconds=NUMBER // 1000)] * 12),
        "categories": pl.Series(texts, dtype=pl.Categorical),
    }
    frames |= {f"polars {k}": pl.DataFrame({"x": v, "y": [1] * 12}) for k, v in polars.items()}
    arrow = {
        "lists": pa.array([[t] for t in texts]),
        "structs": pa.array([{"a": t} for t in texts]),
        "maps": pa.array([[(t, 1)] for t in texts], pa.map_(pa.string(), pa.int64())),
        "binary": pa.array([b"\xff" + t.encode() for t in texts]),
        "damaged texts": pa.array([b"\xff" + t.encode() for t in texts]).view(pa.string()),
        "dictionary": pa.array(texts).dictionary_encode(),
        "nulls": pa.nulls(12),
    }
    return frames | {f"pyarrow {k}": pa.table({"x": v, "y": [1] * 12}) for k, v in arrow.items()}


@dataclass
class Shown:
    """Everything that a call showed or left behind, by where it was."""

    texts: dict[str, bytes] = field(default_factory=dict)
    error: BaseException | None = None
    result: Any = None

    def leaks(self, but: tuple[str, ...] = ()) -> dict[str, list[str]]:
        """Where a canary is, and its surroundings."""
        found = {}
        for where, text in self.texts.items():
            if not where.startswith(but) if but else True:
                seen = [
                    text[max(0, m.start() - 60) : m.end() + 30].decode(errors="replace") for m in CANARY.finditer(text)
                ]
                if seen:
                    found[where] = seen[:3]
        return found


def told_by(error: BaseException) -> bytes:
    """What a traceback prints, what a program that logs the error would print, and the notes of the whole chain."""
    texts = ["".join(traceback.format_exception(error)), repr(error), repr(error.args), str(error)]
    return "\n".join(texts).encode(errors="replace")


class Handler(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(self.format(record))


def watched(call: Callable[[], Any], capture: Any, places: tuple[Path, ...]) -> Shown:
    """Runs a call; `capture` is pytest's of the standard streams, and `places` are where files may appear."""
    shown, handler = Shown(), Handler()
    capture.readouterr()
    logger, level = logging.getLogger(), logging.getLogger().level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                shown.result = call()
            except (Exception, KeyboardInterrupt, SystemExit) as error:
                shown.error = error
                shown.texts["error"] = told_by(error)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    printed = capture.readouterr()
    shown.texts |= {"stdout": printed.out.encode(), "stderr": printed.err.encode()}
    shown.texts["log"] = "\n".join(handler.told).encode()
    shown.texts["warnings"] = "\n".join(str(w.message) for w in warned).encode()
    if shown.result is not None:
        shown.texts["result"] = f"{shown.result!r}\n{shown.result}".encode()
    for place in places:
        for path in sorted(p for p in place.rglob("*") if p.is_file()):
            for part, content in contents(path):
                shown.texts[f"file {path.relative_to(place)}{part}"] = content
            shown.texts[f"name {path.relative_to(place)}"] = path.name.encode()
    return shown


def contents(path: Path) -> Iterator[tuple[str, bytes]]:
    """The bytes of a file, and what they are when they are unpacked."""
    raw = path.read_bytes()
    yield "", raw
    if raw.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            yield from ((f"!{name}", archive.read(name)) for name in archive.namelist())
    elif raw.startswith(b"\x1f\x8b"):
        yield "!", gzip.decompress(raw)
    elif raw.startswith(b"PAR1"):
        sink = pa.BufferOutputStream()
        pacsv.write_csv(pq.read_table(path), sink)
        yield "!", sink.getvalue().to_pybytes()
    elif raw.startswith(b"SQLite"):
        with closing(sqlite3.connect(path)) as database:
            yield "!", "\n".join(database.iterdump()).encode()
