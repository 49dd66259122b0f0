"""Targets that are one path to the edge and another to the service behind: nobody gets by them to a
route that is not for him, nor past the policy of one that is."""

import posixpath
from collections.abc import Iterator
from urllib.parse import unquote

import pytest

from tests.fixtures.behind import DO
from tests.fixtures.stronghold import Effect, Stronghold, bearer, head

# Only admins may ask for this one; anybody may ask for files.
GOAL = "/platform/jobs"
DETOURS = [
    "/files/../platform/jobs",
    "/files/x/../../platform/jobs",
    "/files/./../platform/jobs",
    "/files/%2e%2e/platform/jobs",
    "/files/%2E%2E/platform/jobs",
    "/files/.%2e/platform/jobs",
    "/files/%2e./platform/jobs",
    "/files/..%2fplatform/jobs",
    "/files/..%2Fplatform%2Fjobs",
    "/files/%2e%2e%2fplatform%2fjobs",
    "/files/%252e%252e/platform/jobs",
    "/files/%25%32%65%25%32%65/platform/jobs",
    "/files/..%252fplatform/jobs",
    "/files/..;/platform/jobs",
    "/files/..;x=y/platform/jobs",
    "/files/x;/..;/../platform/jobs",
    "/files/%2e%2e;/platform/jobs",
    "/files/..\\platform\\jobs",
    "/files\\..\\platform\\jobs",
    "/files/..%5cplatform%5cjobs",
    "/files/%2e%2e%5cplatform/jobs",
    "/files//../platform/jobs",
    "/files//..//platform//jobs",
    "/files/..%00/platform/jobs",
    "/files/..%0d/platform/jobs",
    "/files/..%09/platform/jobs",
    "/files/%c0%ae%c0%ae/platform/jobs",
    "/files/%e0%80%ae%e0%80%ae/platform/jobs",
    "/files/%u002e%u002e/platform/jobs",
    "/files/..%c0%afplatform/jobs",
    "/files/.%00./platform/jobs",
    "/files/..%",
    "/files/..%2",
    "//platform/jobs",
    "///platform/jobs",
    "/./platform/jobs",
    "/.//platform/jobs",
    "/x/../platform/jobs",
    "/platform/./jobs",
    "/platform//jobs",
    "/platform/x/../jobs",
    "/platform/jobs/",
    "/platform/jobs/.",
    "/platform/jobs;",
    "/platform;x/jobs",
    "/platform/jobs%00",
    "/platform/jobs%20",
    "/platform/jobs%0a",
    "/platform%2fjobs",
    "/%70latform/jobs",
    "/PLATFORM/JOBS",
    "/platform\\jobs",
    "/platform/jobs%3f",
    "/platform/jobs%23",
    "/platform/jobs#x",
    "/files/#/../../platform/jobs",
    "http://edge.example/platform/jobs",
    "http://edge.example/files/../platform/jobs",
    "http://edge.example//platform/jobs",
    "http://alice@edge.example:80/platform/jobs",
    "HTTP://EDGE.EXAMPLE/platform/jobs",
    "http:///platform/jobs",
    "https://edge.example/files/%2e%2e/platform/jobs",
]
# Nothing of these is a path to go by; the service behind gets them as they are.
HARMLESS = [
    "/files/x?/../../platform/jobs",
    "/files/x?a=/platform/jobs",
    "/files/x?a=%2e%2e%2fplatform",
    "/files/platform/jobs",
    "/files/...",
    "/files/x..y",
    "/files/..x",
    "/files/a;b=c",
    "/files/x?a=b?c=d&&;=",
]


def readings(target: str) -> Iterator[str]:
    """Every path that some service could read a target as."""
    path = target.partition("?")[0]
    for decoded in (path, unquote(path), unquote(unquote(path))):
        for slashed in (decoded, decoded.replace("\\", "/")):
            bare = "/".join(part.partition(";")[0] for part in slashed.split("/"))
            for each in (slashed, bare):
                merged = posixpath.normpath("/" + each.lstrip("/")).lower()
                yield merged.partition("\0")[0].partition("#")[0].strip()


def is_a_file(effect: Effect) -> bool:
    return all(each.startswith("/files/") for each in readings(effect.target))


