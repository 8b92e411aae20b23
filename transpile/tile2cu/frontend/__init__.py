"""The front end: the user's Python text to Programs. The file is read with LibCST and never executed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tile2cu.core.dtype import DType
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.origin import ENVIRONMENT
from tile2cu.core.program import Program
from tile2cu.targets import SM80, Target

if TYPE_CHECKING:
    from tile2cu.frontend.find import Kernel
    from tile2cu.frontend.limits import Budget
    from tile2cu.frontend.live import Live
    from tile2cu.frontend.outside import Outside
    from tile2cu.frontend.parse import SourceFile

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
    from tile2cu.frontend.given import as_given
    from tile2cu.frontend.imports import reader_beside
    from tile2cu.frontend.kernels import find_kernels, unknown_binding
    from tile2cu.frontend.limits import Budget
    from tile2cu.frontend.outside import Outside

    environment = {name: str(value) for name, value in (bindings or {}).items() if name.startswith(ENVIRONMENT)}
    around = Outside(read or reader_beside(path), target, environment, live)
    given = {name: as_given(value) for name, value in (bindings or {}).items()}
    source = _source(path, text)
    budget = Budget()
    with _bounded(source):
        wanted = _choose(source, find_kernels(source, budget, around, kernel), kernel)
        found = [_program(source, budget, each.name, given, around) for each in wanted]
    known = {name: None for result in found for name in result[1]}
    unknown = next((name for name in given if name not in known and live is None), None)
    if unknown is not None:
        raise unknown_binding(unknown, known)
    made = tuple(each for result in found for each in result[0])
    return tuple(each for each in made if each.name == kernel) or made


def _program(
    source: SourceFile, budget: Budget, name: str, given: Mapping[str, object], around: Outside
) -> tuple[tuple[Program, ...], tuple[str, ...]]:
    """The Programs of a kernel, which know the files that were read for them, and the names that -D can bind."""
    from tile2cu.frontend.kernels import program

    read: dict[str, str] = {}
    made, known = program(source, budget, name, given, around.recording(read))
    imports = tuple(sorted(read.items()))
    return tuple(replace(each, source=replace(each.source, imports=imports)) for each in made), known


def kernel_names(text: str, path: Path | None = None) -> tuple[str, ...]:
    """The names of the kernels of a file, in its order."""
    from tile2cu.frontend.imports import reader_beside
    from tile2cu.frontend.kernels import find_kernels
    from tile2cu.frontend.limits import Budget
    from tile2cu.frontend.outside import Outside

    source = _source(path, text)
    with _bounded(source):
        return tuple(kernel.name for kernel in find_kernels(source, Budget(), Outside(reader_beside(path))))


def is_eager(text: str, kernel: str, path: Path | None = None, *, live: Live | None = None) -> bool:
    """Whether a kernel is an eager function, which is called with its tensors, rather than a factory.

    Errors: those of `programs` for a file without that kernel.
    """
    from tile2cu.frontend.find import Form
    from tile2cu.frontend.imports import reader_beside
    from tile2cu.frontend.kernels import find_kernels
    from tile2cu.frontend.limits import Budget
    from tile2cu.frontend.outside import Outside

    source = _source(path, text)
    with _bounded(source):
        found = find_kernels(source, Budget(), Outside(reader_beside(path), live=live), kernel)
        return _choose(source, found, kernel)[0].form is Form.EAGER


def driver_arguments(path: Path | None, text: str, kernel: str) -> dict[str, int | float | str]:
    """The values that the file's own driver gives to parameters that have defaults, as `programs` takes them.

    `programs` itself keeps a parameter's default; these are for those who want what the driver runs.
    """
    from tile2cu.frontend.bind import Calls
    from tile2cu.frontend.imports import reader_beside
    from tile2cu.frontend.kernels import find_kernels
    from tile2cu.frontend.limits import Budget
    from tile2cu.frontend.outside import Outside

    source, around = _source(path, text), Outside(reader_beside(path))
    with _bounded(source):
        (chosen,) = _choose(source, find_kernels(source, Budget(), around, kernel), kernel)
        called = Calls(source, Budget(), around, chosen.name).called()
    values = {name: called[name] for name in chosen.function.defaults if name in called}
    texts = {name: str(value) if isinstance(value, DType) else value for name, value in values.items()}
    return {name: value for name, value in texts.items() if isinstance(value, int | float | str)}


def default_numbers(path: Path | None, text: str, kernel: str | None = None) -> dict[str, int]:
    """The integer defaults of a kernel's parameters, by name: of a factory or an eager function.

    A parameter without a default has the value of the first configuration that the file lists for a tuner.
    `kernel` picks one of several kernels. Errors: T2C-C004 where it is needed, T2C-F003, T2C-F004.
    """
    defaults = _only_kernel(path, text, kernel).function.defaults
    found = {name: value for name, value in defaults.items() if type(value) is int}
    first, *_ = listed_settings(path, text, kernel) or [{}]
    return found | {name: value for name, value in first.items() if defaults.get(name) is None}


def listed_settings(path: Path | None, text: str, kernel: str | None = None) -> list[dict[str, int]]:
    """The integers of the configurations of `@tilelang.autotune(configs=...)`, in their order; none without such."""
    from tile2cu.frontend.bind import Calls
    from tile2cu.frontend.imports import reader_beside
    from tile2cu.frontend.limits import Budget
    from tile2cu.frontend.outside import Outside

    if "configs" not in text:
        return []
    source, name = _source(path, text), _only_kernel(path, text, kernel).name
    with _bounded(source):
        listed = Calls(source, Budget(), Outside(reader_beside(path)), name).listed()
    return [{name: value for name, value in each.items() if type(value) is int} for each in listed]


def _only_kernel(path: Path | None, text: str, kernel: str | None) -> Kernel:
    """The kernel of that name, or the file's only one. Errors: T2C-C004, T2C-F003, T2C-F004."""
    from tile2cu.frontend.imports import reader_beside
    from tile2cu.frontend.kernels import find_kernels
    from tile2cu.frontend.limits import Budget
    from tile2cu.frontend.outside import Outside

    source, around = _source(path, text), Outside(reader_beside(path))
    with _bounded(source):
        chosen = _choose(source, find_kernels(source, Budget(), around, kernel), kernel)
    if len(chosen) > 1:
        names = ", ".join(each.name for each in chosen)
        raise Tile2CuError("T2C-C004", f"the file has several kernels: {names}", help="pick one with --kernel NAME")
    return chosen[0]


