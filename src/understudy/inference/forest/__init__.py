"""Densities described by the leaves of trees."""
