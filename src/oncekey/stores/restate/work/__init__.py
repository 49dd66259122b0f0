"""The handlers of durable work: within its objects, and between them."""
