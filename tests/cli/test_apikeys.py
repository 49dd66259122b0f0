"""`oncekey apikeys`: made, shown once, listed without secrets, revoked for every process."""

import re

import httpx

from tests.fixtures.workshop import Workshop


def status(shop: Workshop, secret: str, tenant: str = "default") -> int:
    path = f"{shop.url}/api/tenants/{tenant}/workflows"
    return httpx.get(path, headers={"Authorization": f"Bearer {secret}"}).status_code


def test_a_key_from_its_making_to_its_end(shop: Workshop) -> None:
    told = shop.told("apikeys", "create", "--label", "the shop").splitlines()
    found = re.fullmatch(r"(ak_\w+) of tenant default; its secret is shown this once:", told[0])
    assert found is not None
    (secret,) = told[1:]
    assert re.fullmatch(r"ok_[\w-]{43}", secret)
    assert status(shop, secret) == 200
    assert status(shop, secret, "acme") == 404

    listed = shop.told("apikeys", "list")
    assert secret not in listed
    (row,) = [line for line in listed.splitlines() if found[1] in line]
    assert "the shop" in row
    assert " good " in row

    revoked = shop.told("apikeys", "revoke", found[1])
    assert revoked.startswith(f"{found[1]} of tenant default: revoked since ")
    while status(shop, secret) != 401:
        continue
    assert [each["state"] for each in shop.json("apikeys", "list", "--tenant", "default")] == [
        "revoked"
    ]


def test_a_key_with_everything_said(shop: Workshop) -> None:
    made = shop.json(
        "apikeys", "create", "--tenant", "acme", "--project", "web", "--subject", "user:ann",
        "--label", "ann", "--expires-in", "90d",
    )  # fmt: skip
    secret = made.pop("secret")
    assert status(shop, secret, "acme") == 200
    assert (made["tenant"], made["project"], made["subject"]) == ("acme", "web", "user:ann")
    assert made["expires_at"] > made["created_at"]
    assert shop.json("apikeys", "list", "--tenant", "acme") == [made]


def test_a_key_that_has_expired_is_refused(shop: Workshop) -> None:
    made = shop.json("apikeys", "create", "--tenant", "short", "--expires-in", "1ms")
    assert status(shop, made["secret"], "short") == 401
    (listed,) = shop.json("apikeys", "list", "--tenant", "short")
    assert listed["state"] == "expired"


def test_a_key_for_admins(shop: Workshop) -> None:
    told = shop.told("apikeys", "create", "--admin", "--label", "on call").splitlines()
    found = re.fullmatch(r"(ak_\w+) for admins; its secret is shown this once:", told[0])
    assert found is not None
    assert re.fullmatch(r"oka_[\w-]{43}", told[1])
    assert status(shop, told[1]) == 401
    (listed,) = [each for each in shop.json("apikeys", "list") if each["id"] == found[1]]
    assert (listed["role"], listed["label"], listed["project"]) == ("admin", "on call", "_platform")
    assert f"{found[1]} for admins: revoked since" in shop.told("apikeys", "revoke", found[1])


def test_keys_are_paged(shop: Workshop) -> None:
    made = [shop.json("apikeys", "create", "--tenant", "pages")["id"] for _ in range(3)]
    first = shop.told("apikeys", "list", "--tenant", "pages", "--limit", "2").splitlines()
    shown = [line.split()[0] for line in first[1:3]]
    rest = shop.told("apikeys", *first[-1].split()[3:]).splitlines()
    assert sorted([*shown, rest[1].split()[0]]) == sorted(made)


def test_mistakes(shop: Workshop) -> None:
    for words, code in (
        (["revoke", "ak_0000000000000001"], 1),
        (["revoke", "nothing"], 1),
        (["create", "--tenant", "a b"], 1),
        (["create", "--subject", "ann"], 1),
        (["create", "--expires-in", "soon"], 2),
        (["create", "--admin", "--tenant", "acme"], 2),
        (["list", "--before", "nothing"], 2),
    ):
        done = shop("apikeys", *words)
        assert (done.returncode, done.stdout) == (code, "")
        assert "Traceback" not in done.stderr
    told = shop("apikeys", "revoke", "ak_0000000000000001").stderr
    assert told == "error: there is no API key of that id; see `oncekey apikeys list`\n"


def test_without_a_ledger_it_says_how_to_make_one(shop: Workshop) -> None:
    done = shop("apikeys", "create", "--url", f"sqlite:///{shop.folder}/none.db")
    assert done.returncode == 1
    assert done.stderr.endswith(
        "none.db; name another with --config or --url, or make one with `oncekey migrate`\n"
    )
