"""The front end: the user's Python text to Programs. The file is read with LibCST and never executed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tile2cu.core.dtype import DType
from tile2cu.core.program import Program
from tile2cu.targets import SM80, Target

if TYPE_CHECKING:
    from tile2cu.frontend.live import Live

__all__ = ["driver_arguments", "is_eager", "kernel_names", "programs"]


def programs(
    path: Path | None,
    text: str,
    *,
    kernel: str | None = None,
    bindings: Mapping[str, object] | None = None,
    read: Callable[[str], str | None] | None = None,
    target: Target = SM80,
    live: Live | None = None,
) -> tuple[Program, ...]:
    """Every kernel of a file, or the one named, in the order of the file.

    `bindings` are the values given with -D, by name; texts such as "Config(block=128)" are evaluated in the file's
    scope, and names such as "env:PLATFORM" are variables of the environment. `read` gives the text of a file
    next to it, by its path relative to the file, for imports; where it is left out, they are read from the disk.
    `target` answers what a driver asks of its device. `live` is a call of a running program: then nothing is taken
    from the file's own driver, and the bindings may name what no kernel has.
    Errors: Tile2CuError T2C-F001 to T2C-F034.
    """
    from tile2cu.frontend.reading import Reading

    return Reading(path, text, bindings=bindings, read=read, target=target, live=live).programs(kernel)


def kernel_names(text: str, path: Path | None = None) -> tuple[str, ...]:
    """The names of the kernels of a file, in its order."""
    from tile2cu.frontend.reading import Reading

    return tuple(kernel.name for kernel in Reading(path, text).found())


def is_eager(text: str, kernel: str, path: Path | None = None, *, live: Live | None = None) -> bool:
    """Whether a kernel is an eager function, which is called with its tensors, rather than a factory.

    Errors: those of `programs` for a file without that kernel.
    """
    from tile2cu.frontend.find import Form
    from tile2cu.frontend.reading import Reading

    return Reading(path, text, live=live).kernels(kernel)[0].form is Form.EAGER


def driver_arguments(path: Path | None, text: str, kernel: str) -> dict[str, int | float | str]:
    """The values that the file's own driver gives to parameters that have defaults, as `programs` takes them.

    `programs` itself keeps a parameter's default; these are for those who want what the driver runs.
    """
    from tile2cu.frontend.reading import Reading

    reading = Reading(path, text)
    chosen = reading.kernel(kernel)
    called = reading.called(chosen.name)
    values = {name: called[name] for name in chosen.function.defaults if name in called}
    texts = {name: str(value) if isinstance(value, DType) else value for name, value in values.items()}
    return {name: value for name, value in texts.items() if isinstance(value, int | float | str)}


def default_numbers(path: Path | None, text: str, kernel: str | None = None) -> dict[str, int]:
    """The integer defaults of a kernel's parameters, by name: of a factory or an eager function.

    A parameter without a default has the value of the first configuration that the file lists for a tuner.
    `kernel` picks one of several kernels. Errors: T2C-C004 where it is needed, T2C-F003, T2C-F004.
    """
    from tile2cu.frontend.reading import Reading

    defaults = Reading(path, text).kernel(kernel).function.defaults
    found = {name: value for name, value in defaults.items() if type(value) is int}
    first, *_ = listed_settings(path, text, kernel) or [{}]
    return found | {name: value for name, value in first.items() if defaults.get(name) is None}


def listed_settings(path: Path | None, text: str, kernel: str | None = None) -> list[dict[str, int]]:
    """The integers of the configurations of `@tilelang.autotune(configs=...)`, in their order; none without such."""
    from tile2cu.frontend.reading import Reading

    if "configs" not in text:
        return []
    reading = Reading(path, text)
    listed = reading.listed(reading.kernel(kernel).name)
    return [{name: value for name, value in each.items() if type(value) is int} for each in listed]
