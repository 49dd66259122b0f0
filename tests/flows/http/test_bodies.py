"""Request bodies: what counts as the same request, and what reaches the handler."""

import hashlib
import io

import pytest

from tests.fixtures.http.site import Case, assert_problem, assert_replay

JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def test_json_in_another_order_is_the_same_request(case: Case) -> None:
    first = case.send("/plain/echo", content=b'{"a": 1, "b": [2, {"c": 3, "d": 4}]}', headers=JSON)
    second = case.send("/plain/echo", content=b'{"b":[2,{"d":4,"c":3}],"a":1.0}', headers=JSON)

    assert_replay(second, first)


def test_another_order_of_the_query_is_the_same_request(case: Case) -> None:
    first = case.send("/plain/echo?a=1&b=2")

    assert_replay(case.send("/plain/echo?b=2&a=1"), first)
    assert_problem(case.send("/plain/echo?a=1&b=3"), 422, "idempotency-key-reused")


@pytest.mark.parametrize(
    "body",
    [b'{"name": "\xff\xfe"}', b"[" * 100_000, b'{"a": 1', b"\x00\x01\x02", b"", b"NaN"],
    ids=["no-utf-8", "deep", "cut", "binary", "empty", "nan"],
)
def test_a_body_that_is_no_json_is_compared_by_its_bytes(case: Case, body: bytes) -> None:
    first = case.send("/plain/echo", content=body, headers=JSON)

    assert first.json()["sha256"] == hashlib.sha256(body).hexdigest()
    assert_replay(case.send("/plain/echo", content=body, headers=JSON), first)
    other = case.send("/plain/echo", content=body + b" x", headers=JSON)
    assert_problem(other, 422, "idempotency-key-reused")
    assert case.runs == 1


def test_a_form_is_compared_by_value(case: Case) -> None:
    first = case.send("/plain/echo", content=b"a=1&b=x+y", headers=FORM)

    assert_replay(case.send("/plain/echo", content=b"b=x%20y&a=1", headers=FORM), first)
    other = case.send("/plain/echo", content=b"a=2&b=x+y", headers=FORM)
    assert_problem(other, 422, "idempotency-key-reused")


def test_the_boundary_of_a_multipart_body_does_not_count(case: Case) -> None:
    def upload(content: bytes, boundary: str) -> bytes:
        lines = [
            f"--{boundary}".encode(),
            b'Content-Disposition: form-data; name="f"',
            b"",
            content,
        ]
        return b"\r\n".join(lines) + f"\r\n--{boundary}--\r\n".encode()

    def send(content: bytes, boundary: str) -> object:
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        return case.send("/plain/binary", content=upload(content, boundary), headers=headers)

    first = send(b"same", "one")
    assert_replay(send(b"same", "another"), first)  # type: ignore[arg-type]
    assert_problem(send(b"else", "one"), 422, "idempotency-key-reused")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "content_type",
    ["multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; ="],
)
def test_broken_multipart_is_compared_by_its_bytes(case: Case, content_type: str) -> None:
    headers = {"Content-Type": content_type}
    first = case.send("/plain/echo", content=b"--broken\r\n\r\n", headers=headers)

    assert first.status_code == 200
    assert_replay(case.send("/plain/echo", content=b"--broken\r\n\r\n", headers=headers), first)


def test_a_large_body_reaches_the_handler_whole(case: Case) -> None:
    body = bytes(range(256)) * (20 << 10)
    first = case.send("/plain/echo", content=body)

    assert first.json() == {
        "run": 1,
        "size": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
    }
    assert_replay(case.send("/plain/echo", content=body), first)
    other = case.send("/plain/echo", content=body[:-1] + b"!")
    assert_problem(other, 422, "idempotency-key-reused")


def test_a_chunked_body_reaches_the_handler_whole(case: Case) -> None:
    def chunks(body: bytes) -> object:
        return iter([body[:5], body[5:]])

    body = b"0123456789" * 1000
    first = case.send("/plain/echo", content=chunks(body))

    assert first.json()["sha256"] == hashlib.sha256(body).hexdigest()
    assert_replay(case.send("/plain/echo", content=io.BytesIO(body)), first)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large_does_not_run(case: Case, chunked: bool) -> None:
    body = b"x" * 2001
    answer = case.send("/small/echo", content=iter([body]) if chunked else body)

    assert_problem(answer, 413, "request-too-large")
    assert case.runs == 0
    assert case.send("/small/echo", content=b"x" * 2000).status_code == 200


def test_a_body_that_breaks_off_does_not_run(case: Case) -> None:
    request = case.raw("/plain/order", f"Idempotency-Key: {case.key}".encode(), body=b"x" * 100)
    with case.site.connect() as line:
        line.sendall(request[:-50])
        line.shutdown(1)
        line.recv(1 << 16)

    assert case.runs == 0


def test_only_the_bytes_count_in_mode_bytes(case: Case) -> None:
    case.send("/bytes/echo", content=b'{"a":1,"b":2}', headers=JSON)

    other = case.send("/bytes/echo", content=b'{"b":2,"a":1}', headers=JSON)
    assert_problem(other, 422, "idempotency-key-reused")


def test_only_the_named_fields_count_in_mode_fields(case: Case) -> None:
    order = {"amount": 1, "card": {"number": "4242", "name": "A"}, "note": "x"}
    first = case.send("/fields/echo", json=order)

    assert_replay(case.send("/fields/echo", json={**order, "note": "y"}), first)
    other = {**order, "card": {"number": "4243"}}
    assert_problem(case.send("/fields/echo", json=other), 422, "idempotency-key-reused")


def test_nothing_counts_in_mode_none(case: Case) -> None:
    first = case.send("/none/order", json={"amount": 1})
    assert_replay(case.send("/none/order", json={"amount": 2}), first)
