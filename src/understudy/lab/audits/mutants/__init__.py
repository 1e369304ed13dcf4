"""Deliberately broken methods, which an audit must catch."""
