"""How a schema is drafted. Nothing here takes part in a guarantee: a draft is internal until a person confirms it."""
