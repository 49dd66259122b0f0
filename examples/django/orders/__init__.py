"""Orders that are made once."""
