"""Everything that is under attack, put together: servers, their database, a bank, and the lines."""

import asyncio
import json
import os
import shutil
import sys
from base64 import b64encode
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from joserfc import jwt
from joserfc.jwk import OctKey

from tests.chaos.site.databases import DATABASES, Database
from tests.chaos.site.line import Line
from tests.chaos.site.server import ROOT, Ended, Server
from tests.fixtures.command import SCRIPT, clean_environment

_SECRET = "a secret of more than thirty-two bytes, for chaos only"
_HERE = Path(__file__).parent
# Clocks are set an hour ahead, and tokens are good for longer.
_FAR = 4_000_000_000

TENANTS = ("acme", "globex")


class Site:
    """`source` is the code that is served: the product's, or one with a planted bug."""

    def __init__(self, store: str, folder: Path, servers: int, source: Path, ended: Ended) -> None:
        folder.chmod(0o755)
        self.folder = folder
        self.effects_file = folder / "effects.jsonl"
        self.database: Database = DATABASES[store](folder)
        self.keys: dict[str, str] = {}
        self.hooks: dict[str, dict[str, str]] = {}
        self._source = source
        self._ended = ended
        self._names = [f"s{number + 1}" for number in range(servers)]
        self._bank_lines = [Line() for _ in self._names]
        self._seal = b64encode(os.urandom(32)).decode()
        self._ends = AsyncExitStack()

    async def open(self) -> None:
        shutil.copy(_HERE / "oncekey.toml", self.folder / "oncekey.toml")
        self._ends.push_async_callback(self.database.close)
        await self.database.open(len(self._names))
        await self._open_bank()
        self.servers = [
            Server(name, self.folder, self._source, self._environ(number), self._ended)
            for number, name in enumerate(self._names)
        ]
        for server in self.servers:
            self._ends.push_async_callback(server.close)
            await server.open()
        await self.all_up()
        await self._make_credentials()

    async def all_up(self) -> None:
        await asyncio.gather(*(server.up.wait() for server in self.servers))

    def mend(self) -> None:
        """Everything but the database, which mends itself."""
        self.database.disk.free()
        for number, server in enumerate(self.servers):
            server.thaw()
            server.set_clock(0)
            for deed in ("caller-line", "bank-line", "store-line"):
                for line in self.lines(deed, number):
                    line.mend()

    def lines(self, which: str, server: int) -> list[Line]:
        match which:
            case "caller-line":
                return [self.servers[server].line]
            case "bank-line":
                return [self._bank_lines[server]]
            case _:
                return self.database.lines(server)

    def token(self, who: str) -> str:
        """Of `acme/shop/anna`, who is a user."""
        tenant, project, subject = who.split("/")
        claims = {"tenant_id": tenant, "project_id": project, "sub": f"user:{subject}"}
        return jwt.encode({"alg": "HS256"}, {**claims, "exp": _FAR}, OctKey.import_key(_SECRET))

    async def close(self) -> None:
        await self._ends.aclose()

    async def _open_bank(self) -> None:
        environ = clean_environment({"CHAOS_EFFECTS": str(self.effects_file)})
        self._bank = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.chaos.site.bank", *self._names,
            cwd=ROOT, env=environ, stdout=asyncio.subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self._ends.push_async_callback(self._close_bank)
        assert self._bank.stdout is not None
        ports = (await self._bank.stdout.readline()).split()
        for line, port in zip(self._bank_lines, ports, strict=True):
            line.target = int(port)
            await line.open()
            self._ends.push_async_callback(line.close)

    async def _close_bank(self) -> None:
        self._bank.kill()
        await self._bank.wait()

    def _environ(self, server: int) -> dict[str, str]:
        return {
            "CHAOS_EFFECTS": str(self.effects_file),
            "ONCEKEY_STORE__URL": self.database.url(server),
            "ONCEKEY_UPSTREAMS__BANK__URL": f"http://127.0.0.1:{self._bank_lines[server].port}",
            "ONCEKEY_WEBHOOK_KEY": self._seal,
        }

    async def _make_credentials(self) -> None:
        for tenant in TENANTS:
            made = await self._command("apikeys", "create", "--tenant", tenant)
            self.keys[tenant] = made["secret"]
        self.keys["admin"] = (await self._command("apikeys", "create", "--admin"))["secret"]
        for name, then in (
            ("resolve", "resolve:body.promise"),
            ("forward", "forward:/hooks/forwarded"),
        ):
            whose = ("--provider", "github", "--tenant", "acme", "--project", "shop")
            self.hooks[name] = await self._command("webhooks", "create", *whose, "--then", then)

    async def _command(self, *words: str) -> Any:
        """As an operator does, in a process of its own."""
        path = os.pathsep.join(map(str, (self._source, ROOT)))
        process = await asyncio.create_subprocess_exec(
            sys.executable, SCRIPT, *words, "--json", "--config", self.folder / "oncekey.toml",
            cwd=self.folder,
            env=clean_environment({**self._environ(0), "PYTHONPATH": path}),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, errors = await process.communicate()
        if process.returncode != 0:
            raise RuntimeError(f"oncekey {' '.join(words)}: {errors.decode()}")
        return json.loads(out)
