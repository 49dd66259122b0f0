"""What callers want done: each kind of job is a crowd that asks for the same thing."""
