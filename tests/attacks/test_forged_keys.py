"""Keys, subjects and tenants that try to be somebody else's: what is let in stands where it
belongs, and whatever could stand elsewhere is refused before anything runs."""

import base64
from typing import Any
from urllib.parse import unquote

import pytest

from tests.fixtures.stronghold import Effect, Stronghold, bearer, head, is_refused

OTHERS = "t-acme:shop:user:bob:k"
REFUSED = {
    "a colon": b"a:b",
    "an encoded colon": b"a%3Ab",
    "a namespace": OTHERS.encode(),
    "a namespace, encoded": OTHERS.replace(":", "%3A").encode(),
    "the beginning of one": b"t-",
    "a namespace in quotes": f'"{OTHERS}"'.encode(),
    "its beginning in quotes": b'"t-k"',
    "quotes within quotes": b'""t-k""',
    "quotes with blanks in them": b'" t-k"',
    "an escape in quotes": b'"\\"k"',
    "half a quote": b'"k',
    "nothing": b"",
    "blanks": b" \t ",
    "nothing in quotes": b'""',
    "parameters": b"k;a=b",
    "parameters after quotes": b'"k";a=b',
    "a list": b"k, j",
    "a list of one": b"k,",
    "a list of quotes": b'"k", "j"',
    "a token of structured fields": b"*k/j",
    "bytes of structured fields": b":" + base64.b64encode(b"k") + b":",
    "a truth of structured fields": b"?1",
    "a blank": b"k j",
    "a tab": b"k\tj",
    "a slash": b"../k",
    "a line break, encoded": b"k%0d%0aX-Tenant-Id:%20other",
    "latin letters": b"k\xe9y",
    "letters of UTF-8": "kéy".encode(),
    "a wide colon": "t-acme\uff1ashop".encode(),
    "a Cyrillic look-alike": "\u0441afe".encode(),
    "a Greek t": "\u03c4-acme".encode(),
    "a hyphen that is none": "t\u2010acme".encode(),
    "nothing to be seen": "\u200bk".encode(),
    "a wide t": "\uff54-acme".encode(),
    "half a surrogate": b"\xed\xa0\x80",
    "no UTF-8": b"\xff\xfe",
    "too long": b"k" * 256,
    "far too long": b"k" * 60_000,
    "too long in quotes": b'"' + b"k" * 256 + b'"',
    "markup": b"<script>",
    "SQL": b"k' OR '1'='1",
    "a format": b"{k}%s",
    "a tick of nobody's schedule": b"sched::1",
    "a tick with a subject in it": b"sched:a:b:1",
}
SAME = {
    "as it is": b"same",
    "in quotes": b'"same"',
    "after blanks": b"   same",
    "before blanks": b"same \t ",
    "in quotes, after blanks": b' \t"same" ',
}


def with_key(line: bytes) -> bytes:
    """Alice's order with this line of her own."""
    return head(length=0).replace(b"\r\n\r\n", b"\r\n" + line + b"\r\n\r\n")


@pytest.mark.parametrize("name", REFUSED)
def test_a_key_outside_its_grammar_is_refused(fort: Stronghold, name: str) -> None:
    with fort.wire(with_key(b"Idempotency-Key: " + REFUSED[name])) as wire:
        answer = wire.answer()
        assert (answer.status, answer.code) == (400, "idempotency-key-invalid")
        # The connection goes on with what is good.
        assert wire.send(head(key=f"good-{[*REFUSED].index(name)}")).answer().status == 201
    assert [each.target for each in fort.effects] == ["/api/v1/orders"]


@pytest.mark.parametrize("name", REFUSED)
def test_where_a_key_may_be_left_out_a_bad_one_may_not(fort: Stronghold, name: str) -> None:
    line = b"Idempotency-Key: " + REFUSED[name]
    request = with_key(line).replace(b"/api/v1/orders", b"/api/v1/notes")
    with fort.wire(request) as wire:
        assert wire.answer().code == "idempotency-key-invalid"
    assert fort.effects == []


