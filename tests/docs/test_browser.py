"""The page on browsers: its scripts run in one, and its gateway lets another origin in."""

import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.fixtures.edge_site import token
from tests.fixtures.gateways import program
from tests.fixtures.pages import DOCS
from tests.fixtures.ports import unused_port
from tests.fixtures.served import Serve
from tests.fixtures.web_shop import CLIENT, WebShop, pages, web_shop_of

TEXT = (DOCS / "how-to" / "browser.md").read_text()
README = (CLIENT / "README.md").read_text()
PAGE = "<!doctype html><html lang='en'><title>A shop</title>"
EXPOSED = "Idempotent-Replayed X-Operation-Id Retry-After Original-Request-Id Idempotency-Expires"
# For tests to reach what the page defines for its reader.
REACHED = "Object.assign(window, { client, ours, nobodys, careful, other, look, signOut });"


def blocks(language: str, text: str = TEXT) -> list[str]:
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```", text)


@pytest.fixture
def shop(serve: Serve, tmp_path: Path) -> Iterator[WebShop]:
    (body,) = blocks("html")
    script = "\n".join([*blocks("js"), REACHED, "window.isReady = true;"])
    with web_shop_of(serve, tmp_path, shop_html=PAGE + body, shop_js=script) as shop:
        yield shop


@pytest.fixture
def desk(shop: WebShop, page: Page) -> Page:
    """The page, as its reader sees it."""
    page.add_init_script(f"window.freshToken = async () => '{token()}'; window.userId = 'anna';")
    visit(shop, page)
    return page


def visit(shop: WebShop, page: Page) -> None:
    page.goto(f"{shop.url}/pages/shop.html")
    page.wait_for_function("window.isReady")


def test_two_clicks_are_one_order(shop: WebShop, desk: Page) -> None:
    desk.get_by_role("button", name="Buy tea").dblclick()
    expect(desk.get_by_role("status")).to_have_text("Order 1 is placed.")
    desk.wait_for_function("client.pending().then((all) => all.length === 0)")
    assert len(shop.effects) == 1


def test_a_page_that_comes_back_goes_on(shop: WebShop, desk: Page) -> None:
    shop.service.gate.clear()
    desk.get_by_role("button", name="Buy tea").click()
    shop.service.arrived.acquire()
    desk.goto("about:blank")
    shop.service.gate.set()
    visit(shop, desk)
    expect(desk.get_by_role("status")).to_have_text("Order 1 is placed.")
    assert len(shop.effects) == 1


def test_it_goes_on_when_there_is_a_network(shop: WebShop, desk: Page) -> None:
    desk.context.set_offline(True)
    steps = """
    client.intent("checkout:43").then((intent) => {
      const signal = AbortSignal.timeout(100);
      return intent.post("/orders", { json: { item: "cake" }, signal });
    }).catch((error) => error.name)
    """
    assert desk.evaluate(steps) == "TimeoutError"
    desk.context.set_offline(False)
    expect(desk.get_by_role("status")).to_have_text("Order 1 is placed.")
    assert len(shop.effects) == 1


def test_what_is_unknown_is_looked_for_and_given_up(shop: WebShop, desk: Page) -> None:
    assert desk.evaluate("client.intent('a').then(look)") is None
    assert desk.evaluate("client.pending().then((all) => all.length)") == 0
    assert shop.effects == []


def test_each_user_has_a_database(shop: WebShop, desk: Page) -> None:
    names = "indexedDB.databases().then((all) => all.map((each) => each.name).sort())"
    assert desk.evaluate(names) == ["oncekey", "shop:anna"]
    assert desk.evaluate("ours.intent('a').then((intent) => intent.name)") == "a"
    assert desk.evaluate("client.pending().then((all) => all.length)") == 0
    desk.evaluate("signOut()")
    desk.wait_for_function(f"{names}.then((all) => all.length === 1)")


def test_the_options_are_those_there_are(shop: WebShop, desk: Page) -> None:
    told = desk.evaluate(
        "careful.intent('b').then((intent) => intent.post('/orders', { json: { item: 'tea' } }))"
        ".catch(({ name, answer }) => [name, answer.status])"
    )
    # It was given no credentials.
    assert told == ["CredentialsRefused", 401]


def test_every_error_is_in_the_table() -> None:
    types = (CLIENT / "oncekey.d.ts").read_text()
    errors = re.findall(r"export class (\w+) extends OnceKeyError", types)
    source = (CLIENT / "lib" / "errors.js").read_text()
    codes = dict(
        re.findall(r"class (\w+) extends OnceKeyError \{\n  static code = \"(.+)\"", source)
    )
    told = dict(re.findall(r"(?m)^\| `(\w+)` \| `([\w-]+)` \|", TEXT))
    assert told == codes
    assert sorted(told) == sorted(errors)


def test_every_header_is_told() -> None:
    (nginx,) = blocks("nginx")
    for name in EXPOSED.split():
        assert name in nginx
        assert name in README
    kept_out = re.findall(r'(?m)^  "([\w-]+)",$', (CLIENT / "lib" / "request.js").read_text())
    assert len(kept_out) >= 8
    assert [name for name in kept_out if f"`{name}`" not in TEXT.lower()] == []


def test_links_of_the_readme_lead_somewhere() -> None:
    targets = re.findall(r"\]\((?!https?://)([^)#]+)(?:#([^)]+))?\)", README)
    assert [target for target, _ in targets if not (CLIENT / target).exists()] == []
    assert {anchor for _, anchor in targets if anchor} == {"another-origin"}
    assert "\n## Another origin\n" in TEXT


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def nginx(folder: Path, origin: str, oncekey: str) -> Iterator[str]:
    """The gateway of the page, for pages of this origin."""
    (server,) = blocks("nginx")
    port = unused_port()
    for told, real in {
        "listen 8080": f"listen 127.0.0.1:{port}",
        "https://shop.example.com": origin,
        "http://127.0.0.1:8700": oncekey,
    }.items():
        assert told in server
        server = server.replace(told, real)
    places = "".join(
        f"{name}_temp_path {name};" for name in "client_body proxy fastcgi uwsgi scgi".split()
    )
    file = folder / "nginx.conf"
    file.write_text(
        f"daemon off; pid nginx.pid; events {{}} http {{ access_log off; {places}\n{server} }}"
    )
    folder.chmod(0o755)
    words = [program("nginx"), "-p", str(folder), "-e", "stderr", "-c", str(file)]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    try:
        while not is_open(port):
            assert process.poll() is None
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


# The same key from elsewhere: refused, replayed, and asked for.
_ELSEWHERE = """async ({ module, api, bearer, key }) => {
  const { Client, memoryIntents } = await import(module);
  const tea = { json: { item: "tea" } };
  const headers = { Authorization: `Bearer ${bearer}` };
  const draw = () => key;
  const memory = () => ({ headers, draw, intents: memoryIntents() });
  const called = (options) => new Client(api, { ...memory(), ...options });
  const stranger = await called({ headers: { Authorization: "Bearer none" } }).intent("a");
  const refused = await stranger.post("/orders", tea).catch((error) => error.answer.code);
  const again = await (await called().intent("b")).post("/orders", tea);

  const intents = memoryIntents();
  const cut = async () => { throw new TypeError("cut"); };
  const lost = await called({ intents, attempts: 1, fetch: cut }).intent("c");
  await lost.post("/orders", tea).catch(() => {});
  const [pending] = await called({ intents }).pending();
  return [refused, again.replayed, (await pending.recover()).from];
}"""


def test_another_origin_is_let_in(serve: Serve, page: Page, tmp_path: Path) -> None:
    """With the script of the README."""
    (script,) = blocks("js", README)
    with web_shop_of(serve, tmp_path) as shop, pages() as url:
        origin = url.replace("127.0.0.1", "localhost")
        with nginx(tmp_path, origin, shop.url) as gateway:
            module, api, bearer = f"{origin}/pages/oncekey.js", f"{gateway}/api/v1", token()
            for told, real in {
                "https://api.example.com": api,
                "./oncekey.js": module,
                "Bearer …": f"Bearer {bearer}",
            }.items():
                assert told in script
                script = script.replace(told, real)
            page.goto(f"{origin}/pages/")
            page.add_script_tag(type="module", content=f"{script}\nwindow.answer = answer;")
            page.wait_for_function("window.answer")
            status, number, key = page.evaluate("[answer.status, answer.operationId, answer.key]")
            given = {"module": module, "api": api, "bearer": bearer, "key": key}
            elsewhere = page.evaluate(_ELSEWHERE, given)

        assert (status, number[:3]) == (201, "op_")
        assert elsewhere == ["unauthorized", True, "recovered"]
        assert len(shop.effects) == 1
