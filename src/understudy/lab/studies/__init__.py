"""Methods compared over budgets and seeds."""
