"""CuTe's names of element types, and of what one instruction moves."""

from tile2cu.core.dtype import BFLOAT16, FLOAT8_E4M3, FLOAT8_E5M2, FLOAT16, DType

_HALVES = {FLOAT16.cpp: "half_t", BFLOAT16.cpp: "bfloat16_t"}
TYPES = _HALVES | {FLOAT8_E4M3.cpp: "float_e4m3_t", FLOAT8_E5M2.cpp: "float_e5m2_t"}
COMPUTED = ("bool", "float16", "bfloat16", "float32", "int32", "int8", "uint8", "int16", "uint32", "int64")
SUPPORTED = (*COMPUTED, "float8_e4m3fn", "float8_e5m2")  # the last two are only moved, and multiplied
# Structs of 32-bit words: compilers would put an integer of 64 or 128 bits together by shifts.
_UNITS = {16: "uint4", 8: "uint2", 4: "uint32_t", 2: "uint16_t", 1: "uint8_t"}
VECTOR = 16  # bytes that a copy moves at once where rows start at multiples of them
WORD = 4  # the fewest bytes that cp.async copies


def in_cute(name: str) -> str:
    """CuTe's name of an element type, by that of headers/tl."""
    return TYPES.get(name, name)


def is_half(dtype: DType) -> bool:
    """Whether it is one of CUTLASS's types of 16 bits, whose functions compute in float."""
    return dtype.cpp in _HALVES


def access(elements: int, dtype: DType) -> str:
    """The type that one access of up to 16 bytes has, for so many neighbours."""
    size = min(elements * dtype.bytes, VECTOR)
    return in_cute(dtype.cpp) if size == dtype.bytes else _UNITS[size & -size]