def test_the_readings_know_a_detour_when_they_see_one() -> None:
    assert GOAL in set(readings("/files/..;x/platform/jobs"))
    assert GOAL in set(readings("/files/%252e%252e/platform%5Cjobs"))
    assert set(readings("/files/a;b=c?/../x")) == {"/files/a;b=c", "/files/a"}


@pytest.mark.parametrize("method", ["GET", "PUT", "POST"])
@pytest.mark.parametrize("target", DETOURS)
def test_no_detour_leads_there(fort: Stronghold, method: str, target: str) -> None:
    with fort.wire(head(target, method=method, length=2) + b"{}") as wire:
        assert wire.answer().status in {400, 401, 404}
    with fort.wire(head(target, method=method, length=2, key="d") + b"{}") as wire:
        assert wire.answer().status in {400, 401, 404}
    assert fort.effects == []


@pytest.mark.parametrize("target", HARMLESS)
def test_what_is_no_detour_arrives_as_it_was_sent(fort: Stronghold, target: str) -> None:
    with fort.wire(head(target, method="GET", length=None)) as wire:
        assert wire.answer().status == 200
    (effect,) = fort.effects
    assert effect.target == target
    assert is_a_file(effect)


@pytest.mark.parametrize(
    "target",
    [
        "/api/v1/orders/..%2f..%2fv1/notes",
        "/api/v1/orders/x/../../notes",
        "/api/v1/./orders",
        "/api/v1//orders",
        "/api/v1/orders/",
        "/api/v1/orders%2f",
        "/api/v1/orders;a=b",
        "/api/v1/orders%3fa=b",
        "/api/v1/orders%00",
        "/api/v1/orders/%2e%2e/pay",
        "/api/v1/orders/../pay",
        "/api/v1/orders/7%2fpay",
        "/API/v1/orders",
    ],
)
def test_no_spelling_of_a_route_escapes_its_policy(fort: Stronghold, target: str) -> None:
    """A key is required there; whatever is not that route goes nowhere."""
    with fort.wire(head(target)) as wire:
        assert wire.answer().status in {400, 404}
    assert fort.effects == []


@pytest.mark.parametrize(
    "name",
    ["X-Original-URL", "X-Rewrite-URL", "X-Original-URI", "X-Forwarded-Uri", "X-Forwarded-Prefix"],
)
def test_no_line_renames_the_path(fort: Stronghold, name: str) -> None:
    lines = (f"{name}: {GOAL}", f"{name.replace('-', '_')}: {GOAL}")
    with fort.wire(head("/files/x", *lines, method="GET", length=None)) as wire:
        assert wire.answer().status == 200
    (effect,) = fort.effects
    assert (effect.target, effect[name.lower()]) == ("/files/x", [])


@pytest.mark.parametrize(
    "name",
    ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Original-Method"],
)
def test_no_line_renames_the_method(fort: Stronghold, name: str) -> None:
    """Else a request that needs no key would be run as one that does."""
    lines = (f"{name}: DELETE", f"{name.replace('-', '_')}: DELETE")
    with fort.wire(head("/api/v1/notes", *lines)) as wire:
        assert wire.answer().status == 201
    (effect,) = fort.effects
    assert (effect.method, effect[name.lower()]) == ("POST", [])


@pytest.mark.parametrize("method", ["DELETE", "PATCH", "TRACE", "OPTIONS", "CONNECT", "PROPFIND"])
def test_a_method_that_has_no_route_goes_nowhere(fort: Stronghold, method: str) -> None:
    with fort.wire(head("/api/v1/orders", method=method, key="m")) as wire:
        assert wire.answer().status in {400, 404, 405}
    assert fort.effects == []


