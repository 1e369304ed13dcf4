"""All fuzzers by name."""

from __future__ import annotations

from fuzz import (
    arguments,
    bombs,
    disks,
    drafts,
    extremes,
    intake,
    kills,
    languages,
    ledgers,
    releases,
    schemas,
    spenders,
    stored,
    tables,
)
from fuzz.case import Target

MODULES = (
    schemas,
    languages,
    tables,
    intake,
    drafts,
    releases,
    bombs,
    ledgers,
    arguments,
    stored,
    extremes,
    spenders,
    kills,
    disks,
)
TARGETS: dict[str, Target] = {target.name: target for module in MODULES for target in module.TARGETS}
