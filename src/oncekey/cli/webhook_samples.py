"""Deliveries to try a webhook with: the least each provider's can be."""

from __future__ import annotations

import json
import secrets
from typing import Any
from urllib.parse import urlencode

_TYPE = "oncekey.test"


def sample_of(provider: str) -> bytes:
    """A body with an identifier of its own, where that is in the body."""
    name = secrets.token_hex(8)
    if provider == "twilio":
        fields = {"MessageSid": f"SM{name}{name}", "MessageStatus": "delivered"}
        return urlencode(fields).encode()
    return json.dumps(_document_of(provider, name)).encode()


def _document_of(provider: str, name: str) -> dict[str, Any]:
    match provider:
        case "slack":
            return {"type": "event_callback", "event_id": f"Ev{name}", "event": {"type": _TYPE}}
        case "square":
            return {"event_id": name, "type": _TYPE, "data": {"object": {}}}
        case "gocardless":
            event = {"id": f"EV{name}", "resource_type": "payments", "action": "confirmed"}
            return {"events": [event]}
        case "adyen":
            return {"live": "false", "notificationItems": [_notification_of(name)]}
        case _:
            return {"id": f"evt_{name}", "type": _TYPE, "data": {"object": {"id": f"obj_{name}"}}}


def _notification_of(name: str) -> dict[str, Any]:
    notification = {
        "eventCode": "AUTHORISATION",
        "success": "true",
        "pspReference": name.upper(),
        "originalReference": "",
        "merchantAccountCode": "Test",
        "merchantReference": name,
        "amount": {"value": 100, "currency": "EUR"},
        "additionalData": {},
    }
    return {"NotificationRequestItem": notification}
