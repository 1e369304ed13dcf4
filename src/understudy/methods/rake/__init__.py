"""`rake`: adaptive marginals at several resolutions, fitted by particles."""