@pytest.mark.parametrize("size", [16_385, 60_000])
def test_a_target_has_an_end(fort: Stronghold, size: int) -> None:
    for target in ("/files/" + "x" * size, "/files/x?" + "y" * size, "/" + "x/" * (size // 2)):
        with fort.wire(head(target, method="GET", length=None)) as wire:
            assert wire.answer().status in {400, 404, 431}
    assert fort.effects == []


@pytest.mark.parametrize(
    "lines",
    [
        ("X-Forwarded-For: 10.0.0.1", "x-forwarded-for: 10.0.0.2", "X_Forwarded_For: 10.0.0.3"),
        ("X-Forwarded-Host: evil.example", "Forwarded: for=10.0.0.1;host=evil.example"),
        ("X-Forwarded-Proto: https", "X-Forwarded-Scheme: https", "X-Forwarded-Ssl: on"),
        ("X-Forwarded-Port: 443", "X-Forwarded-Server: evil.example", "X-Real-IP: 10.0.0.1"),
        ("True-Client-IP: 10.0.0.1", "X-Client-IP: 10.0.0.1", "X_Real_IP: 10.0.0.1"),
        (
            "CF-Connecting-IP: 10.0.0.1",
            "X-Cluster-Client-IP: 10.0.0.1",
            "Fastly_Client-IP: 10.0.0.1",
        ),
        ("Remote-User: evil", "X-Forwarded-User: evil", "X_Auth_Request_Email: evil@evil.example"),
        ("X-Forwarded-Client-Cert: Subject=evil", "X-SSL-Client-Verify: evil"),
        ("Proxy: http://evil.example",),
    ],
)
def test_who_comes_from_where_is_told_by_the_edge(fort: Stronghold, lines: tuple[str, ...]) -> None:
    with fort.wire(head("/api/v1/notes", *lines)) as wire:
        assert wire.answer().status == 201
    (effect,) = fort.effects
    assert effect["x-forwarded-for"] == ["127.0.0.1"]
    assert effect["x-forwarded-host"] == ["edge.example"]
    assert effect["x-forwarded-proto"] == ["http"]
    told = [value for _, value in effect.headers]
    assert not any("10.0.0" in value or "evil" in value for value in told)


# -- other doors to the same house ---------------------------------------------------------------


def decide(fort: Stronghold, *lines: tuple[str, str]) -> int:
    return fort.ask("GET", "/edge/decide", bearer=bearer(), lines=list(lines)).status_code


def test_the_decision_for_gateways_takes_no_detours_either(fort: Stronghold) -> None:
    told = ("X-Original-Method", "POST"), ("X-Original-URI", "/api/v1/notes")
    assert decide(fort, *told) == 200
    for target in DETOURS:
        for method in ("GET", "PUT", "POST"):
            lines = ("X-Original-Method", method), ("X-Original-URI", target)
            assert decide(fort, *lines) in {400, 401, 404}, target


@pytest.mark.parametrize(
    "lines",
    [
        [("X-Original-URI", "/files/x")],
        [("X-Forwarded-Method", "GET"), ("X-Forwarded-Uri", "/files/x")],
        [("X-Forwarded-Uri", "/files/x")],
    ],
)
def test_a_client_tells_no_second_story_to_the_decision(
    fort: Stronghold, lines: list[tuple[str, str]]
) -> None:
    """A gateway that forgets to remove them would have two of them sent."""
    told = [("X-Original-Method", "POST"), ("X-Original-URI", GOAL)]
    assert decide(fort, *told) == 401
    assert decide(fort, *told, *lines) in {400, 401}


def test_redirects_of_the_service_behind_lead_to_no_other_house(fort: Stronghold) -> None:
    """What is left when its own origin is taken away is a path, and never the name of a host."""
    origin = fort.behind.url
    for told, expected in (
        (f"{origin}/next", "/next"),
        (f"{origin}//evil.example/x", "/evil.example/x"),
        (f"{origin}/\\evil.example", "/evil.example"),
        (f"{origin}", "/"),
        (f"{origin}?a=b", "/?a=b"),
        (origin.upper() + "/next", "/next"),
        (origin.removeprefix("http:") + "/next", "/next"),
        (f"{origin}.evil.example/", f"{origin}.evil.example/"),
        (f"{origin}@evil.example/", f"{origin}@evil.example/"),
        (f"{origin}1/", f"{origin}1/"),
    ):
        do = f'{{"status": 302, "headers": [["location", "{told}"]]}}'.replace("\\", "\\\\")
        with fort.wire(head("/files/x", f"{DO}: {do}", method="GET", length=None)) as wire:
            assert wire.answer()["location"] == expected
