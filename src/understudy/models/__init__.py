"""Post-processing only: from noisy measurements to a distribution, and from a distribution to rows of codes."""
