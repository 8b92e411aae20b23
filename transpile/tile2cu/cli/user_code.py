"""Functions of the user's own Python files, which are executed: peers and references."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tile2cu.core.errors import Tile2CuError


def module_of(file: Path) -> Any:
    """A module from a file, which may import modules of its folder.

    Errors: T2C-C001 where there is no such file.
    """
    if not file.is_file():
        raise Tile2CuError("T2C-C001", f"cannot read `{file}`: there is no such file")
    spec = importlib.util.spec_from_file_location(f"code_of_{file.stem}", file)
    assert spec is not None and spec.loader is not None, "a .py file has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.resolve().parent))
    spec.loader.exec_module(module)
    return module


def function_of(module: Any, name: str, option: str) -> Callable[..., Any]:
    """A function by its dotted name in a module; `option` is what the command line has. Raises T2C-C002."""
    found = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise Tile2CuError("T2C-C002", f"`{option}`: there is no function `{name}`")
    function: Callable[..., Any] = found
    return function
