"""The licence is named where tools look for it, and the text beside it is the one that is named."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
APACHE_2 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
"""SHA-256 of the standard text, https://www.apache.org/licenses/LICENSE-2.0.txt."""


def test_the_licence_is_apache_2_word_for_word():
    assert hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest() == APACHE_2


def test_the_package_names_the_licence_and_ships_its_text():
    described = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert described["project"]["license"] == "Apache-2.0"
    assert described["project"]["license-files"] == ["LICENSE"]
    assert "LICENSE" in described["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
