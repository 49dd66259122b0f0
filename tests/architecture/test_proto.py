"""The gRPC code is what its proto says, and nobody needs it who does not serve gRPC."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = Path("oncekey/api/grpc")
GENERATED = ["oncekey_pb2.py", "oncekey_pb2.pyi", "oncekey_pb2_grpc.py", "oncekey_pb2_grpc.pyi"]
WITHOUT_GRPC = """
import pkgutil, sys
sys.modules["grpc"] = sys.modules["google"] = None
import oncekey
skipped = ("oncekey.django", "oncekey.integrations.django", "oncekey.api.grpc.",
           "oncekey.temporal", "oncekey.integrations.temporal")
names = [module.name for module in pkgutil.walk_packages(
    oncekey.__path__, "oncekey.", onerror=lambda name: None)]
for name in names:
    if not name.startswith(skipped):
        __import__(name)
print(*names)
"""


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make proto` makes now."""
    folder = tmp_path_factory.mktemp("proto")
    tools = Path(sys.executable).parent
    target = ["make", "-o", "venv", "proto", f"BIN={tools}", f"PROTO_OUT={folder}"]
    subprocess.run(target, cwd=ROOT, check=True, capture_output=True)
    return folder / FOLDER


@pytest.mark.parametrize("name", GENERATED)
def test_the_generated_code_is_up_to_date(generated: Path, name: str) -> None:
    assert (ROOT / "src" / FOLDER / name).read_text() == (generated / name).read_text(), (
        "make proto"
    )


def test_the_extra_asks_for_what_the_generated_code_needs() -> None:
    folder = ROOT / "src" / FOLDER
    (protobuf,) = re.findall(
        r"# Protobuf Python Version: (\S+)", (folder / GENERATED[0]).read_text()
    )
    (grpcio,) = re.findall(
        r"GRPC_GENERATED_VERSION = '(\d+\.\d+)", (folder / GENERATED[2]).read_text()
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extra = project["optional-dependencies"]["grpc"]
    assert extra == [f"grpcio>={grpcio}", f"protobuf>={protobuf}"]


def test_everything_else_is_imported_without_grpc() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_GRPC], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert {"oncekey.api.grpc", "oncekey.cli.serve"} <= set(done.stdout.split())
