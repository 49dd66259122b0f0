"""The embedded store: one file, any number of processes of one machine."""
