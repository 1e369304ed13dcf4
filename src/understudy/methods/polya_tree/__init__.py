"""`polya-tree`: columns of numbers at full resolution."""