def test_every_spelling_of_a_key_is_that_key(fort: Stronghold) -> None:
    for spelling in SAME.values():
        with fort.wire(with_key(b"Idempotency-Key: " + spelling)) as wire:
            assert wire.answer().status == 201
    (effect,) = fort.effects
    assert effect.key == "t-acme:shop:user:alice:same"


def test_what_only_looks_reserved_is_a_key_as_any(fort: Stronghold) -> None:
    for raw in ("T-acme", "t", "t.acme", "_tenant", "user", "-", ".", "..", "~", "k" * 255):
        with fort.wire(head(key=raw)) as wire:
            assert wire.answer().status == 201
        assert fort.effects[-1].key == f"t-acme:shop:user:alice:{raw}"


# -- lines ---------------------------------------------------------------------------------------

TWICE = {
    "the same twice": b"Idempotency-Key: k\r\nIdempotency-Key: k",
    "two": b"Idempotency-Key: k\r\nIdempotency-Key: j",
    "in two cases": b"IDEMPOTENCY-KEY: k\r\nidempotency-key: j",
    "with others between": b"iDeMpOtEnCy-KeY: k\r\nX-Other: 1\r\nIdempotency-Key: j",
    "a bad one and a good one": b"Idempotency-Key: a:b\r\nIdempotency-Key: k",
    "an empty one and a good one": b"Idempotency-Key:\r\nIdempotency-Key: k",
}
BROKEN = {
    "folded": b"Idempotency-Key: k\r\n j",
    "folded with a tab": b"Idempotency-Key:\r\n\tk",
    "folded into another": b"X-Other: 1\r\n Idempotency-Key: k",
    "a blank in the name": b"Idempotency-Key : k",
    "a tab in the name": b"Idempotency-Key\t: k",
    "a blank before the name": b" Idempotency-Key: k",
    "NUL": b"Idempotency-Key: k\x00j",
    "NUL in the name": b"Idempotency\x00-Key: k",
    "CR": b"Idempotency-Key: k\rX-Tenant-Id: other",
    "LF": b"Idempotency-Key: k\nX-Tenant-Id: other",
    "another control": b"Idempotency-Key: k\x0bj",
    "DEL": b"Idempotency-Key: k\x7f",
    "no colon": b"Idempotency-Key",
    "no name": b": k",
    "a name in brackets": b"(Idempotency-Key): k",
    "a name of other letters": "Idempotency-K\u0435y: k".encode(),
}


@pytest.mark.parametrize("name", TWICE)
def test_two_keys_are_none(fort: Stronghold, name: str) -> None:
    with fort.wire(with_key(TWICE[name])) as wire:
        assert wire.answer().code == "idempotency-key-invalid"
    assert fort.effects == []


@pytest.mark.parametrize("name", BROKEN)
def test_a_line_that_others_could_read_otherwise_ends_the_connection(
    fort: Stronghold, name: str
) -> None:
    assert is_refused(fort, with_key(BROKEN[name]) + head(key="after"))
    assert fort.effects == []


@pytest.mark.parametrize("name", ["Idempotency_Key", "IDEMPOTENCY_KEY", "X-Idempotency-Key"])
def test_another_name_is_no_key(fort: Stronghold, name: str) -> None:
    """Services that take headers as CGI variables would read the first two as the key."""
    with fort.wire(with_key(f"{name}: forged".encode())) as wire:
        assert wire.answer().code == "idempotency-key-missing"
        both = with_key(f"{name}: forged\r\nIdempotency-Key: with-{name}".encode())
        assert wire.send(both).answer().status == 201
    (effect,) = fort.effects
    assert effect.key == f"t-acme:shop:user:alice:with-{name}"


