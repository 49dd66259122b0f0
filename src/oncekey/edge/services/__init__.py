"""Handlers of Restate services as upstreams."""
