"""Forests: the non-private one against arfpy, the private one against `rake`."""
