"""Processes that share a store: whose claims stand, whose lapse, and who is who after a fork."""

import signal
import subprocess
import sys
from pathlib import Path

from oncekey.core.model import State
from oncekey.core.ports import Abandon, Found, Held, Peek, Query, Take
from tests.fixtures.stores import DONE, Caller, Place, until

ROOT = Path(__file__).parents[2]
CLAIM = """
import sys
import oncekey
from tests.fixtures.frozen import FrozenClock
options = {"lease": float(sys.argv[2]), "clock": FrozenClock()} if len(sys.argv) > 2 else {}
ledger = oncekey.open(sys.argv[1], **options)
scope = oncekey.Scope("t-default:_tenant:client:anonymous", "POST /orders")
"""
DIE = "ledger.begin(oncekey.Operation(oncekey.Ref(scope, 'k'))); print('held', flush=True); input()"
FORK = """
import os
def key(name): return oncekey.Operation(oncekey.Ref(scope, name))
mine = ledger.begin(key("parent")).claim
ends = os.pipe()
child = os.fork()
if not child:
    claim = ledger.begin(key("child")).claim
    busy = type(ledger.begin(key("parent"))).__name__
    claim.settle(oncekey.Outcome(oncekey.Kind.VALUE, body=b"1"))
    ledger.sweep()
    left = ledger.begin(key("left")).claim
    os.write(ends[1], f"{busy} {ledger.store.owner}".encode())
    os._exit(0)
os.waitpid(child, 0)
mine.settle(oncekey.Outcome(oncekey.Kind.VALUE, body=b"2"))
ledger.begin(key("after")).claim.release()
print(ledger.store.owner, os.read(ends[0], 100).decode())
ledger.close()
"""


def owner_of(caller: Caller) -> int:
    owner: int = caller.store.owner  # type: ignore[attr-defined]
    return owner


def test_a_claim_of_another_process_stands(shared: Place) -> None:
    first, second = shared.open(), shared.open()
    insert = first.insert("k")
    first.ask(insert)

    found = second.ask(second.insert("k"))

    assert isinstance(found, Found)
    assert (found.record.owner, found.lapsed) == (owner_of(first), False)
    assert owner_of(first) != owner_of(second)
    assert not second.ask(Take(insert.id, insert.digest, 1)).lapsed


def test_closing_lets_claims_lapse_at_once(shared: Place) -> None:
    first, second = shared.open(), shared.open()
    insert = first.insert("k")
    first.ask(insert)

    first.store.close()

    assert second.ask(Peek(insert.digest)).lapsed
    assert second.ask(Take(insert.id, insert.digest, 1)) == Held(2)
    assert second.ask(second.settle(insert, fence=2)) is True


def test_who_is_unsure_of_a_takeover_does_not_undo_that_of_another(shared: Place) -> None:
    first, unsure, faster = shared.open(), shared.open(), shared.open()
    insert = first.insert("k")
    first.ask(insert)
    first.store.close()
    assert faster.ask(Take(insert.id, insert.digest, 1)) == Held(2)

    # As the writer does whose own Take was lost on the way.
    assert unsure.ask(Abandon(insert.id, 2)) is False

    assert not unsure.ask(Peek(insert.digest)).lapsed
    assert faster.ask(Abandon(insert.id, 2)) is True


def test_closing_commits_what_is_waiting(shared: Place) -> None:
    first, second = shared.open(), shared.open()
    insert = first.insert("k")
    first.ask(insert)
    first.ask(first.settle(insert))
    first.store.close()
    assert second.ask(Peek(insert.digest)).record.outcome == DONE


def test_claims_of_a_killed_process_lapse(shared: Place) -> None:
    caller = shared.open(lease=0.5, heartbeat=0.1)
    process = subprocess.Popen(
        [sys.executable, "-c", CLAIM + DIE, shared.url, "0.5"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    digest = caller.insert("k").digest

    process.send_signal(signal.SIGKILL)
    process.communicate()

    found = until(lambda: (seen := caller.ask(Peek(digest))).lapsed and seen)
    assert caller.ask(Take(found.record.id, digest, 1)) == Held(2)


def test_an_owner_that_is_gone_and_holds_nothing_is_forgotten(database: Place) -> None:
    idle, holder, caller = database.open(), database.open(), database.open()
    insert = holder.insert("k")
    holder.ask(insert)
    idle.store.close()
    holder.store.close()

    caller.store.sweep(database.clock.now(), 10)

    owners = {row[0] for row in caller.store.transact(lambda run: run("owners", {}), write=False)}
    assert owners == {owner_of(holder), owner_of(caller)}
    assert caller.ask(Take(insert.id, insert.digest, 1)) == Held(2)


def test_what_a_process_took_over_is_listed_though_it_is_older_than_the_rest(
    shared: Place,
) -> None:
    first, second = shared.open(), shared.open()
    insert = first.insert("k")
    first.ask(insert)
    first.store.close()
    second.ask(Take(insert.id, insert.digest, 1))
    found = second.store.list(Query(state=State.IN_PROGRESS), shared.clock.now())
    assert [each.record.id for each in found] == [insert.id]


def test_a_forked_child_is_another_owner_and_leaves_its_parent_alone(shared: Place) -> None:
    caller = shared.open()
    done = subprocess.run(
        [sys.executable, "-c", CLAIM + FORK, shared.url],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    parent, busy, child = done.stdout.split()
    assert busy == "Busy"
    assert parent != child
    states = {
        found.record.ref.key: found.record.state
        for found in caller.store.list(Query(), shared.clock.now())
    }
    assert states == {
        "parent": State.SUCCEEDED,
        "child": State.SUCCEEDED,
        "left": State.IN_PROGRESS,
    }
