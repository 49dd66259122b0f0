"""The project under gunicorn, with processes and threads: duplicates race, processes die."""

import http.client
import json
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.db import connections

from oncekey import State
from oncekey.django.models import IdempotencyKey
from tests.django.project.models import Charge

ROOT = Path(__file__).parents[2]
CROWD = 200
FORK = """
import os, sys
import django
django.setup()
from django.db import connections
from django.test import Client

def send(key):
    answer = Client().post("/plain/", headers={"Idempotency-Key": key})
    return answer.headers.get("Idempotent-Replayed", "first")

assert send("before") == "first"
connections.close_all()
child = os.fork()
if child == 0:
    os._exit(0 if (send("before"), send("after")) == ("true", "first") else 1)
_, status = os.waitpid(child, 0)
assert status == 0
assert (send("before"), send("after")) == ("true", "true")
"""
pytestmark = pytest.mark.parametrize(
    "database", ["file", pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True
)


class Answer(NamedTuple):
    status: int
    replayed: bool
    body: bytes


def post(port: int, path: str, key: str) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
        connection.request("POST", path, b'{"amount": 1}', headers)
        response = connection.getresponse()
        return Answer(response.status, "Idempotent-Replayed" in response.headers, response.read())
    finally:
        connection.close()


def environment(database: str) -> dict[str, str]:
    """What leads another process to this test's database."""
    given = connections[database].settings_dict
    return os.environ | {
        "PROJECT_DATABASE": database,
        "PROJECT_SQLITE": str(given["NAME"]),
        "PROJECT_POSTGRES": "postgresql://{USER}@{HOST}:{PORT}/{NAME}".format(**given),
        "DJANGO_SETTINGS_MODULE": "tests.django.project.settings",
    }


@contextmanager
def gunicorn(database: str, workers: int, **environ: str) -> Iterator[int]:
    """The port of a server that serves the project from this test's database."""
    words = ["-w", str(workers), "-k", "gthread", "--threads", "16", "-b", "127.0.0.1:0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "gunicorn", *words, "tests.django.project.wsgi"],
        cwd=ROOT,
        env=environment(database) | environ,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        lines = iter(process.stderr.readline, "")
        yield next(int(found[1]) for line in lines if (found := re.search(r"at: \S+:(\d+)", line)))
    finally:
        process.terminate()
        process.communicate(timeout=30)


def crowd(size: int, send: Callable[[], Answer]) -> list[Answer]:
    """`size` requests at the same moment."""
    start = threading.Barrier(size)

    def one(_: int) -> Answer:
        start.wait()
        return send()

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(one, range(size)))


def test_of_many_duplicates_one_runs(database: str) -> None:
    with gunicorn(database, workers=2) as port:
        answers = {
            path: crowd(CROWD, lambda path=path: post(port, path, "k"))
            for path in ("/slow/", "/attached/", "/exactly-once/")
        }
        late = post(port, "/slow/", "k")

    for path, given in answers.items():
        statuses = Counter(answer.status for answer in given)
        assert set(statuses) <= {201, 409}, (path, statuses)
        assert len({answer.body for answer in given if answer.status == 201}) == 1
        assert sum(answer.status == 201 and not answer.replayed for answer in given) == 1
    assert {answer.status for answer in answers["/attached/"]} == {201}
    assert (late.status, late.replayed) == (201, True)
    assert Charge.objects.count() == 3
    assert [key.attempts for key in IdempotencyKey.objects.all()] == [1, 1, 1]


def test_a_process_killed_between_effect_and_commit_leaves_neither(
    database: str, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.touch()
    environ = {"PROJECT_VICTIM": str(victim), "PROJECT_LEASE": "1.5"}
    with gunicorn(database, workers=1, **environ) as port:
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            post(port, "/killed-once/", "k")
        charges = Charge.objects.count()
        claims = [(key.state, key.attempts) for key in IdempotencyKey.objects.all()]
        again = post(port, "/killed-once/", "k")

    assert (charges, claims) == (0, [(State.IN_PROGRESS, 1)])
    assert (again.status, again.replayed) == (201, False)
    made: Any = Charge.objects.get()
    assert json.loads(again.body)["charge"] == made.pk
    assert IdempotencyKey.objects.get().attempts == 2


def test_a_forked_process_has_a_ledger_of_its_own(database: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK], cwd=ROOT, env=environment(database), check=False, timeout=60
    )

    assert done.returncode == 0
    assert Charge.objects.count() == 2
