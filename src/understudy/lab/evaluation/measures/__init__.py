"""The measures, by family."""
