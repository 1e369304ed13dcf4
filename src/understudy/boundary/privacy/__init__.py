"""The curator, what may be asked of it, and what that costs."""
