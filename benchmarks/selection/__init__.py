"""Selection against its pool, sweeps of its parameters, and what it costs."""
