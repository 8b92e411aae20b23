"""Random numbers of each thread's own generator."""

import math
from collections.abc import Callable

from tile2cu.core.dtype import FLOAT32, INT32, UINT32, UINT64
from tile2cu.core.expr import Call, Expr, binary, int_const
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.lower.effect import perform
from tile2cu.frontend.lower.elementwise import cast
from tile2cu.frontend.lower.operand import as_integer

_PHILOX = "curandStatePhilox4_32_10_t"


def rng_init(cx: Context, seed: object, seq: object = None, off: object = 0, generator: object = _PHILOX) -> None:
    """`T.rng_init(seed, seq, off)`: where in which sequence a thread's numbers begin."""
    cx.recorder.require_kernel("T.rng_init")
    if generator != _PHILOX:
        raise Fault("T2C-F011", "T.rng_init with this generator is not supported yet", help=f'write "{_PHILOX}"')
    sequence = _thread_of_grid(cx) if seq is None else as_integer(seq, "`seq` of T.rng_init")
    places = (as_integer(seed, "`seed` of T.rng_init"), sequence, as_integer(off, "`off` of T.rng_init"))
    arguments = tuple(value for place in places if isinstance(value := cast(cx, place, UINT64), Expr))
    perform(cx, Call(INT32, "random.start", arguments))
    cx.recorder.random = True


def _thread_of_grid(cx: Context) -> Expr:
    """The number of a thread among all of the launch."""
    block: Expr = int_const(0)
    for index, extent in reversed(list(zip(cx.recorder.blocks, cx.recorder.grid, strict=True))):
        block = binary("+", binary("*", block, extent), index)
    threads = int_const(math.prod(cx.recorder.thread_shape))
    return binary("+", binary("*", block, threads), Call(INT32, "thread", ()))


def _started(cx: Context, name: str) -> None:
    cx.recorder.require_kernel(name)
    if not cx.recorder.random:
        raise Fault("T2C-F025", f"{name} is before T.rng_init")


def rng_rand(cx: Context) -> object:
    """`T.rng_rand()`: the next of all 32-bit numbers."""
    _started(cx, "T.rng_rand")
    return Call(UINT32, "random.next", ())


def rng_rand_float(cx: Context, bit: object = 32, dist: object = "uniform") -> object:
    """`T.rng_rand_float(dist="uniform" or "normal")`: in (0, 1], or of mean 0 and variance 1."""
    _started(cx, "T.rng_rand_float")
    if dist not in ("uniform", "normal"):
        raise Fault("T2C-F023", '`dist` of T.rng_rand_float is "uniform" or "normal"')
    if bit != 32:
        raise Fault("T2C-F011", "T.rng_rand_float of 64 bits is not supported yet", help="write bit=32")
    return Call(FLOAT32, f"random.{dist}", ())


FUNCTIONS: dict[str, Callable[..., object]] = {
    "rng_init": rng_init,
    "rng_rand": rng_rand,
    "rng_rand_float": rng_rand_float,
}
