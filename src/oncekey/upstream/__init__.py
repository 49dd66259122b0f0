"""The services behind the edge: connections that are kept, and what is known when one breaks."""

from oncekey.upstream.ask import Ask, Body, Listener
from oncekey.upstream.pool import Load, Upstream

__all__ = ["Ask", "Body", "Listener", "Load", "Upstream"]
