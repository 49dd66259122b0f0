"""The PostgreSQL store: many processes on many machines share one ledger."""
