"""The bundled table is a release like any other: its claim and its rows can be checked without private data."""

import pytest

from understudy import datasets, replay, verify
from understudy.releases.checking import read_certificate

MOST_ROWS = 2_000
"""It is in the repository and in every wheel."""


@pytest.mark.slow
def test_the_bundled_table_verifies_and_replays():
    folder = datasets.demo()
    found = verify(folder)
    assert found.claimed and 0.98 <= found.epsilon <= 1
    assert replay(folder).rows == read_certificate(folder).rows <= MOST_ROWS


def test_its_schema_is_the_public_one_of_adult():
    assert (datasets.demo() / "schema.toml").read_text() == datasets.schema("adult").dumps()
