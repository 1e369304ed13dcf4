"""All that a guarantee rests on, and nothing else: public knowledge, rows, and the metered way to ask about them."""
