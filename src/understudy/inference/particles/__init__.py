"""Weighted rows as a model."""
