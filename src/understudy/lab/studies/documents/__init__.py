"""The experiments of published documents, run again."""
