"""Where records live: memory (the oracle), SQLite, PostgreSQL. All hold to one conformance suite."""
