"""The array types of the simulator, and the two forms of lane masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

# The state of many waves in one array: the last two axes are (waves, 64 lanes), or (waves, 1) for scalars.
Array = npt.NDArray[Any]

WAVE_SIZE = 64
LANES = np.arange(WAVE_SIZE)

U8, U16, U32, U64 = np.uint8, np.uint16, np.uint32, np.uint64
I8, I16, I32, I64 = np.int8, np.int16, np.int32, np.int64
F16, F32, F64 = np.float16, np.float32, np.float64

MASK32 = 0xFFFFFFFF
MASK64 = 0xFFFFFFFFFFFFFFFF


def round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def lanes_of_pair(low: Array, high: Array) -> Array:
    """A lane mask held in two scalar registers, (waves, 1) each, as bool (waves, 64)."""
    pair = np.concatenate((low, high), axis=1)
    return np.unpackbits(pair.view(U8), axis=1, bitorder="little").view(np.bool_)


def pair_of_lanes(mask: Array) -> tuple[Array, Array]:
    """A lane mask, bool (waves, 64), as the low and high scalar register, (waves, 1) each."""
    pair = np.packbits(mask, axis=1, bitorder="little").view(U32)
    return pair[:, :1], pair[:, 1:]


def join64(low: Array, high: Array) -> Array:
    """Two 32-bit words as one uint64."""
    wide: Array = high.astype(U64)
    wide <<= U64(32)
    wide |= low
    return wide


def sign_extend(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value
