"""The service behind: a bank in this process that knows nothing of keys, and counts what it does.

It is no part of the server, so that its count outlives a server that is killed.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_NAMES = {"/charges": "ch", "/parcels": "pk"}


class Hold:
    """One request that the bank keeps until it is let go."""

    def __init__(self) -> None:
        self.arrived = threading.Event()
        self._over = threading.Event()
        self._is_lost = False

    def let_go(self, *, lost: bool = False) -> None:
        """`lost`: whoever asked is gone, and nothing is done."""
        self._is_lost = lost
        self._over.set()

    def keep(self) -> bool:
        """Called for the request that is held; answers whether it is to be done."""
        self.arrived.set()
        self._over.wait()
        return not self._is_lost


class Bank:
    def __init__(self) -> None:
        self._done: Counter[tuple[str, int]] = Counter()
        self._holds: dict[str, Hold] = {}
        self._lock = threading.Lock()
        self._server = _server_of(self)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        for hold in self._holds.values():
            hold.let_go(lost=True)
        self._server.shutdown()
        self._server.server_close()

    def count(self, path: str, order: int | None = None) -> int:
        """How often that was done: for one order, or for all."""
        with self._lock:
            return sum(
                times
                for (each, number), times in self._done.items()
                if each == path and order in {None, number}
            )

    def hold(self, path: str) -> Hold:
        """The next request to `path` is kept."""
        self._holds[path] = hold = Hold()
        return hold

    def do(self, path: str, asked: dict[str, Any]) -> dict[str, Any] | None:
        """What is done for a request; nothing where its caller is gone."""
        hold = self._holds.pop(path, None)
        if hold is not None and not hold.keep():
            return None
        with self._lock:
            self._done[path, asked["order"]] += 1
            number = sum(times for (each, _), times in self._done.items() if each == path)
        return {"id": f"{_NAMES[path]}_{number}", **asked}


def _server_of(bank: Bank) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            done = bank.do(self.path, asked)
            if done is None:
                self.close_connection = True
                return
            body = json.dumps(done).encode()
            self.send_response(201)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
            """Says nothing: the terminal is the tour's."""

    return _Server(("127.0.0.1", 0), Handler)


class _Server(ThreadingHTTPServer):
    """Connections of a server that was killed end when they end, and in the middle of anything."""

    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing: whoever asked sees that no answer comes."""
