"""Methods exactly as their papers print them, where that is not private, and the non-private ones beside them."""
