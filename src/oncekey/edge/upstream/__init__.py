"""The services behind the edge: connections that are kept, and what is known when one breaks."""

from oncekey.edge.upstream.answer import Answer
from oncekey.edge.upstream.ask import Ask, Body, Listener
from oncekey.edge.upstream.pool import Load, Upstream
from oncekey.edge.upstream.request import end_to_end

__all__ = ["Answer", "Ask", "Body", "Listener", "Load", "Upstream", "end_to_end"]
