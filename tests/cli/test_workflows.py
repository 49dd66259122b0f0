"""`oncekey workflows`, beside a process that serves them."""

import httpx
import pytest

from tests.fixtures.workshop import Workshop


def lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_a_workflow_from_its_start_to_its_end(shop: Workshop) -> None:
    told = shop.told("workflows", "start", "order", "--input", "1", "--key", "order:1")
    _, id_ = told.split()
    shop.until(id_, "waiting")
    shown = shop.told("workflows", "show", id_)
    assert ["workflow", "order"] in lines(shown)
    assert ["key", "order:1"] in lines(shown)
    assert ["STEP", "KIND", "NAME", "ATTEMPTS", "TOOK", "VALUE"] in lines(shown)
    (step,) = [line for line in lines(shown) if line[:2] == ["1", "run"]]
    assert (step[2], step[3], step[5]) == ("create-charge", "1", '"ch_1"')
    (wait,) = [line for line in lines(shown) if line[:2] == ["promise", "payment"]]
    assert wait[-2:] == ["key", "stripe:ch_1"]

    shop.told("promises", "resolve", "key:stripe:ch_1", "--value", '{"paid": 5}')
    ended = shop.json("workflows", "show", id_, "--wait", "30s")
    assert ended["status"] == "succeeded"
    assert ended["result"] == {"payment": {"paid": 5}, "receipt": 1}
    assert ended["waits"] == []
    assert [(each["step"], each["kind"]) for each in ended["journal"]] == [
        (1, "run"), (2, "promise"), (3, "sleep"), (4, "call"),
    ]  # fmt: skip


def test_json_has_the_words_of_the_api(shop: Workshop) -> None:
    id_ = shop.start("echo", {"number": 12345678901234567890, "text": "\x1b[31m\x9b"})
    ended = shop.json("workflows", "show", id_, "--wait", "30s")
    secret = shop.json("apikeys", "create")["secret"]
    path = f"{shop.url}/api/tenants/default/workflows/{id_}"
    answer = httpx.get(path, headers={"X-API-Key": secret}).json()
    assert {name: ended[name] for name in answer} == answer
    assert set(ended) - set(answer) == {"journal", "waits"}
    assert answer in shop.json("workflows", "list", "--name", "echo")


def test_what_was_stored_does_not_drive_the_terminal(shop: Workshop) -> None:
    id_ = shop.start("echo", "\x9b31m \u202e red")
    shop.json("workflows", "show", id_, "--wait", "30s")
    for words in (["show", id_], ["show", id_, "--json"], ["list", "--json"]):
        shown = shop.told("workflows", *words)
        assert all(char.isprintable() or char == "\n" for char in shown)


def test_a_task(shop: Workshop) -> None:
    id_ = shop.start("receipt", 7, "--task")
    assert id_.startswith("tk_")
    ended = shop.json("workflows", "show", id_, "--wait", "30s")
    assert (ended["kind"], ended["result"]) == ("task", {"receipt": 7})
    assert ["task", "receipt"] in lines(shop.told("workflows", "show", id_))


def test_the_input_may_come_from_a_pipe(shop: Workshop) -> None:
    done = shop("workflows", "start", "echo", "--input", "-", "--json", stdin='{"large": 1}\n')
    assert '"large": 1' in done.stdout


def test_a_key_starts_once(shop: Workshop) -> None:
    first = shop.start("echo", 1, "--key", "once")
    told = shop.told("workflows", "start", "echo", "--input", "1", "--key", "once")
    assert told.startswith(f"{first} has this key already; it is ")
    other = shop("workflows", "start", "echo", "--input", "2", "--key", "once")
    assert (other.returncode, other.stdout) == (1, "")
    assert other.stderr == (
        "error: the key 'once' was first used with another name or input; "
        "use a new key for something new\n"
    )


