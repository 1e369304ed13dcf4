"""The inner loops of particles: compiled where numba is installed (the extra `fast`), by numpy where not.

Both give the same results to the last bit, so that a release can be replayed with either.
"""

from __future__ import annotations

try:
    from understudy.models.compiled import draw, histogram, place, rescale, score

    COMPILED = True
except ImportError:
    from understudy.models.vectorised import draw, histogram, place, rescale, score

    COMPILED = False

__all__ = ["COMPILED", "draw", "histogram", "place", "rescale", "score"]
