"""Engines that speak Spark, for as long as the tests run: Sail in a process of its own, and Spark on this machine."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from understudy.boundary.tables.spark import session_at

REQUIRED = "UNDERSTUDY_SPARK_REQUIRED"
_SERVE = """
from pysail.spark import SparkConnectServer
server = SparkConnectServer("127.0.0.1", 0)
server.start(background=True)
print(server.listening_address[1], flush=True)
input()
"""


def _skip(reason: str) -> None:
    if os.environ.get(REQUIRED):
        pytest.fail(reason)
    pytest.skip(reason)


def has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


@contextmanager
def sail_server() -> Iterator[str]:
    """The address of a fresh server, which ends with us."""
    if not (has("pyspark") and has("pysail")):
        _skip("Sail is not installed (pip install pysail pyspark-client)")
    quiet = {**os.environ, "RUST_LOG": "error"}
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", _SERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=quiet
    ) as server:
        try:
            assert server.stdout is not None
            yield f"sc://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.kill()


@contextmanager
def sail_session_at(address: str) -> Iterator[Any]:
    with quietly():
        session = session_at(address)
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def classic() -> Iterator[Any]:
    """A session of Spark's own, in local mode: two tasks at a time, each of them tried up to three times."""
    if not (has("pyspark") and has("py4j")):
        _skip("Spark is not installed (pip install 'pyspark[connect]'; pyspark-client has no engine)")
    if shutil.which("java") is None:
        _skip("Spark needs Java (Debian: apt-get install openjdk-17-jre-headless)")
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "OFF",
        "spark.sql.warehouse.dir": tempfile.mkdtemp(prefix="understudy-spark-"),
    }
    os.environ["PYSPARK_PYTHON"] = sys.executable  # by which executors run Python: understudy must be installed there
    builder = SparkSession.builder.master("local[2, 3]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with quietly():
        session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()
        shutil.rmtree(settings["spark.sql.warehouse.dir"], ignore_errors=True)


@contextmanager
def quietly() -> Iterator[None]:
    """pyspark warns of whatever pandas is installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def in_spark(session: Any, table: pa.Table) -> Any:
    """An Arrow table as a frame of the engine; of types that Spark has."""
    rows = spark_types(table)
    with quietly():
        if rows.num_rows:
            return session.createDataFrame(rows)
        from pyspark.sql.pandas.types import from_arrow_schema

        return session.createDataFrame([], from_arrow_schema(rows.schema))


def spark_types(table: pa.Table) -> pa.Table:
    columns = [_plain(c) for c in table.columns]
    return pa.Table.from_arrays(columns, names=table.column_names)


_WIDER = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0)}


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _plain(column.cast(kind.value_type))
    if pa.types.is_null(kind):
        return column.cast(pa.string())
    return column.cast(_WIDER.get(kind, kind))
