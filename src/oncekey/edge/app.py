"""The edge as an ASGI app: its own paths, then the routes with an upstream, then what is behind it
in this process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar
from urllib.parse import quote

from oncekey.edge.asked import Answer, Asked, Following
from oncekey.edge.decide import Pass
from oncekey.edge.gate import DECIDE, gate
from oncekey.edge.hooks import WEBHOOKS, Hooks
from oncekey.edge.identity.known import Known
from oncekey.edge.in_time import InTime
from oncekey.edge.policy import EdgeRoute, Table
from oncekey.edge.proxy import ANONYMOUS, Admitted, Proxy
from oncekey.edge.reading import Reading
from oncekey.edge.recovery import OPERATIONS, Recovery
from oncekey.edge.serving.watch import Watch
from oncekey.edge.target import path_of
from oncekey.integrations.asgi import App, Receive, Scope, Send, respond
from oncekey.wire.body import Body
from oncekey.wire.headers import lines_of
from oncekey.wire.identity import namespace_of_credentials
from oncekey.wire.problem import Response, problem
from oncekey.wire.replies import ok

log = logging.getLogger("oncekey")

T = TypeVar("T")

DOCUMENT = "/edge/openapi.json"
_READS = frozenset({"GET", "HEAD"})
_OWN = (DECIDE, WEBHOOKS, OPERATIONS, DOCUMENT)


def _nothing(_: str) -> bool:
    return False


@dataclass(frozen=True)
class Edge:
    """Everything a configuration makes of the edge. Replaced as a whole when that changes."""

    table: Table
    proxy: Proxy
    recovery: Recovery
    hooks: Hooks | None
    document: bytes
    head_timeout: float = 10.0
    body_timeout: float = 30.0
    decides: bool = True
    reserved: Callable[[str], bool] = _nothing
    """Which paths are never forwarded: those of the API, whatever routes there are."""
    has_app: bool = False
    """Whether there is an app in this process, which knows callers by their credentials."""
    paths: dict[tuple[bytes, bytes], tuple[EdgeRoute, str]] = field(default_factory=dict)
    """Routes by method and path as they were last asked for; bounded by whoever puts them in."""

    def withholds(self, path: str) -> bool:
        """Whether it goes to no upstream, whatever routes there are: the edge's, or the API's."""
        return self.is_own(path) or self.reserved(path)

    def is_own(self, path: str) -> bool:
        return path.startswith(_OWN) or bool(self.recovery.routes_of(path))


class EdgeApp:
    """`app` is asked for whatever is not the edge's."""

    def __init__(self, edge: Edge, app: App) -> None:
        self.edge = edge
        self._app = app

    @cached_property
    def watch(self) -> Watch:
        """Of the connections of this process."""
        return Watch(asyncio.get_running_loop())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Held for the whole request: another configuration may come meanwhile.
        edge = self.edge
        asked = asked_of(scope)
        if path_of(asked.target) is None:
            # Whoever is behind may read it as another path than we do.
            if _may_be_ours(edge, asked):
                await respond(send, problem("not-found"))
            else:
                await self._hand_in(edge, asked, scope, receive, send)
            return
        answer = await _guarded(asked, self._own(edge, asked, receive))
        if answer is not None:
            await send_answer(send, answer)
            return
        route = edge.table.find(asked.method, asked.path)
        if route is None or route.upstream is None or edge.reserved(asked.path):
            await self._hand_in(edge, asked, scope, receive, send)
        elif route.source and edge.hooks is not None:
            reading = Reading(receive, edge.body_timeout)
            work = edge.hooks.receive_at(route, asked, reading)
            await respond(send, await _guarded(asked, work))
        else:
            await self._serve(edge, asked, route, receive, send)

    async def _hand_in(
        self, edge: Edge, asked: Asked, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """To what is behind the edge in this process. The API and the console take small bodies,
        which come as a whole in time; an app may be sent more than that."""
        ours = edge.reserved(asked.path)
        in_time = InTime(receive, send, edge.body_timeout, whole=ours)
        await self._app(scope, in_time.receive, in_time.send)

    async def _own(self, edge: Edge, asked: Asked, receive: Receive) -> Response | Answer | None:
        """The answer of the edge itself, when the path is one of its own."""
        path, method = asked.path, asked.method
        if edge.decides and path.startswith(DECIDE) and path[len(DECIDE) :][:1] in {"", "/"}:
            return await decided(edge, asked)
        if edge.hooks is not None and path.startswith(WEBHOOKS):
            return await edge.hooks.receive(asked, Reading(receive, edge.body_timeout))
        if method not in _READS:
            return None
        if path == DOCUMENT:
            return ok(edge.document)
        if path.startswith(OPERATIONS):
            return await self._recover(edge, asked, ())
        routes = edge.recovery.routes_of(path)
        return await self._recover(edge, asked, routes) if routes else None

    async def _recover(self, edge: Edge, asked: Asked, routes: tuple[EdgeRoute, ...]) -> Response:
        """By operation where there are no `routes`. Callers of the app in this process are known by
        their credentials alone, as the app's own requests are. Whoever has none must know the key:
        all of them are one caller, and the numbers of operations can be guessed."""
        own = namespace_of_credentials(lines_of(asked.headers).credentials)
        nobody = own == ANONYMOUS.namespace
        anonymous = bool(routes) and all(route.anonymous for route in routes)
        known: Known | Response | None = await edge.proxy.identify(asked, anonymous=anonymous)
        if isinstance(known, Response):
            by_app = edge.has_app and all(route.upstream is None for route in routes)
            if not by_app or (nobody and not routes):
                return known
            known = None
        if routes:
            return await edge.recovery.by_key(asked.path, routes, known, own)
        return await edge.recovery.by_operation(asked.path, known, "" if nobody else own)

    async def _serve(
        self, edge: Edge, asked: Asked, route: EdgeRoute, receive: Receive, send: Send
    ) -> None:
        watch, seen = edge.proxy.watch, edge.proxy.see(asked, route)
        status = 0
        try:
            admitted = await _guarded(asked, edge.proxy.admit(asked, route, seen))
            if isinstance(admitted, Response):
                status = admitted.status
                await respond(send, admitted)
                return
            status = await self._forward(edge, asked, admitted, receive, send)
        finally:
            if watch is not None and seen is not None:
                watch.end(seen, status)

    async def _forward(
        self, edge: Edge, asked: Asked, admitted: Admitted, receive: Receive, send: Send
    ) -> int:
        """Answers with what status it was answered."""
        reading = Reading(receive, edge.body_timeout)
        rule = admitted.route.rule
        body: bytes | Body | AsyncIterator[bytes] | Response
        if isinstance(admitted.verdict, Pass):
            body = await reading.stream()
        else:
            body = await reading.whole(rule.max_request_body, admitted.lines.content_type)
        if isinstance(body, Response):
            if admitted.seen is not None:
                admitted.seen.way = "refused"
            await respond(send, body)
            return body.status
        try:
            answer = await _guarded(asked, edge.proxy.forward(asked, admitted, body))
            await send_answer(send, answer, receive)
        finally:
            if isinstance(body, Body):
                body.close()
        return answer.status


async def _guarded(asked: Asked, work: Awaitable[T]) -> T | Response:
    """Whatever breaks is told as every other problem is."""
    try:
        return await work
    except Exception:
        log.exception("%s %s failed", asked.method, asked.path)
        return problem("internal-error")


def _may_be_ours(edge: Edge, asked: Asked) -> bool:
    """Whether somebody could take its path for one of the edge's."""
    forwarded = any(route.upstream is not None for route in edge.table.matching(asked.path))
    return forwarded or edge.is_own(asked.path)


async def decided(edge: Edge, asked: Asked) -> Response:
    """The answer to a gateway."""
    known: Known | Response | None
    known = edge.proxy.identities.recall(asked.headers, asked.peer)
    if known is None:
        known = await edge.proxy.identify(asked, anonymous=True)
    return gate(edge.table, known, asked, edge.proxy.observe)


def asked_of(scope: Scope) -> Asked:
    client = scope.get("client")
    return Asked(
        scope["method"],
        scope["path"],
        scope.get("raw_path") or quote(scope["path"]).encode(),
        scope.get("query_string", b""),
        list(scope["headers"]),
        client[0] if client else "",
        scope.get("scheme", "http"),
    )


async def send_answer(
    send: Send, answer: Answer | Response, receive: Receive | None = None
) -> None:
    """With `receive`, an answer that comes piece by piece ends when its client leaves."""
    status, headers, body, *more = answer
    start = {"type": "http.response.start", "status": status, "headers": list(headers)}
    rest: Following | None = more[0] if more else None
    if rest is None:
        if body and not any(name == b"content-length" for name, _ in headers):
            # Said here, because servers would send it in chunks, whoever asks.
            start["headers"] = [*headers, (b"content-length", b"%d" % len(body))]
        await send(start)
        await send({"type": "http.response.body", "body": body})
        return
    leaving = None if receive is None else asyncio.create_task(_left(receive))
    try:
        async with aclosing(rest):
            await send(start)
            await send({"type": "http.response.body", "body": body, "more_body": True})
            async for chunk in rest:
                if leaving is not None and leaving.done():
                    return
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    finally:
        if leaving is not None:
            leaving.cancel()


async def _left(receive: Receive) -> None:
    """Until the client has gone. Servers take what is sent to it then, and say nothing."""
    while (await receive())["type"] != "http.disconnect":
        pass
