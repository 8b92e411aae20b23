"""The files of a corpus, and the arguments of their kernels: from the driver in the file, or in a related one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from tile2cu.core.errors import Tile2CuError
from tile2cu.frontend import driver_arguments

# By the end of the kernel's path and its name: what the callers give it whose files the kernel's own does not name.
GIVEN = Path(__file__).with_name("given.json")
# The repositories of others: their commits, and by kernel the arguments of their own callers, or chosen ones where no
# caller was read; and what of them is left out, by the beginning of the path, with the reason.
STRANGERS = Path(__file__).with_name("strangers.json")
_ARGUMENTS = ("of callers", "chosen")

# Names that only machines have which tile2cu does not translate for: Blackwell's tensor memory, AMD's matrix cores.
FOREIGN = ("tcgen05", "alloc_tmem", "MatrixCore", "mfma", "metal", "iket")

_Found = TypeVar("_Found")


def files(folder: Path, only: str = "", parts: tuple[str, ...] = (".",)) -> Iterator[Path]:
    """The files below a folder, or `parts` of it, that have kernels for the targets we know."""
    found = (path for part in parts for path in (folder / part).rglob("*.py") if path.is_file())
    for path in sorted(found):
        text = path.read_text(encoding="utf-8", errors="replace")
        has_kernels = "T.Kernel" in text or "T.prim_func" in text
        if path.relative_to(folder).as_posix().startswith(left_out()):
            continue
        if only in str(path) and has_kernels and not any(word in text for word in FOREIGN):
            yield path


def with_arguments(path: Path, text: str, name: str, make: Callable[[Mapping[str, object]], _Found]) -> _Found:
    """What `make` makes of the driver's arguments or, if it refuses them, of the defaults of the kernel's own.

    A driver may call a kernel with several sets of values, such as types of which tile2cu supports some.
    Errors: Tile2CuError, of the driver's arguments.
    """
    driver = arguments_of(path, text, name)
    try:
        return make(driver)
    except Tile2CuError as error:
        try:
            return make(_given(path, name))
        except Tile2CuError:
            raise error from None


def repositories() -> dict[str, str]:
    """The repositories of others and the commits whose kernels were tried, by owner/name."""
    return dict(json.loads(STRANGERS.read_text(encoding="utf-8"))["repositories"])


def left_out() -> tuple[str, ...]:
    """What of the repositories of others is not tried, by the beginning of its path."""
    return tuple(json.loads(STRANGERS.read_text(encoding="utf-8"))["left out"])


def arguments_of(path: Path, text: str, name: str) -> dict[str, object]:
    """The arguments of a kernel's factory, as far as they are known."""
    return {**driver_arguments(path, text, name), **_given(path, name)}


def _given(path: Path, name: str) -> dict[str, object]:
    strangers = json.loads(STRANGERS.read_text(encoding="utf-8"))
    known: dict[str, dict[str, object]] = json.loads(GIVEN.read_text(encoding="utf-8"))
    known |= {each: values for kind in _ARGUMENTS for each, values in strangers[kind].items()}
    given = (values for each, values in known.items() if f"/{path.as_posix()}::{name}".endswith(f"/{each}"))
    return dict(next(given, {}))
