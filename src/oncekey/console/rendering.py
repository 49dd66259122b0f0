"""Pages as HTML. Everything that is filled in is escaped; a name that is not there is a mistake."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from oncekey.console import exact, links, plots, verdicts, wording
from oncekey.console.visit import part

_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
_LONGEST_SHOWN = 20_000
_CODE = re.compile(r"`([^`]+)`")


class Asset(NamedTuple):
    content: bytes
    type: str
    version: str
    """Another with other content, so that browsers may keep it for good."""


class Rendering:
    def __init__(self) -> None:
        self.assets = _assets()
        self._pages = Environment(
            loader=PackageLoader("oncekey.console"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._pages.filters |= {
            "clock": wording.clock,
            "coded": coded,
            "laid_out": laid_out,
            "part": part,
            "pretty": pretty,
            "sentence": wording.sentence_of,
            "size": wording.size_of,
            "span": wording.span_of,
            "spelled": wording.spelled,
            "wrapped": wrapped,
        }
        self._pages.globals |= {
            "asset": self._asset,
            "links": links,
            "new_key": new_key,
            "plots": plots,
            "said": wording.SAID,
            "verdicts": verdicts,
            "with_query": with_query,
            "words": wording,
        }
        # As a global it is there in every block, also where a block is rendered by itself.
        self._pages.globals["ui"] = self._pages.get_template("parts.html").module

    def warm(self) -> None:
        """Read all pages, which takes its time: in a thread, before the first of them is wanted."""
        for name in self._pages.list_templates():
            self._pages.get_template(name)

    def page(self, template: str, values: Mapping[str, Any]) -> str:
        return _writable(self._pages.get_template(template).render(values))

    def live(self, template: str, values: Mapping[str, Any]) -> str:
        """Only what changes by itself."""
        page = self._pages.get_template(template)
        return _writable("".join(page.blocks["live"](page.new_context(dict(values)))))

    def is_live(self, template: str) -> bool:
        return "live" in self._pages.get_template(template).blocks

    def _asset(self, name: str) -> str:
        return f"static/{name}?v={self.assets[name].version}"


def new_key() -> str:
    """Of one action: whoever sends its form twice acts once."""
    return f"console-{secrets.token_hex(16)}"


def with_query(path: str, query: Mapping[str, Any], **more: Any) -> str:
    """A link to a page with some of its filters changed."""
    wanted = {**query, **more}
    asked = urlencode({name: value for name, value in wanted.items() if value not in {None, ""}})
    return f"{path}?{asked}" if asked else path


def pretty(value: Any) -> str:
    """JSON laid out for reading; a text that is JSON as well."""
    return _cut(_indented(value) if isinstance(value, str) else laid_out(value))


def laid_out(value: Any, whole: bool = True) -> str:
    """A value as JSON; of one that is not whole, the beginning of its text is all there is."""
    if not whole and isinstance(value, str):
        return value
    try:
        return exact.written(value)
    except RecursionError:
        return "This is nested too deeply to be shown."


def coded(text: str) -> Markup:
    """A text of ours, with what stands between backticks as code."""
    code = Markup("<code>{}</code>")
    pieces = _CODE.split(text)
    return Markup("").join(code.format(each) if at % 2 else each for at, each in enumerate(pieces))


def wrapped(name: str) -> Markup:
    """A long name, to be broken after its colons before it is broken anywhere."""
    return Markup(":<wbr>").join(escape(each) for each in name.split(":"))


def _indented(text: str) -> str:
    """As it was written but for its spaces; what is no JSON, or nested too deeply, as it is."""
    try:
        return msgspec.json.format(text, indent=2)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return text


def _writable(page: str) -> str:
    """JSON may hold half a character, as `\\ud800`, which no page can: it is shown as it was
    written."""
    return page.encode(errors="backslashreplace").decode()


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + " …"


def _assets() -> dict[str, Asset]:
    folder = files("oncekey.console") / "static"
    found = {}
    for entry in folder.iterdir():
        kind = _TYPES.get(entry.name.rpartition(".")[2])
        if kind is not None:
            content = entry.read_bytes()
            found[entry.name] = Asset(content, kind, sha256(content).hexdigest()[:12])
    return found
