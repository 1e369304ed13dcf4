"""What a schema does to the rows of its table, before any budget is spent."""
