"""What a user installs: complete, and useful without any extra."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = (
    "all cel client django edge fastapi flask grpc otel postgres restate temporal vault".split()
)
WITHOUT_EXTRAS = """
import sys
# msgspec takes typing_extensions where it is installed, and does without where it is not.
allowed = {*sys.stdlib_module_names, "oncekey", "click", "msgspec", "rich", "typing_extensions"}
import oncekey
oncekey.open("memory://").close()
# The command looks after the ledger of any application, with whatever extra that has.
import oncekey.cli.main
loaded = {name.split(".")[0] for name in sys.modules} - allowed - given
# Named after the platform, so that no list has it.
print(*sorted(name for name in loaded if not name.startswith("_sysconfigdata")))
"""
WITHOUT_WORKFLOWS = """
import sys
import oncekey
oncekey.open("memory://").close()
before = "oncekey.durable.app" in sys.modules
from oncekey import App, Context, Handle, Retry
print(before, "oncekey.durable.app" in sys.modules, App is oncekey.App, hasattr(oncekey, "Apps"))
"""


def test_the_wheel_carries_everything_in_the_package(tmp_path: Path) -> None:
    build = ["-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run([sys.executable, *build], cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")

    packed = set(zipfile.ZipFile(wheel).namelist())

    source = ROOT / "src"
    present = {
        str(path.relative_to(source))
        for path in (source / "oncekey").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert present <= packed


def test_the_extras_are_the_promised_ones() -> None:
    assert sorted(PROJECT["optional-dependencies"]) == EXTRAS


def test_the_ledger_opens_without_any_extra() -> None:
    # What the interpreter itself loads at start, such as an editable install's finder, is not ours.
    script = f"import sys; given = {{n.split('.')[0] for n in sys.modules}}\n{WITHOUT_EXTRAS}"
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == []


def test_workflows_are_imported_by_those_who_ask_for_them() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_WORKFLOWS], check=True, capture_output=True, text=True
    )

    assert done.stdout.split() == ["False", "True", "True", "False"]
