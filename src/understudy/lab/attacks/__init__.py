"""What an attacker learns of people from a synthetic table."""
