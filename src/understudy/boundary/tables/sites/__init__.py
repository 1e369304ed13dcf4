"""Sites: tables whose rows stay where they are, and are counted there."""
