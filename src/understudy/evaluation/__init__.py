"""How like the real table a synthetic one is, and how useful: measured on rows, so for the steward's eyes only."""
