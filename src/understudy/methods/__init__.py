"""One module or folder per method."""
