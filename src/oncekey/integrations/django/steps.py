"""One source for two colours: an exchange is a generator of steps, driven by thread or loop."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple, TypeVar

from asgiref.sync import sync_to_async

from oncekey.core.claim import Claim
from oncekey.core.current import within
from oncekey.core.ledger import Ledger
from oncekey.core.steps import Steps
from oncekey.core.steps import adrive as adrive_steps
from oncekey.core.steps import drive as drive_steps
from oncekey.integrations.django.ledgers import is_inside

T = TypeVar("T")
View = Callable[[], Any]


class Ask(NamedTuple):
    """A verb of the ledger, or of a claim on it."""

    ledger: Ledger
    verb: Callable[..., Any]
    averb: Callable[..., Any]


class Work(NamedTuple):
    """Something that blocks, or that asks Django's database."""

    function: Callable[[], Any]


class Run(NamedTuple):
    """Call the view and render what it answers."""

    claim: Claim | None = None


def begin(ledger: Ledger, *args: Any, **options: Any) -> Ask:
    return Ask(
        ledger,
        lambda: ledger.begin(*args, **options),
        lambda: ledger.abegin(*args, **options),
    )


def attach(ledger: Ledger, *args: Any) -> Ask:
    return Ask(ledger, lambda: ledger.attach(*args), lambda: ledger.aattach(*args))


def settle(ledger: Ledger, claim: Claim, outcome: Any) -> Ask:
    return Ask(ledger, lambda: claim.settle(outcome), lambda: claim.asettle(outcome))


def release(ledger: Ledger, claim: Claim) -> Ask:
    return Ask(ledger, claim.release, claim.arelease)


def drive(steps: Steps[T], view: View) -> T:
    """Drive by blocking this thread."""
    return drive_steps(steps, partial(_perform, view=view))


async def adrive(steps: Steps[T], view: View) -> T:
    """Drive on the running event loop."""
    return await adrive_steps(steps, partial(_aperform, view=view))


def _perform(step: Ask | Work | Run, view: View) -> Any:
    match step:
        case Ask(_, verb):
            return verb()
        case Work(function):
            return function()
        case Run(claim):
            with _within(claim):
                response = view()
                return response.render() if _is_unrendered(response) else response


async def _aperform(step: Ask | Work | Run, view: View) -> Any:
    match step:
        case Ask(ledger, verb, averb):
            # A ledger inside a connection lives in the thread that Django keeps for its database.
            return await (sync_to_async(verb)() if is_inside(ledger) else averb())
        case Work(function):
            return await sync_to_async(function)()
        case Run(claim):
            with _within(claim):
                response = await view()
                unrendered = _is_unrendered(response)
                return await sync_to_async(response.render)() if unrendered else response


def _within(claim: Claim | None) -> AbstractContextManager[None]:
    return nullcontext() if claim is None else within(claim)


def _is_unrendered(response: Any) -> bool:
    return not getattr(response, "is_rendered", True) and callable(response.render)
