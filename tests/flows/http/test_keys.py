"""Keys as clients send them, well and badly."""

import pytest

from tests.fixtures.http.site import Case, assert_problem, assert_replay


def refused(case: Case, *lines: bytes) -> None:
    """The request does not run, whether server or ledger refuses it, and the service goes on."""
    answer = case.site.speak(case.raw("/plain/order", *lines))

    assert answer is None or answer.status in {400, 431}
    assert case.runs == 0
    assert case.send("/plain/order", key=None).status_code == 201


def test_a_quoted_key_and_a_plain_one_are_the_same(case: Case) -> None:
    first = case.send("/plain/order", key=case.key)
    assert_replay(case.send("/plain/order", key=f'"{case.key}"'), first)
    spaced = f"Idempotency-Key:   {case.key} \t ".encode()
    answer = case.site.speak(case.raw("/plain/order", spaced, body=b'{"amount": 1}'))
    assert answer is not None
    assert answer.headers["Idempotent-Replayed"] == "true"
    assert case.runs == 1


def test_two_key_lines_are_refused(case: Case) -> None:
    line = f"Idempotency-Key: {case.key}".encode()
    refused(case, line, line)


def test_two_keys_in_one_line_are_refused(case: Case) -> None:
    answer = case.send("/plain/order", key=f"{case.key}, {case.key}")

    assert_problem(answer, 400, "idempotency-key-invalid")
    assert case.runs == 0


@pytest.mark.parametrize(
    "key, rule",
    [
        ("", "empty"),
        ('""', "empty"),
        ("x" * 256, "longer"),
        ("t-default:x", "prefix"),
        ("a/b", "'/'"),
        ('"open', "quote"),
        ('"k";p=1', "parameters"),
    ],
)
def test_a_malformed_key_is_told_its_rule(case: Case, key: str, rule: str) -> None:
    problem = assert_problem(case.send("/plain/order", key=key), 400, "idempotency-key-invalid")

    assert rule in problem["detail"]
    assert case.runs == 0


@pytest.mark.parametrize(
    "value",
    [
        "clé".encode(),
        "clé".encode("latin-1"),
        b"a\x00b",
        b"a\x01b",
        b"a\x7fb",
        b"a\tb",
        b"\xff\xfe",
    ],
    ids=["utf-8", "latin-1", "nul", "control", "delete", "tab", "no-text"],
)
def test_a_key_of_other_bytes_is_refused(case: Case, value: bytes) -> None:
    refused(case, b"Idempotency-Key: " + value)


def test_a_key_of_ten_megabytes_is_refused(case: Case) -> None:
    refused(case, b"Idempotency-Key: " + b"k" * (10 << 20))


def test_the_longest_key_is_taken(case: Case) -> None:
    key = case.key.ljust(255, "~")
    first = case.send("/plain/order", key=key)
    assert_replay(case.send("/plain/order", key=key), first)


def test_callers_with_other_credentials_have_keys_of_their_own(case: Case) -> None:
    alice = case.send("/plain/order", headers={"Authorization": "Bearer alice"})
    bob = case.send("/plain/order", headers={"Authorization": "Bearer bob"})
    nobody = case.send("/plain/order")

    assert [each.json()["run"] for each in (alice, bob, nobody)] == [1, 2, 3]
    assert_replay(case.send("/plain/order", headers={"Authorization": "Bearer alice"}), alice)


def test_two_paths_of_one_pattern_share_a_key_and_never_an_answer(case: Case) -> None:
    assert case.send("/plain/order").status_code == 201
    assert_problem(case.send("/plain/echo"), 422, "idempotency-key-reused")


def test_two_patterns_have_keys_of_their_own(case: Case) -> None:
    assert case.send("/plain/order").json()["run"] == 1
    assert case.send("/drop/order").json()["run"] == 2
    assert case.send("/plain/order", "PUT").json()["run"] == 3


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_safe_methods_are_left_alone(case: Case, method: str) -> None:
    answers = [case.send("/plain/order", method, content=b"") for _ in range(2)]

    assert [each.status_code for each in answers] == [201, 201]
    assert "x-operation-id" not in answers[0].headers
    assert case.runs == 2
