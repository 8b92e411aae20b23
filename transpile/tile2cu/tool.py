"""Which tile2cu this is: its version, and a hash over everything that decides the bytes of its output."""

import functools
import hashlib
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
        for path in _sources(root / name):
            digest.update(f"{path.relative_to(root).as_posix()}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return Tool(version=VERSION, sha256=digest.hexdigest())


def _sources(place: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
    else:
        yield from sorted(path for path in place.rglob("*") if path.suffix in _SUFFIXES)
