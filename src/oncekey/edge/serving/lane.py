"""The short way through the server: a small request to a route with an upstream is answered without
ASGI between. uvicorn's protocol does what is left: whatever is not small, or not the edge's."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Any, NamedTuple

from oncekey.core.errors import InvalidInput
from oncekey.core.events import Seen
from oncekey.core.model import make
from oncekey.edge.app import Edge, EdgeApp, decided
from oncekey.edge.asked import Answer, Asked
from oncekey.edge.decide import Pass, Protect
from oncekey.edge.gate import DECIDE, gate
from oncekey.edge.policy import EdgeRoute
from oncekey.edge.proxy import Admitted, Proxy
from oncekey.edge.serving.passing import Cycle, Passing
from oncekey.edge.serving.repeats import Again, Repeat, learned
from oncekey.edge.serving.strict_http import NEVER
from oncekey.edge.serving.writing import Writing
from oncekey.edge.target import path_of
from oncekey.wire.problem import Response, problem, problem_of

# What is larger goes the long way, where it is read piece by piece.
LARGEST_BODY = 64 << 10
_MOST_PATHS = 4096
_DECIDE = DECIDE.encode()
_TELLING = frozenset({b"content-length", b"expect", b"host", b"transfer-encoding", b"upgrade"})
# Longer paths are not remembered: anybody can make them up.
_LONGEST_PATH = 256
_TOO_LATE = problem("request-timeout")


class Taken(NamedTuple):
    """A request that goes the short way. Without a route it asks for a decision."""

    edge: Edge
    route: EdgeRoute | None
    path: str
    raw_path: bytes
    query: bytes


class Last(NamedTuple):
    """What a connection asked for last."""

    taken: Taken
    repeat: Repeat


class EdgeProtocol(Writing):
    """Serves an app that has an `edge_app`; any other as uvicorn would."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._edge_app: EdgeApp | None = getattr(self.app, "edge_app", None)
        self._taken: Taken | None = None
        self._pieces: list[bytes] = []
        self._short = True
        self._running: Any = None
        self.due = NEVER
        self.stuck = NEVER
        self._rests = False
        self._data = b""
        self._last: Last | None = None
        self._unlike = 0

    # -- the connection ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self._edge_app is not None:
            self._await_head(self._edge_app)
            self._edge_app.watch.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._edge_app is not None:
            self._edge_app.watch.discard(self)
        running = self._running
        if running is not None and not running.response_complete:
            # Others may wait behind it, of which uvicorn tells only the last.
            running.disconnected = True
            running.message_event.set()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self) -> None:
        """From here on the connection is somebody else's."""
        if self._edge_app is not None:
            self._edge_app.watch.discard(self)
        super().handle_websocket_upgrade()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._edge_app is not None:
            self.stuck = self.loop.time() + self._edge_app.edge.body_timeout

    def resume_writing(self) -> None:
        super().resume_writing()
        self.stuck = NEVER

    def end_late(self) -> None:
        """A request did not come in time, or its answer was not read."""
        if self.stuck < self.loop.time():
            self.transport.abort()
            return
        self.due = NEVER
        if self._rests:
            self.transport.close()
        elif self._is_free or self._taken is not None:
            self.write(_TOO_LATE, None, Cycle(keep_alive=False))
        else:
            # One before it is still being answered.
            self.cycle.keep_alive = False

    def refuse(self, answer: Response) -> None:
        cycle: Any = self.cycle
        if self.begun and not self._is_free:
            # What was asked before is answered; then the connection ends.
            cycle.keep_alive = False
            self.flow.pause_reading()
            return
        answers = self.begun or cycle is None
        if cycle is not None:
            answers = answers or not (self._is_free or cycle.response_started or self.pipeline)
            # Nothing of it is handed on any more, not even what was good.
            cycle.disconnected = True
        if answers:
            self.write(answer, None, Cycle(keep_alive=False))
        else:
            self.transport.close()

    @property
    def _is_free(self) -> bool:
        """Whether nothing is being answered."""
        cycle: Any = self.cycle
        return cycle is None or bool(cycle.response_complete)

    def _await_head(self, app: EdgeApp) -> None:
        self._rests = False
        self.due = self.loop.time() + app.edge.head_timeout

    # -- what comes ----------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        last = self._last
        if last is not None and self.between and self._is_free and not self.pipeline:
            again = last.repeat.read(data)
            if again is not None and self._takes(last.taken, again.body):
                self._repeat(last, again)
                return
        self._data = data if self.between else b""
        super().data_received(data)
        self._data = b""

    def _takes(self, taken: Taken, body: bytes) -> bool:
        """Whether the short way is still the way for it."""
        return (
            self._edge_app is not None
            and taken.edge is self._edge_app.edge
            and len(body) <= LARGEST_BODY
            and not self.flow.write_paused
            and not self.transport.is_closing()
        )

    def _repeat(self, last: Last, again: Again) -> None:
        """A request that says what the last one said, read as such."""
        if self.timeout_keep_alive_task is not None:
            self._unset_keepalive_if_required()
        self.due = NEVER
        self._rests = False
        self.cycle = self._running = cycle = Cycle(True)  # type: ignore[assignment]
        self._answer(last.taken, last.repeat.asked(again.values), again.body, cycle)

    def _learn(self, taken: Taken, asked: Asked, body: bytes) -> None:
        """So that the next one like it is read faster. Who never repeats is looked at ever less."""
        self._unlike += 1
        if self._unlike & (self._unlike - 1):
            return
        credential = taken.edge.proxy.identities.credential(asked.headers, asked.peer)
        repeat = learned(self._data, asked, body, credential) if credential else None
        self._last = None if repeat is None else make(Last, (taken, repeat))

    # -- what the parser tells -----------------------------------------------------------

    def on_message_begin(self) -> None:
        self.begin_head()
        self.url = b""
        self.headers = []
        self.expect_100_continue = False
        self._taken = None
        if self._edge_app is not None:
            self._short = True
            self._await_head(self._edge_app)
        else:
            self._short = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.begun:
            # A trailer, which says nothing of who asks for what.
            return
        name = name.lower()
        self.headers.append((name, value))
        if name in _TELLING:
            self.look_at(name, value)

    def look_at(self, name: bytes, value: bytes) -> None:
        if name == b"content-length":
            if len(value) > 5 or int(value) > LARGEST_BODY:
                self._short = False
            return
        super().look_at(name, value)
        if name != b"host":
            self._short = False
            if name == b"expect":
                self.expect_100_continue = value.lower() == b"100-continue"

    def on_headers_complete(self) -> None:
        if not self.is_request():
            return
        # Where answers pile up unread, the long way waits until they are taken.
        if self._short and self._is_free and not self.flow.write_paused:
            assert self._edge_app is not None
            taken = self._taken = self._take(self._edge_app.edge)
            if taken is not None:
                self.due += taken.edge.body_timeout
                self._pieces = []
                parser = self.parser
                modern = parser.get_http_version() != "1.0"
                cycle = Cycle(modern and parser.should_keep_alive(), knows_chunks=modern)
                self.cycle = self._running = cycle  # type: ignore[assignment]
                return
        self.due = NEVER
        self._go_long()

    def on_body(self, body: bytes) -> None:
        if self._taken is None:
            super().on_body(body)
        else:
            self._pieces.append(body)

    def on_message_complete(self) -> None:
        self.between = True
        taken = self._taken
        if taken is None:
            if not self.is_plain:
                super().on_message_complete()
            return
        self.due = NEVER
        pieces = self._pieces
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        client = self.client
        asked = make(
            Asked,
            (
                self.parser.get_method().decode("ascii"),
                taken.path,
                taken.raw_path,
                taken.query,
                self.headers,
                client[0] if client else "",
                self.scheme,
                None,
            ),
        )
        if self.cycle.keep_alive and self._data:
            self._learn(taken, asked, body)
        self._answer(taken, asked, body, self.cycle)

    # -- which way -----------------------------------------------------------------------

    def _take(self, edge: Edge) -> Taken | None:
        raw_path, _, query = self.url.partition(b"?")
        if raw_path == _DECIDE and edge.decides:
            return make(Taken, (edge, None, DECIDE, raw_path, query))
        if query and path_of(self.url) is None:
            return None
        method = self.parser.get_method()
        found = edge.paths.get((method, raw_path))
        if found is None:
            if self.parser.should_upgrade():
                return None
            path = path_of(raw_path)
            route = None if path is None else edge.table.find(method.decode("ascii"), path)
            if path is None or route is None or not route.short or edge.withholds(path):
                return None
            if len(edge.paths) >= _MOST_PATHS:
                edge.paths.clear()
            found = (route, path)
            if len(raw_path) <= _LONGEST_PATH:
                edge.paths[method, raw_path] = found
        route, path = found
        return make(Taken, (edge, route, path, raw_path, query))

    def _go_long(self) -> None:
        """As if the protocol had been uvicorn's own from the first line of this request."""
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = url, expects
        self.headers.extend(headers)
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    # -- the answer ----------------------------------------------------------------------

    def _answer(self, taken: Taken, asked: Asked, body: bytes, cycle: Any) -> None:
        """At once where nothing has to be waited for."""
        edge, route = taken.edge, taken.route
        proxy = edge.proxy
        began = 0.0 if proxy.watch is None else perf_counter()
        identities = proxy.identities
        known = (
            identities.recall(asked.headers, asked.peer)
            if asked.again is None
            else identities.recall_by(asked.again[0].credential)
        )
        if known is None:
            if route is not None:
                cycle.seen = proxy.see(asked, route, began)
            self.begin(self._identified(taken, asked, body, cycle.seen), asked, cycle)
            return
        if route is None:
            self.write(gate(edge.table, known, asked, proxy.observe), asked, cycle)
            return
        admitted = proxy.admit_known(asked, route, known)
        if isinstance(admitted, Response):
            cycle.seen = proxy.see_refused(asked, route, known, began)
            self.write(admitted, asked, cycle)
            return
        verdict = admitted.verdict
        watch = proxy.watch
        if watch is not None and watch.tracing is not None:
            admitted = proxy.see_admitted(asked, admitted, began)
            cycle.seen = admitted.seen
        if isinstance(verdict, Protect):
            response = proxy.replay(asked, admitted, body, began)
            if response is not None:
                self.write(response, asked, cycle)
                return
        if watch is not None and cycle.seen is None:
            admitted = proxy.see_admitted(asked, admitted, began)
            cycle.seen = admitted.seen
        if isinstance(verdict, Pass):
            self._pass(proxy, asked, admitted, body, cycle)
        else:
            self.begin(proxy.protect(asked, admitted, verdict, body), asked, cycle)

    def _pass(
        self, proxy: Proxy, asked: Asked, admitted: Admitted, body: bytes, cycle: Any
    ) -> None:
        try:
            proxy.pass_on(asked, admitted, body, Passing(self, proxy, admitted.route, asked, cycle))
        except InvalidInput as error:
            self.write(problem_of(error), asked, cycle)

    async def _identified(
        self, taken: Taken, asked: Asked, body: bytes, seen: Seen | None
    ) -> Answer | Response:
        edge, route = taken.edge, taken.route
        if route is None:
            return await decided(edge, asked)
        admitted = await edge.proxy.admit(asked, route, seen)
        if isinstance(admitted, Admitted):
            return await edge.proxy.forward(asked, admitted, body)
        return admitted

    def on_response_complete(self) -> None:
        """As uvicorn does, but for its timer: `watch` ends connections that rest for too long."""
        if self._edge_app is None or self.pipeline:
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            if self.flow.read_paused:
                self.flow.resume_reading()
            self._rests = True
            self.due = self.loop.time() + self.timeout_keep_alive
