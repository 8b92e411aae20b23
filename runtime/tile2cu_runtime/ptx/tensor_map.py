"""Tensor maps: the arguments of cuTensorMapEncodeTiled, which launches.h stores in a CUtensorMap's 128 bytes.

The driver's encoding is undocumented. A launcher's driver calls reach launches.h, which rejects what the driver rejects
and stores the arguments; a map is thus tested as the emitted source and the headers define it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

BYTES = 128
MAGIC = 0x70614D54  # "TMap"
# The encoding in launches.h: magic; type, rank, interleave, swizzle, fill, element steps of 5 dimensions, two zero
# bytes; address, strides of 4 dimensions, extents - 1 of 5, the box of 5.
_RECORD = struct.Struct("<I5B5B2x Q4Q5I5H")
ADDRESS_OFFSET = 16
# CUtensorMapDataType: bytes per element. [cuda.h]
_FLOAT32 = 7
_ELEMENT_BYTES = {0: 1, 1: 2, 2: 4, 3: 4, 4: 8, 5: 8, 6: 2, 7: 4, 8: 8, 9: 2, 10: 4, 11: 4, 12: 4}


@dataclass(frozen=True, kw_only=True)
class TensorMap:
    """A tensor and its boxes. Lists are innermost first: extents and box in elements, strides in bytes.

    `span`: the swizzle span in bytes, 16 without a swizzle.
    """

    element_bytes: int
    address: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    span: int
    fills_with_nan: bool
    is_float: bool = False  # 32-bit

    @property
    def rank(self) -> int:
        return len(self.extents)

    @property
    def row_bytes(self) -> int:
        return self.box[0] * self.element_bytes


def is_encoded(raw: bytes) -> bool:
    """Whether these bytes begin with a map that launches.h encoded, as in a CuTe TiledCopy."""
    return len(raw) >= BYTES and struct.unpack_from("<I", raw)[0] == MAGIC


def read(raw: bytes) -> TensorMap | None:
    """The map, or None if it is not encoded."""
    if not is_encoded(raw):
        return None
    _, kind, rank, _, swizzle, fill, *rest = _RECORD.unpack_from(raw)
    address, strides, sizes, box = rest[5], rest[6:10], rest[10:15], rest[15:20]
    element_bytes = _ELEMENT_BYTES[kind]
    return TensorMap(
        element_bytes=element_bytes,
        address=address,
        extents=tuple(size + 1 for size in sizes[:rank]),
        strides=(element_bytes, *strides[: rank - 1]),
        box=tuple(box[:rank]),
        span=16 << swizzle,
        fills_with_nan=bool(fill),
        is_float=kind == _FLOAT32,
    )


def encode(tensor: TensorMap, kind: int) -> bytes:
    """The bytes of a map, as launches.h encodes it; `kind` is the CUtensorMapDataType."""
    missing = 5 - tensor.rank
    swizzle = {16: 0, 32: 1, 64: 2, 128: 3}[tensor.span]
    record = _RECORD.pack(
        MAGIC, kind, tensor.rank, 0, swizzle, tensor.fills_with_nan, *[1] * 5, tensor.address,
        *tensor.strides[1:], *[0] * missing, *(each - 1 for each in tensor.extents), *[0] * missing,
        *tensor.box, *[1] * missing,
    )  # fmt: skip
    return record.ljust(BYTES, b"\0")
