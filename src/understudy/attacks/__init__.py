"""Attacks on a synthetic table, each beside the same attack on people who were never in it: pictures of risk."""