@pytest.mark.parametrize(
    "connection",
    [
        "idempotency-key",
        "Idempotency-Key, x-tenant-id, x-project-id, x-subject",
        "keep-alive, IDEMPOTENCY-KEY",
        "close, authorization, idempotency-key",
        "content-length, host, transfer-encoding, x-forwarded-for",
        "idempotency_key , X_Tenant_Id",
    ],
)
def test_no_connection_takes_our_lines_away(fort: Stronghold, connection: str) -> None:
    """It names what a proxy must remove: never what the proxy itself says."""
    key = f"c{len(connection)}"
    for _ in range(2):
        with fort.wire(head("/api/v1/orders", f"Connection: {connection}", key=key)) as wire:
            assert wire.answer().status == 201
    (effect,) = fort.effects
    assert effect.key == f"t-acme:shop:user:alice:{key}"
    assert effect.whose == ("acme", "shop", "user:alice")
    assert effect["x-forwarded-for"] == ["127.0.0.1"]


@pytest.mark.parametrize(
    "trailer",
    [
        "Idempotency-Key: trailing",
        f"Authorization: Bearer {bearer(subject='user:bob')}\r\nIdempotency-Key: trailing",
        "X-Tenant-Id: other\r\nX-Subject: user:root",
    ],
)
@pytest.mark.parametrize("pieces", [1, 2])
def test_a_trailer_is_no_header(fort: Stronghold, trailer: str, pieces: int) -> None:
    start = head("/api/v1/orders", "Transfer-Encoding: chunked", length=None)
    end = f"2\r\n{{}}\r\n0\r\n{trailer}\r\n\r\n".encode()
    sent = [start + end] if pieces == 1 else [start, end]
    with fort.wire(*sent) as wire:
        assert wire.answer().code == "idempotency-key-missing"
    notes = [each.replace(b"/api/v1/orders", b"/api/v1/notes") for each in sent]
    with fort.wire(*notes) as wire:
        assert wire.answer().status == 201
    (effect,) = fort.effects
    assert effect.key is None
    assert effect.whose == ("acme", "shop", "user:alice")
    assert effect["x-tenant-id"] == ["acme"]


def test_a_trailer_brings_nobody_in(fort: Stronghold) -> None:
    start = head("/api/v1/orders", "Transfer-Encoding: chunked", credentials=None, length=None)
    for line in (f"Authorization: Bearer {bearer()}", "X-Tenant-Id: acme\r\nX-Subject: user:alice"):
        request = start + f"0\r\nIdempotency-Key: k\r\n{line}\r\n\r\n".encode()
        with fort.wire(request) as wire:
            assert wire.answer().status == 401
    assert fort.effects == []


# -- subjects, tenants and projects --------------------------------------------------------------

