"""How good a synthetic table is, measured beside the real one."""
