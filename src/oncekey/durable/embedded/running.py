"""How the code of a run is run: to its end, again after a failure, or until it must stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from inspect import CO_COROUTINE, isawaitable, iscoroutinefunction
from typing import TYPE_CHECKING, Any

from oncekey.core.current import CURRENT, Attempt
from oncekey.core.errors import NonDeterministic, OnceKeyError, StepFailed, TerminalError
from oncekey.core.execution import (
    BODY,
    Promise,
    PromiseKind,
    PromiseState,
    Sort,
    Status,
)
from oncekey.core.ports import Gone
from oncekey.core.work import Ending
from oncekey.durable.failure import Failure, encode_failure, failure_of
from oncekey.durable.retry import Retry
from oncekey.durable.signature import unpack_arguments
from oncekey.durable.values import encode

if TYPE_CHECKING:
    from oncekey.durable.embedded.run import Run

# What code raises, and is no failure of it.
_NOT_OURS = (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit)


async def drive(run: Run) -> None:
    """Run a workflow or a task until it is over, paused, or taken from this process."""
    # Whoever started it may be an operation of its own, which this is no part of.
    CURRENT.set(None)
    try:
        ending = await (_task(run) if run.definition.sort is Sort.TASK else _workflow(run))
    except OnceKeyError as error:
        # Its code is out of attempts, and is to fail with that.
        ending = failure_ending(run, error)
    except asyncio.CancelledError:
        ending = None
        if is_cancelled() and not run.must_stop():
            # Nobody here did that: the loop ends. What is left is for another process.
            run.close()
            raise
    if not run.closed:
        run.finish(run.halted or ending or _stopped(run))


async def _workflow(run: Run) -> Ending:
    from oncekey.durable.embedded.context import EmbeddedContext

    definition = run.definition
    while True:
        context = EmbeddedContext(run)
        try:
            args = unpack_arguments(definition.signature, run.execution.input)
            value = await definition.function(context, *args)
            context.check_everything_was_seen()
            return success_of(run, encode(value, f"the result of {definition.name}"))
        except _NOT_OURS:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever the code raises is tried again
            failed = error
        if (final := _final_in(failed)) is not None:
            return failure_ending(run, final)
        context.close()
        await run.rewind()
        await try_later(run, BODY, definition.name, definition.retry, failed)


async def _task(run: Run) -> Ending:
    definition = run.definition
    try:
        args = unpack_arguments(definition.signature, run.execution.input)
        value = await attempt(run, 0, definition.name, definition.function, args, definition.retry)
        return success_of(run, encode(value, f"the result of {definition.name}"))
    except OnceKeyError as error:
        return failure_ending(run, error)


async def attempt(
    run: Run, seq: int, name: str, function: Callable[..., Any], args: Any, retry: Retry
) -> Any:
    """Call a function until it returns; raises what is final, or `StepFailed`."""
    task = asyncio.current_task()
    assert task is not None
    while True:
        await run.begin()
        run.busy.add(task)
        # The same name at every attempt, wherever the step is tried again.
        step = Attempt(run.id, seq, name)
        token = CURRENT.set(step)
        try:
            value = await _call(run, function, args)
            step.over = True
            return value
        except _NOT_OURS as error:
            # A step that cancels something of its own, and trips over that, has failed.
            if is_cancelled() or run.must_stop() or not isinstance(error, asyncio.CancelledError):
                raise
            failed: BaseException = error
        except BaseException as error:
            if isinstance(error, OnceKeyError) and not error.retryable:
                raise
            failed = error
        finally:
            CURRENT.reset(token)
            run.busy.discard(task)
        await try_later(run, seq, name, retry, failed)


def is_cancelled() -> bool:
    """Whether the task was told to end; not so when its code only met a cancellation."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _final_in(error: BaseException) -> OnceKeyError | None:
    """The failure that another attempt would meet again, also among those of several tasks."""
    if isinstance(error, BaseExceptionGroup):
        found = (_final_in(each) for each in error.exceptions)
        return next((each for each in found if each is not None), None)
    return error if isinstance(error, OnceKeyError) and not error.retryable else None


async def _call(run: Run, function: Callable[..., Any], args: Any) -> Any:
    """Async functions on the loop, others in a thread: a step that blocks stops nobody else."""
    code = getattr(function, "__code__", None)
    if (code is not None and code.co_flags & CO_COROUTINE) or iscoroutinefunction(function):
        return await function(*args)
    call = partial(copy_context().run, function, *args)
    result = await run.loop.run_in_executor(run.runs.threads, call)
    return await result if isawaitable(result) else result


async def try_later(run: Run, seq: int, name: str, retry: Retry, error: BaseException) -> None:
    """Wait before the next attempt, or give up by the rule. The count survives a restart."""
    known = run.promises.get(seq)
    attempts = (known.attempts if known else 0) + 1
    failure = failure_of(error)
    if attempts >= retry.attempts:
        raise _given_up(run, name, retry, failure, attempts) from error
    now = run.asking.clock.now()
    while True:
        promise = Promise(
            run.asking.draw(),
            run.execution.tenant,
            PromiseKind.RETRY,
            name,
            PromiseState.PENDING,
            now,
            run.id,
            seq,
            body=encode_failure(failure),
            due_at=now + round(retry.delay(attempts, run.id) * 1000),
            attempts=attempts,
        )
        if not isinstance(await run.promise(promise), Gone):
            break
    await run.wait(seq)


def _given_up(run: Run, name: str, retry: Retry, failure: Failure, attempts: int) -> BaseException:
    message = f"{name} failed {attempts} times, the last time with: {failure.message}"
    told = StepFailed(f"{message} ({failure.code})")
    match retry.on_max_attempts:
        case "raise":
            return told
        case "kill":
            return run.halt(failure_ending(run, told))
        case _:
            body = encode_failure(failure_of(told))
            return run.halt(Ending(Status.PAUSED, body, run.execution.keep))


def attempts_of(run: Run, seq: int) -> int:
    """How many attempts a step that has ended took."""
    known = run.promises.get(seq)
    return 1 if known is None else known.attempts + 1


def success_of(run: Run, result: bytes) -> Ending:
    return _ending(run, Status.SUCCEEDED, result)


def failure_ending(run: Run, error: OnceKeyError) -> Ending:
    if isinstance(error, NonDeterministic):
        return Ending(Status.PAUSED, encode_failure(failure_of(error)), run.execution.keep)
    return _ending(run, Status.FAILED, encode_failure(failure_of(error)))


def _ending(run: Run, status: Status, result: bytes) -> Ending:
    execution = run.execution
    keyed = execution.key is not None
    freed = keyed and execution.frees_key and status is not Status.SUCCEEDED
    plain = not freed and not run.leaves_promises()
    return Ending(status, result, execution.keep, keyed=keyed, plain=plain)


def _stopped(run: Run) -> Ending:
    error = TerminalError("the code of the workflow cancelled itself")
    return failure_ending(run, error)
