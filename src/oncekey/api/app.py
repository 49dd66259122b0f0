"""The API as an ASGI app: find the endpoint, know the caller, answer. Nothing else listens here."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import unquote

from starlette.routing import Match, Route

from oncekey.api.admin.means import Means
from oncekey.api.admin.table import ENDPOINTS as ADMIN_ENDPOINTS
from oncekey.api.endpoint import Call, Endpoint, Receive
from oncekey.api.patience import Patience
from oncekey.api.requests import UNPRINTABLE, body_of, key_in, query_of, read_body
from oncekey.api.table import ENDPOINTS
from oncekey.core.callers import Caller, Callers
from oncekey.core.errors import NotFound, OnceKeyError, StoreError
from oncekey.core.ledger import Ledger
from oncekey.core.scope import PLATFORM_LEVEL
from oncekey.durable.engine import Engine
from oncekey.integrations.asgi import Message, Protection, Scope, Send, respond
from oncekey.wire.credentials import secret_in
from oncekey.wire.exchange import endpoint_of
from oncekey.wire.headers import lines_of
from oncekey.wire.identity import Identity
from oncekey.wire.problem import Response, problem, problem_of

log = logging.getLogger("oncekey")

_CLAIM = "oncekey.claim"
_ADMITTED = "oncekey.admitted"
_CALLER = "oncekey.caller"
_ADMIN = "/api/admin/"
IN_DOUBT = (
    "Whether it was done is not known. Send the same request again in a moment, with the same key."
)
_WHOSE = {
    "admin": "Send a header 'Authorization: Bearer oka_…' or 'X-API-Key: oka_…' with the key of an "
    "admin that is neither expired nor revoked; `oncekey apikeys create --admin` makes one."
}


class Admitted(NamedTuple):
    endpoint: Endpoint
    call: Call


class Api:
    """Call `patience.end()` when the server is about to stop: nobody is kept waiting then.

    With `means`, admins are served as well; `endpoints` are those for everybody else.
    """

    def __init__(
        self,
        engine: Engine,
        callers: Callers,
        ledger: Ledger,
        means: Means | None = None,
        *,
        endpoints: Sequence[Endpoint] = ENDPOINTS,
    ) -> None:
        self._engine = engine
        self._callers = callers
        self._ledger = ledger
        self.means = means
        """What admins work with; None for no admins. May be replaced between requests."""
        self.patience = Patience()
        self._for_callers = [(_route_of(each), each) for each in endpoints]
        admin = [(_route_of(each), each) for each in ADMIN_ENDPOINTS]
        self._for_all = [*self._for_callers, *admin]
        self._places = _places_of(endpoints)
        self._protection = Protection(self._answer_admitted, ledger, _identity_of)

    def has(self, path: str) -> bool:
        """Whether a path is one of the API's, whatever is there."""
        if path.startswith(_ADMIN):
            return self.means is not None
        prefixes, paths = self._places
        return path.startswith(prefixes) or path in paths

    async def ask(
        self,
        caller: Caller,
        method: str,
        path: str,
        *,
        query: bytes = b"",
        body: bytes = b"",
        key: str | None = None,
    ) -> Response:
        """What a request of a caller who is known already would be answered, without a server."""
        headers = [(b"content-type", b"application/json")]
        if key is not None:
            headers.append((b"idempotency-key", key.encode()))
        scope: Scope = {
            "type": "http",
            "method": method,
            "path": unquote(path),
            "raw_path": path.encode("ascii"),
            "query_string": query,
            "headers": headers,
            _CALLER: caller,
        }
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": body}

        async def send(message: Message) -> None:
            sent.append(message)

        await self._serve(scope, receive, send)
        start, *rest = sent
        pieces = b"".join(each.get("body", b"") for each in rest)
        return Response(start["status"], tuple(start["headers"]), pieces)

    @property
    def _routes(self) -> list[tuple[Route, Endpoint]]:
        return self._for_callers if self.means is None else self._for_all

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "http":
                await self._serve(scope, receive, send)
            case "lifespan":
                await _live(receive, send)
            case _:
                await send({"type": "websocket.close"})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            admitted = await self._admit(scope, receive)
        except OnceKeyError as error:
            admitted = problem_of(error)
        if isinstance(admitted, Response):
            await respond(send, _fitting(scope, admitted))
            return
        endpoint, call = admitted
        if endpoint.rule is not None and call.key is not None:
            scope[_ADMITTED] = admitted
            place = endpoint_of(endpoint.method, endpoint.path)
            await self._protection(scope, receive, send, endpoint.rule, place)
        else:
            await respond(send, _fitting(scope, await _answer(admitted, receive)))

    async def _answer_admitted(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint, call = scope[_ADMITTED]
        held = replace(call, claim=scope.get(_CLAIM))
        await respond(send, await _answer(Admitted(endpoint, held), receive))

    async def _admit(self, scope: Scope, receive: Receive) -> Admitted | Response:
        endpoint, path = self._find(scope) or (None, {})
        if endpoint is None:
            return self._nowhere(scope)
        caller = None
        if not endpoint.is_open:
            caller = await self._identify(scope, endpoint)
            if caller is None:
                return problem("unauthorized", _WHOSE.get(endpoint.access))
            if path.get("tenant", caller.tenant) != caller.tenant:
                raise NotFound
        lines = lines_of(scope["headers"]).keys
        if lines and endpoint.policy == "PROHIBITED":
            return problem("idempotency-key-prohibited")
        query = query_of(scope.get("query_string", b""), endpoint.query)
        root = scope.get("root_path", "")
        call = Call(
            self._engine,
            self._ledger,
            self.patience,
            caller,
            path,
            query,
            key_in(lines),
            receive,
            root,
            self.means,
        )
        return Admitted(endpoint, call)

    async def _identify(self, scope: Scope, endpoint: Endpoint) -> Caller | None:
        known: Caller | None = scope.get(_CALLER)
        if known is not None:
            return known if known.role == endpoint.access else None
        secret = secret_in(scope["headers"])
        if secret is None:
            return None
        if endpoint.access == "admin":
            return await self._callers.identify_admin(secret)
        return await self._callers.identify(secret)

    def _find(self, scope: Scope) -> tuple[Endpoint, dict[str, str]] | None:
        if UNPRINTABLE.search(scope["path"]):
            return None
        for route, endpoint in self._routes:
            fit, found = route.matches(scope)
            if fit is Match.FULL:
                return endpoint, found["path_params"]
        return None

    def _nowhere(self, scope: Scope) -> Response:
        """No endpoint fits: the path is unknown, or only the method is."""
        allowed = {
            method
            for route, _ in self._routes
            for method in route.methods or ()
            if route.matches(scope)[0] is Match.PARTIAL
        }
        if not allowed or UNPRINTABLE.search(scope["path"]):
            return problem("not-found")
        refusal = problem("method-not-allowed")
        allow = (b"allow", ", ".join(sorted(allowed)).encode())
        return refusal._replace(headers=(*refusal.headers, allow))


async def _answer(admitted: Admitted, receive: Receive) -> Response:
    endpoint, call = admitted
    try:
        if endpoint.body is None:
            return await endpoint.handle(call)
        body = body_of(await read_body(receive), endpoint.body)
        return await endpoint.handle(call, body)
    except StoreError as error:
        # It may have been away only after something was done.
        reads = endpoint.method == "GET"
        return problem_of(error) if reads else problem("ledger-unavailable", IN_DOUBT)
    except OnceKeyError as error:
        return problem_of(error)
    except Exception:
        log.exception("%s %s failed", endpoint.method, endpoint.path)
        return problem("internal-error")


def _places_of(endpoints: Sequence[Endpoint]) -> tuple[tuple[str, ...], frozenset[str]]:
    """How the paths of endpoints begin, and those that are whole."""
    prefixes = {each.path.partition("{")[0] for each in endpoints if "{" in each.path}
    return tuple(prefixes), frozenset(each.path for each in endpoints if "{" not in each.path)


def _route_of(endpoint: Endpoint) -> Route:
    return Route(endpoint.path, endpoint.handle, methods=[endpoint.method])


def _identity_of(scope: Scope) -> Identity:
    caller: Caller | None = scope[_ADMITTED].call.caller
    assert caller is not None
    # What an admin has done is no caller's to see, even of one with the same name.
    project = PLATFORM_LEVEL if caller.role == "admin" else caller.project
    return Identity(caller.subject, caller.tenant, project)


def _fitting(scope: Scope, response: Response) -> Response:
    """An answer to HEAD has the lines of the answer to GET, and no body."""
    return response._replace(body=b"") if scope["method"] == "HEAD" else response


async def _live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
