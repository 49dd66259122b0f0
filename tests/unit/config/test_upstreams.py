"""`[upstreams]` and the routes to them: addresses that can be asked, names that exist, and paths
that nobody else answers."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncekey.api.table import ENDPOINTS
from oncekey.config import UpstreamSettings, load
from oncekey.config.addresses import upstream_url
from oncekey.config.paths import whose_path
from oncekey.core.errors import ConfigurationError, InvalidInput
from oncekey.edge.app import DOCUMENT
from oncekey.edge.gate import DECIDE
from oncekey.edge.hooks import WEBHOOKS
from oncekey.edge.recovery import BY_KEY, OPERATIONS
from oncekey.upstream.address import address_of

UPSTREAM = "[upstreams.orders]\nurl = 'http://127.0.0.1:9000'\n"
ROUTE = "[[routes]]\npath = '/orders'\n"


def mistakes(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / "oncekey.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load(file, {})
    return [line.removeprefix(f"{file}:") for line in str(caught.value).splitlines()]


def of_route(tmp_path: Path, options: str) -> list[str]:
    """Of a route to an upstream; its options begin in line 6."""
    return mistakes(tmp_path, f"{UPSTREAM}{ROUTE}upstream = 'orders'\n{options}\n")


def test_upstreams_are_read(tmp_path: Path) -> None:
    file = tmp_path / "oncekey.toml"
    file.write_text(
        f"{UPSTREAM}[upstreams.stock-2]\nurl = 'https://stock.example/v1'\ntimeout = '2s'\n"
        "connect_timeout = '500ms'\nmax_connections = 8\n"
        f"{ROUTE}upstream = 'orders'\npolicy = 'REQUIRED_A'\nlevel = 'tenant'\n"
        "identity = 'optional'\nuncertain = 'rerun'\ntitle = 'Place an order'\n"
    )
    settings = load(file, {})
    assert settings.upstreams == {
        "orders": UpstreamSettings("http://127.0.0.1:9000", 30.0, 5.0, 256),
        "stock-2": UpstreamSettings("https://stock.example/v1", 2.0, 0.5, 8),
    }
    (route,) = settings.routes
    assert (route.upstream, route.level, route.identity) == ("orders", "tenant", "optional")
    assert (route.uncertain, route.title) == ("rerun", "Place an order")


@pytest.mark.parametrize(
    "url, asked",
    [
        ("http://127.0.0.1:9000", "127.0.0.1:9000"),
        ("https://orders.example/base", "orders.example:443"),
        ("http://[::1]:9000", "::1:9000"),
        ("unix:/run/app.sock", "/run/app.sock"),
        ("unix:/run/my%20app.sock", "/run/my app.sock"),
        ("http+unix://%2Frun%2Fapp.sock/base", "/run/app.sock"),
    ],
)
def test_what_may_be_asked_is_what_an_upstream_understands(url: str, asked: str) -> None:
    settings = load(None, {"ONCEKEY_UPSTREAMS__ORDERS__URL": url})
    assert str(address_of(settings.upstreams["orders"].url)) == asked


@pytest.mark.parametrize(
    "url, mistake",
    [
        ("127.0.0.1:9000", "is '127.0.0.1:9000', not of the form http://host:port, https://"),
        ("ftp://host", "is 'ftp://host', not of the form http://host:port, https://host, unix:"),
        ("http://", "is 'http://', not of the form"),
        ("http://host:99999", "is 'http://host:99999', not of the form"),
        ("http://host\\tname", r"is 'http://host\tname', not of the form"),
        ("http://a b", "is 'http://a b', not of the form"),
        ("http://user:hunter2@host", "has a user or a password in it, and would be shown"),
        ("nothing://user:hunter2@host", "is 'nothing://…@host', not of the form"),
        ("http://host?a=1", "has a query, and requests have their own"),
        ("http://host#part", "is 'http://host#part', and what follows '#' never reaches"),
        ("unix:run/app.sock", "needs the whole path of a socket: unix:/run/app.sock"),
        ("unix://run/app.sock", "needs the whole path of a socket: unix:/run/app.sock"),
        ("unix:/run/", "needs the whole path of a socket: unix:/run/app.sock"),
        ("unix:/run/app.sock?a=1", "has a query or a fragment, which no socket has"),
        ("http+unix://run", "is 'http+unix://run', not of the form"),
        ("http+unix://%2Frun%00", "is 'http+unix://%2Frun%00', not of the form"),
        ("unix:/run%00", "is 'http+unix://%2Frun%00', not of the form"),
        ("http://host/é", "has characters that no URL has; write them as %C3%A9"),
        (f"http://é{'a' * 70}", f"is 'http://é{'a' * 70}', not of the form"),
        ("", "must not be empty"),
    ],
)
def test_a_url_that_cannot_be_asked_is_told_and_no_password_shown(
    tmp_path: Path, url: str, mistake: str
) -> None:
    (told,) = mistakes(tmp_path, f'[upstreams.orders]\nurl = "{url}"\n')
    assert told.startswith(f"2: upstreams.orders.url {mistake}")
    assert "hunter2" not in told


@given(
    st.one_of(
        st.text(),
        st.from_regex(r"(https?|unix|http\+unix):/{0,3}[^\s]{0,20}", fullmatch=True),
        st.from_regex(r"https?://[a-zé0-9.:@\[\]%-]{1,12}[/?#][^\s]{0,8}", fullmatch=True),
    )
)
def test_whatever_is_accepted_can_be_asked(url: str) -> None:
    try:
        accepted = upstream_url(url)
    except InvalidInput:
        return
    assert address_of(accepted)


@pytest.mark.parametrize(
    "text, mistake",
    [
        ("[upstreams.orders]\n", "1: the upstream orders has no url: add url = "),
        ("upstreams = 5\n", "1: upstreams must be a table"),
        ("upstreams.orders = 5\n", "1: upstreams.orders must be a table"),
        (f"{UPSTREAM}timout = '5s'\n", "3: there is no setting upstreams.orders.timout; did you "),
        (f"{UPSTREAM}timeout = '2h'\n", "3: upstreams.orders.timeout must be between 0.01 and "),
        (f"{UPSTREAM}max_connections = 0\n", "3: upstreams.orders.max_connections must be between"),
        (
            "[upstreams.Orders]\nurl = 'http://a'\n",
            "1: upstream 'Orders' must be a-z, 0-9, '-' or ",
        ),
        ("[upstreams.a__b]\nurl = 'http://a'\n", "1: upstream 'a__b' must be a-z, 0-9, '-' or "),
    ],
)
def test_a_mistake_in_an_upstream_has_its_line(tmp_path: Path, text: str, mistake: str) -> None:
    (told,) = mistakes(tmp_path, text)
    assert told.startswith(mistake)


@pytest.mark.parametrize(
    "host, url",
    [
        ("127.0.0.1", "http://127.0.0.1:8700"),
        ("127.0.0.1", "http://localhost:8700/base"),
        ("0.0.0.0", "http://127.0.0.1:8700"),
        ("10.0.0.7", "http://10.0.0.7:8700"),
    ],
)
def test_the_server_is_not_its_own_upstream(tmp_path: Path, host: str, url: str) -> None:
    text = f"[server]\nhost = '{host}'\n[upstreams.orders]\nurl = '{url}'\n"
    (told,) = mistakes(tmp_path, text)
    assert told.startswith("4: the upstream orders is this server itself: a request would never ")


@pytest.mark.parametrize("url", ["http://127.0.0.1:8701", "http://10.0.0.8:8700", "unix:/a"])
def test_a_neighbour_is_another_server(url: str) -> None:
    assert load(None, {"ONCEKEY_UPSTREAMS__ORDERS__URL": url}).upstreams


@pytest.mark.parametrize(
    "text, mistake",
    [
        (
            f"{UPSTREAM}{ROUTE}policy = 'ACCEPTED'\nupstream = 'odrers'\n",
            "6: [upstreams] has no 'odrers'; did you mean 'orders'?",
        ),
        (
            f"{UPSTREAM}{ROUTE}policy = 'ACCEPTED'\nupstream = 'xyz'\n",
            "6: [upstreams] has no 'xyz'; there are: orders",
        ),
        (
            f"{ROUTE}policy = 'ACCEPTED'\nupstream = 'orders'\n",
            """4: [upstreams] has no 'orders': add [upstreams.orders] with url = "http://127.0.0.1:9000\"""",
        ),
    ],
)
def test_a_route_names_an_upstream_that_exists(tmp_path: Path, text: str, mistake: str) -> None:
    assert mistakes(tmp_path, text) == [mistake]


