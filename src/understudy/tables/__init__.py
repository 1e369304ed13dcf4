"""Where private rows live. Nothing outside `tables/` and `privacy/` may ask them anything."""
