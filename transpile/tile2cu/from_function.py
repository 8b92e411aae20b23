"""A kernel given as a Python function: its file's text, the function it is read from, and what its program knows."""

import inspect
import linecache
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any

from tile2cu.core.errors import Tile2CuError
from tile2cu.core.record import Record

_INSIDE = ".<locals>."


class Origin(Record, frozen=True, kw_only=True):
    """Where a kernel's function is defined. `path` may name a cell of a notebook; `text` is the whole file or cell.

    `kernel` is the outermost function around it, which the front end reads; `function` its own name. `around` are the
    arguments of the functions around it, as they were when it was defined.
    """

    path: Path
    text: str
    kernel: str
    function: str
    names: Mapping[str, Any]
    around: Mapping[str, Any]


def origin(function: Any, frame: FrameType | None = None) -> Origin:
    """Where a function is defined, that of a decorated one too. `frame` is of the code that defines it.

    Errors: T2C-C030 for what is no Python function, or has no source.
    """
    if isinstance(known := getattr(function, "origin", None), Origin):
        return known
    plain = undecorated(function)
    if plain is None:
        raise Tile2CuError(
            "T2C-C030",
            f"{type(function).__name__} is no Python function",
            help="give a function with @tilelang.jit or @T.prim_func, or the path of its file",
        )
    code = plain.__code__
    text = "".join(linecache.getlines(code.co_filename, plain.__globals__))
    if not text:
        raise Tile2CuError(
            "T2C-C030",
            f"the source of `{plain.__name__}` is not known: {code.co_filename} has no lines",
            help="define it in a file or in a cell of a notebook",
        )
    return Origin(
        path=Path(code.co_filename),
        text=text,
        kernel=plain.__qualname__.partition(_INSIDE)[0],
        function=plain.__name__,
        names=plain.__globals__,
        around=_around(plain, frame),
    )


def undecorated(function: Any) -> FunctionType | None:
    """The Python function inside what decorators make of it. TileLang's own keep it as `func` or `orig_func`."""
    for _ in range(8):
        if isinstance(function, FunctionType) and not hasattr(function, "__wrapped__"):
            return function
        attributes = ("__wrapped__", "func", "orig_func", "fn")
        function = next((found for name in attributes if (found := getattr(function, name, None)) is not None), None)
    return None


def _around(function: FunctionType, frame: FrameType | None) -> dict[str, Any]:
    """The arguments of the functions around one, the inner ones' before the outer ones'.

    Those whose frames have ended are known as far as the function itself refers to them.
    """
    found = dict(_captured(function))
    for name in reversed(function.__qualname__.split(_INSIDE)[:-1]):
        while frame is not None and frame.f_code.co_name != name:
            frame = frame.f_back
        if frame is None:
            break
        local, code = frame.f_locals, frame.f_code
        wanted = (*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], *code.co_freevars)
        found = {name: local[name] for name in wanted if name in local} | found
        frame = frame.f_back
    return found


def _captured(function: FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # a name that its function has not bound yet
            continue


def default_nones(function: FunctionType) -> frozenset[str]:
    """The parameters whose default is None."""
    parameters = inspect.signature(function).parameters.values()
    return frozenset(each.name for each in parameters if each.default is None)
