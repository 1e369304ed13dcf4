"""What is installed reproducibly satisfies what the package declares, and every artefact is pinned by its hash."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TEXT = (ROOT / "constraints.txt").read_text(encoding="utf-8")
LINE = re.compile(r"([a-z0-9.-]+)==(\S+) --hash=sha256:[0-9a-f]{64}")


def pinned() -> dict[str, str]:
    found = [LINE.fullmatch(line) for line in TEXT.splitlines() if not line.startswith("#")]
    assert found and all(found)
    return {canonicalize_name(m[1]): m[2] for m in found if m}


def test_every_requirement_is_pinned_within_its_bounds():
    extras = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"], *extras["figures"], *extras["fast"], *extras["postgres"]]
    for requirement in map(Requirement, wanted):
        assert requirement.specifier.contains(pinned()[canonicalize_name(requirement.name)]), requirement


def test_no_host_and_no_path_is_named():
    assert "//" not in TEXT and "index-url" not in TEXT
