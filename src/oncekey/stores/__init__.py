"""Where records live: memory (the oracle), SQLite and PostgreSQL, held to one conformance suite."""
