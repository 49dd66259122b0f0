"""Intents in a browser: they outlive pages, tabs and the browser, and hold no credentials."""

import json
import os
import signal
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

from tests.fixtures.edge_site import token
from tests.fixtures.web_shop import WebShop, lasting_browser, pid_of

DAY = 24 * 60 * 60 * 1000
SEND = """
const intent = await shop().intent("checkout:42");
window.sent = intent.post(orders, tea).then(shown);
return intent.key;
"""
RESUME = """
window.resumed = (async () => {
  const answers = [];
  for (const intent of await shop().pending()) answers.push(shown(await intent.resume()));
  return answers;
})();
"""
# Every byte of every database of the page, bodies as text.
KEPT = """
const told = [];
for (const { name } of await indexedDB.databases()) {
  const database = await new Promise((done) => {
    indexedDB.open(name).onsuccess = ({ target }) => done(target.result);
  });
  for (const store of database.objectStoreNames) {
    told.push(await new Promise((done) => {
      const asked = database.transaction(store).objectStore(store).getAll();
      asked.onsuccess = () => done(asked.result);
    }));
  }
  database.close();
}
const text = (_, value) => (value instanceof Uint8Array ? new TextDecoder().decode(value) : value);
return JSON.stringify([told, { ...localStorage }, { ...sessionStorage }, document.cookie], text);
"""


def send_and_hold(shop: WebShop, page: Page) -> str:
    """The key of a request that the service has got, and whose page is about to go."""
    shop.service.gate.clear()
    key: str = shop.run(page, SEND)
    shop.service.arrived.acquire()
    return key


def resume(shop: WebShop, page: Page) -> Any:
    """The request of the page before it ends when this one has asked."""
    shop.run(page, RESUME)
    page.wait_for_function("window.events.some((each) => each.reason === 'in progress')")
    shop.service.gate.set()
    (answer,) = page.evaluate("window.resumed")
    return answer


def test_a_page_that_was_reloaded_goes_on(web_shop: WebShop, page: Page) -> None:
    page = web_shop.visit(page.context)
    key = send_and_hold(web_shop, page)
    page.reload()
    answer = resume(web_shop, page)

    assert (answer["status"], answer["replayed"], answer["key"]) == (201, True, key)
    assert len(web_shop.effects) == 1
    assert web_shop.run(page, "return (await shop().pending()).length;") == 0


def test_a_tab_that_was_closed_is_followed_by_another(web_shop: WebShop, page: Page) -> None:
    context = page.context
    page = web_shop.visit(context)
    key = send_and_hold(web_shop, page)
    page.close()
    answer = resume(web_shop, web_shop.visit(context))

    assert (answer["status"], answer["key"]) == (201, key)
    assert len(web_shop.effects) == 1


def test_a_browser_that_was_killed_goes_on(
    web_shop: WebShop, browser: Browser, tmp_path: Path
) -> None:
    profile = tmp_path / "profile"
    with lasting_browser(browser, profile) as context:
        page = web_shop.visit(context)
        key = send_and_hold(web_shop, page)
        with context.expect_event("close"):
            os.kill(pid_of(profile), signal.SIGKILL)
    with lasting_browser(browser, profile) as context:
        answer = resume(web_shop, web_shop.visit(context))

    assert (answer["status"], answer["replayed"], answer["key"]) == (201, True, key)
    assert len(web_shop.effects) == 1


def test_answers_outlive_the_browser(web_shop: WebShop, browser: Browser, tmp_path: Path) -> None:
    post = 'return shown(await (await shop().intent("checkout:42")).post(orders, tea));'
    answers = []
    for _ in range(2):
        with lasting_browser(browser, tmp_path / "profile") as context:
            answers.append(web_shop.run(web_shop.visit(context), post))

    assert [each["from"] for each in answers] == ["sent", "remembered"]
    assert answers[0]["body"] == answers[1]["body"]
    assert len(web_shop.effects) == 1


def test_an_answer_is_recovered_without_an_effect(web_shop: WebShop, page: Page) -> None:
    page = web_shop.visit(page.context)
    never = 'return await (await shop().intent("checkout:42")).recover();'
    assert web_shop.run(page, never) is None
    send_and_hold(web_shop, page)
    page.reload()

    recover = "const [intent] = await shop().pending(); return shown(await intent.recover());"
    running = web_shop.run(page, recover)
    assert (running["error"], running["code"], running["status"]) == ("InFlight", "in-flight", 202)
    web_shop.service.gate.set()
    answer = web_shop.run(page, recover)

    assert (answer["status"], answer["from"], answer["replayed"]) == (201, "recovered", True)
    assert len(web_shop.effects) == 1
    assert web_shop.run(page, "return (await shop().pending()).length;") == 0


