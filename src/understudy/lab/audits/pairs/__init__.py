"""Neighbouring tables made to betray mistakes."""
