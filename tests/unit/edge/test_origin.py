"""Where a service behind is, in what it answers: gone, and nothing else with it."""

import pytest

from oncekey.edge.origin import origin_of, without
from oncekey.upstream.address import address_of


@pytest.mark.parametrize(
    "url, told, expected",
    [
        ("http://inner:9000", "http://inner:9000/x?y#z", "/x?y#z"),
        ("http://inner:9000", "HTTP://INNER:9000/X", "/X"),
        ("http://inner:9000", "https://inner:9000/x", "/x"),
        ("http://inner:9000", "//inner:9000", "/"),
        ("http://inner:9000", "http://inner:9000//evil/x", "/evil/x"),
        ("http://inner:9000", "http://inner:9000\\evil", "/evil"),
        ("http://inner:9000", "http://inner:90001/x", "http://inner:90001/x"),
        ("http://inner:9000", "http://inner:9000.evil/x", "http://inner:9000.evil/x"),
        ("http://inner:9000", "http://inner:9000@evil/x", "http://inner:9000@evil/x"),
        ("http://inner:9000", "http://inner/x", "http://inner/x"),
        ("http://inner:9000", "/x", "/x"),
        ("http://inner", "http://inner:80/x", "/x"),
        ("http://inner", "http://inner:8080/x", "http://inner:8080/x"),
        ("https://inner", "https://inner:443", "/"),
        ("http://a.b", "http://aXb/x", "http://aXb/x"),
        ("http://[::1]:9000", "http://[::1]:9000/x", "/x"),
        ("http://inner/base", "http://inner/base/x", "/x"),
        ("http://inner/base", "http://inner/base", "/"),
        ("http://inner/base", "http://inner/based/x", "/based/x"),
        ("http://inner/base", "http://inner/x", "/x"),
        ("http+unix://%2Frun%2Fapp.sock", "http://localhost/x", "/x"),
        ("http://inner", "<http://inner/a>; rel=next, <//inner>", "</a>; rel=next, </>"),
        ("http://inner", "0; url='http://inner/a'", "0; url='/a'"),
    ],
)
def test_origin(url: str, told: str, expected: str) -> None:
    assert without(origin_of(address_of(url)), told.encode()) == expected.encode()
