"""The default method beside our other ones and other tools: what it promises, measured on sixteen tables."""
