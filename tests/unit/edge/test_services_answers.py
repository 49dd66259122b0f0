"""What Restate's ingress says of a call that failed, whatever its body is."""

import pytest

from oncekey.core.errors import UpstreamUncertain
from oncekey.edge.services.answers import read_failure
from oncekey.wire.problem import Response

INVOKED = ((b"x-restate-error-source", b"invocation"),)
UNREADABLE = [b"", b"{", b"[]", b'{"message": 1}', b'{"message": "\xff"}', b'{"a":' + b"[" * 99_999]


@pytest.mark.parametrize("body", UNREADABLE)
def test_what_cannot_be_read_is_told_without_its_words(body: bytes) -> None:
    answer = read_failure(400, INVOKED, body)
    assert isinstance(answer, Response)
    assert answer.status == 400
    assert b"ended the operation with an error" in answer.body
    assert isinstance(read_failure(500, (), body), UpstreamUncertain)
