#!/usr/bin/env python3
"""How mkdocs reads pages that are written for GitHub: what they link to comes along, folders have
an index, and what most people look for is found first."""

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
_EXAMPLE = re.compile(r"(examples/[\w-]+)/README\.md")
# GitHub shows the folder instead.
_PROBLEMS = "docs/problems/README.md"
_PROBLEM = re.compile(r"# (?P<title>.+)\n\n`(?P<code>[\w-]+)`, status (?P<status>\d+)\.")
_HEADER = re.compile(r"(?m)^\| `([A-Z][\w-]+)` \|")
# What counts in a search beside the words. Whoever has a code or a header wants what it means; why
# something was decided can wait.
_RANKS = {
    "problems/": 2.0,
    "reference/": 2.0,
    "how-to/": 2.0,
    "examples/": 0.5,
    "walks": 0.2,
    "CONTRIBUTING": 0.2,
    "decisions/": 0.1,
    "bench/": 0.1,
    "CHANGELOG": 0.1,
}


def on_config(config: MkDocsConfig) -> None:
    """A folder in the navigation is its index, and every page in it."""
    if config.nav is not None:
        config.nav = _filled(config.nav)


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Whatever is linked to, and what that links to."""
    waiting = [page.src_uri for page in files.documentation_pages()]
    files.append(File.generated(config, _uri_of(_PROBLEMS), content=_index_of_problems()))
    waiting += _bring(files, config, iter(["examples/README.md"]))
    while waiting:
        here = _path_of(waiting.pop())
        linked = (_target(here, link) for link, _ in _LINK.findall((_ROOT / here).read_text()))
        waiting += _bring(files, config, (path for path in linked if path))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Links lead where their file is in the site; the name of a file stands above its code."""
    here = _path_of(page.file.src_uri)
    page.meta["search"] = {"boost": _rank_of(page.file.src_uri)}
    page.meta["tags"] = _names_in(page.file.src_uri, markdown)

    def lead(link: re.Match[str]) -> str:
        target = _target(here, link[1])
        if target is None:
            return link[0]
        return f"]({relpath(_uri_of(target), Path(page.file.src_uri).parent)}{link[2]})"

    return _FENCE.sub(r'\1 title="\2"', _LINK.sub(lead, markdown))


def on_page_content(html: str, **_: Any) -> str:
    """A box to tick off has a name for those who do not see it."""
    return html.replace('<input type="checkbox"', '<input aria-label="done" type="checkbox"')


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
    is_there = path == _PROBLEMS or (_ROOT / path).is_file()
    return path if is_there and not path.startswith("..") else None


def _path_of(uri: str) -> str:
    """Where a page of the site is in the repository."""
    readme = f"{uri.removesuffix('.md')}/README.md"
    return next((path for path in (f"docs/{uri}", readme) if (_ROOT / path).is_file()), uri)


def _uri_of(path: str) -> str:
    """Where a file of the repository is in the site."""
    if path == "README.md":
        return "index.md"
    # Among its like an example is a page: as an index it would hide behind the name of their group.
    if example := _EXAMPLE.fullmatch(path):
        return f"{example[1]}.md"
    uri = path.removeprefix("docs/")
    return uri if Path(uri).suffix in _SHOWN else f"{uri}.txt"


def _filled(nav: list[Any]) -> list[Any]:
    return [
        {title: _filled(inner) if isinstance(inner, list) else _folder(inner)}
        for entry in nav
        for title, inner in entry.items()
    ]


def _folder(entry: str) -> Any:
    match entry:
        case "problems/":
            return [_uri_of(_PROBLEMS), *({page.stem: _uri_in(page)} for page in _pages_in(entry))]
        case "examples/":
            return _examples()
        case _ if entry.endswith("/"):
            return [_uri_in(page) for page in _pages_in(entry)]
    return entry


def _pages_in(folder: str) -> list[Path]:
    return sorted((_ROOT / "docs" / folder).glob("*.md"), key=_index_first)


def _index_first(page: Path) -> tuple[bool, str]:
    return page.stem != "README", page.stem


def _uri_in(page: Path) -> str:
    return _uri_of(page.relative_to(_ROOT).as_posix())


def _examples() -> list[Any]:
    """The index, and each example under the heading that it has there."""
    text = (_ROOT / "examples/README.md").read_text()
    first, *parts = re.split(r"(?m)^## (.+)$", text)
    headings = zip(parts[::2], map(_examples_in, parts[1::2]), strict=True)
    return ["examples/README.md", *_examples_in(first), *({name: uris} for name, uris in headings)]


def _examples_in(text: str) -> list[str]:
    found = re.findall(r"\]\(([\w-]+/README\.md)\)", text)
    return [_uri_of(f"examples/{readme}") for readme in found]


def _index_of_problems() -> str:
    """By status: that is what a caller sees first."""
    found = [_PROBLEM.match(page.read_text()) for page in _pages_in("problems/")]
    rows = sorted((each["status"], each["code"], each["title"]) for each in found if each)
    return "\n".join(
        [
            "# Problems\n",
            "What an answer that is `application/problem+json` means, and what to do about it. Its",
            "`type` ends with the code. [Errors](../reference/errors.md) has those of Python.\n",
            "| code | status | what happened |",
            "|---|---|---|",
            *(f"| [`{code}`]({code}.md) | {status} | {title} |" for status, code, title in rows),
        ]
    )


def _rank_of(uri: str) -> float:
    return next((rank for start, rank in _RANKS.items() if uri.startswith(start)), 1.0)


def _names_in(uri: str, markdown: str) -> list[str]:
    """What people copy from an answer, and look for: codes of problems, and headers."""
    if problem := _PROBLEM.match(markdown):
        return [problem["code"]]
    return _HEADER.findall(markdown) if uri == "reference/http.md" else []
