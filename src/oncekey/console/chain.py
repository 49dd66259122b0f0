"""The way of a delivery, from what came to who waited for it, one stage after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from oncekey.console.links import place_of
from oncekey.console.timeline import Failure
from oncekey.console.visit import part
from oncekey.console.wording import sentence_of, spelled, tone_of

Shape = Mapping[str, Any]


class Stage(NamedTuple):
    what: str
    name: str = ""
    place: str | None = None
    """Where it is shown."""
    state: str | None = None
    tone: str = "off"
    says: Sequence[str] = ()
    waits: Sequence[Shape] = ()
    """What a workflow waits for now."""


class Around(NamedTuple):
    """What is known of things on the way beside the delivery itself."""

    promise: Shape | None = None
    waits: Sequence[Shape] = ()
    failure: Failure | None = None
    """Why a workflow failed or is paused."""


def chain_of(delivery: Shape, around: Around) -> list[Stage]:
    stages = [_delivery(delivery), _verdict(delivery)]
    if delivery["operation_id"] or delivery["key"]:
        stages.append(_key(delivery))
    brought = False
    for lead in delivery["leads_to"]:
        stages.append(_stage_of(lead, around, brought=brought))
        brought = brought or lead["kind"] == "promise"
    return stages


def _delivery(delivery: Shape) -> Stage:
    provider = delivery["provider"] or "a webhook that is gone"
    count = f"{delivery['times']} times" if delivery["times"] > 1 else ""
    says = [text for text in (f"From {provider}.", count and f"It came {count}.") if text]
    return Stage("Delivery", delivery["identifier"] or unnamed(delivery), says=says)


def unnamed(delivery: Shape) -> str:
    """What a delivery is called that has no identifier. What nobody vouches for is not read."""
    unread = delivery["reason"].startswith("signature-invalid")
    return "whose identifier is not believed" if unread else "without an identifier"


def _verdict(delivery: Shape) -> Stage:
    verdict = delivery["verdict"]
    return Stage("Verdict", state=verdict, tone=tone_of(verdict))


def _key(delivery: Shape) -> Stage:
    key = delivery["key"]
    if key is None:
        return Stage(
            "Key", delivery["operation_id"], state="gone", says=["It is not kept any more."]
        )
    says = []
    if key["state"] == "in_progress":
        says.append(
            "Its process is gone: the next attempt takes it over."
            if key["holder"] == "lapsed"
            else "It is being worked on now."
        )
    elif key["status"] is not None:
        says.append(f"Its provider hears {key['status']} for it, however often it comes.")
    place = f"/keys/{part(key['operation_id'])}"
    return Stage("Key", key["key"], place, key["state"], tone_of(key["state"]), says)


def _stage_of(lead: Shape, around: Around, *, brought: bool) -> Stage:
    match lead["kind"]:
        case "promise":
            return _promise(lead, around.promise)
        case "workflow" | "task":
            return _execution(lead, around, brought=brought)
        case "event":
            says = [sentence_of(lead["detail"])] if lead["detail"] else []
            return _seen("Event", lead, says)
        case _:
            good = lead["state"].startswith("answered 2")
            name = "behind the edge"
            return Stage("Service", name, state=lead["state"], tone="good" if good else "bad")


def _promise(lead: Shape, promise: Shape | None) -> Stage:
    if lead["id"] is None:
        says = ["Nobody has made it yet.", sentence_of(spelled(lead["detail"]))]
        return Stage("Promise", "not there yet", state=lead["state"], tone="warn", says=says)
    says = []
    if promise is not None and promise["key"]:
        says.append(f"Its key is {promise['key']}.")
    if lead["detail"] == "resolved-before":
        says.append("It had been settled before, so this delivery changed nothing.")
    return _seen("Promise", lead, says)


def _execution(lead: Shape, around: Around, *, brought: bool) -> Stage:
    says = []
    if lead["state"] == "waiting" and brought:
        says.append("It has what the delivery brought, and waits for something else:")
    elif lead["state"] in {"failed", "paused"}:
        says.append(_wrong(around.failure))
    stage = _seen("Task" if lead["kind"] == "task" else "Workflow", lead, says)
    return stage._replace(waits=around.waits if lead["state"] == "waiting" else ())


def _wrong(failure: Failure | None) -> str:
    if failure is None:
        return "The delivery reached it; what went wrong is in its journal."
    code = f"{failure.code}: " if failure.code else ""
    return sentence_of(f"The delivery reached it, and then it went wrong: {code}{failure.message}")


def _seen(what: str, lead: Shape, says: Sequence[str]) -> Stage:
    gone = lead["state"] == "gone"
    told = [*says, "It is not kept any more."] if gone else says
    place = None if gone else place_of(lead["id"])
    name = " ".join(filter(None, (lead["name"], lead["id"])))
    return Stage(what, name, place, lead["state"], tone_of(lead["state"]), told)
