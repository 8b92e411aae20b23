"""What C++ functions do that kernels of the corpus call: decoders of packed numbers, which they write in inline PTX."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tests.conformance.reference.numbers import Array

# The bits of four float4 in two bytes, from the highest on: the number of bits per element, and their positions.
_TWIDDLED = (
    (0, 0), (3, 0), (3, 3), (1, 0), (3, 1), (3, 2), (2, 0), (0, 1),
    (0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3),
)  # fmt: skip
_FLOAT4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])  # [OCP Microscaling Formats Specification, E2M1]


def _interleaved(packed: Array, bits: int, apart: int) -> Array:
    """Numbers of so many bits from four bytes: neighbours are `apart` bits apart."""
    word = packed.astype(np.uint32) @ (np.uint32(1) << np.arange(0, 32, 8, dtype=np.uint32))
    places = [row + column for row in range(0, apart, bits) for column in range(0, 32, apart)]
    return (word[:, None] >> np.array(places, np.uint32)).astype(np.int64) & ((1 << bits) - 1)


def _twiddled_float4(packed: Array) -> Array:
    """Eight float4 out of four bytes."""
    bits = np.unpackbits(packed.astype(np.uint8), axis=1).reshape(len(packed), -1, 16)
    numbers = np.zeros((*bits.shape[:2], 4), np.int64)
    for place, (number, bit) in enumerate(_TWIDDLED):
        numbers[..., number] |= bits[..., place].astype(np.int64) << (3 - bit)
    signs = np.where(numbers & 8, -1.0, 1.0)
    return (signs * _FLOAT4[numbers & 7]).reshape(len(packed), -1)


# By name: converts the bytes of each thread, one row per thread, to its elements.
DECODERS: Mapping[str, Callable[[Array], Array]] = {
    "::decode_i2u_to_i8s": lambda packed: _interleaved(packed, 2, 8),
    "::decode_i4u_to_f16": lambda packed: _interleaved(packed, 4, 16),
    "::decode_fp4_to_bf16_twiddling": _twiddled_float4,
}
