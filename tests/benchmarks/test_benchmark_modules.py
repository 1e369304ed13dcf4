"""Benchmarks are run by hand and rarely, so a renamed module would break them unseen: here each one is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
ELSEWHERE = ("forests.arfpy_run", "predictors.rival")
"""Scripts for the environment of another tool, whose packages ours has not."""
IMPORT_ALL = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except Exception as e:
        print(f"{name}: {type(e).__name__}: {e}")
"""


def test_every_benchmark_can_be_imported():
    names = [".".join(p.relative_to(BENCHMARKS).with_suffix("").parts) for p in sorted(BENCHMARKS.rglob("*.py"))]
    ours = [name.removesuffix(".__init__") for name in names if name not in ELSEWHERE]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(BENCHMARKS), *sys.path])}
    command = [sys.executable, "-c", IMPORT_ALL, *ours]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == ""
