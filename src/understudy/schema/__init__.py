"""Public knowledge about a table: column types, domains, constraints, and what a code stands for."""
