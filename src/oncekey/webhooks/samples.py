"""Deliveries to try a webhook with: the least each provider's can be."""

from __future__ import annotations

import json
import secrets
from typing import Any
from urllib.parse import urlencode

_TYPE = "oncekey.test"


def sample_of(provider: str, kind: str | None = None, *, name: str | None = None) -> bytes:
    """A body with an identifier of its own, made of `name`, where that is in the body. `kind` is
    what it says has happened."""
    name = name or secrets.token_hex(8)
    if provider == "twilio":
        fields = {"MessageSid": f"SM{name}{name}", "MessageStatus": kind or "delivered"}
        return urlencode(fields).encode()
    return json.dumps(_document_of(provider, name, kind)).encode()


def headers_of(provider: str, kind: str | None = None) -> tuple[tuple[bytes, bytes], ...]:
    """What says what has happened, for providers that say it beside the body."""
    match provider:
        case "github":
            return ((b"x-github-event", (kind or "ping").encode()),)
        case "shopify":
            return ((b"x-shopify-topic", (kind or "orders/create").encode()),)
        case _:
            return ()


def _document_of(provider: str, name: str, kind: str | None) -> dict[str, Any]:
    match provider:
        case "slack":
            event = {"type": kind or _TYPE}
            return {"type": "event_callback", "event_id": f"Ev{name}", "event": event}
        case "square":
            return {"event_id": name, "type": kind or _TYPE, "data": {"object": {}}}
        case "gocardless":
            action = kind or "confirmed"
            event = {"id": f"EV{name}", "resource_type": "payments", "action": action}
            return {"events": [event]}
        case "adyen":
            return {"live": "false", "notificationItems": [_notification_of(name, kind)]}
        case _:
            thing = {"object": {"id": f"obj_{name}"}}
            return {"id": f"evt_{name}", "type": kind or _TYPE, "data": thing}


def _notification_of(name: str, kind: str | None) -> dict[str, Any]:
    notification = {
        "eventCode": kind or "AUTHORISATION",
        "success": "true",
        "pspReference": name.upper(),
        "originalReference": "",
        "merchantAccountCode": "Test",
        "merchantReference": name,
        "amount": {"value": 100, "currency": "EUR"},
        "additionalData": {},
    }
    return {"NotificationRequestItem": notification}
