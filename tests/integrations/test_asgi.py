"""ASGI corners that no framework shows: other scopes, identities, mistakes."""

from typing import Any

import pytest

from oncekey import Identity, Ledger
from oncekey.asgi import IdempotencyMiddleware
from oncekey.core.errors import RetentionUnknown
from tests.fixtures.http.asking import ask_asgi, replayed


async def show(scope: Any, receive: Any, send: Any) -> None:
    """Answers whose request it is."""
    claim = scope["oncekey.claim"]
    namespace = claim.operation.ref.scope.namespace.encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": namespace})


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["lifespan", "websocket"])
async def test_other_scopes_pass(ledger: Ledger, kind: str) -> None:
    seen = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append((scope, receive, send))

    channels = ({"type": kind}, object(), object())
    await IdempotencyMiddleware(app, ledger=ledger)(*channels)  # type: ignore[arg-type]
    assert seen == [channels]


@pytest.mark.parametrize(
    "identity, namespace",
    [
        ("7", "t-default:_tenant:user:7"),
        ("service:billing", "t-default:_tenant:service:billing"),
        (Identity("user:7", tenant="acme", project="shop"), "t-acme:shop:user:7"),
        (None, "t-default:_tenant:client:anonymous"),
        ("", "t-default:_tenant:client:anonymous"),
    ],
)
@pytest.mark.parametrize("colour", ["plain", "async"])
def test_whose_request_it_is(ledger: Ledger, identity: Any, namespace: str, colour: str) -> None:
    def whose(scope: Any) -> Any:
        return identity

    async def awaited(scope: Any) -> Any:
        return identity

    asked = whose if colour == "plain" else awaited
    app = IdempotencyMiddleware(show, ledger=ledger, identity=asked)
    assert ask_asgi(app).text == namespace
    assert replayed(ask_asgi(app))


def test_a_mistake_in_the_rule_is_an_error_and_not_an_outage(ledger: Ledger) -> None:
    app = IdempotencyMiddleware(show, ledger=ledger, retention="forever")
    with pytest.raises(RetentionUnknown):
        ask_asgi(app)
