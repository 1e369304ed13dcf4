"""Differentially private stand-ins for tables that may not be shared."""
