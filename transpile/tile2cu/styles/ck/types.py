"""ck_tile's names of element types."""

from tile2cu.core.dtype import (
    BFLOAT16,
    FLOAT8_E4M3,
    FLOAT8_E4M3FNUZ,
    FLOAT8_E5M2,
    FLOAT8_E5M2FNUZ,
    FLOAT16,
    FLOAT32,
    FLOATS_OF_8_BITS,
    DType,
)
from tile2cu.styles.ck import vocabulary as words

# fp8_t and bf8_t are the target's own formats of 8 bits: FNUZ on gfx942, OCP on gfx950 (support.check).
TYPES = {
    FLOAT8_E4M3FNUZ.cpp: "fp8_t",
    FLOAT8_E5M2FNUZ.cpp: "bf8_t",
    FLOAT8_E4M3.cpp: "fp8_t",
    FLOAT8_E5M2.cpp: "bf8_t",
    FLOAT16.cpp: "half_t",
    BFLOAT16.cpp: "bf16_t",
}
_BITS = frozenset(each.name for each in (BFLOAT16, *FLOATS_OF_8_BITS))
SUPPORTED = _BITS | frozenset(
    ("bool", "float16", "float32", "int32", "int8", "uint8", "int16", "uint32", "int64", "uint64", "float64")
)
_IN_WINDOWS = {"bool": "int8_t", "uint8": "int8_t", "uint32": "int32_t"}  # ck_tile's buffers have no type for these
_NOT_IN_WINDOWS = ("int16", "int64", "uint64", "float64")
VECTOR = 16  # bytes that an access has at most


def in_ck(name: str) -> str:
    """ck_tile's name of an element type, by that of headers/tl."""
    return TYPES.get(name, name)


def in_windows(dtype: DType) -> str | None:
    """The element type of windows on such tensors and tiles; None where ck_tile's buffers have none of the size."""
    return None if dtype.name in _NOT_IN_WINDOWS else _IN_WINDOWS.get(dtype.name, in_ck(dtype.cpp))


def cast_of_tile(src: DType, element: str, text: str) -> str:
    """A tile's value with another element type; of pairs of halves by tl's own function."""
    function = words.CAST_PAIRS if (src, element) == (FLOAT32, TYPES[FLOAT16.cpp]) else "cast_tile"
    return f"{function}<{element}>({text})"


def is_bits(dtype: DType) -> bool:
    """Whether ck_tile's type holds bits, which only `type_convert` from and to float understands."""
    return dtype.name in _BITS


def converts(src: DType, dst: DType) -> bool:
    """Whether `type_convert` between the types rounds as the style tl does: bits convert from and to float only."""
    return src == dst or FLOAT32 in (src, dst) or not (is_bits(src) or is_bits(dst))
