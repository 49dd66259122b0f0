"""Webhooks: a provider's delivery is verified, known by its identifier, and acted on once."""
