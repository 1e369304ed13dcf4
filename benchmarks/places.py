"""Where benchmarks find tables and leave results.

Raw results are kept in an ignored folder, so that a stopped run goes on and a report can be made anew without
measuring. Only the short tables that a page cites are in the repository.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
RAW = ROOT / "benchmarks" / ".results"
TABLES = ROOT / "benchmarks" / "results"
RAW.mkdir(exist_ok=True)
