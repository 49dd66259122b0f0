"""Identifiers that no signature covers: what is signed is remembered beside them."""

import asyncio
from typing import Any

import pytest

from oncekey import App, Context, Kind, Ledger, Outcome
from oncekey.webhooks.acting import Answered, ForwardRequest
from tests.fixtures.post import header, post_on, told

pytestmark = pytest.mark.anyio

PUSH = {"ref": "refs/heads/main", "after": "abc"}


def office() -> App:
    app = App()

    @app.workflow
    async def build(ctx: Context, push: Any) -> None:
        pass

    return app


async def test_the_same_body_under_another_name_is_seen(ledger: Ledger) -> None:
    async with post_on(ledger, office()) as post:
        github = await post.webhook("github", "workflow:build")
        first = await github.deliver(PUSH, x_github_delivery="one")
        assert (first.status, told(first)["status"]) == (200, "started")
        for name in ("two", "three", "ONE", "one2"):
            captured = await github.deliver(PUSH, x_github_delivery=name)
            assert (captured.status, told(captured)) == (
                200, {"status": "ignored", "reason": "repeated-body"},
            )  # fmt: skip
        redelivered = await github.deliver(PUSH, x_github_delivery="one")
        assert (redelivered.status, redelivered.body) == (200, first.body)
        assert header(redelivered, b"idempotent-replayed") == b"true"
        assert len(await post.started()) == 1
        verdicts = ["accepted", *["repeated-body"] * 4, "replayed"]
        assert await github.verdicts(6) == verdicts
        assert 'came before as "github-one"' in (await github.log(6))[1].reason


async def test_a_name_that_was_used_does_nothing_with_another_body(ledger: Ledger) -> None:
    async with post_on(ledger, office()) as post:
        github = await post.webhook("github", "workflow:build")
        first = await github.deliver(PUSH, x_github_delivery="one")
        again = await github.deliver({"ref": "other"}, x_github_delivery="one")
        assert (again.status, again.body) == (200, first.body)
        # Nor does it spoil that body for its own name.
        own = await github.deliver({"ref": "other"}, x_github_delivery="two")
        assert told(own)["status"] == "started"
        assert len(await post.started()) == 2


async def test_bodies_that_repeat_are_let_through_where_that_is_wanted(ledger: Ledger) -> None:
    async with post_on(ledger, office()) as post:
        github = await post.webhook("github", "workflow:build", repeats="allow")
        for name in ("one", "two"):
            assert told(await github.deliver(PUSH, x_github_delivery=name))["status"] == "started"
        assert len(await post.started()) == 2


async def test_webhooks_do_not_share_bodies(ledger: Ledger) -> None:
    async with post_on(ledger, office()) as post:
        for name in ("one", "two"):
            github = await post.webhook("github", "workflow:build")
            assert told(await github.deliver(PUSH, x_github_delivery=name))["status"] == "started"


async def test_what_was_purged_runs_again_under_its_own_name_only(ledger: Ledger) -> None:
    async with post_on(ledger, office()) as post:
        github = await post.webhook("github", "workflow:build")
        await github.deliver(PUSH, x_github_delivery="one")
        assert await github.purge("one")
        other = await github.deliver(PUSH, x_github_delivery="two")
        assert told(other)["reason"] == "repeated-body"
        again = await github.deliver(PUSH, x_github_delivery="one")
        assert told(again)["status"] == "started"
        assert len(await post.started()) == 2


async def test_while_one_is_handled_another_name_for_it_waits(ledger: Ledger) -> None:
    """Whether the first comes to something is not known yet."""
    begun, go, answers = asyncio.Event(), asyncio.Event(), [500, 200]

    async def behind(_: ForwardRequest) -> Answered:
        begun.set()
        await go.wait()
        status = answers.pop(0)
        return Answered(Outcome(Kind.RESPONSE, status), status == 200)

    async with post_on(ledger, forward=behind) as post:
        github = await post.webhook("github", "forward:/builds")
        first = asyncio.create_task(github.deliver(PUSH, x_github_delivery="one"))
        await begun.wait()
        other = await github.deliver(PUSH, x_github_delivery="two")
        assert other.status == 503
        same = await github.deliver(PUSH, x_github_delivery="one")
        assert same.status == 503
        go.set()
        assert (await first).status == 500
        # It failed, and gave the body back: whoever comes next has it.
        assert (await github.deliver(PUSH, x_github_delivery="two")).status == 200
        late = await github.deliver(PUSH, x_github_delivery="one")
        assert told(late)["reason"] == "repeated-body"


async def test_of_twenty_names_at_once_for_one_body_one_runs(ledger: Ledger) -> None:
    async with post_on(ledger, office()) as post:
        github = await post.webhook("github", "workflow:build")
        responses = await asyncio.gather(
            *(github.deliver(PUSH, x_github_delivery=f"n{n}") for n in range(20))
        )
        assert {each.status for each in responses} <= {200, 503}
        assert len(await post.started()) == 1
        assert not ledger._held


# -- Twilio's forms ----------------------------------------------------------------------------

FORM = b"AccountSid=AC1&ApiVersion=2010-04-01&Body=hello&MessageSid=SM1&MessageStatus=sent"


@pytest.mark.parametrize(
    "again",
    [
        FORM,
        b"MessageStatus=sent&MessageSid=SM1&Body=hello&ApiVersion=2010-04-01&AccountSid=AC1",
        FORM.replace(b"hello", b"%68ello"),
        FORM + b"&Body=hello",
        # Where a name ends and its value begins is not signed.
        FORM.replace(b"ApiVersion=2010", b"ApiVersion2=010"),
    ],
)
async def test_a_form_is_known_again_however_it_is_written(ledger: Ledger, again: bytes) -> None:
    async with post_on(ledger, office()) as post:
        twilio = await post.webhook("twilio", "workflow:build")
        token = "i-twilio-idempotency-token"
        captured = twilio.signed(FORM, **{token: "one"})
        assert told(await twilio.send(captured))["status"] == "started"
        lines = tuple((n, b"two" if n == token.encode() else v) for n, v in captured.headers)
        response = await twilio.send(captured._replace(body=again, headers=lines))
        assert (response.status, told(response)["reason"]) == (200, "repeated-body")
        assert len(await post.started()) == 1


async def test_a_form_without_a_token_is_named_by_what_is_signed(ledger: Ledger) -> None:
    async with post_on(ledger, office()) as post:
        twilio = await post.webhook("twilio", "event:'sms.' + body.MessageStatus")
        for status in ("sent", "delivered", "sent"):
            form = FORM.replace(b"=sent", b"=" + status.encode())
            response = await twilio.deliver(form)
            assert (response.status, told(response)["status"]) == (200, "published")
        published = await post.published()
        assert [each.topic for each in published] == ["sms.delivered", "sms.sent"]
        assert b'"Body":"hello"' in published[0].data
