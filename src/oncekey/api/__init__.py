"""The API of durable work: workflows, tasks, promises and events, for callers with an API key."""
