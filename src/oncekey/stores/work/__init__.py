"""Durable work on SQL stores: requests as steps of named SQL, and the hot ones in bulk."""
