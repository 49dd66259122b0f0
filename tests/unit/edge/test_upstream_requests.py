"""What is written to an upstream, and what is never written there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncekey.core.errors import ConfigurationError, InvalidInput
from oncekey.upstream.address import address_of
from oncekey.upstream.request import RequestWriter, framing_of

BAD_TARGETS = [b"", b"*", b"orders", b"http://evil/", b"/a b", b"/a\r\nX: y", b"/a\n", b"/a\x00"]
BAD_TARGETS += [b"/\x7f", b"/a#b", "/ä".encode(), b"/\t"]
BAD_URLS = ["", "shop", "ftp://shop", "http://", "http:///x", "http://:80", "http://u:p@shop"]
BAD_URLS += [
    "http://shop?a=b",
    "http://shop#a",
    "http://shop:99999",
    "http://shop:x",
    "http://[::1",
]
BAD_URLS += [
    "http://shop/a b",
    "http://shop/ä",
    "http://shop/a\r\nb",
    "http://sh op",
    "http://a\0b",
]
BAD_URLS += ["http://a..b.ä", "http+unix://", "http+unix://:80"]


WRITER = RequestWriter(address_of("http://shop:9000/base/"))


def written(
    method: bytes = b"POST", target: bytes = b"/orders", *headers: tuple[bytes, bytes]
) -> bytes:
    return WRITER.request(method, WRITER.start(method, target, headers), (), 0)


def test_a_request_has_its_host_and_the_base_path_before_its_target() -> None:
    head = written(b"GET", b"/orders?a=b", (b"accept", b"*/*"), (b"x-a", b"b"))
    assert head == (
        b"GET /base/orders?a=b HTTP/1.1\r\nhost: shop:9000\r\naccept: */*\r\nx-a: b\r\n\r\n"
    )
    assert written(b"GET", b"/") == b"GET /base/ HTTP/1.1\r\nhost: shop:9000\r\n\r\n"


@pytest.mark.parametrize(
    "method", [b"", b"PO ST", b"POST\r\n", b"P\x00", b"CONNECT", "PÖST".encode(), b"GET /x"]
)
def test_a_method_that_is_no_word_is_refused(method: bytes) -> None:
    with pytest.raises(InvalidInput):
        written(method)


@pytest.mark.parametrize(
    "target",
    BAD_TARGETS,
)
def test_a_target_that_is_no_path_is_refused(target: bytes) -> None:
    with pytest.raises(InvalidInput):
        written(b"GET", target)


@pytest.mark.parametrize("name", [b"", b"a b", b"a:", b"a\r\n", b"a\x00", b"\xe4", b"a\n"])
def test_a_name_that_is_no_token_is_refused(name: bytes) -> None:
    with pytest.raises(InvalidInput):
        written(b"GET", b"/", (b"ok", b"ok"), (name, b"value"))


@pytest.mark.parametrize(
    "name",
    "host content-length transfer-encoding connection keep-alive te trailer upgrade expect".split(),
)
def test_what_frames_a_request_is_not_the_callers_to_write(name: str) -> None:
    for spelt in [name, name.title()]:
        with pytest.raises(InvalidInput):
            written(b"GET", b"/", (spelt.encode(), b"x"))


@given(st.binary(max_size=40))
def test_no_value_ends_its_line(value: bytes) -> None:
    bad = any((byte < 32 and byte != 9) or byte == 127 for byte in value)
    try:
        head = written(b"GET", b"/", (b"a", b"b"), (b"c", value), (b"d", b"e"))
    except InvalidInput:
        assert bad
    else:
        assert not bad
        assert head.endswith(b"a: b\r\nc: " + value + b"\r\nd: e\r\n\r\n")
        assert head.count(b"\n") == 6


def test_names_are_remembered_up_to_a_bound_and_checked_beyond() -> None:
    writer = RequestWriter(address_of("http://shop"))
    for number in range(3000):
        start = writer.start(b"M%d" % number, b"/", [(b"x-%d" % number, b"")])
        writer.request(b"GET", start, [(b"y-%d" % number, b"")], number)
    with pytest.raises(InvalidInput):
        writer.start(b"GET", b"/", [(b"x y", b"")])
    with pytest.raises(InvalidInput):
        writer.request(b"GET", b"", [(b"x y", b"")], 0)


@pytest.mark.parametrize(
    "method, length, lines",
    [
        (b"POST", 0, b"content-length: 0\r\n\r\n"),
        (b"POST", 3, b"content-length: 3\r\n\r\n"),
        (b"GET", 0, b"\r\n"),
        (b"DELETE", 2, b"content-length: 2\r\n\r\n"),
        (b"POST", None, b"transfer-encoding: chunked\r\n\r\n"),
    ],
)
def test_the_framing_of_a_request(method: bytes, length: int | None, lines: bytes) -> None:
    assert framing_of(method, length) == lines
    for headers in [[], [(b"a", b"b")]]:
        for _ in range(2):
            head = WRITER.request(method, b"GET / HTTP/1.1\r\n", headers, length, b"body")
            assert head.endswith(b"\r\n" + lines + b"body")


def test_a_length_is_not_negative() -> None:
    with pytest.raises(InvalidInput):
        WRITER.request(b"POST", b"", [], -1)


# Addresses.


@pytest.mark.parametrize(
    "url, host, port, authority, base",
    [
        ("http://127.0.0.1:9000", "127.0.0.1", 9000, b"127.0.0.1:9000", b""),
        ("http://shop", "shop", 80, b"shop", b""),
        ("http://shop:80/", "shop", 80, b"shop", b""),
        ("https://shop/v1/", "shop", 443, b"shop", b"/v1"),
        ("https://[::1]:8443/a/b", "::1", 8443, b"[::1]:8443", b"/a/b"),
        ("http://bücher.example", "bücher.example", 80, b"xn--bcher-kva.example", b""),
    ],
)
def test_an_address(url: str, host: str, port: int, authority: bytes, base: bytes) -> None:
    address = address_of(url)
    assert address[:2] == (host, port)
    assert (address.authority, address.base) == (authority, base)
    assert address.tls == url.startswith("https")


def test_an_address_on_a_unix_socket() -> None:
    address = address_of("http+unix://%2Frun%2Fapp.sock/base")
    assert (address.socket, address.base, address.authority) == (
        "/run/app.sock",
        b"/base",
        b"localhost",
    )


@pytest.mark.parametrize(
    "url",
    BAD_URLS,
)
def test_a_url_that_cannot_be_an_upstream_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError):
        address_of(url)
