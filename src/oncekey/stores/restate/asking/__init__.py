"""What is asked about durable work, put to the objects that have it."""
