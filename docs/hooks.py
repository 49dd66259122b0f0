#!/usr/bin/env python3
"""How mkdocs reads pages that are written for GitHub: what they link to comes along."""

import re
from collections.abc import Iterator
from pathlib import Path
from posixpath import normpath, relpath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"\]\((?!\w+:|[#/<])([^)\s#]+)((?:#[^)\s]*)?)\)")
_FENCE = re.compile(r"(?m)^( *```\w+) (\S+\.\w+)$")
# What a browser shows as it is; the rest it would offer to save.
_SHOWN = {".md", ".svg", ".png", ".json", ".txt"}


def on_config(config: MkDocsConfig) -> None:
    """`problems/` in the navigation is every page of that folder, `examples/` every example."""
    if config.nav is not None:
        config.nav = _filled(config.nav)


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Whatever is linked to, and what that links to."""
    waiting = [page.src_uri for page in files.documentation_pages()]
    waiting += _bring(files, config, _pages_in("examples"))
    while waiting:
        here = _path_of(waiting.pop())
        linked = (_target(here, link) for link, _ in _LINK.findall((_ROOT / here).read_text()))
        waiting += _bring(files, config, (path for path in linked if path))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Links lead where their file is in the site; the name of a file stands above its code."""
    here = _path_of(page.file.src_uri)

    def lead(link: re.Match[str]) -> str:
        target = _target(here, link[1])
        if target is None:
            return link[0]
        return f"]({relpath(_uri_of(target), Path(page.file.src_uri).parent)}{link[2]})"

    return _FENCE.sub(r'\1 title="\2"', _LINK.sub(lead, markdown))


def _bring(files: Files, config: MkDocsConfig, paths: Iterator[str]) -> Iterator[str]:
    """Into the site. Answers the pages that were not there."""
    for path in paths:
        uri = _uri_of(path)
        if files.get_file_from_path(uri) is None:
            files.append(File.generated(config, uri, abs_src_path=str(_ROOT / path)))
            if uri.endswith(".md"):
                yield uri


def _target(here: str, link: str) -> str | None:
    """The file that a link of this page leads to, as it is called in the repository."""
    path = normpath(f"{Path(here).parent}/{link}")
    if (_ROOT / path).is_dir():
        path = f"{path}/README.md"
    return path if not path.startswith("..") and (_ROOT / path).is_file() else None


def _path_of(uri: str) -> str:
    """Where a page of the site is in the repository."""
    return f"docs/{uri}" if (_ROOT / "docs" / uri).exists() else uri


def _uri_of(path: str) -> str:
    """Where a file of the repository is in the site."""
    if path == "README.md":
        return "index.md"
    uri = path.removeprefix("docs/")
    return uri if Path(uri).suffix in _SHOWN else f"{uri}.txt"


def _filled(nav: list[Any]) -> list[Any]:
    return [
        {title: _filled(inner) if isinstance(inner, list) else _folder(inner)}
        for entry in nav
        for title, inner in entry.items()
    ]


def _folder(entry: str) -> Any:
    if not entry.endswith("/"):
        return entry
    uris = [_uri_of(path) for path in _pages_in(entry)]
    # Whoever comes for a problem has its code.
    return [{Path(uri).stem: uri} for uri in uris] if entry == "problems/" else uris


def _pages_in(folder: str) -> Iterator[str]:
    """In their order; of a folder beside docs/, the README of each folder in it."""
    inside = sorted((_ROOT / "docs" / folder).glob("*.md"), key=_index_first)
    beside = sorted((_ROOT / folder).glob("*/README.md"))
    yield from (path.relative_to(_ROOT).as_posix() for path in inside or beside)


def _index_first(page: Path) -> tuple[bool, str]:
    return page.stem != "README", page.stem
