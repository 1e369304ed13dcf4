"""Neural generators of rows."""
