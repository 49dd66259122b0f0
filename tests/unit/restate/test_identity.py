"""With the public key of its cluster, an endpoint does nothing that the cluster did not sign."""

import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from joserfc.jwk import OKPKey

from oncekey.core.clock import SystemClock
from oncekey.stores.restate.endpoint import Endpoint
from oncekey.stores.restate.forward import Forwards
from oncekey.stores.restate.objects import is_brief
from oncekey.stores.restate.place import RestatePlace
from oncekey.stores.restate.shared import shared_objects
from tests.fixtures.tokens import signed

pytestmark = pytest.mark.anyio

LETTERS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
DISCOVERY = {"accept": "application/vnd.restate.endpointmanifest.v4+json"}


class Cluster:
    """Signs its calls as Restate does."""

    def __init__(self) -> None:
        self._key = Ed25519PrivateKey.generate()
        self.public = f"publickeyv1_{base58(self._key.public_key().public_bytes_raw())}"

    def lines(self, path: str, **claims: Any) -> dict[str, str]:
        now = int(time.time())
        facts = {"aud": path, "exp": now + 60, "iat": now, "nbf": now - 60, **claims}
        header = {"alg": "EdDSA", "typ": "JWT", "kid": self.public}
        token = signed(OKPKey.import_key(self._key), facts, header, algorithm="EdDSA")
        return {"x-restate-signature-scheme": "v1", "x-restate-jwt-v1": token}


def base58(raw: bytes) -> str:
    number, text = int.from_bytes(raw, "big"), ""
    while number:
        number, digit = divmod(number, len(LETTERS))
        text = LETTERS[digit] + text
    return LETTERS[0] * (len(raw) - len(raw.lstrip(b"\0"))) + text


CLUSTER = Cluster()
OBJECTS = shared_objects(Forwards("default", SystemClock()))
HANDLERS = [
    (f"/invoke/{each.name}/{name}", is_brief(handler))
    for each in OBJECTS
    for name, handler in each.handlers.items()
]


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    nowhere = ("http://127.0.0.1:1",)
    place = RestatePlace(nowhere, nowhere, "http://127.0.0.1:0", identity=CLUSTER.public)
    there: Any = None
    endpoint = Endpoint(place, there, OBJECTS)
    async with httpx.AsyncClient(base_url=endpoint.try_out(), trust_env=False) as made:
        yield made
    await endpoint.close()


def test_there_are_handlers_of_both_kinds() -> None:
    """The brief ones are answered by OnceKey, the others by Restate's SDK."""
    assert {brief for _, brief in HANDLERS} == {True, False}


def not_signed(path: str) -> list[dict[str, str]]:
    return [
        {},
        {"x-restate-signature-scheme": "unsigned"},
        {"x-restate-signature-scheme": "v1"},
        Cluster().lines(path),
        CLUSTER.lines(path, exp=int(time.time()) - 600),
    ]


async def test_what_is_not_signed_is_not_done(client: httpx.AsyncClient) -> None:
    for path, _ in HANDLERS:
        for lines in not_signed(path):
            answer = await client.post(path, headers=lines, content=b"{}")
            assert answer.status_code == 401, path


async def test_nor_is_told_what_there_is(client: httpx.AsyncClient) -> None:
    assert (await client.get("/discover", headers=DISCOVERY)).status_code == 401


async def test_what_is_signed_is_answered(client: httpx.AsyncClient) -> None:
    """What the others are measured by."""
    lines = DISCOVERY | CLUSTER.lines("/discover")
    answer = await client.get("/discover", headers=lines)
    assert answer.status_code == 200
    assert {each["name"] for each in answer.json()["services"]} == {each.name for each in OBJECTS}
    brief = next(path for path, brief in HANDLERS if brief)
    # Not what it says is wrong with it, but that it was listened to.
    assert (await client.post(brief, headers=CLUSTER.lines(brief))).status_code != 401
