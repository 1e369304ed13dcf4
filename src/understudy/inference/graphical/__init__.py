"""Graphical models on junction trees."""
