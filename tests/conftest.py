"""What several test folders share."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED_DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public tables beside the repository, which does not carry them."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the public tables are not in ../shared/data beside the repository")
    return SHARED_DATA