@pytest.mark.parametrize(
    "words, hint",
    [
        (["ordr"], "there is no workflow 'ordr'; did you mean 'order'?"),
        (["receipt"], "there is no workflow 'receipt'; receipt is a task: say --task"),
        (["order", "--task"], "there is no task 'order'; order is a workflow: leave --task out"),
        (["xyzzy", "--task"], "there is no task 'xyzzy'; there are: receipt"),
    ],
)
def test_an_unknown_name_is_told_with_what_was_meant(
    shop: Workshop, words: list[str], hint: str
) -> None:
    done = shop("workflows", "start", *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: {hint}\n"


def test_what_is_called_is_shown(shop: Workshop) -> None:
    waits = shop.until(shop.start("caller"), "waiting")["waits"]
    (call,) = waits
    assert (call["kind"], call["name"]) == ("call", "approval")
    assert shop.json("workflows", "show", call["called"])["input"] == "of the caller"


def test_attempts_that_failed_are_shown(shop: Workshop) -> None:
    id_ = shop.start("patient")
    shop.until(id_, "waiting")
    shown = shop.told("workflows", "show", id_)
    assert "1 attempt failed, the last with RuntimeError: not today" in shown
    (retry,) = shop.json("workflows", "show", id_)["waits"]
    assert (retry["kind"], retry["attempts"]) == ("retry", 1)
    assert retry["error"] == {"code": "RuntimeError", "message": "not today"}


def test_cancelling_is_done_once_for_a_request_key(shop: Workshop) -> None:
    id_ = shop.start("approval", "a")
    done = shop("workflows", "cancel", id_)
    assert (done.returncode, done.stdout) == (0, f"{id_}: cancelled\n")
    key = done.stderr.split()[2]
    assert done.stderr == f"request key: {key} (with --request-key {key} this can be repeated)\n"

    again = shop("workflows", "cancel", id_, "--request-key", key)
    assert again.stdout == f"{id_}: cancelled; that was done before with this request key\n"
    assert again.stderr == ""
    assert shop.json("workflows", "cancel", id_, "--request-key", key) == {
        "workflow_id": id_,
        "status": "cancelled",
        "idempotency_replayed": True,
    }
    shown = shop.json("workflows", "show", id_)
    assert (shown["status"], shown["error"]["code"]) == ("cancelled", "cancelled")


def test_a_request_key_is_for_one_thing(shop: Workshop) -> None:
    one, two = shop.start("approval", "a"), shop.start("approval", "b")
    shop.told("workflows", "cancel", one, "--request-key", "one thing")
    done = shop("workflows", "cancel", two, "--request-key", "one thing")
    assert done.returncode == 1
    assert "this request key was used for another action, workflow or parameters" in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_is_paused_goes_on(shop: Workshop) -> None:
    id_ = shop.start("stuck")
    paused = shop.until(id_, "paused")
    assert "explode failed 1 times, the last time with: not today" in paused["error"]["message"]
    (shop.folder / "mended").touch()
    try:
        assert shop.told("workflows", "resume", id_, "--request-key", "r1") == f"{id_}: ready\n"
        assert shop.json("workflows", "show", id_, "--wait", "30s")["result"] == "mended"
    finally:
        (shop.folder / "mended").unlink()


def test_only_what_is_paused_can_be_resumed(shop: Workshop) -> None:
    id_ = shop.start("approval", "a")
    shop.until(id_, "waiting")
    done = shop("workflows", "resume", id_, "--request-key", "r2")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"error: {id_} cannot be resumed: it is waiting; only what is paused can be resumed\n"
    )


def test_a_fork_begins_at_a_step(shop: Workshop) -> None:
    first = shop.start("order", 20)
    shop.until(first, "waiting")
    shop.told("promises", "resolve", "key:stripe:ch_20", "--value", "1")
    shop.json("workflows", "show", first, "--wait", "30s")
    made = shop.json("workflows", "fork", first, "--from-step", "3", "--request-key", "f1")
    fork = shop.json("workflows", "show", made["workflow_id"], "--wait", "30s")
    assert (fork["status"], fork["forked_from"]) == ("succeeded", first)
    assert fork["result"] == {"payment": 1, "receipt": 20}
    first_steps = shop.json("workflows", "show", first)["journal"]
    assert fork["journal"][:2] == first_steps[:2]
    assert fork["journal"][2] != first_steps[2]


@pytest.mark.parametrize(
    "words, told",
    [
        (["start", "echo", "--input", "{"], "this is not JSON"),
        (["list", "--before", "yesterday"], "'yesterday' is not the id of a workflow or a task"),
        (["list", "--status", "done"], "Invalid value for '--status'"),
        (["show", "wf_0000000000000001", "--wait", "soon"], "'soon' is not a duration"),
        (["fork", "wf_0000000000000001"], "Missing option '--from-step'"),
        (["fork", "wf_0000000000000001", "--from-step", "0"], "Invalid value for '--from-step'"),
    ],
)
def test_wrong_usage_is_exit_code_2(shop: Workshop, words: list[str], told: str) -> None:
    done = shop("workflows", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


@pytest.mark.parametrize("name", ["wf_0000000000000001", "nothing"])
@pytest.mark.parametrize("words", [["show"], ["cancel", "--request-key", "x"]])
def test_what_is_not_there_is_exit_code_1(shop: Workshop, name: str, words: list[str]) -> None:
    done = shop("workflows", words[0], name, *words[1:])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"error: there is no workflow or task {name!r}; see `oncekey workflows list`, "
        "and --tenant for another tenant's\n"
    )


def test_tenants_do_not_see_each_other(shop: Workshop) -> None:
    id_ = shop.start("echo", "ours", "--tenant", "acme")
    assert [each["id"] for each in shop.json("workflows", "list", "--tenant", "acme")] == [id_]
    assert shop("workflows", "show", id_).returncode == 1
    assert shop("workflows", "show", id_, "--tenant", "acme").returncode == 0
    wrong = shop("workflows", "list", "--tenant", "a:b")
    assert wrong.returncode == 1
    assert wrong.stderr.startswith("error: tenant 'a:b' is not a slug")


def test_a_list_is_filtered_and_paged(shop: Workshop) -> None:
    made = [shop.start("echo", number, "--tenant", "pages") for number in range(3)]
    first = shop.told("workflows", "list", "--tenant", "pages", "--limit", "2")
    assert [line[0] for line in lines(first)[1:3]] == made[:0:-1]
    more = f"more: oncekey workflows list --tenant pages --limit 2 --before {made[1]}"
    assert first.splitlines()[-1] == more
    rest = shop.told("workflows", *more.split()[3:])
    assert [line[0] for line in lines(rest)[1:]] == made[:1]
    assert shop.told("workflows", "list", "--tenant", "pages", "--kind", "task") == "no workflows\n"
    assert shop.json("workflows", "list", "--tenant", "pages", "--name", "order") == []
