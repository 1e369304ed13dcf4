"""`rake`: adaptive marginals at several resolutions, fitted by particles."""

from understudy.methods.rake.rake import METHOD

__all__ = ["METHOD"]
