"""Imported by every Python that a test starts: its randomness is the stream that the test has named (see draws.py)."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
import draws

sys.path.pop()
draws.install()
draws.use(os.environ.get(draws.STREAM))

# Python imports one module of this name only: another that a test or the machine has put on the path still runs.
_others = [place for place in sys.path if Path(place).resolve() != Path(__file__).resolve().parent]
_next = importlib.machinery.PathFinder.find_spec("sitecustomize", _others)
if _next is not None and _next.loader is not None:
    _next.loader.exec_module(importlib.util.module_from_spec(_next))
