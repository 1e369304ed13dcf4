"""What can be audited."""
