"""Durable work: workflows, tasks, promises, events and control, on an engine that can be chosen."""
