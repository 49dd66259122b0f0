"""OpenAPI documents from files and addresses, as JSON or YAML. Bounded, whoever wrote them."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from oncekey.cli.failure import Failure

LARGEST = 16 << 20
# An alias in YAML is a word long and may stand for all there is.
MOST_PARTS = 1_000_000
_DEEPEST = 100
_PATIENCE = 30.0


def read_document(place: str) -> Any:
    """The document at a path or an http(s) URL."""
    remote = urlsplit(place).scheme in {"http", "https"}
    text = _fetched(place) if remote else _from_file(Path(place))
    document = _parsed(text, place)
    if _count(document, MOST_PARTS, _DEEPEST) < 0:
        raise Failure(f"{place} has more than {MOST_PARTS} parts, or is nested too deeply")
    return document


def yaml_of(document: Any) -> str:
    # Parts that stand in it more than once are written out: not every reader knows aliases.
    plain = json.loads(json.dumps(document))
    text: str = _yaml().safe_dump(plain, sort_keys=False, width=100)
    return text


def _from_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise Failure(f"{path} cannot be read: {error.strerror}") from error
    return _text_of(content, str(path))


def _fetched(url: str) -> str:
    import httpx

    content = b""
    try:
        with httpx.stream("GET", url, timeout=_PATIENCE, follow_redirects=True) as answer:
            answer.raise_for_status()
            for piece in answer.iter_bytes():
                content += piece
                if len(content) > LARGEST:
                    break
    except httpx.HTTPError as error:
        raise Failure(f"{url} cannot be read: {error}") from error
    return _text_of(content, url)


def _text_of(content: bytes, place: str) -> str:
    if len(content) > LARGEST:
        raise Failure(f"{place} is larger than {LARGEST} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Failure(f"{place} is not UTF-8: {error}") from error


def _parsed(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise Failure(f"{place} is nested too deeply") from None
    except ValueError as error:
        if text.lstrip()[:1] in {"{", "["}:
            raise Failure(f"{place} is not JSON: {error}") from error
    yaml = _yaml()
    try:
        return yaml.load(text, Loader=_loader_of(yaml))
    except yaml.YAMLError as error:
        raise Failure(f"{place} is neither JSON nor YAML: {error}") from error
    except RecursionError:
        raise Failure(f"{place} is nested too deeply") from None


def _yaml() -> Any:
    try:
        return import_module("yaml")
    except ImportError:
        raise Failure("for YAML, run `pip install pyyaml`; JSON needs nothing") from None


def _loader_of(yaml: Any) -> Any:
    """Dates stay text, as they are in JSON."""

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        pass

    Loader.yaml_implicit_resolvers = {
        first: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return Loader


def _count(part: Any, most: int, deepest: int) -> int:
    """How many parts are left of `most`; negative when there are more, or it is too deep."""
    left = most - 1
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    for each in inner:
        if left < 0 or not deepest:
            return -1
        left = _count(each, left, deepest - 1)
    return left
