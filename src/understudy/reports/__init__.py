"""Typed results in, HTML out. Nothing here computes anything."""
