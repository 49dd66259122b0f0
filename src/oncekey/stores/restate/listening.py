"""The socket on which Restate's calls arrive."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from typing import Any

from oncekey.core.errors import ConfigurationError
from oncekey.stores.restate.place import RestatePlace

_BACKLOG = 1024


def listening_at(place: RestatePlace, *, shares: bool = False) -> socket.socket:
    """`shares`: one address for several processes; the kernel hands connections round."""
    host, port = place.listens_on
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named, so that the loop knows it for TCP and sends small pieces at once.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shares:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind((host, port))
        made.listen(_BACKLOG)
    except OSError as error:
        made.close()
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise ConfigurationError(
            f"cannot listen on {host}:{port} for Restate: {reason}; name another address with "
            "endpoint= in the store url, such as endpoint=http://127.0.0.1:0 for any port that "
            "is free; if it is this program that has it, open the store once: app.open(ledger)"
        ) from error
    made.setblocking(False)
    return made


def let_go(sockets: Iterable[Any]) -> None:
    """Leave them to the parent of a forked child. Their numbers stay taken, so that nothing else
    is closed in their place, now or when they are collected."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for each in sockets:
        if each.fileno() >= 0:
            os.dup2(nothing, each.fileno(), inheritable=False)
    os.close(nothing)
