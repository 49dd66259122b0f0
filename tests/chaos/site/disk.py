"""A small disk of its own for a store, which can be filled: real files, a real end of them."""

import os
import subprocess
from contextlib import suppress
from pathlib import Path

_KEPT_FREE = 1 << 16


class Disk:
    """An image with a file system, mounted where that is allowed; elsewhere a plain folder that is
    never full."""

    def __init__(self, folder: Path, megabytes: int) -> None:
        self.path = folder / "disk"
        self.path.mkdir()
        self._image = folder / "disk.img"
        self._ballast = self.path / "ballast"
        self.can_fill = self._mount(megabytes)

    def fill(self) -> None:
        """Take what is free, down to the last pages."""
        with self._ballast.open("ab") as file, suppress(OSError):
            while (free := self._free() - _KEPT_FREE) > 0:
                os.posix_fallocate(file.fileno(), file.tell(), free)
                file.seek(0, os.SEEK_END)

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)

    def close(self) -> None:
        if self.can_fill:
            subprocess.run(["umount", "-l", self.path], check=False, capture_output=True)
            self._image.unlink()

    def _free(self) -> int:
        stat = os.statvfs(self.path)
        return stat.f_bavail * stat.f_frsize

    def _mount(self, megabytes: int) -> bool:
        if os.geteuid() != 0:
            return False
        with self._image.open("wb") as image:
            image.truncate(megabytes << 20)
        commands = [
            ["mkfs.ext4", "-q", "-F", "-m", "0", str(self._image)],
            ["mount", "-o", "loop", str(self._image), str(self.path)],
        ]
        try:
            return all(
                subprocess.run(each, check=False, capture_output=True).returncode == 0
                for each in commands
            )
        except FileNotFoundError:
            return False
