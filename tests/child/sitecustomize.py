"""Imported by every Python that a test starts: its randomness is the stream that the test has named (see draws.py)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
import draws

sys.path.pop()
draws.install()
draws.use(os.environ.get(draws.STREAM))
