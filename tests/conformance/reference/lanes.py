"""Communication between the lanes of a warp: all threads of a block at once, 32 per warp."""

from __future__ import annotations

import numpy as np

from tests.conformance.reference.numbers import Array, CannotInterpret

_WARP = 32
_REDUCE = {"sum": np.add, "max": np.maximum, "min": np.minimum, "bitand": np.bitwise_and, "bitor": np.bitwise_or}

VOTES_OF_BLOCK = {"count_of_block": np.count_nonzero, "any_of_block": np.any, "all_of_block": np.all}


def among_lanes(name: str, values: Array, operand: Array, mask: Array) -> Array:
    """The value of a function among lanes, or of a vote of the block, of what each thread brings.

    `operand` is where a shuffle takes its value from.
    `name` may end with the number of lanes of a group, as in `shuffle<8>`. Groups come whole, or not at all: what those
    that do not come would get is of no concern.
    """
    function, _, count = name.rstrip(">").partition("<")
    if function in VOTES_OF_BLOCK:
        if not mask.all():
            raise CannotInterpret(f"{name} where not all threads of the block come")
        return np.full(mask.shape, VOTES_OF_BLOCK[function](np.broadcast_to(values, mask.shape).astype(bool)))
    lanes = int(count) if count else _WARP
    if len(mask) % _WARP or (mask.reshape(-1, lanes) != mask[::lanes, None]).any():
        raise CannotInterpret(f"{name} where not all lanes of a group come")
    own = np.broadcast_to(values, mask.shape)
    if function.startswith("shuffle"):
        return own[_from(function, np.arange(len(mask)), np.broadcast_to(operand, mask.shape), lanes)]
    groups = own.reshape(-1, lanes)
    if function in ("match_any", "match_all"):
        alike = groups[:, :, None] == groups[:, None, :]
        alike &= function == "match_any" or alike.all(axis=(1, 2), keepdims=True)  # the lanes of the group, or none
        return (alike.astype(np.uint64) << np.arange(lanes, dtype=np.uint64)).sum(axis=2, dtype=np.uint64).reshape(-1)
    match function.removeprefix("warp_").removesuffix("_of_warp"):
        case "any":
            found = groups.astype(bool).any(axis=1)
        case "all":
            found = groups.astype(bool).all(axis=1)
        case "ballot":
            found = (groups.astype(np.uint64) << np.arange(lanes, dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
        case kind if kind in _REDUCE:
            found = _REDUCE[kind].reduce(groups, axis=1)
        case _:
            raise CannotInterpret(f"the function {name}")
    return np.repeat(found, lanes)


def _from(function: str, thread: Array, operand: Array, lanes: int) -> Array:
    """The thread whose value each gets."""
    lane, first = thread % lanes, thread - thread % lanes
    match function:
        case "shuffle":
            return first + operand % lanes
        case "shuffle_xor":
            return np.where(lane ^ operand < lanes, first + (lane ^ operand), thread)
        case "shuffle_up":
            return np.where(lane < operand, thread, thread - operand)
        case _:
            return np.where(lane + operand < lanes, thread + operand, thread)
