"""The services behind the edge: connections that are kept, and what is known when one breaks."""

from oncekey.edge.upstream.ask import Ask, Body, Listener
from oncekey.edge.upstream.pool import Load, Upstream

__all__ = ["Ask", "Body", "Listener", "Load", "Upstream"]
