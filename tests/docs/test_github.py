"""The guide to GitHub: followed from an empty folder, beside a GitHub that delivers again."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.fixtures.guided import Guided
from tests.fixtures.pages import DOCS
from tests.fixtures.served import Serve

PAGE = DOCS / "how-to" / "github.md"
# Newest first, as GitHub lists them: the second one has been delivered again since it failed.
ATTEMPTS = [
    {"id": 5, "guid": "e", "status_code": 503},
    {"id": 4, "guid": "b", "status_code": 200},
    {"id": 3, "guid": "c", "status_code": 200},
    {"id": 2, "guid": "b", "status_code": 500},
    {"id": 1, "guid": "a", "status_code": 0},
]


@contextmanager
def github(asked: list[str]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200, ATTEMPTS)

        def do_POST(self) -> None:
            self._answer(202, {})

        def _answer(self, status: int, told: Any) -> None:
            asked.append(f"{self.command} {self.path.partition('?')[0]}")
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(told).encode())

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Requests are no news."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_guide_is_followed(serve: Serve, tmp_path: Path) -> None:
    asked: list[str] = []
    with github(asked) as api:
        Guided(PAGE, serve, tmp_path, GITHUB_API=api, GITHUB_TOKEN="token").guide.follow()
    hook = "/repos/acme/shop/hooks/42/deliveries"
    assert asked == [f"GET {hook}", f"POST {hook}/5/attempts", f"POST {hook}/1/attempts"]
