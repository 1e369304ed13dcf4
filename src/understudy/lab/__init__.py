"""Looks at results, and holds no guarantee."""
