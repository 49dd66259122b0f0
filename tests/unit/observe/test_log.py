"""One line stays one line, whatever a caller put into it; a trace is one field."""

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Queue

import pytest

from oncekey.core.events import Seen
from oncekey.observe.log import Format, _Putting, write_log
from oncekey.observe.requests import RequestLog

HOSTILE = 'k"\n2026-01-01 info    forged  a=b\r\x1b[2J\u2028\\'


@contextmanager
def written(form: Format, level: str = "info") -> Iterator[io.StringIO]:
    stream = io.StringIO()
    writing = write_log(form, level, stream)
    try:
        yield stream
    finally:
        writing.close()


def seen() -> Seen:
    found = Seen("POST /orders", 0.0)
    found.namespace, found.key = "t-acme:shop:user:alice", f"t-acme:shop:user:alice:{HOSTILE}"
    found.case, found.source, found.policy, found.operation = "A", "header", "REQUIRED_A", 17
    return found


def test_a_request_is_one_object_with_every_field() -> None:
    with written("json") as stream:
        RequestLog("all").write(seen(), 201, 0.0123)
    (line,) = stream.getvalue().splitlines()
    told = json.loads(line)
    assert told.pop("timestamp").endswith("Z")
    assert told == {
        "level": "info",
        "logger": "oncekey.request",
        "event": "request",
        "endpoint": "POST /orders",
        "status": 201,
        "way": "new",
        "duration_ms": 12.3,
        "tenant": "acme",
        "project": "shop",
        "idempotency_case": "A",
        "idempotency_key_namespaced": f"t-acme:shop:user:alice:{HOSTILE}",
        "idempotency_source": "header",
        "idempotency_policy": "REQUIRED_A",
        "operation_id": "op_0000000000000011",
        "cache_hit": False,
    }


@pytest.mark.parametrize("form", ["text", "json"])
def test_nothing_a_caller_sends_ends_a_line(form: Format) -> None:
    with written(form) as stream:
        RequestLog("all").write(seen(), 201, 0.001)
        logging.getLogger("oncekey").warning("from %s", HOSTILE)
    text = stream.getvalue()
    assert len(text.splitlines()) == 2
    assert "\x1b" not in text
    assert "\r" not in text


def test_a_value_ends_with_its_quote() -> None:
    with written("text") as stream:
        logging.getLogger("oncekey").warning("from", extra={"key": "a b\\", "other": 1})
    assert stream.getvalue().endswith('from  key="a b\\\\" other=1\n')


def test_lines_that_were_lost_are_nobody_elses() -> None:
    waiting: Queue[logging.LogRecord] = Queue(1)
    putting = _Putting(waiting)
    logger = logging.getLogger("oncekey.request")
    for number in range(3):
        putting.emit(logger.makeRecord("x", 20, "", 0, f"{number}", (), None, extra={"way": "a"}))
    waiting.get_nowait()
    putting.emit(logger.makeRecord("x", 20, "", 0, "3", (), None, extra={"way": "a"}))
    told = waiting.get_nowait()
    assert told.getMessage() == "2 lines were not written: nobody took them"
    assert (told.levelname, hasattr(told, "way")) == ("WARNING", False)


def test_a_trace_is_one_field_or_stands_below_its_line() -> None:
    def fail() -> None:
        try:
            int(HOSTILE)
        except ValueError:
            logging.getLogger("oncekey").exception("it broke")

    with written("json") as stream:
        fail()
    (line,) = stream.getvalue().splitlines()
    assert "ValueError" in json.loads(line)["exception"]
    with written("text") as stream:
        fail()
    first, *rest = stream.getvalue().splitlines()
    assert first.endswith("error   it broke")
    assert rest
    assert all(each.startswith("    ") for each in rest)


def test_only_trouble_is_told_unless_all_is_asked_for() -> None:
    lines = RequestLog("trouble")
    with written("json") as stream:
        for way in ("new", "replay", "passed", "refused", "failed", "conflict", "mismatch"):
            one = seen()
            one.way = way  # type: ignore[assignment]
            lines.write(one, 400, 0.001)
    told = [json.loads(each) for each in stream.getvalue().splitlines()]
    assert [each["way"] for each in told] == ["refused", "failed", "conflict", "mismatch"]
    assert [each["level"] for each in told] == ["warning", "error", "warning", "warning"]


def test_a_flood_of_refusals_is_bounded() -> None:
    lines = RequestLog("trouble")
    with written("json") as stream:
        for _ in range(1000):
            one = seen()
            one.way = "refused"
            lines.write(one, 401, 0.001)
    assert len(stream.getvalue().splitlines()) == 120


def test_less_than_the_level_is_left_out() -> None:
    with written("json", "error") as stream:
        logging.getLogger("oncekey").warning("quiet")
        logging.getLogger("oncekey").error("loud")
    assert [json.loads(each)["event"] for each in stream.getvalue().splitlines()] == ["loud"]


def test_what_was_there_before_is_put_back() -> None:
    logger = logging.getLogger("oncekey")
    before = (logger.handlers, logger.propagate, logger.level)
    with written("json"):
        assert logger.propagate is False
    assert (logger.handlers, logger.propagate, logger.level) == before