def test_an_upstream_that_is_wrong_by_itself_is_told_once(tmp_path: Path) -> None:
    text = f"[upstreams.orders]\nurl = 'x'\n{ROUTE}policy = 'ACCEPTED'\nupstream = 'orders'\n"
    (told,) = mistakes(tmp_path, text)
    assert told.startswith("2: upstreams.orders.url is 'x', not of the form")


def test_a_route_to_an_upstream_that_changes_things_needs_a_policy(tmp_path: Path) -> None:
    (told,) = of_route(tmp_path, "")
    assert told.startswith("3: the route /orders changes things and has no policy: add policy = ")


@pytest.mark.parametrize(
    "options, policy",
    [
        ("policy = 'HANDLER_INTERNAL_C'", "HANDLER_INTERNAL_C"),
        ("required = true", "REQUIRED_A"),
        ("required = false", "ACCEPTED"),
        ("methods = ['GET']", "PROHIBITED"),
    ],
)
def test_every_route_has_a_policy_in_force(tmp_path: Path, options: str, policy: str) -> None:
    file = tmp_path / "oncekey.toml"
    file.write_text(f"{UPSTREAM}{ROUTE}upstream = 'orders'\n{options}\n")
    (each,) = load(file, {}).routes
    assert each.policy_in_force == policy