LET_IN: dict[str, dict[str, Any]] = {
    "a key behind the name": {"subject": "user:alice:k"},
    "a namespace as a name": {"subject": "user:t-acme:shop:user:bob"},
    "an encoded colon": {"subject": "user:alice%3Ak"},
    "an encoded percent": {"subject": "user:alice%253Ak"},
    "a slash": {"subject": "user:../../bob"},
    "a wide colon": {"subject": "user:alice\uff1ak"},
    "a look-alike": {"subject": "user:\u0430lice"},
    "a blank": {"subject": "user:alice bob"},
    "a blank behind": {"subject": "user:alice "},
    "a comma": {"subject": "user:alice, user:bob"},
    "markup": {"subject": "user:<b>"},
    "a type in capitals is part of the name": {"subject": "User:alice"},
    "a type that is none": {"subject": "admin:root"},
    "a look-alike of a type": {"subject": "u\u0455er:alice"},
    "a number": {"subject": 7},
    "a tenant's member": {"subject": "tenant_member:alice"},
    "a reserved project's name as a subject": {"subject": "user:_platform"},
    "the ingest, as a user": {"subject": "user:service:webhook-ingest"},
    "the ingest, with a blank": {"subject": "service:webhook-ingest "},
    "a tenant that begins as a namespace": {"tenant": "t-acme"},
    "a project that begins as a namespace": {"project": "t-acme"},
    "a project called user": {"project": "user"},
    "a tenant called default": {"tenant": "default", "subject": "client:anonymous-not"},
    "a long name": {"subject": "user:" + "a" * 380},
}
KEPT_OUT: dict[str, dict[str, Any]] = {
    "a tenant with a project in it": {"tenant": "acme:shop"},
    "an encoded one": {"tenant": "acme%3Ashop"},
    "a tenant that is a path": {"tenant": "../acme"},
    "a tenant with a blank": {"tenant": "acme "},
    "a tenant of two lines": {"tenant": "acme\r\nX-Tenant-Id: other"},
    "a look-alike of a tenant": {"tenant": "\u0430cme"},
    "no tenant": {"tenant": ""},
    "a tenant that is a level": {"tenant": "_tenant"},
    "a truth as a tenant": {"tenant": True},
    "a list of tenants": {"tenant": ["acme", "other"]},
    "an object as a tenant": {"tenant": {"id": "acme"}},
    "a long tenant": {"tenant": "a" * 64},
    "the level of the tenant": {"project": "_tenant"},
    "the level of the platform": {"project": "_platform"},
    "a project with a subject in it": {"project": "shop:user:bob"},
    "an encoded project": {"project": "shop%3Auser%3Abob"},
    "an empty project": {"project": ""},
    "a list of projects": {"project": ["shop"]},
    "the ingest of webhooks": {"subject": "service:webhook-ingest"},
    "OnceKey itself": {"subject": "service:oncekey"},
    "no name behind the type": {"subject": "user:"},
    "no subject": {"subject": ""},
    "blanks": {"subject": "   "},
    "no text": {"subject": ["user:alice"]},
    "NUL": {"subject": "user:alice\0bob"},
    "two lines": {"subject": "user:alice\r\nX-Subject: user:bob"},
    "nothing to be seen": {"subject": "user:alice\u200b"},
    "writing from right to left": {"subject": "user:\u202ebob"},
    "a long name": {"subject": "user:" + "a" * 401},
    "a name that is long once it is encoded": {"subject": "user:" + ":" * 134},
}


def parts_of(effect: Effect) -> list[str]:
    """Of the key that the service behind sees, taken apart at its colons."""
    assert effect.key is not None
    assert effect.key.startswith("t-")
    return effect.key.removeprefix("t-").split(":", 4)


@pytest.mark.parametrize("name", LET_IN)
def test_whatever_a_name_holds_it_stays_in_its_place(fort: Stronghold, name: str) -> None:
    claims = {"tenant": "acme", "project": "shop", "subject": "user:alice", **LET_IN[name]}
    assert fort.ask(key="k", bearer=bearer(**claims)).status_code == 201
    (effect,) = fort.effects
    tenant, project, kind, identifier, raw = parts_of(effect)
    assert (tenant, project, raw) == (claims["tenant"], claims["project"], "k")
    said = str(claims["subject"])
    typed = said if said.startswith(("user:", "service:", "tenant_member:", "client:")) else None
    assert f"{kind}:{unquote(identifier)}" == (typed or f"user:{said}")
    assert effect.whose == (tenant, project, f"{kind}:{identifier}")


def test_no_two_names_are_one(fort: Stronghold) -> None:
    for claims in LET_IN.values():
        assert fort.ask(key="all", bearer=bearer(**claims)).status_code == 201
    keys = [each.key for each in fort.effects]
    assert len(set(keys)) == len(keys) == len(LET_IN)


@pytest.mark.parametrize("name", KEPT_OUT)
def test_a_name_that_is_none_is_nobody(fort: Stronghold, name: str) -> None:
    good = fort.ask(bearer=bearer(tenant="acme", subject="user:alice")).json()
    assert good["type"].endswith("/idempotency-key-missing")
    answer = fort.ask(key="k", bearer=bearer(**KEPT_OUT[name]))
    assert answer.status_code == 401
    assert answer.json()["detail"] == fort.ask(key="k").json()["detail"]
    assert fort.effects == []
