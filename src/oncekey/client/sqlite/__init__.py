"""Intents in a SQLite file, for callers that are started again."""
