"""People behind the boundary, noise that is silent, and a server of our own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from townspeople import PEOPLE, SCHEMA

import understudy as us
from helpers.postgres_cluster import cluster, load, skip_without_server
from understudy.boundary.tables.table import Table


@pytest.fixture(scope="session")
def table() -> Table:
    return us.open(PEOPLE, SCHEMA, name="people")


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of a server that writes down every statement that it gets."""
    with cluster(skip_without_server(), "log_statement=all", "log_line_prefix=") as url:
        yield url


@pytest.fixture(scope="session")
def on_server(server: str) -> Table:
    return us.open(load(server, "people", PEOPLE), SCHEMA)
