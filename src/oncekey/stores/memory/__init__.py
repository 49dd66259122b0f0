"""The oracle: what a store must do, in plain dictionaries."""
