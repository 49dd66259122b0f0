"""The edge: who calls, what a key means there, and the service behind. Listens for everything."""
