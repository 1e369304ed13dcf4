"""What the tests of the boundary share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from helpers.tables import Opener, opened
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.table import Table


@pytest.fixture
def on_back_end(tmp_path: Path) -> Opener:
    """Opens columns on the named back end, in a folder of its own for each call."""

    def open_on(kind: str, columns: Mapping[str, Sequence[Any]], schema: Schema) -> Table:
        folder = tmp_path / f"{kind}-{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        return opened(kind, columns, schema, folder)

    return open_on
