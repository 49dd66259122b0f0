"""A client is killed at every point and started again: each intent has one effect on the server."""

import json
import random
from base64 import b64decode
from collections import Counter
from pathlib import Path

import pytest

from tests.fixtures.edge_site import EdgeSite, MakeSite, token
from tests.fixtures.processes import Process, Start
from tests.fixtures.shopper import POINTS, shop

ROUNDS = 25

both = pytest.mark.parametrize("kind", ["blocking", "async"])


def effects(edge: EdgeSite) -> Counter[str]:
    return Counter(json.loads(b64decode(each["body"]))["item"] for each in edge.behind.seen)


def words(process: Process) -> list[str]:
    """All that a process says until its end."""
    said = []
    try:
        while True:
            said.append(process.hear()[0])
    except EOFError:
        return said


@both
def test_killed_at_every_point(
    kind: str, edge_site: MakeSite, start: Start, tmp_path: Path
) -> None:
    edge = edge_site()
    for point in POINTS:
        orders = [f"{point}-1", f"{point}-2"]
        file = str(tmp_path / f"{point}.db")
        doomed = start(shop, kind, edge.url, file, token(), orders, point)
        words(doomed)
        assert doomed.join() == -9, f"the client never came to {point}"
        sent = effects(edge)[orders[0]]
        if point in POINTS[POINTS.index("answered") :]:
            assert sent == 1
        if point in POINTS[: POINTS.index("sent")]:
            assert sent == 0

        again = start(shop, kind, edge.url, file, token(), orders, "")
        assert words(again)[-1] == "done"
        assert again.join() == 0
    assert effects(edge) == {f"{point}-{n}": 1 for point in POINTS for n in (1, 2)}


@both
def test_killed_whenever_it_likes(
    kind: str, edge_site: MakeSite, start: Start, tmp_path: Path
) -> None:
    """Again and again, a moment after some word of its, until the list is done."""
    edge = edge_site()
    drawn = random.Random(kind)
    orders = [f"order-{number}" for number in range(30)]
    file = str(tmp_path / "intents.db")
    for _ in range(ROUNDS):
        process = start(shop, kind, edge.url, file, token(), orders, "")
        for _ in range(drawn.randrange(1, 25)):
            try:
                process.hear()
            except EOFError:
                break
        process.kill()
    last = start(shop, kind, edge.url, file, token(), orders, "")
    assert words(last)[-1] == "done"
    assert effects(edge) == dict.fromkeys(orders, 1)
