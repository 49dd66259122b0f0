"""A whole day of a server that tells all it can: debug, a line for every request, metrics, traces.
Every byte that it let out, and every file of its store, is searched for every secret of the day."""

import json
import re
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from oncekey.api.grpc import oncekey_pb2 as pb
from oncekey.api.grpc.oncekey_pb2_grpc import PromisesStub
from oncekey.console.table import PLACES
from tests.fixtures.behind import DO
from tests.fixtures.collected import Collector
from tests.fixtures.console_site import Visitor
from tests.fixtures.edge_site import SECRET
from tests.fixtures.hooks import Hook
from tests.fixtures.stronghold import Stronghold, bearer, head

CARD = "4000-0566-5566-5556"
PASSWORD = "Q29ycmVjdDpIb3JzZUJhdHRlcnlTdGFwbGU="
OF_SCHEDULES = "a secret that signs the calls of schedules"
SHOP = """
import oncekey

app = oncekey.App()


@app.workflow
async def order(ctx: oncekey.Context, number: int) -> object:
    return await ctx.promise("payment", key=f"charge:{number}")


@app.workflow
async def broken(ctx: oncekey.Context, given: object) -> None:
    raise ValueError("this order cannot be")
"""
MORE = """
[app]
workflows = "shop:app"

[server]
grpc_port = 0

[log]
format = "json"
level = "debug"
requests = "all"

[traces]
endpoint = "{collector}"

[[schedules]]
id = "call"
every = "1s"
url = "{behind}/scheduled"
secret_env = "SCHEDULE_SECRET"
"""


class Day:
    """`told` is all that anybody was told but for what is told once; `secrets` are those that exist
    when it is over."""

    def __init__(self, folder: Path, collector: Collector) -> None:
        (folder / "shop.py").write_text(SHOP)
        more = MORE.replace("{collector}", collector.url).replace("{behind}", "{url}")
        environ = {"SCHEDULE_SECRET": OF_SCHEDULES}
        self.fort = Stronghold(folder, more=more, environ=environ)
        self.collector = collector
        self.told: dict[str, bytes] = {}
        self.secrets = {
            "that issuer and edge share": SECRET,
            "of schedules": OF_SCHEDULES,
            "a password of a caller": PASSWORD,
            "a card in a request": CARD,
            "of an admin": self.fort.admin.removeprefix("oka_"),
        }

    def hear(self, name: str, answer: bytes | str) -> None:
        heard = answer.encode() if isinstance(answer, str) else answer
        self.told[name] = self.told.get(name, b"") + heard

    def found(self) -> list[tuple[str, str]]:
        """Which secret was told, and where."""
        return [
            (secret, place)
            for place, said in self.told.items()
            for secret, text in self.secrets.items()
            if text.encode() in said
        ]


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Day]:
    """When it is over, and the server has ended in good order."""
    collector = Collector()
    serving = threading.Thread(target=collector.serve_forever)
    serving.start()
    made = Day(tmp_path_factory.mktemp("day"), collector)
    try:
        callers(made)
        providers(made)
        work(made)
        visits(made)
        trouble(made)
        made.hear("metrics", made.fort.ask("GET", "/metrics", bearer=made.fort.admin).content)
        for page in ("audit", "keys", "apikeys", "webhooks", "events", "promises", "workflows"):
            answer = made.fort.ask("GET", f"/api/admin/{page}", bearer=made.fort.admin)
            made.hear("the API of admins", answer.content)
        made.hear("the command that started it", cmdline(made.fort.served.pid))
        made.hear("the log", made.fort.stop())
        made.hear("the banner", made.fort.served.banner)
        made.hear("traces", b"".join(collector.raw))
        for path in made.fort.folder.rglob("*"):
            if path.is_file() and path.name.startswith("oncekey.db"):
                made.hear("the store", path.read_bytes())
        yield made
    finally:
        made.fort.close()
        collector.shutdown()
        serving.join()
        collector.server_close()


