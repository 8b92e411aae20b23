"""The arguments of a corpus's kernels: from the driver in the kernel's file, or in a related file, as -D options."""

from __future__ import annotations

import json
from pathlib import Path

from tile2cu.frontend import driver_arguments

# By the end of the kernel's path and its name: what the callers give it whose files the kernel's own does not name.
GIVEN = Path(__file__).with_name("given.json")


def arguments_of(path: Path, text: str, name: str) -> dict[str, object]:
    """The arguments of a kernel's factory, as far as they are known."""
    known = json.loads(GIVEN.read_text(encoding="utf-8"))
    given = (values for each, values in known.items() if f"/{path.as_posix()}::{name}".endswith(f"/{each}"))
    return {**driver_arguments(path, text, name), **next(given, {})}