@pytest.mark.parametrize(
    "option", ["level = 'tenant'", "identity = 'optional'", "uncertain = 'rerun'"]
)
def test_what_is_about_upstreams_needs_one(tmp_path: Path, option: str) -> None:
    name = option.partition(" ")[0]
    (told,) = mistakes(tmp_path, f"{ROUTE}policy = 'ACCEPTED'\n{option}\n")
    assert told == (
        f"4: {name} only counts on a route with an upstream: add upstream = …, or take it out"
    )


def test_deliveries_go_to_an_upstream(tmp_path: Path) -> None:
    (told,) = mistakes(tmp_path, f"{ROUTE}policy = 'REQUIRED_B'\n")
    assert told.startswith("3: REQUIRED_B is for deliveries, which go to an upstream: add ")


@pytest.mark.parametrize(
    "option", ["in_flight = 'attach'", "attach_timeout = '5s'", "fingerprint = 'bytes'"]
)
def test_deliveries_have_no_options_of_clients(tmp_path: Path, option: str) -> None:
    (told,) = of_route(tmp_path, f"policy = 'REQUIRED_B'\n{option}")
    name = option.partition(" ")[0]
    assert told.startswith(f"7: {name} has no meaning with REQUIRED_B: deliveries are answered as ")


@pytest.mark.parametrize(
    "options, mistake",
    [
        (
            "policy = 'REQUIRED_A'\nsource = 'wh_1'",
            '7: source only goes with policy = "REQUIRED_B"',
        ),
        (
            "policy = 'REQUIRED_B'\nsource = 'stripe'",
            "7: source is 'stripe', not the id of a webhook",
        ),
        ("policy = 'REQUIRED_A'\nuncertain = 'recover'", '7: uncertain = "recover" asks the same '),
        (
            "policy = 'REQUIRED_A'\nuncertain = 'rerun'\ntakeover = 'refuse'",
            '7: uncertain = "rerun" asks again what takeover = "refuse" does not: ',
        ),
        (
            "policy = 'REQUIRED_A'\nlevel = 'org'",
            "7: routes[0].level is 'org', not one of project, ",
        ),
        (
            "policy = 'REQUIRED_A'\nidentity = 'maybe'",
            "7: routes[0].identity is 'maybe', not one of",
        ),
    ],
)
def test_options_of_a_route_that_do_not_go_together(
    tmp_path: Path, options: str, mistake: str
) -> None:
    (told,) = of_route(tmp_path, options)
    assert told.startswith(mistake)


