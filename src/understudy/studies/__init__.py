"""Studies: methods × budgets × seeds on one table, run in child processes, recorded as they come."""
