"""Objects that a setting names by `module:name`, such as the application to serve."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from oncekey.core.errors import ConfigurationError


def load_target(target: str, folder: Path) -> Any:
    """The object `target` names. `folder` is looked in first, as Python does for a script."""
    name, _, attributes = target.partition(":")
    check_target(target, folder)
    found: Any = importlib.import_module(name)
    for attribute in attributes.split("."):
        if not hasattr(found, attribute):
            raise ConfigurationError(f"{target}: the module {name} has no {attributes!r}")
        found = getattr(found, attribute)
    return found


def check_target(target: str, folder: Path) -> None:
    """Raise when there is no such module. What is in it is not run, the packages around it are."""
    name = target.partition(":")[0]
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        missing = find_spec(name) is None
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise
        missing = True
    if missing:
        raise ConfigurationError(
            f"{target}: there is no module {name} in {folder} or among the installed ones"
        )
