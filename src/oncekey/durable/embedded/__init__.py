"""The engine that lives in the database of the ledger: event-sourced, group-committed."""
