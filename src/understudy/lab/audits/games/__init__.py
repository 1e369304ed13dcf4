"""Distinguishing games: a method is run thousands of times on one of two tables."""
