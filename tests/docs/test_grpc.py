"""The page on gRPC tells every method and every error."""

import re
from pathlib import Path

from oncekey.api.grpc import oncekey_pb2 as pb
from oncekey.api.grpc.statuses import codes

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "grpc.md").read_text()


def test_the_methods_are_those_of_the_proto() -> None:
    told = re.findall(r"^\| `(\w+\.\w+)` \|", PAGE, re.MULTILINE)
    assert told == [
        f"{service.name}.{method.name}"
        for service in pb.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    ]


def test_the_errors_are_those_of_the_table() -> None:
    told = re.findall(r"^\| `([a-z-]+)` \| `([A-Z_]+)` \|$", PAGE, re.MULTILINE)
    assert told == [(code, status.name) for code, status in codes().items()]
