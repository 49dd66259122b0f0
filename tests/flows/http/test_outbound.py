"""The calls that a handler makes carry keys of the operation, in every framework."""

import uuid

from tests.fixtures.http.site import Case


def test_every_run_of_an_operation_sends_the_same_keys(case: Case) -> None:
    assert case.send("/plain/call").status_code == 500
    assert case.send("/plain/call").json() == {"run": 2}

    first, second = case.site.service.sent[case.name]
    assert first == second
    *posted, got = first
    assert got is None
    assert len(set(posted)) == 3
    assert all(key is not None and uuid.UUID(key) for key in posted)


def test_another_key_another_caller_or_another_request_is_another_operation(case: Case) -> None:
    for key, headers, path in (
        ("one", {"Authorization": "Bearer anna"}, "/plain/call"),
        ("two", {"Authorization": "Bearer anna"}, "/plain/call"),
        ("one", {"Authorization": "Bearer bert"}, "/plain/call"),
        ("one", {"Authorization": "Bearer anna"}, "/required/call"),
    ):
        case.send(path, key=f"{case.key}.{key}", headers=headers)
    sent = [tuple(keys) for keys in case.site.service.sent[case.name]]
    assert len(sent) == len(set(sent)) == 4
    assert len({key for keys in sent for key in keys}) == 4 * 3 + 1


def test_without_a_key_there_is_nothing_to_derive_from(case: Case) -> None:
    case.send("/plain/call", key=None)
    assert case.site.service.sent[case.name] == [[None] * 4]
