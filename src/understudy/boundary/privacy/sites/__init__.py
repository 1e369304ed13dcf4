"""The site's side of a federated table: its sessions, its ledger, its noise and its masks."""
