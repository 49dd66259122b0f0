"""The memory of a process, as the kernel counts it."""

from pathlib import Path


def resident_mb(process: int | str = "self") -> float:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith("VmRSS:"))
    return int(kilobytes) / 1024