def test_what_the_server_knows_nothing_of_is_null(web_shop: WebShop, page: Page) -> None:
    page = web_shop.visit(page.context)
    failing = 'fetch: async () => { throw new TypeError("cut"); }'
    steps = f"""
    const intent = await shop({{ attempts: 1, {failing} }}).intent("a");
    return await intent.post(orders, tea);
    """
    assert web_shop.run(page, steps)["error"] == "GaveUp"
    steps = """
    const [intent] = await shop().pending();
    return [await intent.recover(), shown(await intent.resume()).status];
    """
    assert web_shop.run(page, steps) == [None, 201]
    assert len(web_shop.effects) == 1


def test_no_credentials_are_kept(web_shop: WebShop, page: Page) -> None:
    page = web_shop.visit(page.context)
    bearer = token()
    steps = """
    const intent = await shop().intent("checkout:42");
    const headers = { "X-API-Key": "hush", Cookie: "hush", "X-Shop": "seven" };
    return shown(await intent.post(orders, { ...tea, headers }));
    """
    # Two credentials at once are refused: nothing but the key of the intent is known then.
    assert web_shop.run(page, steps, bearer=bearer)["error"] == "CredentialsRefused"
    steps = """
    const [intent] = await shop().pending();
    return shown(await intent.resume());
    """
    answer = web_shop.run(page, steps, bearer=bearer)
    kept = web_shop.run(page, KEPT)

    assert answer["status"] == 201
    assert [word in kept for word in (answer["key"], "seven", "tea")] == [True, True, True]
    assert "hush" not in kept
    assert bearer not in kept
    assert bearer.rpartition(".")[2] not in kept


def test_two_tabs_have_one_key(web_shop: WebShop, page: Page) -> None:
    """Each with two clients that ask for the same names, all of them at a word of a third tab."""
    *tabs, third = [web_shop.visit(page.context) for _ in range(3)]
    capture = """
    const clients = [];
    for (const _ of [1, 2]) clients.push(shop({ intents: await indexedDBIntents() }));
    const names = Array.from({ length: 20 }, (_, n) => `checkout:${n}`);
    const start = new BroadcastChannel("start");
    const told = new Promise((go) => { start.onmessage = go; });
    const asked = () => names.flatMap((name) => clients.map((each) => each.intent(name)));
    window.keys = told.then(() => Promise.all(asked())).then((all) => all.map((each) => each.key));
    """
    for tab in tabs:
        web_shop.run(tab, capture)
    third.evaluate("new BroadcastChannel('start').postMessage('go')")
    one, other = [tab.evaluate("window.keys") for tab in tabs]

    assert one == other
    assert (len(one), len(set(one))) == (40, 20)
    captured = [
        each for tab in tabs for each in tab.evaluate("window.events") if each["type"] == "captured"
    ]
    assert len(captured) == 20


def test_two_tabs_have_one_effect(web_shop: WebShop, page: Page) -> None:
    tabs = [web_shop.visit(page.context) for _ in range(2)]
    web_shop.service.gate.clear()
    for tab in tabs:
        web_shop.run(tab, SEND)
    web_shop.service.arrived.acquire()
    web_shop.service.gate.set()
    one, other = [tab.evaluate("window.sent") for tab in tabs]

    assert (one["body"], one["key"]) == (other["body"], other["key"])
    assert len(web_shop.effects) == 1


def test_the_first_request_of_a_name_counts_in_all_tabs(web_shop: WebShop, page: Page) -> None:
    first, second = [web_shop.visit(page.context) for _ in range(2)]
    post = """
    const intent = await shop().intent("checkout:42");
    return shown(await intent.post(orders, { json: { item: given } }));
    """
    assert web_shop.run(first, post, "tea")["status"] == 201
    told = web_shop.run(second, post, "cake")

    assert (told["error"], told["code"]) == ("IntentChanged", "intent-changed")
    assert [json.loads(each.body)["item"] for each in web_shop.effects] == ["tea"]


def test_a_known_answer_needs_no_network(web_shop: WebShop, page: Page) -> None:
    page = web_shop.visit(page.context)
    post = """
    const intent = await shop({ clock: () => given }).intent("checkout:42");
    return shown(await intent.post(orders, tea));
    """
    now = 1_800_000_000_000
    first = web_shop.run(page, post, now)
    page.context.set_offline(True)
    again = web_shop.run(page, post, now + DAY - 1)
    page.context.set_offline(False)

    assert (again["from"], again["attempts"]) == ("remembered", 0)
    assert (again["body"], again["operationId"]) == (first["body"], first["operationId"])
    later = web_shop.run(page, post, now + DAY)
    assert later["key"] != first["key"]
    assert len(web_shop.effects) == 2


