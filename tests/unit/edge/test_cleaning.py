"""What of a request goes on to the service behind."""

import pytest

from oncekey.edge.asked import Asked
from oncekey.edge.cleaning import to_upstream


def sent_on(*lines: tuple[bytes, bytes]) -> dict[bytes, list[bytes]]:
    asked = Asked("POST", "/orders", b"/orders", b"", list(lines), "192.0.2.1", "http")
    found: dict[bytes, list[bytes]] = {}
    for name, value in to_upstream(asked, "t-acme:shop:user:anna", "t-acme:shop:user:anna:k"):
        found.setdefault(name.replace(b"_", b"-"), []).append(value)
    return found


@pytest.mark.parametrize(
    "name",
    [
        b"x-tenant-id",
        b"x_tenant_id",
        b"x-tenant_id",
        b"x_project-id",
        b"x_subject",
        b"idempotency-key",
        b"idempotency_key",
        b"x_forwarded_for",
        b"transfer_encoding",
    ],
)
def test_no_spelling_of_our_lines_passes(name: bytes) -> None:
    """A service that takes headers as CGI variables reads an underscore as a dash."""
    ours = sent_on()
    assert sent_on((name, b"evil"), (b"x_other", b"kept")) == {**ours, b"x-other": [b"kept"]}
    assert all(len(values) == 1 for values in ours.values())
