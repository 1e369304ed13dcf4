"""Metered questions in a small SQL: each is read, paid for, answered with an interval, and remembered."""
