"""The console as an ASGI app: know the visitor, find the page, show it or do what its form asks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import quote, unquote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Match, Route

from oncekey.console.fields import Unreadable
from oncekey.console.forms import asked_again, form_in
from oncekey.console.guard import (
    NO_COOKIE,
    PROOF,
    ROOT,
    SAFETY,
    Refusals,
    comes_from_here,
    cookie_of,
    is_navigation,
    is_proven,
    is_secure,
    token_in,
)
from oncekey.console.live import LONGEST_PATH, Live
from oncekey.console.rendering import Rendering
from oncekey.console.table import NAVIGATION, PLACES
from oncekey.console.visit import Api, Page, Place, Refused, Visit, Went
from oncekey.core.errors import OnceKeyError
from oncekey.core.sessions import Session, Sessions

log = logging.getLogger("oncekey")

_SIGN_IN = f"{ROOT}/sign-in"
_LOOKS = frozenset({"GET", "HEAD"})
_FOREVER = "public, max-age=31536000, immutable"


class Console:
    """Call `let_go` when the server is about to stop: pages that are watched end then."""

    def __init__(self, api: Api, sessions: Sessions) -> None:
        self._api = api
        self._sessions = sessions
        self._rendering = Rendering()
        self._refusals = Refusals()
        self._warming: asyncio.Task[None] | None = None
        self._live = Live(self._find_page, self._rendering)
        self.let_go = self._live.let_go
        self._places = [(Route(ROOT + each.path, _never), each) for each in PLACES]
        self._app = Starlette(
            routes=[*self._own_routes(), *map(self._route_of, PLACES)],
            exception_handlers={
                404: self._nothing,
                Refused: self._refuse,
                OnceKeyError: self._excuse,
            },
        )

    def has(self, path: str) -> bool:
        return path == ROOT or path.startswith(ROOT + "/")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def send_safely(message: Any) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                safety = [(name.encode(), value.encode()) for name, value in SAFETY.items()]
                if b"cache-control" not in given:
                    safety.append((b"cache-control", b"no-store"))
                message = {**message, "headers": [*message["headers"], *safety]}
            await send(message)

        if self._warming is None:
            # Most servers are never looked at: only they who are pay for it.
            self._warming = asyncio.create_task(asyncio.to_thread(self._rendering.warm))
        await self._app(scope, receive, send_safely)

    def _own_routes(self) -> list[Route]:
        return [
            Route(_SIGN_IN, self._sign_in, methods=["GET", "POST"]),
            Route(f"{ROOT}/sign-out", self._sign_out, methods=["POST"]),
            Route(f"{ROOT}/live", self._watch),
            Route(f"{ROOT}/static/{{name}}", self._static),
        ]

    async def _nothing(self, request: Request, _: Exception) -> Response:
        session = await self._session_of(request)
        if session is None:
            return self._ask_to_sign_in(request)
        return self._page(request, session, _refusal(_NO_PAGE))

    async def _refuse(self, request: Request, refused: Exception) -> Response:
        """What nobody need be known for."""
        assert isinstance(refused, Refused)
        return self._page(request, None, _refusal(refused))

    def _route_of(self, place: Place) -> Route:
        methods = ["GET"] if place.do is None else ["GET", "POST"]
        return Route(ROOT + place.path, partial(self._serve, place), methods=methods)

    # -- pages ---------------------------------------------------------------------------

    async def _serve(self, place: Place, request: Request) -> Response:
        session = await self._session_of(request)
        if session is None:
            return self._ask_to_sign_in(request)
        visit = Visit(self._api, session, request.path_params, dict(request.query_params))
        try:
            if request.method == "POST":
                return await self._do(place, visit, request)
            return self._page(request, session, await place.show(visit))
        except Refused as refused:
            return self._page(request, session, _refusal(refused))

    async def _do(self, place: Place, visit: Visit, request: Request) -> Response:
        form = await form_in(request)
        if not _is_ours(request, visit.session, form):
            return self._page(request, visit.session, _refusal(_NOT_OURS))
        assert place.do is not None
        try:
            ended = await place.do(visit, form)
        except (Refused, Unreadable) as problem:
            ended = await asked_again(place, visit, form, problem)
        if isinstance(ended, Page):
            return self._page(request, visit.session, ended)
        return _redirect(_place_after(ended))

    def _page(self, request: Request, session: Session | None, page: Page) -> Response:
        values = {**_around(request, session), **page.values}
        watched, is_look = _asked(request), request.method in _LOOKS and page.status == 200
        if is_look and len(watched) <= LONGEST_PATH and self._rendering.is_live(page.template):
            values["live_path"] = f"{ROOT}/live?page={quote(watched, safe='')}"
        return HTMLResponse(self._rendering.page(page.template, values), page.status)

    async def _excuse(self, request: Request, error: Exception) -> Response:
        """Mostly the store is away, and then nobody knows who is there either."""
        log.warning("the console could not answer %s: %s", request.url.path, error)
        return self._page(request, None, _refusal(_NOT_NOW))

    # -- who is there --------------------------------------------------------------------

    async def _session_of(self, request: Request) -> Session | None:
        token = token_in(request.headers)
        return None if token is None else await self._sessions.find(token)

    def _ask_to_sign_in(self, request: Request) -> Response:
        if request.method not in _LOOKS:
            return self._page(
                request, None, Page("sign-in.html", {"to": "", "problem": _GONE}, 401)
            )
        to = quote(_asked(request), safe="")
        return _redirect(f"{_SIGN_IN}?to={to}")

    async def _sign_in(self, request: Request) -> Response:
        if request.method in _LOOKS:
            to = request.query_params.get("to", "")
            if await self._session_of(request) is not None:
                return _redirect(_inside(to))
            return self._page(request, None, Page("sign-in.html", {"to": to, "problem": None}))
        form = await form_in(request)
        session = None
        if comes_from_here(request.headers):
            session = await self._sessions.open(form.get("secret", "").strip())
        if session is None:
            self._refusals.note(request.client.host if request.client else None)
            values = {"to": form.get("to", ""), "problem": _NOBODY}
            return self._page(request, None, Page("sign-in.html", values, 401))
        answer = _redirect(_inside(form.get("to", "")))
        secure = is_secure(request.url.scheme, request.headers)
        answer.headers["set-cookie"] = cookie_of(session.token, secure=secure)
        return answer

    async def _sign_out(self, request: Request) -> Response:
        session, form = await self._session_of(request), await form_in(request)
        if session is None:
            return _redirect(_SIGN_IN)
        if not _is_ours(request, session, form):
            return self._page(request, session, _refusal(_NOT_OURS))
        await self._sessions.close(session.token)
        answer = _redirect(f"{_SIGN_IN}?said=signed-out")
        answer.headers["set-cookie"] = NO_COOKIE
        return answer

    # -- files, and what changes by itself -----------------------------------------------

    async def _static(self, request: Request) -> Response:
        asset = self._rendering.assets.get(request.path_params["name"])
        if asset is None:
            return Response("There is nothing here.", 404, media_type="text/plain")
        headers = {"cache-control": _FOREVER}
        return Response(asset.content, media_type=asset.type, headers=headers)

    async def _watch(self, request: Request) -> Response:
        if await self._session_of(request) is None:
            return Response("Sign in again.", 401, media_type="text/plain")
        return await self._live.answer(request, partial(self._session_of, request))

    def _find_page(
        self, request: Request, session: Session, path: str, query: Mapping[str, str]
    ) -> tuple[Place, Visit, dict[str, Any]] | None:
        """The page of a path, as its visitor sees it now."""
        scope = {"type": "http", "method": "GET", "path": path, "root_path": ""}
        for route, place in self._places:
            fit, found = route.matches(scope)
            if fit is Match.FULL and place.do is None:
                visit = Visit(self._api, session, found["path_params"], query)
                return place, visit, _around(request, session)
        return None


_NOT_OURS = Refused(
    403,
    "This form is not of a page of yours",
    "Nothing was done. Go back, load the page again, and send the form from there.",
)
_NO_PAGE = Refused(404, "There is nothing here", "No page of the console has this address.")
_NOT_NOW = Refused(
    503,
    "This cannot be shown now",
    "The store does not answer, and whether anything was done is not known. Try again in a moment; "
    "the log of the server says more.",
)
_GONE = Refused(401, "Your session has ended", "Nothing was done. Sign in, and try again.")
_NOBODY = Refused(
    401,
    "This is not the key of an admin",
    "It may be expired or revoked. `oncekey apikeys create --admin` makes another.",
)


async def _never(_: Request) -> Response:
    raise AssertionError("only matched")


def _around(request: Request, session: Session | None) -> dict[str, Any]:
    """What every page has."""
    return {
        "root": ROOT,
        "navigation": NAVIGATION,
        "here": request.url.path.removeprefix(ROOT).split("/")[1:2],
        "session": session,
        "proof": session.proof if session and is_navigation(request.headers) else "",
        "query": dict(request.query_params),
        "problem": None,
        "given": {},
        "kept_key": "",
        "live_path": "",
    }


def _refusal(refused: Refused) -> Page:
    return Page("refused.html", {"problem": refused}, refused.status)


def _redirect(location: str) -> RedirectResponse:
    return RedirectResponse(location, 303)


def _asked(request: Request) -> str:
    """The path, which may hold any character, and the query, as they are written in a link."""
    return quote(request.scope["path"]) + (f"?{request.url.query}" if request.url.query else "")


def _inside(to: str) -> str:
    """Where somebody wanted to go, if that is a page of ours."""
    ours = to == ROOT or to.startswith((f"{ROOT}/", f"{ROOT}?"))
    # Browsers go up by these, also where they are encoded.
    climbs = not {".", ".."}.isdisjoint(unquote(to.partition("?")[0]).split("/"))
    return to if ours and to.isprintable() and "\\" not in to and not climbs else ROOT


def _is_ours(request: Request, session: Session, form: Mapping[str, str]) -> bool:
    return comes_from_here(request.headers) and is_proven(session, form.get(PROOF, ""))


def _place_after(went: Went) -> str:
    join = "&" if "?" in went.location else "?"
    again = "&again=1" if went.again else ""
    return f"{ROOT}{went.location}{join}said={went.said}{again}"
