"""The path of a target: one reading of it for everybody, or none."""

import posixpath
import re
from itertools import permutations
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncekey.edge.target import MAX_TARGET, path_of


@pytest.mark.parametrize(
    "target, path",
    [
        (b"/", "/"),
        (b"/orders", "/orders"),
        (b"/orders/", "/orders/"),
        (b"/orders?state=open&at=/a/../b//c%2f", "/orders"),
        (b"/orders?", "/orders"),
        (b"/orders/7:cancel;v=2,3@home", "/orders/7:cancel;v=2,3@home"),
        (b"/.well-known/keys", "/.well-known/keys"),
        (b"/a/...", "/a/..."),
        (b"/v1.2/a..b", "/v1.2/a..b"),
        (b"/a[1]|^", "/a[1]|^"),
        (b"/%6frders", "/orders"),
        (b"/caf%C3%A9/a%20b", "/café/a b"),
        (b"/100%25", "/100%"),
    ],
)
def test_a_path_is_decoded_once(target: bytes, path: str) -> None:
    assert path_of(target) == path


@pytest.mark.parametrize(
    "target",
    [
        b"",
        b"*",
        b"orders",
        b"?a=b",
        b"http://upstream/orders",
        b"127.0.0.1:80",
        b"//host/orders",
        b"/a//b",
        b"/a/.",
        b"/./a",
        b"/a/../b",
        b"/a/..",
        b"/..?a",
        b"/a/..;v=1/b",
        b"/a/.;/b",
        b"/%2e/a",
        b"/a/%2E%2e/b",
        b"/a/.%2e/b",
        b"/a/..%3b/b",
        b"/a%2fb",
        b"/a%2F",
        b"/a%5cb",
        b"/a\\b",
        b"/a%252fb",
        b"/a%252e%252e",
        b"/a%25%32%66b",
        b"/a%00",
        b"/a%0d%0aX-Tenant-Id:%20other",
        b"/a%7f",
        b"/a%C2%85",
        b"/a\r\n",
        b"/a\n",
        b"/a?b\x00",
        b"/a?b\x7f",
        b"/a b",
        b"/a?b c",
        b"/caf\xc3\xa9",
        b"/a?caf\xe9",
        b"/%c0%ae%c0%ae/a",
        b"/%ff",
        b"/%ed%a0%80",
        b"/a%",
        b"/a%2",
        b"/a%zz",
        b"/a#b",
        b"/a?b#c",
        b'/a"b',
        b"/a<b>",
        b"/{a}",
        b"/a`b",
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(target: bytes) -> None:
    assert path_of(target) is None


def test_a_target_has_a_bound() -> None:
    assert path_of(b"/" + b"a" * (MAX_TARGET - 1)) is not None
    assert path_of(b"/" + b"a" * MAX_TARGET) is None


# What gateways and frameworks are known to do with a path, each in any order with the others.
READINGS = (
    unquote,
    lambda path: path.replace("\\", "/"),
    lambda path: re.sub("/+", "/", path),
    lambda path: posixpath.normpath(path) + "/" * (path.endswith("/") and path != "/"),
    lambda path: re.sub(r"(\.+);[^/]*", r"\1", path),
)
PIECES = st.sampled_from(
    [*"/.%;\\?#ae25fF", "//", "..", "%2e", "%2f", "%5c", "%25", "%c3%a9", "%c0", "%00", "é"]
)
TARGETS = st.lists(PIECES, max_size=12).map(lambda pieces: ("/" + "".join(pieces)).encode())


@given(TARGETS | st.binary(max_size=40) | st.text(max_size=40).map(lambda text: text.encode()))
def test_everybody_reads_the_path_that_we_read(target: bytes) -> None:
    path = path_of(target)
    if path is None:
        return
    raw = target.partition(b"?")[0].decode("ascii")
    for readings in permutations(READINGS):
        read = raw
        for reading in readings:
            read = reading(read)
        assert unquote(read) == path


CHARACTERS = st.characters(exclude_characters="/\\%", exclude_categories=["Cc", "Cs"])
SEGMENTS = st.text(CHARACTERS, min_size=1).filter(
    lambda segment: segment.partition(";")[0] not in {".", ".."}
)


@given(st.lists(SEGMENTS, min_size=1))
def test_a_path_that_is_well_encoded_is_read(segments: list[str]) -> None:
    target = "".join(f"/{quote(segment, safe='')}" for segment in segments).encode()
    if len(target) <= MAX_TARGET:
        assert path_of(target) == "/" + "/".join(segments)
