"""A service that shows what reaches it: `uvicorn --app-dir examples upstream:app --port 9000`."""

import json
from typing import Any


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    shown = {
        "method": scope["method"],
        "path": scope["raw_path"].decode("ascii"),
        "query": scope["query_string"].decode("ascii"),
        "headers": [[name.decode(), value.decode("latin-1")] for name, value in scope["headers"]],
        "body": body.decode("latin-1"),
    }
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(shown, indent=1).encode()})
