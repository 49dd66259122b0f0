"""`oncekey keys`: list, show and purge, through the real script."""

import json

import pytest

from oncekey import Kind, Operation, Outcome, Proceed, Ref, Scope, namespace_of
from oncekey.api.admin.schemas import SCHEMAS as ADMIN_SCHEMAS
from oncekey.webhooks.naming import name_digest
from tests.fixtures.command import Run
from tests.fixtures.shelf import Shelf

ALICE = namespace_of("acme", "web", "user:alice")
BOB = namespace_of("acme", "app", "user:bob")


def listed(oncekey: Run, *options: object) -> list[str]:
    done = oncekey("keys", "list", "--json", *options)
    assert (done.returncode, done.stderr) == (0, "")
    return [each["key"] for each in json.loads(done.stdout)]


def test_keys_are_listed_newest_first(oncekey: Run, shelf: Shelf) -> None:
    for key in ("a", "b", "c"):
        shelf.settle(key)
    assert listed(oncekey) == ["c", "b", "a"]


def test_a_list_without_json_is_a_table(oncekey: Run, shelf: Shelf) -> None:
    record = shelf.settle("order-1")
    done = oncekey("keys", "list")
    header, row = done.stdout.splitlines()
    assert header.split() == [
        "OPERATION", "KEY", "ENDPOINT", "NAMESPACE", "STATE", "STATUS", "CREATED",
    ]  # fmt: skip
    assert row.split()[:7] == [
        record.operation_id, "order-1", "POST", "/orders", namespace_of(), "succeeded", "201",
    ]  # fmt: skip


def test_an_empty_ledger_says_so(oncekey: Run, shelf: Shelf) -> None:
    assert oncekey("keys", "list").stdout == "no keys\n"
    assert listed(oncekey) == []


def test_filters(oncekey: Run, shelf: Shelf) -> None:
    shelf.settle("invoice-1", namespace=ALICE)
    shelf.settle("invoice-2", status=422, namespace=BOB, endpoint="POST /invoices")
    shelf.hold("order-1")

    assert listed(oncekey, "--state", "in-progress") == ["order-1"]
    assert listed(oncekey, "--state", "succeeded") == ["invoice-1"]
    assert listed(oncekey, "--state", "failed") == ["invoice-2"]
    assert listed(oncekey, "--prefix", "invoice-") == ["invoice-2", "invoice-1"]
    assert listed(oncekey, "--namespace", ALICE) == ["invoice-1"]
    assert listed(oncekey, "--tenant", "acme") == ["invoice-2", "invoice-1"]
    assert listed(oncekey, "--project", "app") == ["invoice-2"]
    assert listed(oncekey, "--tenant", "acme", "--subject", "user:alice") == ["invoice-1"]
    assert listed(oncekey, "--tenant", "acme", "--project", "web", "--subject", "user:alice") == [
        "invoice-1"
    ]
    assert listed(oncekey, "--endpoint", "POST /invoices") == ["invoice-2"]
    assert listed(oncekey, "--tenant", "acm") == []


def test_a_page_ends_with_the_command_for_the_next(oncekey: Run, shelf: Shelf) -> None:
    for number in range(5):
        shelf.settle(f"k{number}", endpoint="POST /a")
    first = oncekey("keys", "list", "--limit", 2, "--endpoint", "POST /a").stdout
    *_, more = first.splitlines()
    assert more.startswith("more: oncekey keys list --endpoint 'POST /a' --limit 2 --before op_")

    before = more.split()[-1]
    assert listed(oncekey, "--limit", 2, "--before", before) == ["k2", "k1"]
    assert "more:" not in oncekey("keys", "list", "--limit", 5).stdout


@pytest.mark.parametrize(
    "options, told",
    [
        (["--state", "done"], "Invalid value for '--state'"),
        (["--limit", "0"], "Invalid value for '--limit'"),
        (["--before", "yesterday"], "'yesterday' is not an operation id"),
        (["--namespace", "t-a:b:user:c", "--tenant", "a"], "--namespace says it all"),
    ],
)
def test_wrong_usage_is_exit_code_2(
    oncekey: Run, shelf: Shelf, options: list[str], told: str
) -> None:
    done = oncekey("keys", "list", *options)
    assert done.returncode == 2
    assert told in done.stderr


