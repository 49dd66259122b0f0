"""What being watched costs the requests: python -m bench.console.watching.

Two servers take turns: one that counts nothing and has no console, and one as it is by default,
first left alone, then with three pages of its console open in browsers, as far as it can tell.
What is counted is processor time: seconds of the clock are also those of everybody else here.
"""

import argparse
import asyncio
import http.client
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from urllib.parse import quote

from bench import machine
from bench.console.asking import Served
from bench.load import store_keys, wrk
from bench.rounds import run_round, spread_of

PAGES = ("", "/keys", "/workflows")
KEYS = 256
_LOOKED = 20.0
HERE = Path(__file__).parent
_CONFIG = """
[server]
port = 0
[store]
url = "{url}"
[app]
target = "orders:app"
[[routes]]
path = "/orders"
methods = ["POST"]
policy = "REQUIRED_A"
"""
_BLIND = """
[console]
enabled = false
[metrics]
enabled = false
[log]
requests = "none"
"""
_ORDERS = """
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route


async def create(request):
    return JSONResponse({"order": await request.json()}, status_code=201)


app = Starlette(routes=[Route("/orders", create, methods=["POST"])])
"""


def _serve(folder: Path, more: str) -> Served:
    folder.mkdir()
    (folder / "orders.py").write_text(_ORDERS)
    url = f"sqlite:///{folder}/oncekey.db"
    return Served(url, folder, _CONFIG.format(url=url) + more, signs_in=not more)


@contextmanager
def _watched(served: Served):
    """Pages that are open: their streams are read until the block ends."""
    connections = [_stream_of(served, page) for page in PAGES]
    seen = [threading.Thread(target=_read, args=(each,)) for each in connections]
    for each in seen:
        each.start()
    try:
        yield
    finally:
        for each in connections:
            each.sock.shutdown(2)
        for each in seen:
            each.join()


def _stream_of(served: Served, page: str) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    path = f"/console/live?page={quote('/console' + page, safe='')}"
    connection.request("GET", path, headers={"Cookie": served.cookie})
    return connection


def _read(connection: http.client.HTTPConnection) -> None:
    try:
        answer = connection.getresponse()
        assert answer.status == 200, answer.status
        while answer.read1():
            pass
    except (OSError, http.client.HTTPException, ValueError):
        return


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.console.watching", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=int, default=4)
    arguments = parser.parse_args()
    machine.warn_if_busy()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch:
        blind, seeing = _serve(Path(scratch, "blind"), _BLIND), _serve(Path(scratch, "seeing"), "")
        try:
            rows = [
                row
                for kind in ("new keys", "replays")
                for row in _compare(kind, blind, seeing, arguments)
            ]
            share = _share_of(seeing)
        finally:
            blind.close()
            seeing.close()
        _write(rows, share, Path(scratch), arguments)


def _share_of(served: Served) -> float:
    """Of a core, that pages take while nothing else is asked for."""
    with _watched(served):
        before = served.processor_seconds()
        time.sleep(_LOOKED)
        share = (served.processor_seconds() - before) / _LOOKED
    print(f"three pages that are watched take {share:.1%} of a core", flush=True)
    return share


def _write(rows: list[str], share: float, scratch: Path, arguments: argparse.Namespace) -> None:
    told = machine.describe(scratch)
    shown = ", ".join(f"{name} {told[name]}" for name in ("cpu", "cores", "kernel", "commit"))
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    command = f"python -m bench.console.watching --rounds {arguments.rounds}"
    parts = [
        "# What being watched costs the requests\n",
        "Requests for each second of processor time that the server takes, as a ratio: the median",
        "of the rounds, and the lowest and highest.\n",
        f"Made by `{command} --seconds {arguments.seconds}`, {when}: {shown}.\n",
        "| requests | server | beside | ratio |\n|---|---|---|---|",
        *rows,
        "",
        f"While nothing else is asked for, the three pages take {share:.1%} of a core.\n",
    ]
    (HERE / "WATCHED.md").write_text("\n".join(parts))
    print(f"Written: {HERE / 'WATCHED.md'}")


def _compare(
    kind: str, blind: Served, seeing: Served, arguments: argparse.Namespace
) -> Iterator[str]:
    prefix = token_hex(6)
    if kind == "replays":
        for each in (blind, seeing):
            asyncio.run(store_keys(each.port, prefix, KEYS))

    def rate(name: str) -> float:
        served = blind if name == "blind" else seeing
        if name == "watched":
            with _watched(served):
                return _rate(kind, served, prefix, arguments.seconds)
        return _rate(kind, served, prefix, arguments.seconds)

    found: dict[str, list[float]] = {"alone": [], "watched": []}
    for number in range(arguments.rounds):
        for name, ratio in run_round("blind", list(found), number, rate).items():
            found[name].append(ratio)
    watched = [b / a for a, b in zip(found["alone"], found["watched"], strict=True)]
    for server, beside, ratios in (
        ("counts and has a console", "one that counts nothing", found["alone"]),
        ("three pages are watched", "one that counts nothing", found["watched"]),
        ("three pages are watched", "the same, with none watched", watched),
    ):
        found_at = spread_of(ratios)
        told = f"{found_at.median:.3f} ({found_at.low:.3f}–{found_at.high:.3f})"
        row = f"| {kind} | {server} | {beside} | {told} |"
        print(row, flush=True)
        yield row


def _rate(kind: str, served: Served, prefix: str, seconds: int) -> float:
    before = served.processor_seconds()
    if kind == "replays":
        sample = wrk(served.port, "replays.lua", seconds, prefix, str(KEYS))
    else:
        sample = wrk(served.port, "new_keys.lua", seconds, token_hex(6))
    return (sample.requests - sample.refused) / (served.processor_seconds() - before)


if __name__ == "__main__":
    main()
