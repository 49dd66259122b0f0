"""Workflows, promises and control: started once, resolved once, delivered, and controlled once."""

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from tests.chaos.story import Story

_OVER = frozenset({"succeeded", "failed", "cancelled"})


def started_once(story: Story) -> Iterator[str]:
    """A key starts one workflow; everybody else finds it."""
    for name in ("start:order", "start:three", "start:hold"):
        told = [e for e in story.at(name) if e.status in {200, 201}]
        ids = sorted({e.json["id"] for e in told})
        if len(ids) > 1:
            yield f"{name} led to {' and '.join(ids)}"
        bodies = sorted({e.sent.body for e in told})
        if len(bodies) > 1:
            yield f"{name} was answered for bodies {' and '.join(bodies)}"
        new = [str(e.sent.call) for e in told if e.status == 201]
        if len(new) > 1:
            yield f"{name}: calls {', '.join(new)} are all told that they started it"


def one_result(story: Story) -> Iterator[str]:
    """A workflow that is over stays as it is, for everybody."""
    seen: dict[str, set[str]] = defaultdict(set)
    for each in _seen(story):
        if each["status"] in _OVER:
            seen[each["id"]].add(json.dumps([each["status"], each.get("result")]))
    for workflow, ends in seen.items():
        if len(ends) > 1:
            yield f"{workflow} is {' and '.join(sorted(ends))}"


def one_winner(story: Story) -> Iterator[str]:
    """One resolution wins, it is told so every time, and its value is what the workflow got."""
    won: dict[str, set[bool]] = defaultdict(set)
    for each in story.at("resolve"):
        # Whoever is parked (202) has not won yet: several may be, and the first of them does.
        if each.status == 200:
            won[json.loads(each.sent.body)].add(not each.json["already_resolved"])
    winners = sorted(value for value, verdicts in won.items() if True in verdicts)
    if len(winners) > 1:
        yield f"{' and '.join(winners)} are all told that they won"
    for value, verdicts in won.items():
        if len(verdicts) > 1:
            yield f"{value} is told that it won, and that it did not"
    for told in _told(story):
        if told not in (winners or [f"hook-{story.job}"]):
            yield f"{told} was delivered, and not {' or '.join(winners) or 'the webhook'}"


def accepted_is_delivered(story: Story) -> Iterator[str]:
    """What was accepted, early or late, reaches the workflow, which then ends."""
    accepted = [e for place in ("resolve", "hook") for e in story.at(place) if e.status < 300]
    ends = [each["status"] for each in _seen(story) if each["name"] == "order"]
    if accepted and ends and "succeeded" not in ends:
        yield f"call {accepted[0].sent.call} was accepted, and the workflow is {ends[-1]}"


def results_are_journaled(story: Story) -> Iterator[str]:
    """The result tells of steps that were done, each building upon the one before."""
    known = {effect.mark: effect for effect in story.effects}
    for each in _seen(story):
        marks = each["result"]["marks"] if each["status"] == "succeeded" else []
        for before, mark in zip(["", *marks], marks, strict=False):
            effect = known.get(mark)
            if effect is None:
                yield f"{each['id']} tells of {mark}, which nobody did"
            elif effect.saw != before:
                yield f"{each['id']} tells of {mark} after {before}, but it saw {effect.saw}"


def controlled_once(story: Story) -> Iterator[str]:
    """A control operation is done once for its key: one is told so first, all are told the same."""
    for action in ("cancel", "fork"):
        told = [e for e in story.at(action) if e.status == 200]
        first = [str(e.sent.call) for e in told if not e.json["idempotency_replayed"]]
        if len(first) > 1:
            yield f"{action}: calls {', '.join(first)} are all told that they did it"
        ids = sorted({e.json["workflow_id"] for e in told})
        if len(ids) > 1:
            yield f"{action} led to {' and '.join(ids)}"
        for each in story.at(action):
            if 400 <= each.status < 500 and each.problem != "request-in-progress":
                yield f"{action}: call {each.sent.call} was told {each.status} {each.problem}"


def cancelled_stays_cancelled(story: Story) -> Iterator[str]:
    """From the first answer on, nobody sees it going on."""
    done = [e.ended for e in story.at("cancel") if e.status == 200]
    for each in story.at("see"):
        late = done and each.status == 200 and each.sent.at > min(done)
        if late and each.json["status"] != "cancelled":
            yield f"call {each.sent.call} saw it {each.json['status']}"


def forks_build_on_what_was_done(story: Story) -> Iterator[str]:
    """What stands before the step of a fork is not done again, and is the same in both."""
    runs = {each["id"]: each for each in _seen(story) if each["status"] == "succeeded"}
    for each in runs.values():
        if each["forked_from"] not in runs:
            continue
        before = runs[each["forked_from"]]["result"]["marks"][0]
        if each["result"]["marks"][0] != before:
            yield f"{each['id']} begins with {each['result']['marks'][0]}, not with {before}"
        for effect in story.effects:
            if effect.key == f"{each['id']}:one":
                yield f"{effect.mark} was done again in {each['id']}"


def strangers_see_nothing(story: Story) -> Iterator[str]:
    """The same id asked for by another tenant does not exist."""
    for each in story.at("see"):
        if each.sent.who != "acme" and each.status < 300:
            yield f"call {each.sent.call} of {each.sent.who} was told {each.text[:200]}"


def _seen(story: Story) -> list[Any]:
    return [e.json for e in story.at("see") if e.status == 200]


def _told(story: Story) -> list[str]:
    ends = [each["result"] for each in _seen(story) if each["status"] == "succeeded"]
    return sorted({result["told"] for result in ends if "told" in result})
