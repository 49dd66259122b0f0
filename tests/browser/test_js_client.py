"""The client for browsers, in one, through the edge: one effect, whatever happens on the way."""

import json

from playwright.sync_api import BrowserContext, Page

from tests.fixtures.proxy import Proxy
from tests.fixtures.site import Heard, Reply
from tests.fixtures.web_shop import ORDERS, WebShop

POST = """
const intent = await shop(given ?? {}).intent("checkout:42");
return shown(await intent.post(orders, tea));
"""


def in_order(shop: WebShop, *replies: Reply) -> None:
    """The service gives these answers, and then makes an order."""
    rest, order = list(replies), shop.service.answer

    def answer(heard: Heard) -> Reply:
        return rest.pop(0) if rest else order(heard)

    shop.service.answer = answer


def events(page: Page, kind: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = page.evaluate("window.events")
    return [each for each in found if each["type"] == kind]


def test_the_first_time_it_is_done(web_shop: WebShop, page: Page) -> None:
    page = web_shop.visit(page.context)
    answer = web_shop.run(page, POST)

    assert (answer["status"], answer["from"], answer["replayed"]) == (201, "sent", False)
    assert answer["operationId"].startswith("op_")
    (effect,) = web_shop.effects
    assert json.loads(effect.body) == {"item": "tea"}
    assert effect.headers["content-type"] == "application/json"
    assert effect.headers["idempotency-key"] == f"t-acme:shop:user:alice:{answer['key']}"


def test_a_key_that_is_known_gets_the_stored_answer(web_shop: WebShop, page: Page) -> None:
    page = web_shop.visit(page.context)
    steps = """
    const draw = () => "tea-1";
    const answers = [];
    for (const intents of [memoryIntents(), memoryIntents()]) {
      const intent = await shop({ intents, draw }).intent("a");
      answers.push(shown(await intent.post(orders, tea)));
    }
    return answers;
    """
    first, again = web_shop.run(page, steps)

    assert (first["replayed"], again["replayed"]) == (False, True)
    assert again["body"] == first["body"]
    assert again["operationId"] == first["operationId"]
    assert len(web_shop.effects) == 1


def test_two_at_once_are_one(web_shop: WebShop, page: Page) -> None:
    page = web_shop.visit(page.context)
    web_shop.service.gate.clear()
    steps = """
    const intent = await shop().intent("checkout:42");
    const both = [intent.post(orders, tea), intent.post(orders, tea)];
    window.both = Promise.all(both.map((each) => each.then(shown)));
    """
    web_shop.run(page, steps)
    page.wait_for_function("window.events.some((each) => each.reason === 'in progress')")
    web_shop.service.gate.set()
    one, other = page.evaluate("window.both")

    assert one["body"] == other["body"]
    assert {one["replayed"], other["replayed"]} == {False, True}
    assert len(web_shop.effects) == 1


def test_what_runs_is_waited_for(web_shop: WebShop, page: Page) -> None:
    """The first request is somebody else's: another device of the same user, with the same key."""
    page = web_shop.visit(page.context)
    web_shop.service.gate.clear()
    steps = """
    const first = await shop({ intents: memoryIntents(), draw: () => "tea-1" }).intent("a");
    window.first = first.post(orders, tea).then(shown);
    """
    web_shop.run(page, steps)
    web_shop.service.arrived.acquire()
    steps = """
    const client = shop({ intents: memoryIntents(), draw: () => "tea-1", attempts: 1 });
    const second = await client.intent("a");
    window.second = second.post(orders, tea).then(shown);
    """
    web_shop.run(page, steps)
    page.wait_for_function("window.events.some((each) => each.reason === 'in progress')")
    web_shop.service.gate.set()

    assert page.evaluate("window.second")["body"] == page.evaluate("window.first")["body"]
    assert events(page, "retry")[0]["after"] == 1000
    assert len(web_shop.effects) == 1


def test_a_service_that_is_away_is_asked_again(web_shop: WebShop, page: Page) -> None:
    in_order(web_shop, Reply(b"", 503, {"Retry-After": "7"}), Reply(b"", 429))
    page = web_shop.visit(page.context)
    steps = """
    window.slept = [];
    const client = shop({ random: () => 1, sleep: async (ms) => { window.slept.push(ms); } });
    const intent = await client.intent("checkout:42");
    return shown(await intent.post(orders, tea));
    """
    answer = web_shop.run(page, steps)

    assert (answer["status"], answer["attempts"]) == (201, 3)
    assert page.evaluate("window.slept") == [7000, 400]
    keys = {each.headers["idempotency-key"] for each in web_shop.effects}
    bodies = {each.body for each in web_shop.effects}
    assert (len(keys), len(bodies), len(web_shop.effects)) == (1, 1, 3)


def test_an_answer_that_was_cut_off_is_got_again(web_shop: WebShop, page: Page) -> None:
    proxy = Proxy(int(web_shop.url.rpartition(":")[2]))
    try:
        page = web_shop.visit(page.context, f"http://127.0.0.1:{proxy.port}")
        proxy.cut(f"POST {ORDERS}".encode(), "after")
        answer = web_shop.run(page, POST)

        assert proxy.was_cut.is_set()
        assert (answer["status"], answer["replayed"]) == (201, True)
        assert len(web_shop.effects) == 1
    finally:
        page.context.close()
        proxy.close()


def test_without_a_network_it_is_pending_until_there_is_one(web_shop: WebShop, page: Page) -> None:
    context: BrowserContext = page.context
    page = web_shop.visit(context)
    web_shop.run(page, 'await shop().intent("warm");')
    context.set_offline(True)
    steps = """
    const client = window.client = shop({ attempts: 3, sleep });
    const intent = await client.intent("checkout:42");
    try {
      await intent.post(orders, tea);
    } catch (error) {
      const pending = (await client.pending()).map((each) => each.name);
      return [error.code, error.retryable, error.cause.name, pending];
    }
    """
    assert web_shop.run(page, steps) == ["gave-up", True, "TypeError", ["warm", "checkout:42"]]
    assert [each["attempt"] for each in events(page, "attempt")] == [1, 2, 3]
    context.set_offline(False)
    steps = """
    const answers = [];
    for (const intent of await window.client.pending()) answers.push(shown(await intent.resume()));
    return answers;
    """
    nothing, answer = web_shop.run(page, steps)

    assert nothing is None
    assert (answer["status"], answer["replayed"]) == (201, False)
    assert len(web_shop.effects) == 1


def test_a_key_of_another_request_is_final(web_shop: WebShop, page: Page) -> None:
    page = web_shop.visit(page.context)
    steps = """
    const draw = () => "tea-1";
    await (await shop({ intents: memoryIntents(), draw }).intent("a")).post(orders, tea);
    const client = window.client = shop({ intents: memoryIntents(), draw });
    return await (await client.intent("b")).post(orders, { json: { item: "cake" } });
    """
    told = web_shop.run(page, steps)

    assert (told["error"], told["code"]) == ("KeyReused", "idempotency-key-reused")
    assert (told["status"], told["key"], told["retryable"]) == (422, "tea-1", False)
    assert web_shop.run(page, "return (await window.client.pending()).length;") == 0
    assert len(web_shop.effects) == 1


def test_better_credentials_use_the_same_key(web_shop: WebShop, page: Page) -> None:
    page = web_shop.visit(page.context)
    told = web_shop.run(page, POST, bearer="none that is good")
    assert (told["error"], told["status"]) == ("CredentialsRefused", 401)
    assert web_shop.effects == []

    answer = web_shop.run(page, POST)
    assert (answer["status"], answer["key"]) == (201, told["key"])
    assert len(web_shop.effects) == 1


def test_a_route_that_takes_no_keys_says_so(web_shop: WebShop, page: Page) -> None:
    page = web_shop.visit(page.context)
    steps = 'return await (await shop().intent("a")).post("/api/v1/reads", tea);'
    told = web_shop.run(page, steps)

    assert (told["error"], told["status"]) == ("KeyRefused", 400)
    assert "Leave the Idempotency-Key header out" in told["message"]
    assert web_shop.effects == []


def test_a_service_that_broke_off_is_not_asked_again(web_shop: WebShop, page: Page) -> None:
    """The edge answers 502, and from then on 409: nobody knows how it ended."""
    page = web_shop.visit(page.context)
    web_shop.service.gate.clear()
    steps = """
    const intent = await shop({ sleep }).intent("checkout:42");
    window.told = intent.post(orders, tea).catch(({ code, answer }) => [code, answer.status]);
    """
    web_shop.run(page, steps)
    web_shop.service.arrived.acquire()

    def break_off(_: Heard) -> Reply:
        raise ConnectionResetError

    web_shop.service.answer = break_off
    web_shop.service.gate.set()
    assert page.evaluate("window.told") == ["outcome-unknown", 409]
    assert [each["reason"] for each in events(page, "retry")] == ["status 502"]
    assert web_shop.run(page, "return (await shop().pending()).length;") == 1
    assert len(web_shop.effects) == 1


def test_the_caller_ends_it(web_shop: WebShop, page: Page) -> None:
    page = web_shop.visit(page.context)
    web_shop.service.gate.clear()
    steps = """
    window.controller = new AbortController();
    const intent = await shop().intent("checkout:42");
    const { signal } = controller;
    window.told = intent.post(orders, { ...tea, signal }).catch((error) => error.message);
    """
    web_shop.run(page, steps)
    web_shop.service.arrived.acquire()
    told = page.evaluate("controller.abort(new Error('the user left')), window.told")
    assert told == "the user left"
    web_shop.service.gate.set()

    steps = "const [intent] = await shop().pending(); return shown(await intent.resume());"
    assert web_shop.run(page, steps)["status"] == 201
    assert len(web_shop.effects) == 1


def test_an_attempt_has_a_bound_in_time(web_shop: WebShop, page: Page) -> None:
    page = web_shop.visit(page.context)
    web_shop.service.gate.clear()
    steps = """
    const intent = await shop({ timeout: 200, attempts: 1000, sleep }).intent("checkout:42");
    window.told = intent.post(orders, tea).then(shown);
    """
    web_shop.run(page, steps)
    page.wait_for_function("window.events.some((each) => each.reason === 'in progress')")
    web_shop.service.gate.set()
    answer = page.evaluate("window.told")

    assert events(page, "retry")[0]["reason"] == "It took too long."
    assert (answer["status"], answer["replayed"]) == (201, True)
    assert len(web_shop.effects) == 1
