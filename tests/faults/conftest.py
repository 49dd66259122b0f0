"""The stores that outlive a process."""

from pathlib import Path

import pytest

# What takes longest on Restate, and has another test beside it that stands for it.
FOR_CHAOS = {
    "test_bursts_of_duplicates_run_once_and_never_fail[restate-1]",
    "test_no_process_starves[restate]",
    "test_refuse_on_restate",
    "test_workflows_outlive_the_processes_that_run_them[restate-1]",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.name in FOR_CHAOS:
            item.add_marker(pytest.mark.storm)


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
