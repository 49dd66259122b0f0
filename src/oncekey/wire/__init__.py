"""HTTP without a server: a request becomes an operation, a decision becomes a response."""
