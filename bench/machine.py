"""The machine: what it is, how its cores are shared out, and what the bench needs on it."""

import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

# The server has the first core to itself; load generator and databases share the second.
SERVER_CPU = 0
LOAD_CPU = 1

BUSY_LOAD = 0.5
PROGRAMS = Path(sys.executable).parent
TOOLS = {"wrk": "wrk", "redis-server": "redis-server"}


def pinned(cpu: int | None, command: list[str]) -> list[str]:
    """The command held on one core, where there are two and `taskset` exists; None: on none, also
    when whoever starts it is held."""
    cores = os.cpu_count() or 1
    if cores < 2 or not shutil.which("taskset"):
        return command
    return ["taskset", "-c", f"0-{cores - 1}" if cpu is None else str(cpu), *command]


def pin_self(cpu: int) -> None:
    if (os.cpu_count() or 1) >= 2 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {cpu})


def program(name: str) -> str | None:
    """Where a program is: one that `make` brought, or one of the machine's own."""
    places = (str(PROGRAMS), os.environ.get("PATH", ""), "/usr/sbin")
    return shutil.which(name, path=":".join(places))


def install_tools() -> list[str]:
    """Installs what is missing where that is allowed; returns the tools still missing."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if not missing:
        return []
    command = [
        "apt-get",
        "install",
        "--yes",
        "--no-install-recommends",
        *(TOOLS[tool] for tool in missing),
    ]
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        print(f"Missing: {', '.join(missing)}. Install with: sudo {' '.join(command)}")
        return missing
    print(f"Installing: {' '.join(command)}")
    # RUNLEVEL keeps the packages from starting services of their own.
    environment = {**os.environ, "RUNLEVEL": "1", "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)
    return [tool for tool in missing if not shutil.which(tool)]


def fdatasync_ms(directory: Path, writes: int = 200) -> float:
    """The median cost of making one 4 KiB append durable: the floor under every durable store."""
    costs = []
    with (directory / "fdatasync").open("wb", buffering=0) as file:
        for _ in range(writes):
            started = time.perf_counter()
            file.write(b"x" * 4096)
            os.fdatasync(file.fileno())
            costs.append(time.perf_counter() - started)
    return round(sorted(costs)[writes // 2] * 1e3, 3)


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
        "unknown",
    )


def _tool_version(command: list[str], word: int) -> str:
    found = program(command[0])
    if found is None:
        return "missing"
    # wrk prints its version on the way to its usage text and exits with an error.
    run = subprocess.run([found, *command[1:]], capture_output=True, text=True, check=False)
    words = (run.stdout + run.stderr).split()
    return words[word].removeprefix("v=") if len(words) > word else "unknown"


def warn_if_busy() -> None:
    """Others on the machine widen every range; whoever reads the results should know."""
    load = os.getloadavg()[0]
    if load > BUSY_LOAD:
        print(f"The machine is busy (load average {load:.1f}): expect wide ranges.")


def _commit() -> str:
    """Which source was measured; `+` when files differed from it."""
    command = ["git", "describe", "--always", "--dirty=+"]
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent
        )
    except OSError:
        return "unknown"
    return run.stdout.strip() or "unknown"


def describe(scratch: Path) -> dict[str, str]:
    import sqlite3

    return {
        "cpu": _cpu_model(),
        "cores": str(os.cpu_count()),
        "kernel": f"{platform.system()} {platform.release()}",
        "fdatasync": f"{fdatasync_ms(scratch)} ms",
        "load average before": f"{os.getloadavg()[0]:.2f}",
        "commit": _commit(),
        "python": sys.version.split()[0],
        "sqlite": sqlite3.sqlite_version,
        "redis": _tool_version(["redis-server", "--version"], 2),
        "wrk": _tool_version(["wrk", "-v"], 1),
        "nginx": _tool_version(["nginx", "-v"], 2).removeprefix("nginx/"),
        "restate": _tool_version(["restate-server", "--version"], 1),
    }
