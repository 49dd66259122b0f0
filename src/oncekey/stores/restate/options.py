"""How a process takes part in a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from oncekey.core.retention import DEFAULT_CLASSES


class RestateOptions(NamedTuple):
    hosts: bool = True
    """Serve what is asked for when nobody else does. False: only ask."""
    shares: bool = False
    """Several processes of one application listen at the same endpoint."""
    max_attempts: int | None = None
    """How often Restate calls for a piece of work that never answers. None: for ever."""
    on_max_attempts: Literal["pause", "kill"] = "pause"
    """What becomes of it then."""
    classes: Mapping[str, float] = DEFAULT_CLASSES
    """The retention classes of the configuration, in seconds; those of the store win."""
    longest: float = 35.0
    """Seconds that a service behind may take to answer."""
    has_edge: bool = False
    """This process gets an edge: what Restate calls for before that is there comes again."""
