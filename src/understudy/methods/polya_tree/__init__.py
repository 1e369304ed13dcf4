"""`polya-tree`: columns of numbers at full resolution."""

from understudy.methods.polya_tree.polya_tree import METHOD

__all__ = ["METHOD"]
