"""Strategies: what to ask the curator, and which model to fit to its answers."""
