"""The tile language's names: what each `T.name` is, which names exist but are not supported, and the nearest name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tile2cu.core.dtype import BY_NAME
from tile2cu.frontend import layouts, schedule
from tile2cu.frontend.fault import Fault, did_you_mean
from tile2cu.frontend.lower import (
    alloc,
    atomic,
    barriers,
    cluster,
    copy,
    debug,
    elementwise,
    extern,
    gemm,
    im2col,
    lanes,
    loop,
    program,
    random,
    reduce,
    reducer,
    rounding,
    source_kernel,
    spellings,
    thread,
    tiles,
    views,
    warp,
)
from tile2cu.frontend.unsupported import HELP, NAMES
from tile2cu.frontend.values import Builtin

ceildiv = elementwise.ceildiv
dtype = program.dtype
cast = elementwise.cast

_FUNCTIONS: Mapping[str, Callable[..., object]] = MappingProxyType(
    program.FUNCTIONS
    | alloc.FUNCTIONS
    | copy.FUNCTIONS
    | gemm.FUNCTIONS
    | reduce.FUNCTIONS
    | reducer.FUNCTIONS
    | loop.FUNCTIONS
    | {name: lanes.lifted(tiles.lifted(run)) for name, run in elementwise.FUNCTIONS.items()}
    | {name: lanes.lifted(tiles.lifted(run)) for name, run in rounding.FUNCTIONS.items()}
    | lanes.FUNCTIONS
    | tiles.FUNCTIONS
    | im2col.FUNCTIONS
    | atomic.FUNCTIONS
    | views.FUNCTIONS
    | thread.FUNCTIONS
    | debug.FUNCTIONS
    | barriers.FUNCTIONS
    | cluster.FUNCTIONS
    | warp.FUNCTIONS
    | extern.FUNCTIONS
    | source_kernel.FUNCTIONS
    | random.FUNCTIONS
    | schedule.FUNCTIONS
    | spellings.FUNCTIONS
    | dict(layouts.LANGUAGE)
)
_TABLE: Mapping[str, Builtin] = MappingProxyType({name: Builtin(f"T.{name}", run) for name, run in _FUNCTIONS.items()})


def is_name(name: str) -> bool:
    """Whether the language has that name: a forgotten `T.` is before it, perhaps."""
    return name in _TABLE or name in NAMES


def lookup(name: str) -> object:
    """The value of `T.name`. Raises for names that are not supported and for names that do not exist."""
    if name in _TABLE:
        return _TABLE[name]
    if name in BY_NAME:
        return BY_NAME[name]
    if name in NAMES:
        raise Fault("T2C-F011", f"T.{name} is not supported yet", help=HELP.get(name, ""))
    known = [*_TABLE, *BY_NAME]
    suggestion = did_you_mean(name, known, "T.") or did_you_mean(name, NAMES, "T.")
    raise Fault("T2C-F010", f"T.{name} does not exist", help=suggestion)
