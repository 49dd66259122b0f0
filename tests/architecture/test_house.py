"""The rules of the house that a machine can hold: small files, one language, a clean lock."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.proofs import FILES, FOLDERS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "oncekey"
LONGEST_FILE = 400
LONGEST_FUNCTION = 45
FORBIDDEN_NAMES = {"common", "helper", "helpers", "manager", "managers", "util", "utils"}
WORDS = """
operation key scope fingerprint claim lease lapse takeover fence decision outcome settle release
conclude replay attach retention sweep ledger store record delivery provider source event condition
promise resolve reject park token workflow step journal task control engine policy case rewrite
upstream problem intent
""".split()


def is_written(path: Path) -> bool:
    """By people; what is generated is nobody's to read."""
    return not path.stem.endswith(("_pb2", "_pb2_grpc"))


def modules() -> list[Path]:
    return sorted(filter(is_written, PACKAGE.rglob("*.py")))


def python_files() -> list[Path]:
    folders = ("src", "tests", "examples", "bench")
    found = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return sorted(filter(is_written, found))


def functions_of(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def place(path: Path, line: int = 1) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_the_rules_have_something_to_look_at() -> None:
    assert modules()
    assert list((ROOT / "requirements").glob("*.txt"))


def test_no_file_is_too_long_to_read_in_one_sitting() -> None:
    lengths = {place(path): len(path.read_text().splitlines()) for path in python_files()}
    assert {file: length for file, length in lengths.items() if length > LONGEST_FILE} == {}


def test_no_function_is_too_long_to_hold_in_the_head() -> None:
    lengths = {
        f"{place(path, function.lineno)} {function.name}": function.end_lineno - function.lineno + 1
        for path in modules()
        for function in functions_of(path)
        if function.end_lineno is not None
    }
    assert {name: length for name, length in lengths.items() if length > LONGEST_FUNCTION} == {}


def test_every_module_says_what_lives_in_it() -> None:
    silent = [
        place(path) for path in modules() if not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert silent == []


def test_no_module_is_named_after_nothing() -> None:
    nameless = [
        place(path)
        for path in modules()
        if FORBIDDEN_NAMES & set(path.relative_to(PACKAGE).with_suffix("").parts)
    ]
    assert nameless == []


def test_core_uses_the_standard_library_only() -> None:
    foreign = {
        f"{place(path)} {name}"
        for path in (PACKAGE / "core").rglob("*.py")
        for name in imports_of(path)
        if name.split(".")[0] not in {*sys.stdlib_module_names, "oncekey"}
    }
    assert foreign == set()


@pytest.mark.parametrize("lock", sorted((ROOT / "requirements").iterdir()), ids=lambda p: p.name)
def test_a_lock_names_no_index(lock: Path) -> None:
    named = re.findall(
        r"(?im)https?://\S+|^\s*--(?:extra-)?index-url.*|--find-links.*", lock.read_text()
    )
    assert named == []


@pytest.mark.parametrize(
    "lock", sorted((ROOT / "requirements").glob("*.txt")), ids=lambda p: p.name
)
def test_a_lock_pins_every_version_with_its_hash(lock: Path) -> None:
    entries = re.split(r"\n(?=\w)", lock.read_text())
    loose = [
        entry for entry in entries if not re.match(r"[\w.-]+==\S+.*\\\n\s+--hash=sha256:", entry)
    ]
    assert loose == []


@pytest.mark.parametrize("word", WORDS)
def test_the_glossary_defines(word: str) -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text()
    assert re.search(rf"(?m)^\*\*{word}\*\* — \S+", glossary)


def test_what_is_called_a_proof_is_there() -> None:
    tests = ROOT / "tests"
    assert all((tests / folder).is_dir() for folder in FOLDERS)
    assert all((tests / file).is_file() for file in FILES)


def test_proofs_hold_a_change_back_as_tests_do() -> None:
    said = (ROOT / ".ci" / "run").read_text()
    assert all(f"\nrun_tests {target}\n" in said for target in ("test", "proofs"))