def test_a_part_of_a_scope_that_cannot_be_is_told(oncekey: Run, shelf: Shelf) -> None:
    done = oncekey("keys", "list", "--subject", "alice")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: subject type 'alice' is not one of ")


def test_show_by_operation_id(oncekey: Run, shelf: Shelf) -> None:
    record = shelf.settle("order-1")
    done = oncekey("keys", "show", record.operation_id)
    pairs = dict(line.split(None, 1) for line in done.stdout.splitlines() if line[:1].isalpha())
    assert done.returncode == 0
    assert pairs["operation"] == record.operation_id
    assert pairs["key"] == "order-1"
    assert pairs["endpoint"] == "POST /orders"
    assert pairs["state"] == "succeeded"
    assert pairs["attempts"] == "1 (fence 1)"
    assert pairs["request"] == "req-1"
    assert pairs["outcome"] == "response 201, 9 bytes"
    assert '  {"id": 1}' in done.stdout.splitlines()
    assert "  content-type: application/json" in done.stdout.splitlines()


def test_show_by_key(oncekey: Run, shelf: Shelf) -> None:
    record = shelf.settle("order-1")
    shelf.settle("order-10")
    shown = json.loads(oncekey("keys", "show", "order-1", "--json").stdout)
    assert shown["operation_id"] == record.operation_id
    assert shown["outcome"] == {
        "kind": "response",
        "status": 201,
        "headers": [["content-type", "application/json"]],
        "body": '{"id": 1}',
    }


def test_json_tells_of_a_key_what_the_api_does(oncekey: Run, shelf: Shelf) -> None:
    shelf.settle("order-1", namespace=ALICE)
    (listed,) = json.loads(oncekey("keys", "list", "--json").stdout)
    assert set(listed) == {*ADMIN_SCHEMAS["Key"]["required"], "fence"}
    assert listed["created_at"].endswith("Z")


def test_a_key_that_several_scopes_have_is_listed(oncekey: Run, shelf: Shelf) -> None:
    first = shelf.settle("k", namespace=ALICE)
    second = shelf.settle("k", namespace=BOB)
    done = oncekey("keys", "show", "k")
    assert done.returncode == 1
    assert first.operation_id in done.stdout
    assert second.operation_id in done.stdout
    assert done.stderr == "error: 2 scopes have the key 'k'; name one by its operation id\n"

    chosen = json.loads(oncekey("keys", "show", "k", "--subject", "user:bob", "--json").stdout)
    assert chosen["operation_id"] == second.operation_id


def test_a_key_that_looks_like_an_operation_is_found(oncekey: Run, shelf: Shelf) -> None:
    shelf.settle("op_0000000000000001")
    shown = json.loads(oncekey("keys", "show", "op_0000000000000001", "--json").stdout)
    assert shown["key"] == "op_0000000000000001"


@pytest.mark.parametrize("verb", ["show", "purge"])
def test_what_is_not_there_is_exit_code_1(oncekey: Run, shelf: Shelf, verb: str) -> None:
    done = oncekey("keys", verb, "nothing")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error: there is no key or operation 'nothing'; see `oncekey keys list`\n"
    )


def test_a_holder_is_alive_or_lapsed(oncekey: Run, shelf: Shelf) -> None:
    shelf.hold("k")
    assert "in-progress, its process is alive" in oncekey("keys", "show", "k").stdout
    assert json.loads(oncekey("keys", "show", "k", "--json").stdout)["holder"] == "alive"

    shelf.close()
    assert "in-progress, its process is gone" in oncekey("keys", "show", "k").stdout
    assert json.loads(oncekey("keys", "show", "k", "--json").stdout)["holder"] == "lapsed"
    assert "in-progress (lapsed)" in oncekey("keys", "list").stdout


def test_a_stored_answer_cannot_drive_the_terminal(oncekey: Run, shelf: Shelf) -> None:
    shelf.settle(
        "k",
        body="a\x1b[2J\x9b31m\u202eb\r\nnext".encode(),
        headers=((b"x-evil", b"\x1b]0;owned\x07[bold]"),),
    )
    shown = oncekey("keys", "show", "k").stdout
    assert r"x-evil: \x1b]0;owned\x07[bold]" in shown
    assert r"a\x1b[2J\x9b31m\u202eb\r" in shown
    assert "  next" in shown.splitlines()
    assert all(char.isprintable() or char == "\n" for char in shown)


