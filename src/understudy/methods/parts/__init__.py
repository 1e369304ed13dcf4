"""What several methods are built of."""
