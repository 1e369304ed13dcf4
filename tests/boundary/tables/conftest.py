"""The same rows as every kind of table: the ground of the conformance suite."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from helpers.builders import BUILDERS, in_sites, split_unevenly
from helpers.postgres_cluster import cluster, load, skip_without_server
from helpers.spark_sessions import classic, in_spark, sail_server, sail_session_at
from understudy.boundary.tables.sources import open as open_table

ON_SERVER = {"postgresql": False, "postgresql-pushdown": True}
"""Ways to count on a server, and whether the server counts by itself."""


@pytest.fixture(scope="session")
def postgres():
    """The address of a server that runs for these tests alone."""
    with cluster(skip_without_server()) as url:
        yield url


@pytest.fixture(scope="session")
def sail_address():
    """The address of a server of Sail's, which runs for these tests alone."""
    with sail_server() as address:
        yield address


@pytest.fixture(scope="session")
def sail_session(sail_address):
    with sail_session_at(sail_address) as session:
        yield session


@pytest.fixture(scope="session")
def spark_session():
    """A session of Spark's on this machine: one Java process for all tests of a worker."""
    with classic() as session:
        yield session


@pytest.fixture(
    scope="session", params=[*BUILDERS, *ON_SERVER, "federated", "sail", pytest.param("spark", marks=pytest.mark.slow)]
)
def kind(request):
    """Every kind of table, in turn."""
    return request.param


@pytest.fixture(scope="session")
def opened(request, tmp_path_factory):
    """opened(kind, rows, schema): an Arrow table's rows, opened as a table of that kind."""
    folder, number = tmp_path_factory.mktemp("kinds"), itertools.count()

    def make(kind, rows: pa.Table, schema):
        if kind in ON_SERVER:
            address = load(request.getfixturevalue("postgres"), f"the rows {next(number)}", rows)
            return open_table(address, schema, pushdown=ON_SERVER[kind])
        if kind in ("sail", "spark"):
            return open_table(in_spark(request.getfixturevalue(f"{kind}_session"), rows), schema)
        if kind == "federated":
            return in_sites(split_unevenly(rows, schema), schema)
        return open_table(BUILDERS[kind](rows, folder / f"t{next(number)}"), schema)

    return make


def pytest_collection_modifyitems(items):
    """Generated tables go through Sail and not through Spark: the same code of ours, and a hundred times as fast."""
    items[:] = [
        i for i in items if not (i.name.endswith("[spark]") and getattr(i.function, "is_hypothesis_test", False))
    ]
