"""`oncekey webhooks`: made, tried against a real server, looked at, rotated, deleted."""

import json
import re
import stat
from typing import Any

import pytest

from oncekey.api.admin.schemas import SCHEMAS as ADMIN_SCHEMAS
from tests.fixtures.command import Run
from tests.fixtures.shelf import Shelf
from tests.fixtures.workshop import Workshop

UNKNOWN = f"wh_{'a' * 30}"


def create(shop: Workshop, provider: str = "stripe", *words: object) -> Any:
    return shop.json("webhooks", "create", "--provider", provider, *words)


def deliveries(shop: Workshop, webhook_id: str, count: int) -> list[dict[str, Any]]:
    """Its log, once it has so many lines: it is written behind the answers."""
    while True:
        found: list[dict[str, Any]] = shop.json("webhooks", "show", webhook_id)["deliveries"]
        if len(found) >= count:
            return found


def send(shop: Workshop, webhook_id: str, *words: object) -> Any:
    return shop("webhooks", "send", webhook_id, "--to", shop.url, *words)


# -- made and listed --------------------------------------------------------------------------


def test_a_webhook_is_made_with_a_secret_that_is_shown_once(shop: Workshop) -> None:
    told = shop.told(
        "webhooks", "create", "--provider", "stripe", "--then", "workflow:echo", "--label", "paid"
    ).splitlines()

    found = re.fullmatch(r"(wh_\w{30}) of tenant default: stripe, then workflow:echo", told[0])
    assert found is not None
    assert told[1].endswith(f"/api/v1/webhooks/stripe/{found[1]}")
    assert told[2] == "its secret is shown this once:"
    secret = told[3]
    assert secret.startswith("whsec_")
    for words in (["list"], ["list", "--json"], ["show", found[1]], ["show", found[1], "--json"]):
        shown = shop.told("webhooks", *words)
        assert found[1] in shown
        assert "paid" in shown
        assert secret not in shown
        assert secret.removeprefix("whsec_") not in shown


def test_json_tells_of_a_webhook_what_the_api_does_and_where_it_is(shop: Workshop) -> None:
    made = create(shop)
    del made["secret"]
    assert set(made) == {*ADMIN_SCHEMAS["Webhook"]["required"], "url"}
    assert made["url"].startswith("http://")
    assert made["url"].endswith(made["path"])
    assert made in shop.json("webhooks", "list")


def test_a_path_that_no_route_takes_is_told(shop: Workshop) -> None:
    config = shop.folder / "routed.toml"
    config.write_text(
        "[upstreams.shop]\nurl = 'http://127.0.0.1:9'\n[[routes]]\npath = '/hooks/{name}'\n"
        "methods = ['POST']\nupstream = 'shop'\npolicy = 'REQUIRED_B'\n"
    )
    words = ("webhooks", "create", "--provider", "stripe", "--config", config, "--then")
    assert "note:" not in shop(*words, "forward:/hooks/in").stderr
    done = shop(*words, "forward:/hook/in")
    assert done.returncode == 0
    assert "note: no route with an upstream takes POST /hook/in; " in done.stderr


def test_a_webhook_with_everything_said(shop: Workshop) -> None:
    made = create(
        shop, "github", "--tenant", "acme", "--project", "web", "--secret", "0123456789abcdef",
        "--then", 'event:"push:" + body.ref', "--label", "pushes", "--repeats", "allow",
    )  # fmt: skip

    assert "secret" not in made
    assert "0123456789abcdef" not in json.dumps(made)
    assert (made["tenant"], made["project"], made["provider"]) == ("acme", "web", "github")
    assert (made["then"], made["repeats"]) == ('event:"push:" + body.ref', "allow")
    assert shop.json("webhooks", "list", "--tenant", "acme") == [made]
    shown = shop.json("webhooks", "show", made["id"])
    assert shown.pop("deliveries") == []
    (age,) = shown.pop("secrets")
    assert (age["created_at"], age["until"]) == (made["created_at"], None)
    assert shown == made


def test_a_secret_is_read_from_standard_input(shop: Workshop) -> None:
    words = ["webhooks", "create", "--provider", "slack", "--secret", "-", "--json"]
    done = shop(*words, stdin="8f742231b10e8888abcd99yyyzzz85a5\n")
    assert done.returncode == 0
    made = json.loads(done.stdout)
    assert "secret" not in made
    assert send(shop, made["id"]).returncode == 0


def test_webhooks_are_paged(shop: Workshop) -> None:
    made = [create(shop, "stripe", "--tenant", "pages")["id"] for _ in range(3)]
    first = shop.told("webhooks", "list", "--tenant", "pages", "--limit", "2").splitlines()
    assert [line.split()[0] for line in first[1:3]] == [made[2], made[1]]
    rest = shop.told("webhooks", *first[-1].split()[3:]).splitlines()
    assert [line.split()[0] for line in rest[1:]] == [made[0]]


