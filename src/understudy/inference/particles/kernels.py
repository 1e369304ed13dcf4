"""The inner loops of particles: compiled where numba is installed (the extra `fast`), by numpy where not.

Both give the same results to the last bit, so that a release can be replayed with either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from understudy.inference.particles.vectorised import cross, draw, histogram, place, recount, rescale, score, spread

    COMPILED: bool

__all__ = ["COMPILED", "cross", "draw", "histogram", "place", "recount", "rescale", "score", "spread"]


def __getattr__(name: str) -> Any:
    """Loaded when first needed: numba takes a third of a second, and most who import the package need none of it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from understudy.inference.particles import compiled as loops
    except ImportError:
        from understudy.inference.particles import vectorised as loops  # type: ignore[no-redef]
    chosen = {loop: getattr(loops, loop) for loop in __all__[1:]}
    globals().update(chosen, COMPILED=loops.__name__.endswith("compiled"))
    return globals()[name]
