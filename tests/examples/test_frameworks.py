"""The examples of the frameworks, as their READMEs tell them."""

import json

from tests.fixtures.console import Ran
from tests.fixtures.followed import Follow


def is_replay_of(first: Ran, again: Ran) -> bool:
    replayed = again.answer.headers.get("idempotent-replayed") == "true"
    return replayed and (again.answer.status, again.answer.body) == (201, first.answer.body)


def test_fastapi(example: Follow) -> None:
    _, _, first, again, other, none, seen = example("fastapi").follow()

    assert first.answer.status == 201
    assert is_replay_of(first, again)
    assert (other.answer.status, none.answer.status) == (422, 400)
    assert json.loads(seen.output) == ["tea"]


def test_asgi(example: Follow) -> None:
    _, _, at_once, later, seen = example("asgi").follow()

    assert at_once.output == '{"order":1}' * 3
    assert later.answer.body == '{"order":1}'
    assert later.answer.headers["idempotent-replayed"] == "true"
    assert json.loads(seen.output) == ["tea"]


def test_flask(example: Follow) -> None:
    _, _, first, again, unnamed, paid, paid_again, seen = example("flask").follow()

    assert is_replay_of(first, again)
    assert unnamed.answer.status == 400
    assert paid_again.answer.body == paid.answer.body
    assert paid_again.answer.headers["idempotent-replayed"] == "true"
    assert json.loads(seen.output) == ["tea"]


def test_wsgi(example: Follow) -> None:
    _, _, tea, cake, seen = example("wsgi").follow()

    assert len(tea.output.splitlines()) == len(cake.output.splitlines()) == 6
    assert len(set(tea.output.splitlines())) == 1
    assert seen.output.split() == ["tea", *["cake"] * 6]


def test_django(example: Follow) -> None:
    _, migrated, _, first, again, failed, seen, dry = example("django").follow()

    assert (migrated.code, dry.code) == (0, 0)
    assert is_replay_of(first, again)
    assert failed.answer.status == 500
    assert json.loads(seen.output) == ["tea"]