@contextmanager
def _bounded(source: SourceFile) -> Iterator[None]:
    """A file that asks for too much, with no loop of its own to blame, is blamed as a whole."""
    from tile2cu.frontend.fault import Exhausted

    try:
        yield
    except Exhausted as fault:
        raise fault.at(source.start()) from None
    except RecursionError:
        raise Tile2CuError("T2C-F002", "the code is nested too deeply to be evaluated", source.start()) from None


def _source(path: Path | None, text: str) -> SourceFile:
    from tile2cu.frontend.parse import source_file

    return source_file("<text>" if path is None else str(path), text)


def _choose(source: SourceFile, kernels: tuple[Kernel, ...], name: str | None) -> tuple[Kernel, ...]:
    """All kernels, or the one of that name."""
    from tile2cu.frontend.fault import did_you_mean
    from tile2cu.frontend.find import importing_makers

    if not kernels:
        makers = importing_makers(source.module)
        help = "a kernel is a @tilelang.jit function with `with T.Kernel(...)`, or one that returns a @T.prim_func"
        if makers:
            help = "functions that import tilelang themselves are named: --kernel " + ", --kernel ".join(makers)
        raise Tile2CuError("T2C-F003", "the file has no kernel", source.start(), help=help)
    if name is None:
        return kernels
    chosen = tuple(kernel for kernel in kernels if kernel.name == name)
    if not chosen:  # one of the prim_funcs of a factory that returns several: FACTORY_PRIMFUNC
        chosen = tuple(kernel for kernel in kernels if name.startswith(f"{kernel.name}_") and kernel.makes(name))
    if not chosen:
        names = [kernel.name for kernel in kernels]
        help = did_you_mean(name, names) or f"the file has {', '.join(names)}"
        raise Tile2CuError("T2C-F004", f"the file has no kernel `{name}`", source.start(), help=help)
    return chosen