def test_the_key_is_made_beside_the_configuration_for_this_account_alone(
    oncekey: Run, shelf: Shelf
) -> None:
    first = oncekey("webhooks", "create", "--provider", "stripe")
    file = shelf.path.parent / "oncekey-webhooks.key"
    assert f"made {file}: it opens the secrets of webhooks" in first.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    key = file.read_text()

    second = oncekey("webhooks", "create", "--provider", "stripe")
    assert (second.returncode, second.stderr, file.read_text()) == (0, "", key)


def test_a_key_of_the_environment_needs_no_file(oncekey: Run, shelf: Shelf) -> None:
    key = oncekey("webhooks", "key").stdout.strip()
    made = oncekey("webhooks", "create", "--provider", "stripe", "--json", ONCEKEY_WEBHOOK_KEY=key)
    assert made.returncode == 0
    assert not (shelf.path.parent / "oncekey-webhooks.key").exists()

    webhook_id = json.loads(made.stdout)["id"]
    without = oncekey("webhooks", "show", webhook_id)
    assert without.returncode == 0
    assert "sealed with the key" in without.stdout
    newer = oncekey("webhooks", "key").stdout.strip()
    both = f"{newer},{key}"
    resealed = oncekey("webhooks", "reseal", ONCEKEY_WEBHOOK_KEY=both)
    assert resealed.stdout == "sealed the secrets of 1 webhook anew\n"
    shown = oncekey("webhooks", "show", webhook_id, ONCEKEY_WEBHOOK_KEY=newer)
    assert "sealed with" not in shown.stdout


def test_a_key_file_that_others_can_read_is_refused(oncekey: Run, shelf: Shelf) -> None:
    file = shelf.path.parent / "oncekey-webhooks.key"
    file.write_text(oncekey("webhooks", "key").stdout)
    file.chmod(0o644)
    done = oncekey("webhooks", "create", "--provider", "stripe")
    assert done.returncode == 1
    assert done.stderr.endswith(f"run: chmod 600 {file}\n")
    assert oncekey("webhooks", "list").stdout == "no webhooks\n"


@pytest.mark.postgres
def test_a_shared_store_wants_a_key_that_is_shared_too(
    oncekey: Run, postgres_url: str, tmp_path: Any
) -> None:
    oncekey("migrate", "--url", postgres_url)
    words = ["webhooks", "create", "--provider", "stripe", "--url", postgres_url]

    done = oncekey(*words)
    assert done.returncode == 1
    assert "set ONCEKEY_WEBHOOK_KEY to one, the same for every process" in done.stderr
    assert "`oncekey webhooks key`" in done.stderr
    assert not (tmp_path / "oncekey-webhooks.key").exists()

    key = oncekey("webhooks", "key").stdout.strip()
    assert oncekey(*words, ONCEKEY_WEBHOOK_KEY=key).returncode == 0


# -- tried ------------------------------------------------------------------------------------


def test_a_test_delivery_is_done_once_and_seen_in_the_log(shop: Workshop) -> None:
    made = create(shop, "stripe", "--then", "workflow:echo")
    body = '{"id": "evt_1", "amount": 7}'

    first = send(shop, made["id"], "--data", body)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "> stripe-signature: t=" in first.stdout
    assert "\n< 200 OK\n" in first.stdout
    assert send(shop, made["id"], "--data", body).returncode == 0

    newest, oldest = deliveries(shop, made["id"], 2)
    assert (newest["verdict"], oldest["verdict"]) == ("replayed", "accepted")
    assert newest["identifier"] == oldest["identifier"] == "evt_1"
    assert newest["operation_id"] == oldest["operation_id"]
    assert oldest["bytes"] == len(body)
    shown = shop.told("webhooks", "show", made["id"])
    assert re.search(r"replayed +evt_1 +op_\w{16} +28 +1", shown)


@pytest.mark.parametrize("provider", ["adyen", "square", "twilio"])
def test_providers_that_sign_inside_the_body_or_the_url_can_be_tried_too(
    shop: Workshop, provider: str
) -> None:
    made = create(shop, provider)
    done = send(shop, made["id"], "--json")
    answer = json.loads(done.stdout)
    assert (answer["status"], done.returncode) == (200, 0), answer
    assert made["secret"] not in done.stdout