@pytest.mark.parametrize(
    "options",
    [
        "policy = 'REQUIRED_B'\nsource = 'wh_k3v5yd7wq2mz4bxr'",
        "policy = 'PROHIBITED'\nin_flight = 'attach'\nretention = 'financial'",
        "policy = 'REQUIRED_A'\nuncertain = 'recover'\ntakeover = 'recover'\nrecover = 'a:b'",
        "policy = 'REQUIRED_A'\nuncertain = 'rerun'\ntakeover = 'rerun'",
        "policy = 'REQUIRED_A'\nuncertain = 'refuse'\ntakeover = 'refuse'",
    ],
)
def test_options_of_a_route_that_go_together(tmp_path: Path, options: str) -> None:
    file = tmp_path / "oncekey.toml"
    file.write_text(f"{UPSTREAM}{ROUTE}upstream = 'orders'\n{options}\n")
    assert len(load(file, {}).routes) == 1


@pytest.mark.parametrize(
    "path, owner",
    [
        ("/edge/decide", "the edge"),
        ("/edge/{rest:path}", "the edge"),
        ("/edge", "the edge"),
        ("/api/v1/webhooks/stripe/{id}", "the edge"),
        ("/api/v1/operations/{id}", "the edge"),
        ("/orders/by-idempotency-key/{key}", "the edge, for answers that were lost"),
        ("/orders/by-idempotency-key/{key}/output", "the edge, for answers that were lost"),
        ("/api/admin/keys", "the API of admins"),
        ("/console", "the console"),
        ("/console/{rest:path}", "the console"),
        ("/metrics", "whoever reads metrics"),
    ],
)
def test_a_path_of_the_edge_is_no_route(tmp_path: Path, path: str, owner: str) -> None:
    (told,) = mistakes(tmp_path, f"[[routes]]\npath = '{path}'\npolicy = 'ACCEPTED'\n")
    assert told == f"2: {path} belongs to {owner}, which answers it; choose another"


@pytest.mark.parametrize("path", ["/{rest:path}", "/api/{rest:path}", "/api/v1/orders", "/edges"])
def test_a_path_beside_them_is(path: str) -> None:
    assert whose_path(path, load(None, {})) is None


def test_a_path_of_the_api_is_no_route_where_the_api_is_served() -> None:
    served = load(None, {"ONCEKEY_SERVER__API": "true"})
    for endpoint in ENDPOINTS:
        assert whose_path(endpoint.path, served) is not None, endpoint.path
    assert whose_path("/healthz", load(None, {})) is None
    assert whose_path("/api/admin/keys", load(None, {"ONCEKEY_ADMIN__ENABLED": "false"})) is None


@pytest.mark.parametrize(
    "path", [DECIDE, DOCUMENT, f"{WEBHOOKS}a/b", f"{OPERATIONS}a", f"/a{BY_KEY}k"]
)
def test_every_path_of_the_edge_is_known(path: str) -> None:
    assert whose_path(path, load(None, {})) is not None
