"""What each method will cost and how far off it will be, from public facts alone."""