def test_a_body_from_a_file_and_headers(shop: Workshop) -> None:
    made = create(shop, "github", "--then", "event:headers['x-github-event']")
    (shop.folder / "push.json").write_text('{"ref": "main"}')
    words = ["--file", "push.json", "--header", "X-GitHub-Event=push"]
    named = [*words, "--header", "X-GitHub-Delivery=72d3162e"]

    assert send(shop, made["id"], *named).returncode == 0
    assert send(shop, made["id"], *named).returncode == 0
    assert send(shop, made["id"], *words).returncode == 0

    verdicts = [each["verdict"] for each in deliveries(shop, made["id"], 3)]
    assert verdicts == ["repeated-body", "replayed", "accepted"]
    words = ["--to", shop.url, "--file", "-", "--header", "X-GitHub-Event=ping"]
    assert shop("webhooks", "send", made["id"], *words, stdin="{}").returncode == 0


def test_what_the_server_refuses_is_shown_and_is_a_failure(shop: Workshop) -> None:
    made = create(shop, "stripe")
    done = send(shop, made["id"], "--data", '{"no": "id"}')
    assert done.returncode == 1
    assert "< 400 Bad Request" in done.stdout
    (line,) = deliveries(shop, made["id"], 1)
    assert line["verdict"] == "refused"
    assert line["reason"]


def test_a_rotation_loses_no_delivery(shop: Workshop) -> None:
    made = create(shop, "stripe")
    assert send(shop, made["id"]).returncode == 0
    told = shop.told("webhooks", "rotate", made["id"], "--overlap", "1h").splitlines()
    assert told[0] == f"{made['id']} has a new secret; the old one ends in 1h"
    assert told[2].startswith("whsec_")
    assert told[2] != made["secret"]
    ages = shop.json("webhooks", "show", made["id"])["secrets"]
    assert [each["until"] is None for each in ages] == [True, False]

    ended = shop.json("webhooks", "rotate", made["id"], "--overlap", "0s", "--secret", "x" * 20)
    assert ended == {"id": made["id"], "overlap_seconds": 0.0}
    assert len(shop.json("webhooks", "show", made["id"])["secrets"]) == 1
    while send(shop, made["id"]).returncode:
        """Until the server sees the new secret."""


def test_a_webhook_that_is_deleted_is_gone(shop: Workshop) -> None:
    made = create(shop)
    told = shop.told("webhooks", "delete", made["id"])
    assert told == f"deleted {made['id']} of stripe\n"
    for words in (["delete"], ["show"], ["rotate"], ["send"]):
        done = shop("webhooks", *words, made["id"])
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == (
            "error: there is no webhook of that id; see `oncekey webhooks list`\n"
        )


# -- mistakes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words, code, told",
    [
        (["create"], 2, "Missing option '--provider'"),
        (["create", "--provider", "strip"], 1, "there is no provider 'strip'; there are adyen,"),
        (["create", "--provider", "stripe", "--then", "mail:me"], 1, "is none of forward:/path"),
        (["create", "--provider", "stripe", "--then", "event:1 +"], 1, "not valid CEL"),
        (["create", "--provider", "stripe", "--then", "event:1 + 1"], 1, "must give a text"),
        (["create", "--provider", "stripe", "--tenant", "a b"], 1, "tenant 'a b' is not a slug"),
        (["create", "--provider", "stripe", "--secret", " x "], 1, "a secret is printable text"),
        (["create", "--provider", "stripe", "--repeats", "no"], 2, "'no' is not one of"),
        (["show", "wh_1"], 1, "there is no webhook of that id"),
        (["show", UNKNOWN], 1, "there is no webhook of that id"),
        (["show", UNKNOWN, "--before", "x"], 2, "'x' is not the id of a delivery"),
        (["list", "--before", UNKNOWN], 1, "there is no webhook"),
        (["rotate", UNKNOWN, "--overlap", "long"], 2, "not a duration"),
        (["send", UNKNOWN, "--data", "x", "--file", "flows.py"], 2, "either --data or --file"),
        (["send", UNKNOWN, "--header", "a b=c"], 2, "is not NAME=VALUE"),
    ],
)
def test_mistakes(shop: Workshop, words: list[str], code: int, told: str) -> None:
    done = shop("webhooks", *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_server_that_is_not_there_is_told_with_what_to_do(shop: Workshop, free_port: int) -> None:
    made = create(shop)
    done = shop("webhooks", "send", made["id"], "--to", f"http://127.0.0.1:{free_port}")
    assert done.returncode == 1
    assert "is `oncekey serve` running there?" in done.stderr
    assert shop("webhooks", "send", made["id"], "--to", "ftp://x").returncode == 2


def test_an_odd_secret_is_told_of(shop: Workshop) -> None:
    done = shop("webhooks", "create", "--provider", "adyen", "--secret", "not hex")
    assert done.returncode == 0
    assert "note: the secret has 7 characters" in done.stderr
    assert "note: no test deliveries can be signed" in done.stderr
    assert "not hex" not in done.stderr + done.stdout
