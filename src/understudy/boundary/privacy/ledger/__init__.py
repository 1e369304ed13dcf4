"""The ledger of a data set: every release is written down before its noise is drawn."""
