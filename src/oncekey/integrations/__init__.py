"""Frameworks: each turns its own requests into exchanges with the ledger."""
