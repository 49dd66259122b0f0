"""What a change of one execution brings about elsewhere: sent one-way, with the change itself."""

from __future__ import annotations

from hashlib import blake2b

from oncekey.core.execution import Execution, PromiseKind, PromiseState, Status
from oncekey.stores.restate.asked import Creation, Told
from oncekey.stores.restate.dispatch import dispatch
from oncekey.stores.restate.ringing import ALL, BELL
from oncekey.stores.restate.topic import SERVICE as TOPICS
from oncekey.stores.restate.topic import topic_id
from oncekey.stores.restate.values import pack
from oncekey.stores.restate.work.calls import send, time_here
from oncekey.stores.restate.work.held import Held

EXECUTIONS, PROMISES = "oncekey.Execution", "oncekey.Promise"
REQUESTS, TOKENS = "oncekey.Request", "oncekey.Token"


def follow(held: Held) -> None:
    """Write what has changed, and tell whom it concerns."""
    after = held.kept.executions.get(held.number)
    if after is not None:
        _begin(held, after)
        if after.status.is_over and not (held.before and held.before.status.is_over):
            _end(held, after)
    _create(held)
    _leave_topics(held)
    held.save()
    _expect(held)
    held.save_ties()


def _begin(held: Held, after: Execution) -> None:
    was = None if held.before is None else held.before.status
    changed = after.status is not was and not held.is_picked
    if held.is_taken or (changed and after.status in {Status.READY, Status.RUNNING}):
        # What runs without having been dispatched is looked after by whoever it is dispatched to.
        held.ties.dispatch += 1
        dispatch(held.ctx, after.sort, after.name, after.id, held.ties.dispatch)


def _end(held: Held, after: Execution) -> None:
    _settle_key(held)
    told_by, now = after.public_id, after.completed_at or 0
    succeeded = after.status is Status.SUCCEEDED
    state = PromiseState.RESOLVED if succeeded else PromiseState.REJECTED
    for caller, promise in held.ties.callers:
        told = Told(promise, state, after.result or b"null", told_by, now)
        held.told.append([caller, told])
        send(held.ctx, EXECUTIONS, f"{caller:016x}", "tell", told, nonce=nonce_of(told))
    held.ties.callers = []
    send(
        held.ctx,
        EXECUTIONS,
        f"{after.id:016x}",
        "forget",
        after.expires_at,
        at=after.expires_at,
    )


def _settle_key(held: Held) -> None:
    settled, digest = held.keys.settled, held.ties.digest
    if not digest:
        return
    if held.keys.is_forgotten:
        send(held.ctx, REQUESTS, digest, "forget", held.number)
    elif settled is not None:
        send(held.ctx, REQUESTS, digest, "settle", settled)


def _create(held: Held) -> None:
    """The children that were started with what has changed."""
    for number, execution in held.kept.executions.items():
        if number == held.number:
            continue
        calls = [each.id for each in held.kept.promises.values() if each.target == number]
        told = f'"{execution.public_id}"'.encode()
        steps = held.kept.journals.get(held.number, {}).values()
        seqs = [step.seq for step in steps if step.body == told]
        creation = child_of(execution, held.number, *calls[:1], seq=seqs[0] if seqs else 0)
        nonce = nonce_of(creation)
        send(held.ctx, EXECUTIONS, f"{number:016x}", "create", creation, nonce=nonce)


def child_of(execution: Execution, parent: int, promise: int = 0, *, seq: int = 0) -> Creation:
    """A child that is made in one with what its parent does."""
    plain = execution._replace(wakes=0, key=None)
    return Creation(plain, execution.owner, parent=parent, promise=promise, seq=seq)


def _leave_topics(held: Held) -> None:
    """Events that come from now on are not for these any more. Whoever settles one by an event
    tells its topic, of many at once."""
    for number, promise in held.settled().items():
        by_event = promise.state is PromiseState.RESOLVED
        if promise.kind is PromiseKind.EVENT and promise.topic is not None and not by_event:
            send(held.ctx, TOPICS, topic_id(promise.tenant, promise.topic), "drop_wait", number)


def ring(held: Held) -> None:
    """Whoever runs it, or waits for its end, looks what is new."""
    after = held.kept.executions.get(held.number)
    if after is not None and (after.status is Status.RUNNING or after.status.is_over):
        send(held.ctx, BELL, ALL, "ring", None)


def _expect(held: Held) -> None:
    """Be looked at when something is due, if that is not to happen sooner anyway."""
    due, tick = held.next_due(), held.ties.tick
    if due is not None and (tick is None or due < tick):
        held.ties.tick = at = due
        if held.timed is not None and held.timed[0] == due:
            at = time_here(due, held.timed[1])
        send(held.ctx, EXECUTIONS, f"{held.number:016x}", "tick", due, at=at)


def nonce_of(asked: Creation | Told) -> str:
    """The same for the same thing, by whichever way it is asked for: whoever wants to know what
    became of what an object has sent asks for it as well, and it is carried out once."""
    return blake2b(pack(asked), digest_size=16).hexdigest()
