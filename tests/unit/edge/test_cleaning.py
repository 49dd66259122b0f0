"""What of a request goes on to the service behind."""

import pytest

from oncekey.edge.asked import Asked
from oncekey.edge.cleaning import to_upstream
from oncekey.edge.identity.gateway import Gateway


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


def test_what_a_connection_names_goes_no_further_wherever_it_stands() -> None:
    named = sent_on(
        (b"x-before", b"1"),
        (b"connection", b"X-Before, x-after"),
        (b"x-after", b"2"),
        (b"x-c", b"3"),
    )
    assert named == {**sent_on(), b"x-c": [b"3"]}


@pytest.mark.parametrize("line", [b"x-api-key", b"authorization"])
@pytest.mark.parametrize("prefix", [b"ok_", b"oka_"])
def test_our_own_keys_stay_here_whoever_brings_them(line: bytes, prefix: bytes) -> None:
    """Other credentials of a trusted gateway are for the service behind."""
    scheme = b"Bearer " if line == b"authorization" else b""
    gateway = Gateway(["192.0.2.1"])
    for secret, passes in ((prefix + b"secret", False), (b"theirs", True)):
        headers = [(line, scheme + secret)]
        asked = Asked("POST", "/orders", b"/orders", b"", headers, "192.0.2.1", "http")
        sent = to_upstream(asked, "t-acme:shop:user:anna", None, gateway)
        assert (headers[0] in sent) is passes
