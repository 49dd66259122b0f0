"""The stores that outlive a process."""

from pathlib import Path

import pytest


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgres", marks=pytest.mark.postgres),
        pytest.param("restate", marks=pytest.mark.restate),
    ]
)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param in {"postgres", "restate"}:
        return str(request.getfixturevalue(f"{request.param}_url"))
    return f"sqlite:///{tmp_path}/oncekey.db"
