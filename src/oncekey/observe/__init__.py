"""What operators see: metrics, logs and traces of what the ledger and the walks tell."""
