"""`dp-select`: rows selected out of another method's pool."""
