"""Noisy tables in, models out. Post-processing throughout."""
