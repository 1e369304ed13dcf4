"""Public knowledge about a table: columns, domains, constraints."""
