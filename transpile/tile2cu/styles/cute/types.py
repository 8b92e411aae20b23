"""CuTe's names of element types, and of what one instruction moves."""

from tile2cu.core.dtype import BFLOAT16, FLOAT16, DType

_TYPES = {FLOAT16.cpp: "half_t", BFLOAT16.cpp: "bfloat16_t"}
SUPPORTED = ("bool", "float16", "bfloat16", "float32", "int32", "int8", "uint8", "int16", "uint32", "int64")
_UNITS = {16: "uint128_t", 8: "uint64_t", 4: "uint32_t", 2: "uint16_t", 1: "uint8_t"}
VECTOR = 16  # bytes that a copy moves at once where rows start at multiples of them


def in_cute(text: str) -> str:
    """A text with CuTe's names of element types."""
    for ours, theirs in _TYPES.items():
        text = text.replace(ours, theirs)
    return text


def is_half(dtype: DType) -> bool:
    """Whether it is one of CUTLASS's types of 16 bits, whose functions compute in float."""
    return dtype.cpp in _TYPES


def access(elements: int, dtype: DType) -> str:
    """The type that one access of up to 16 bytes has, for so many neighbours."""
    size = min(elements * dtype.bytes, VECTOR)
    return in_cute(dtype.cpp) if size == dtype.bytes else _UNITS[size & -size]
