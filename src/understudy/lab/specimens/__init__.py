"""Methods without a guarantee, as they were published."""
