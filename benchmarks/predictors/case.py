"""What is compared: tables, budgets, seeds, and how rows are split. Shared with the rival's environment: no imports."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
SCHEMAS = ROOT / "src" / "understudy" / "datasets" / "schemas"
TARGETS = {"adult": "income", "mushroom": "class", "nursery": "classification", "covertype": "cover_type"}
EPSILONS = (0.01, 0.1, 1.0, 10.0)
SEEDS = 10
TRAINING_SHARE = 0.75
LARGE = {"trees": 100, "depth": 7}
"""Hanisch's largest forest, for which he needed hours."""


def files(table: str) -> tuple[Path, Path | None]:
    """The rows to learn from and, where they are given, those to test with; else a share of the former is held out."""
    if table == "adult":
        return DATA / "adult.train.csv", DATA / "adult.test.csv"
    return DATA / f"{table}.csv", None