def cmdline(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


# -- what happens --------------------------------------------------------------------------------


def callers(day: Day) -> None:
    """Good ones and bad ones, with tokens, API keys and passwords, and what they send."""
    fort, token = day.fort, bearer(sub="user:daily")
    key = fort.api_key(tenant="acme", project="shop")
    gone = fort.api_key(tenant="acme", project="shop")
    fort.manage("POST", f"apikeys/{gone['id']}/revoke")
    day.secrets |= {
        "a token": token,
        "the signature of a token": token.split(".")[2],
        "of an API key": key["secret"].removeprefix("ok_"),
        "of an API key that was revoked": gone["secret"].removeprefix("ok_"),
    }
    paid = {"content": json.dumps({"card": CARD}), "key": "paid"}
    for credentials in (token, key["secret"], gone["secret"], token + "x", "ok_" + "x" * 43):
        for _ in range(2):
            answer = fort.ask(bearer=credentials, **paid)
            day.hear("answers", answer.content + str(answer.headers).encode())
        answer = fort.ask("GET", "/api/v1/orders/by-idempotency-key/paid", bearer=credentials)
        day.hear("answers", answer.content)
    for line in (f"Authorization: Basic {PASSWORD}", f"X-API-Key: {PASSWORD}"):
        with fort.wire(head("/api/v1/orders", line, key="basic", credentials=None)) as wire:
            day.hear("answers", repr(wire.answer()))


def providers(day: Day) -> None:
    """They deliver, once more, wrongly, and after their secrets were changed."""
    fort = day.fort
    for name in ("stripe", "github", "standard"):
        hook = Hook(fort, name)
        day.secrets[f"of {name}"] = hook.secret.removeprefix("whsec_")
        good = hook.signed({"id": f"evt_{name}"})
        for delivery in (good, good, hook.signed({"id": "x"}, secret=hook.provider.new_secret())):
            day.hear("answers", repr(hook.send(delivery)))
        rotated = fort.manage("POST", f"webhooks/{hook.id}/rotate", overlap="1h")
        day.secrets[f"of {name}, changed"] = rotated["secret"].removeprefix("whsec_")
        day.hear("answers", repr(hook.send(hook.signed({"id": "y"}, secret=rotated["secret"]))))
    for line in (fort.folder / "oncekey-webhooks.key").read_text().splitlines():
        if line and not line.startswith("#"):
            day.secrets["that seals"] = line


def work(day: Day) -> None:
    """Promises with tokens, over HTTP and gRPC; workflows that wait and that break."""
    fort = day.fort
    secret = fort.api_key(tenant="acme", project="shop")["secret"]
    day.secrets["of an API key for work"] = secret.removeprefix("ok_")
    made = {}
    for name in ("one", "two"):
        answer = fort.ask(
            path="/api/tenants/acme/promises", bearer=secret, json={"name": name, "token": True}
        )
        made[name] = answer.json()["token"]
        day.secrets[f"the token of promise {name}"] = made[name].removeprefix("ct_")
    for token in (made["one"], made["one"], "ct_" + "x" * 43, made["one"] + "x"):
        body = {"token": token, "request_id": "r1", "result": 1}
        answer = fort.ask(path="/api/v1/promises/complete", bearer=secret, json=body)
        day.hear("answers", answer.content)
    found = re.search(r"gRPC\D*[\d.]+:(\d+)", fort.served.banner)
    assert found is not None, fort.served.banner
    with grpc.insecure_channel(f"127.0.0.1:{found[1]}") as channel:
        complete = PromisesStub(channel).Complete
        for token in (made["two"], made["two"], "ct_" + "y" * 43):
            for credentials in (secret, secret + "x"):
                metadata = (("authorization", f"Bearer {credentials}"),)
                request = pb.CompleteRequest(token=token, request_id="r2", result_json=b"1")
                try:
                    day.hear("answers", str(complete(request, metadata=metadata)))  # type: ignore[call-arg]
                except grpc.RpcError as error:
                    day.hear("answers", str(error))
    for name in ("order", "broken"):
        path = f"/api/tenants/acme/workflows/{name}/start"
        started = fort.ask(path=path, bearer=secret, key=f"start-{name}", json={"input": 1}).json()
        place = f"/api/tenants/acme/workflows/{started['id']}"
        day.hear("answers", fort.ask("GET", f"{place}?wait=1s", bearer=secret).content)
        day.hear("answers", fort.ask("GET", f"{place}/journal", bearer=secret).content)


def visits(day: Day) -> None:
    """An admin signs in, looks at everything, and leaves; somebody else tries to."""
    fort = day.fort
    stranger, visitor = Visitor(fort.url), Visitor(fort.url)
    day.hear("pages", stranger.sign_in(fort.admin + "x").content)
    assert visitor.sign_in(fort.admin).status_code == 303
    token = visitor.client.cookies["oncekey_console"]
    day.secrets["of a session"] = token
    for place in PLACES:
        if "{" not in place.path:
            day.hear("pages", visitor.client.get(f"/console{place.path}").content)
    for kind in ("keys", "webhooks", "apikeys"):
        listed = fort.manage("GET", kind)
        ids = [each.get("operation_id") or each["id"] for each in next(iter(listed.values()))]
        for each in ids[:5]:
            day.hear("pages", visitor.client.get(f"/console/{kind}/{each}").content)
    visitor.client.post("/console/sign-out", data={"proof": "wrong"})
    stranger.client.get("/console", headers={"Cookie": f"oncekey_console={token}x"})
    for each in (stranger, visitor):
        each.client.close()


def trouble(day: Day) -> None:
    """Services that break off, a row that was spoilt, and a store that is not what it was."""
    fort, token = day.fort, bearer(sub="user:daily")
    for number, do in enumerate(({"status": 500}, {"die": "after"})):
        line = (DO, json.dumps(do))
        answer = fort.ask(bearer=token, key=f"broken-{number}", lines=[line], content=CARD)
        day.hear("answers", answer.content)
        if "die" in do:
            fort.behind.join()
            day.hear("answers", fort.ask(bearer=token, key="away", content=CARD).content)
            fort.behind.start()
    spoilt = Hook(fort, "stripe")
    day.secrets["of a webhook that was spoilt"] = spoilt.secret.removeprefix("whsec_")
    database = sqlite3.connect(fort.folder / "oncekey.db", isolation_level=None)
    change = "UPDATE oncekey_webhooks SET secrets = ? WHERE id = ?"
    database.execute(change, ("no JSON at all", spoilt.id))
    answer = spoilt.send(spoilt.signed({"id": "evt_spoilt"}))
    assert answer.code == "internal-error"
    day.hear("answers", repr(answer))
    database.execute("ALTER TABLE oncekey_api_keys RENAME TO oncekey_aside")
    unknown = "ok_" + "z" * 43
    day.secrets["of an API key that nobody could look up"] = unknown
    day.hear("answers", fort.ask(bearer=unknown, key="lost").content)
    database.execute("ALTER TABLE oncekey_aside RENAME TO oncekey_api_keys")
    database.close()


# -- what nobody was told ------------------------------------------------------------------------


def test_no_byte_of_the_day_has_a_secret_in_it(day: Day) -> None:
    assert day.found() == []


def test_the_day_was_one(day: Day) -> None:
    """What is not said cannot have a secret in it: so there must be something of everything."""
    assert {name for name, said in day.told.items() if len(said) < 50} == set()
    log = day.told["the log"]
    for word in (b'"event": "request"', b"Traceback", b"sign-in", b"trace_id"):
        assert word in log, word
    assert b"oncekey_request" in day.told["metrics"] or b"idempotency_" in day.told["metrics"]
    assert b"/api/v1/orders" in day.told["traces"]
    assert b"webhook.rotate" in day.told["the API of admins"]
    assert day.told["pages"].count(b"</html>") > 10
    assert len(day.secrets) >= 18


def test_the_search_would_find_one(day: Day) -> None:
    """Whatever is told, as it is told, is looked at."""
    day.told["a test"] = b"... " + day.fort.admin.encode() + b" ..."
    try:
        assert day.found() == [("of an admin", "a test")]
    finally:
        del day.told["a test"]


def test_what_is_called_by_a_schedule_is_told_no_secret(day: Day) -> None:
    called = [each for each in day.fort.behind.seen if each["target"] == "/scheduled"]
    assert called
    assert OF_SCHEDULES not in json.dumps(called)