def test_a_key_chosen_by_code_cannot_drive_the_terminal(oncekey: Run, shelf: Shelf) -> None:
    shelf.ledger.once("[red]\x9bm:smile:", lambda: 1)
    assert r"[red]\x9bm:smile:" in oncekey("keys", "list").stdout


def test_a_binary_body_is_shown_as_numbers(oncekey: Run, shelf: Shelf) -> None:
    shelf.settle("k", body=bytes(range(256)) * 8)
    shown = oncekey("keys", "show", "k").stdout
    assert "  00 01 02 03" in shown
    assert "… and 1792 bytes more" in shown
    plain = json.loads(oncekey("keys", "show", "k", "--json").stdout)
    assert plain["outcome"]["body_base64"].startswith("AAECAw")


def test_a_long_body_is_cut_even_within_a_character(oncekey: Run, shelf: Shelf) -> None:
    shelf.settle("k", body=b"x" + "é".encode() * 2000)
    shown = oncekey("keys", "show", "k").stdout
    assert "xéééé" in shown
    assert "… and 2001 bytes more" in shown


def test_outcomes_of_functions_are_shown(oncekey: Run, shelf: Shelf) -> None:
    shelf.ledger.once("invoice:42", lambda: {"total": 3})
    shelf.hold("gone").settle(Outcome(Kind.UNKEPT, 200))
    assert "value, 11 bytes" in oncekey("keys", "show", "invoice:42").stdout
    assert "unkept 200, 0 bytes" in oncekey("keys", "show", "gone").stdout


def test_purge_forgets_the_key(oncekey: Run, shelf: Shelf) -> None:
    record = shelf.settle("k", status=422)
    done = oncekey("keys", "purge", record.operation_id)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"purged {record.operation_id} (key k)\n"
    assert shelf.hold("k")


def test_purge_refuses_what_is_running(oncekey: Run, shelf: Shelf) -> None:
    claim = shelf.hold("k")
    done = oncekey("keys", "purge", "k")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"error: {claim.operation_id} (key k) is running; wait for it, or purge it with --force\n"
    )
    assert oncekey("keys", "purge", "k", "--force").returncode == 0
    assert shelf.ledger.peek(claim.operation.ref) is None


def test_purge_takes_what_lapsed(oncekey: Run, shelf: Shelf) -> None:
    shelf.hold("k")
    shelf.close()
    assert oncekey("keys", "purge", "k").returncode == 0
    assert listed(oncekey) == []


def test_the_highest_operation_id_is_looked_for(oncekey: Run, shelf: Shelf) -> None:
    done = oncekey("keys", "show", "op_7fffffffffffffff")
    assert done.returncode == 1
    assert done.stderr.startswith("error: there is no key or operation")


def test_with_a_delivery_goes_what_is_remembered_of_its_body(oncekey: Run, shelf: Shelf) -> None:
    namespace = namespace_of("acme", "web", "service:webhook-ingest")
    endpoint = "POST /api/v1/webhooks/github/wh_abcdefghijklmnopqrstuvwxyz2345"
    for name in ("github-d-1", "github-d-2"):
        ref = Ref(Scope(namespace, f"{endpoint}#body"), f"digest of {name}")
        decision = shelf.ledger.begin(Operation(ref, name_digest(name)))
        assert isinstance(decision, Proceed)
        decision.claim.settle(Outcome(Kind.VALUE, body=b"1"))
        shelf.settle(name, endpoint=endpoint, namespace=namespace)

    assert oncekey("keys", "purge", "github-d-1", "--yes").returncode == 0
    assert listed(oncekey) == ["github-d-2", "digest of github-d-2"]


def test_a_purge_of_a_key_with_the_longest_names_is_noted(oncekey: Run, shelf: Shelf) -> None:
    record = shelf.settle("é" * 250, endpoint="POST /" + "ü" * 2000)
    assert oncekey("keys", "purge", record.operation_id, "--yes").returncode == 0
    (entry,) = json.loads(oncekey("audit", "--json").stdout)
    assert entry["target"] == record.operation_id
