"""Element types: one table for every spelling that users write and every emitted name."""

from types import MappingProxyType
from typing import Literal

from tile2cu.core.record import Record

Kind = Literal["float", "int", "uint", "bool"]


class DType(Record, frozen=True):
    """An element type.

    `name` is the canonical (NumPy-like) name, `bits` the width in memory, `cpp` the type in emitted source. Of 4-bit
    types memory holds two elements per byte, the first in bits 0..3.
    """

    name: str
    kind: Kind
    bits: int
    cpp: str

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def bytes(self) -> int:
        """Bytes that an element takes in a register, and in memory unless elements share bytes there."""
        return max(1, self.bits // 8)

    @property
    def is_packed(self) -> bool:
        """Whether elements share bytes of memory."""
        return self.bits < 8

    @property
    def fewest_written(self) -> int:
        """The number of adjacent elements that a thread has to write together."""
        return 8 // self.bits if self.is_packed else 1

    @property
    def in_memory(self) -> str:
        """The C++ type that a kernel's argument points to."""
        return f"tl::Packed<{self.cpp}>" if self.is_packed else self.cpp

    def bytes_of(self, elements: int) -> int:
        """Bytes of so many elements in memory."""
        return elements * self.bits // 8

    def elements_in(self, bytes_: int) -> int:
        """Elements that so many bytes of memory hold."""
        return bytes_ * 8 // self.bits

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_int(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def has_partial_sums(self) -> bool:
        """Whether a sum may be computed from other partial sums: those of narrow floats may overflow where it does not,
        as terms cancel; integers wrap to the same sum.
        """
        return not self.is_float or self.bits >= FLOAT32.bits

    def has_all_of(self, other: "DType") -> bool:
        """Whether it is an integer type that has all values of another one."""
        same = self.kind == other.kind and self.bits >= other.bits
        return self.is_int and other.is_int and (same or (self.kind == "int" and self.bits > other.bits))

    @property
    def as_argument(self) -> "DType":
        """The type of a scalar argument of this type: C has none of the types that headers/tl define."""
        if self.is_packed or (self.is_float and self not in (FLOAT32, FLOAT64)):
            return FLOAT32 if self.is_float else INT32
        return self

    @property
    def largest(self) -> float:
        """The largest finite number of a floating-point type."""
        return _LARGEST[self.name]

    def __str__(self) -> str:
        return self.name


def _of_library(name: str, kind: Kind, bits: int, cpp: str) -> DType:
    """An element type that headers/tl define under a name of theirs."""
    return DType(name, kind, bits, f"tl::{cpp}")


INT4 = _of_library("int4", "int", 4, "int4_t")
UINT4 = _of_library("uint4", "uint", 4, "uint4_t")
FLOAT4_E2M1 = _of_library("float4_e2m1fn", "float", 4, "float4_e2m1")
PACKED = (INT4, UINT4, FLOAT4_E2M1)
BOOL = DType("bool", "bool", 8, "bool")
INT8 = DType("int8", "int", 8, "int8_t")
INT16 = DType("int16", "int", 16, "int16_t")
INT32 = DType("int32", "int", 32, "int")
INT64 = DType("int64", "int", 64, "int64_t")
UINT8 = DType("uint8", "uint", 8, "uint8_t")
UINT16 = DType("uint16", "uint", 16, "uint16_t")
UINT32 = DType("uint32", "uint", 32, "uint32_t")
UINT64 = DType("uint64", "uint", 64, "uint64_t")
POINTER = DType("ptr", "uint", 64, "uint64_t")  # an address, as a number
FLOAT16 = _of_library("float16", "float", 16, "half")
BFLOAT16 = _of_library("bfloat16", "float", 16, "bfloat16")
FLOAT32 = DType("float32", "float", 32, "float")
FLOAT64 = DType("float64", "float", 64, "double")
TFLOAT32 = _of_library("tfloat32", "float", 32, "tfloat32")
FLOAT8_E4M3 = _of_library("float8_e4m3fn", "float", 8, "float8_e4m3")
FLOAT8_E5M2 = _of_library("float8_e5m2", "float", 8, "float8_e5m2")
FLOAT8_E4M3FNUZ = _of_library("float8_e4m3fnuz", "float", 8, "float8_e4m3fnuz")
FLOAT8_E5M2FNUZ = _of_library("float8_e5m2fnuz", "float", 8, "float8_e5m2fnuz")
FLOAT8_E8M0 = _of_library("float8_e8m0fnu", "float", 8, "float8_e8m0")  # a power of two, as a scale
OCP_FLOATS = (FLOAT8_E4M3, FLOAT8_E5M2)
FNUZ_FLOATS = (FLOAT8_E4M3FNUZ, FLOAT8_E5M2FNUZ)  # other exponents, no infinity, one zero
FLOATS_OF_8_BITS = OCP_FLOATS + FNUZ_FLOATS

# Significands times powers of two.  [IEEE 754; OCP 8-bit Floating Point Specification; OCP Microscaling Formats]
_LARGEST = MappingProxyType(
    {
        "float4_e2m1fn": 6.0,
        "float8_e4m3fn": 448.0,
        "float8_e5m2": 57344.0,
        "float8_e4m3fnuz": 240.0,
        "float8_e5m2fnuz": 57344.0,
        "float8_e8m0fnu": 2.0**127,
        "float16": 65504.0,
        "bfloat16": (2 - 2.0**-7) * 2.0**127,
        "tfloat32": (2 - 2.0**-10) * 2.0**127,
        "float32": (2 - 2.0**-23) * 2.0**127,
        "float64": (2 - 2.0**-52) * 2.0**1023,
    }
)

ALL = (
    BOOL, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, POINTER,
    FLOAT16, BFLOAT16, FLOAT32, FLOAT64, TFLOAT32, *FLOATS_OF_8_BITS, FLOAT8_E8M0,
    *PACKED,
)  # fmt: skip

BY_NAME = MappingProxyType(
    {dtype.name: dtype for dtype in ALL}
    | {
        "half": FLOAT16,
        "float": FLOAT32,
        "double": FLOAT64,
        "int": INT32,
        "uint": UINT32,
        "short": INT16,
        "long": INT64,
        "float8_e4m3": FLOAT8_E4M3,
        "e4m3_float8": FLOAT8_E4M3,
        "e5m2_float8": FLOAT8_E5M2,
        "float8_e8m0": FLOAT8_E8M0,
        "float4_e2m1": FLOAT4_E2M1,
    }
)


def promote(a: DType, b: DType) -> DType:
    """The type of `a op b`: floats win over integers, these over bool, wider over narrower, signed over unsigned.

    float16 with bfloat16 gives float32, since neither holds the other.
    """
    if a == b:
        return a
    if a.is_float != b.is_float:
        return a if a.is_float else b
    if BOOL in (a, b):
        return b if a == BOOL else a
    if a.bits == b.bits:
        if a.is_float:
            return FLOAT32
        return a if a.kind == "int" else b
    return a if a.bits > b.bits else b
