"""Tries to refute what a method claims."""