def test_what_was_sent_long_ago_is_asked_for_only(web_shop: WebShop, page: Page) -> None:
    page = web_shop.visit(page.context)
    now = 1_800_000_000_000
    steps = """
    window.controller = new AbortController();
    const { signal } = controller;
    const intent = await shop({ clock: () => given }).intent("checkout:42");
    window.told = intent.post(orders, { ...tea, signal }).catch((error) => error.name);
    """
    web_shop.service.gate.clear()
    web_shop.run(page, steps, now)
    web_shop.service.arrived.acquire()
    assert page.evaluate("controller.abort(), window.told") == "AbortError"
    web_shop.service.gate.set()

    steps = """
    const intent = await shop({ clock: () => given }).intent("checkout:42");
    return await intent.post(orders, tea);
    """
    told = web_shop.run(page, steps, now + DAY)
    assert (told["error"], told["code"]) == ("IntentTooOld", "intent-too-old")
    steps = """
    const [intent] = await shop({ clock: () => given }).pending();
    return [await intent.resume().catch(({ code }) => code), shown(await intent.recover()).from];
    """
    assert web_shop.run(page, steps, now + DAY) == ["intent-too-old", "recovered"]
    assert len(web_shop.effects) == 1


def test_it_is_sent_again_where_somebody_insists(web_shop: WebShop, page: Page) -> None:
    page = web_shop.visit(page.context)
    steps = """
    let now = 1_800_000_000_000;
    const cut = async () => { throw new TypeError("cut"); };
    const failing = shop({ clock: () => now, attempts: 1, fetch: cut });
    await (await failing.intent("a")).post(orders, tea).catch(() => {});
    now += given;
    const [intent] = await shop({ clock: () => now }).pending();
    return shown(await intent.resume({ force: true }));
    """
    assert web_shop.run(page, steps, DAY)["status"] == 201
    assert len(web_shop.effects) == 1


def test_what_was_given_up_is_forgotten(web_shop: WebShop, page: Page) -> None:
    page = web_shop.visit(page.context)
    steps = """
    const intent = await shop().intent("a");
    await intent.abandon();
    const next = await shop().intent("a");
    return [(await shop().pending()).map((each) => each.key), intent.key, next.key];
    """
    pending, abandoned, following = web_shop.run(page, steps)
    assert pending == [following]
    assert abandoned != following


def test_memory_is_forgotten_with_the_page(web_shop: WebShop, page: Page) -> None:
    page = web_shop.visit(page.context)
    steps = """
    const client = shop({ intents: memoryIntents() });
    const intent = await client.intent("a");
    return [intent.key === (await client.intent("a")).key, (await client.pending()).length];
    """
    assert web_shop.run(page, steps) == [True, 1]
    assert web_shop.run(page, "return (await shop().pending()).length;") == 0
    assert web_shop.run(page, "return (await indexedDB.databases()).map((each) => each.name);") == [
        "oncekey"
    ]


def test_a_database_that_was_deleted_begins_anew(web_shop: WebShop, page: Page) -> None:
    """As when somebody clears what sites keep: nobody is kept waiting, and pages go on."""
    page = web_shop.visit(page.context)
    steps = """
    const client = shop();
    const first = await client.intent("a");
    await new Promise((done, fail) => {
      const asked = indexedDB.deleteDatabase("oncekey");
      asked.onsuccess = done;
      asked.onblocked = fail;
    });
    return first.key !== (await client.intent("a")).key;
    """
    assert web_shop.run(page, steps) is True


def test_where_nothing_may_be_kept_there_is_memory(web_shop: WebShop, page: Page) -> None:
    """Unless a place was named: then nothing is sent without it."""
    page = web_shop.visit(page.context)
    steps = """
    const refused = { open: () => { throw new DOMException("denied", "SecurityError"); } };
    return await shop({ intents: indexedDBIntents("x", refused) }).intent("a");
    """
    told = web_shop.run(page, steps)
    assert (told["error"], told["retryable"]) == ("IntentNotKept", True)
    page.add_init_script(
        """Object.defineProperty(window, "indexedDB", { value: {
          open() { throw new DOMException("denied", "SecurityError"); } } });"""
    )
    page.reload()
    answer = web_shop.run(page, 'return shown(await (await shop().intent("a")).post(orders, tea));')
    assert answer["status"] == 201
    assert page.evaluate("window.events[0]")["type"] == "not-kept"


def test_pages_that_came_without_encryption_have_keys_too(
    web_shop: WebShop, browser: Browser, tmp_path: Path
) -> None:
    words = "--host-resolver-rules=MAP shop.test 127.0.0.1"
    with lasting_browser(browser, tmp_path / "profile", words) as context:
        page = web_shop.visit(context, web_shop.url.replace("127.0.0.1", "shop.test"))
        assert page.evaluate("[isSecureContext, 'randomUUID' in crypto]") == [False, False]
        answer = web_shop.run(
            page, 'return shown(await (await shop().intent("a")).post(orders, tea));'
        )
    assert answer["status"] == 201
    assert len(answer["key"]) == 36
    assert len(web_shop.effects) == 1
