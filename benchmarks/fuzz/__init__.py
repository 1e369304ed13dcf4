"""Fuzzers: inputs from numbered seeds, worker processes, and oracles that know a failure when they see it.

A case is named NAME:SEED:INDEX and can be run again by that name alone.
"""
