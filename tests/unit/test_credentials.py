"""Where the API key of a request stands."""

import pytest

from oncekey.wire.credentials import secret_in


@pytest.mark.parametrize(
    "headers",
    [
        [(b"authorization", b"Bearer ok_1")],
        [(b"authorization", b"bearer   ok_1 ")],
        [(b"x-api-key", b"ok_1")],
        [(b"x-api-key", b" ok_1 "), (b"accept", b"*/*")],
        [(b"authorization", b"Bearer ok_1"), (b"x-api-key", b"ok_1")],
    ],
)
def test_a_secret_is_found(headers: list[tuple[bytes, bytes]]) -> None:
    assert secret_in(headers) == "ok_1"


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"authorization", b"")],
        [(b"authorization", b"Bearer")],
        [(b"authorization", b"Basic ok_1")],
        [(b"authorization", b"ok_1")],
        [(b"authorization", "Bearer ok_é".encode())],
        [(b"x-api-key", b"")],
        [(b"authorization", b"Bearer ok_1"), (b"x-api-key", b"ok_2")],
        [(b"authorization", b"Bearer ok_1"), (b"authorization", b"Bearer ok_2")],
        [(b"authorization", b"Basic x"), (b"x-api-key", b"ok_1")],
    ],
)
def test_none_is_found_and_of_two_neither(headers: list[tuple[bytes, bytes]]) -> None:
    assert secret_in(headers) is None
