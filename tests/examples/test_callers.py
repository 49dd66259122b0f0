"""The examples of those who call, as their READMEs tell them."""

import json

from tests.fixtures.followed import Follow


def test_client(example: Follow) -> None:
    _, _, first, again, killed, left, seen = example("client").follow()

    assert first.output.splitlines() == [
        "buy:tea: status 504, once more",
        "buy:tea: {'order': 1}, sent, replayed: True",
    ]
    assert again.output.strip() == "buy:tea: {'order': 1}, remembered, replayed: True"
    assert killed.code == 137
    assert "buy:cake: {'order': 2}, sent, replayed: False" in killed.output
    assert left.output.strip().endswith("buy:pie: left over, now {'order': 3}")
    assert json.loads(seen.output) == ["tea", "cake", "pie"]


def test_outbound(example: Follow) -> None:
    _, _, killed, again, other, seen = example("outbound").follow()

    assert killed.code == 137
    assert again.output.strip() == "{'order': 1, 'shipping': 2}"
    assert other.output.strip() == "{'order': 3, 'shipping': 4}"
    assert json.loads(seen.output) == [
        {"order": 42},
        {"shipping": 42},
        {"order": 43},
        {"shipping": 43},
    ]
