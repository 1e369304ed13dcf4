"""What leaves the house: a synthetic table with its certificate, and the checks that need no private row."""
