"""What the API answers when the store goes away in the middle, and to what is too deep."""

import json
from typing import Any, Literal

import pytest

from oncekey import StoreUnavailable
from oncekey.api.app import IN_DOUBT, Admitted, _answer
from oncekey.api.endpoint import Endpoint
from oncekey.core.errors import InvalidInput
from oncekey.durable.embedded.publishing import _checked

pytestmark = pytest.mark.anyio


async def away(_: Any) -> Any:
    raise StoreUnavailable


@pytest.mark.parametrize("method, doubtful", [("GET", False), ("POST", True), ("DELETE", True)])
async def test_whether_something_was_done_may_not_be_known(
    method: Literal["GET", "POST", "DELETE"], doubtful: bool
) -> None:
    call: Any = None
    answer = await _answer(Admitted(Endpoint(method, "/a", away, "", {}), call), call)
    told = json.loads(answer.body)
    assert (answer.status, told["detail"] == IN_DOUBT) == (503, doubtful)


def test_data_that_is_too_deep_is_refused() -> None:
    with pytest.raises(InvalidInput, match="nested more than 200 deep"):
        _checked("a", b"[" * 5000 + b"]" * 5000, {})
