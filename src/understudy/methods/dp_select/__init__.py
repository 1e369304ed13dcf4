"""`dp-select`: rows selected out of another method's pool."""

from understudy.methods.dp_select.dp_select import METHOD

__all__ = ["METHOD"]
