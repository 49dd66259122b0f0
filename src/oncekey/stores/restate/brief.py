"""Calls of handlers that wait for nothing of Restate's but the state of their object: all they do
goes back in one piece, with their answer. The SDK's own way, made for whatever a handler may do,
takes twice as long.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple

from restate._internal import PyFailure, PySuspended, PyUnresolvedFuture, PyVM, PyVoid, VMException
from restate.exceptions import TerminalError

log = logging.getLogger("oncekey")

Lines = list[tuple[str, str]]
Function = Callable[[Any, bytes], Awaitable[bytes]]

# Of the protocol between Restate and its services: what opens and ends a call, what a handler does,
# and which of that looks at the state.
_START, _END = 0x0000, 0x0003
_OUTPUT = 0x0401
_COMMANDS = range(0x0400, 0x0800)
_LOOKS = {0x0402, 0x0406, 0x0407, 0x0408}
_HEAD = 8
_STATE, _PARTIAL, _RETRIES = 4, 5, 7
_VARINT, _LONG, _BYTES = 0, 1, 2


class _Suspended(BaseException):
    """No error, and nobody's to catch: Restate calls again, with what was asked for."""


class BriefContext:
    """What a brief handler may do. The first act of an object's is to look at its state."""

    def __init__(self, vm: Any, invocation: Any, *, is_bare: bool, is_retried: bool) -> None:
        self._vm = vm
        self._invocation = invocation
        self._is_bare = is_bare
        self.is_retried = is_retried
        """Whether Restate knows of an attempt before this one; it forgets that when it crashes."""

    @property
    def invocation_id(self) -> str:
        id_: str = self._invocation.invocation_id
        return id_

    @property
    def is_replaying(self) -> bool:
        """Whether an attempt before this one got further than here."""
        replaying: bool = self._vm.is_replaying()
        return replaying

    def key(self) -> str:
        key: str = self._invocation.key
        return key

    async def get(self, name: str, serde: Any = None) -> bytes | None:
        if self._is_bare:
            # To look there as well would be one more thing for Restate to write down.
            return None
        handle = self._vm.sys_get_state(name)
        # It is told also that the call is cancelled, which is too late: what is looked for is not
        # there by that.
        while not self._vm.is_completed(handle):
            progress = self._vm.do_progress(PyUnresolvedFuture.single(handle))
            if isinstance(progress, PySuspended):
                raise _Suspended
        found = self._vm.take_notification(handle)
        return None if isinstance(found, PyVoid) else found

    def set(self, name: str, value: bytes, serde: Any = None) -> None:
        self._is_bare = False
        self._vm.sys_set_state(name, value)

    def clear(self, name: str) -> None:
        self._is_bare = False
        self._vm.sys_clear_state(name)

    def send(self, service: str, handler: str, body: bytes, delay: float) -> None:
        """Have a service called in so many seconds."""
        self._vm.sys_send(service, handler, body, None, int(delay * 1000), None, None)


async def answer_briefly(function: Function, lines: Lines, receive: Any, send: Any) -> None:
    """One call, as ASGI. What is received is whole before it begins: Restate waits for the answer
    on HTTP/1.1."""
    body = await _whole(receive)
    if body is None:
        return
    # Values need not be those of an attempt before, see `endpoint`.
    vm = PyVM(lines, True, False)
    vm.notify_input(body)
    vm.notify_input_closed()
    if _is_answered(body):
        # That counts, whatever would be answered now: a record may be over since, or this process
        # may know a route that another one did not.
        output = _END.to_bytes(2) + bytes(_HEAD - 2)
    else:
        await _perform(vm, function, is_bare=_is_bare(body), is_retried=_is_retried(body))
        output = b"".join(_taken(vm))
    head = vm.get_response_head()
    headers = [(name.encode(), value.encode()) for name, value in head.headers]
    headers.append((b"content-length", b"%d" % len(output)))
    await send({"type": "http.response.start", "status": head.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": output})


async def _whole(receive: Any) -> bytes | None:
    """None: nobody waits any more."""
    pieces = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(pieces)


def _taken(vm: Any) -> Iterator[bytes]:
    while piece := vm.take_output():
        yield bytes(piece)


async def _perform(vm: Any, function: Function, **known: bool) -> None:
    """What the handler does and answers is left with `vm`."""
    try:
        invocation = vm.sys_input()
        context = BriefContext(vm, invocation, **known)
        vm.sys_write_output_success(await function(context, bytes(invocation.input)))
        vm.sys_end()
    except TerminalError as error:
        vm.sys_write_output_failure(PyFailure(error.status_code, error.message))
        vm.sys_end()
    except _Suspended:
        pass
    except VMException:
        log.exception("a call from Restate does not go on as it began")
    except Exception as error:  # noqa: BLE001 - told to Restate
        # Then Restate calls again.
        log.warning("a call from Restate was left: %s", error)
        vm.notify_error(repr(error), "".join(traceback.format_exception(error)))


# -- what Restate sends ------------------------------------------------------------------------


class _Message(NamedTuple):
    kind: int
    start: int
    end: int


def _is_bare(body: bytes) -> bool:
    """Whether the object had no state when the call was begun: in an attempt that goes on from
    another, the first look at the state would be the first thing that was done. What Restate was
    told meanwhile, such as to cancel the call, may stand anywhere."""
    messages = _messages(body)
    start = next(messages, None)
    if start is None or start.kind != _START:
        return False
    next(messages, None)
    done = (each.kind for each in messages if each.kind in _COMMANDS)
    if (first := next(done, None)) is not None:
        return first not in _LOOKS
    # There is some, or may be more than was sent along.
    return _fields(body, start).keys().isdisjoint({_STATE, _PARTIAL})


def _is_retried(body: bytes) -> bool:
    start = next(_messages(body), None)
    if start is None or start.kind != _START:
        return False
    return _fields(body, start).get(_RETRIES, 0) > 0


def _is_answered(body: bytes) -> bool:
    """Whether an attempt before was cut off when there was nothing left to do."""
    return any(each.kind == _OUTPUT for each in _messages(body))


def _messages(body: bytes) -> Iterator[_Message]:
    place = 0
    while place + _HEAD <= len(body):
        kind = int.from_bytes(body[place : place + 2])
        end = place + _HEAD + int.from_bytes(body[place + 4 : place + _HEAD])
        yield _Message(kind, place + _HEAD, end)
        place = end


def _fields(body: bytes, start: _Message) -> dict[int, int]:
    """Which of them there are, and what numbers they say."""
    found, place = {}, start.start
    while place < start.end:
        tag, place = _number(body, place)
        field, form = tag >> 3, tag & 7
        found[field] = 0
        if form == _VARINT:
            found[field], place = _number(body, place)
        elif form == _BYTES:
            length, place = _number(body, place)
            place += length
        else:
            place += 8 if form == _LONG else 4
    return found


def _number(body: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = body[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
