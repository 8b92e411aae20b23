"""Which tile2cu this is: its version, and a hash over everything that decides the bytes of its output."""

import functools
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from tile2cu.core.origin import Tool
from tile2cu.version import VERSION

_PACKAGE = Path(__file__).parent
# The command line and what it does with files decide no byte of them.
_DECIDING = (
    "api.py",
    "analysis",
    "chooser",
    "choosing.py",
    "core",
    "emitter",
    "frontend",
    "passes",
    "plan",
    "rules",
    "styles",
    "targets",
    "version.py",
)
_SUFFIXES = (".py", ".jinja", ".h")


@functools.cache
def this_tool() -> Tool:
    """The running tile2cu. Its hash covers the transpiler's sources and templates, and the tl headers."""
    from tile2cu_runtime.paths import headers_dir

    digest = hashlib.sha256()
    places = [(_PACKAGE, name) for name in _DECIDING] + [(headers_dir(), "tl")]
    for root, name in places:
        for parts, path in sorted(_sources((name,), os.path.join(root, name))):
            digest.update(f"{'/'.join(parts)}\0".encode())
            with open(path, "rb") as file:
                digest.update(hashlib.sha256(file.read()).digest())
    return Tool(version=VERSION, sha256=digest.hexdigest())


def _sources(parts: tuple[str, ...], path: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """The sources in a folder, or the one that the path is of: their names from the package's folder on, and paths.

    Every transpilation reads all of them: pathlib would take twice the time.
    """
    if not os.path.isdir(path):
        yield parts, path
        return
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _sources((*parts, entry.name), entry.path)
            elif entry.name.endswith(_SUFFIXES):
                yield (*parts, entry.name), entry.path
