"""One file a noun: its pages, and the forms that act on it."""
