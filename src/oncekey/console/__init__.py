"""What operators look at, and act with: pages over the API of admins, which alone reads and changes
things. Nothing here knows of the ledger."""
