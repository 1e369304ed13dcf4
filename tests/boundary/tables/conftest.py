"""The same rows as every kind of table: the ground of the conformance suite."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from helpers.builders import BUILDERS, in_sites, split_unevenly
from helpers.postgres_cluster import cluster, load, skip_without_server
from understudy.boundary.tables.sources import open as open_table


@pytest.fixture(scope="session")
def postgres():
    """The address of a server that runs for these tests alone."""
    with cluster(skip_without_server()) as url:
        yield url


@pytest.fixture(scope="session", params=[*BUILDERS, "postgresql", "federated"])
def kind(request):
    """Every kind of table, in turn."""
    return request.param


@pytest.fixture(scope="session")
def opened(request, tmp_path_factory):
    """opened(kind, rows, schema): an Arrow table's rows, opened as a table of that kind."""
    folder, number = tmp_path_factory.mktemp("kinds"), itertools.count()

    def make(kind, rows: pa.Table, schema):
        if kind == "postgresql":
            return open_table(load(request.getfixturevalue("postgres"), f"the rows {next(number)}", rows), schema)
        if kind == "federated":
            return in_sites(split_unevenly(rows, schema), schema)
        return open_table(BUILDERS[kind](rows, folder / f"t{next(number)}"), schema)

    return make
