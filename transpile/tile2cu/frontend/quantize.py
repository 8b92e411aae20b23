"""`tilelang.quantize`: functions that make the expression which takes one small number out of a packed one.

Each is a factory: `_tir_packed_to_unsigned_convert("int", 8)` gives a function of `(bits, packed, position, dtype)`.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tile2cu.core.dtype import FLOAT16, UINT16
from tile2cu.core.expr import Expr
from tile2cu.frontend.context import Context
from tile2cu.frontend.fault import Fault
from tile2cu.frontend.lower.elementwise import cast, if_then_else, reinterpret
from tile2cu.frontend.lower.operand import as_dtype
from tile2cu.frontend.operators import binary, static_int
from tile2cu.frontend.values import Builtin


def _field(cx: Context, bits: object, packed: object, position: object) -> object:
    """The unsigned number of `bits` bits at `position`, from the lowest on."""
    shift = binary(cx.budget, "*", position, bits)
    mask = (1 << static_int(bits, "the bits of a packed number")) - 1
    return binary(cx.budget, "&", binary(cx.budget, ">>", packed, shift), mask)


def _unsigned(cx: Context, bits: object, packed: object, position: object, dtype: object) -> object:
    return cast(cx, _field(cx, bits, packed, position), dtype)


def _with_zeros(cx: Context, bits: object, packed: object, position: object, zero: object, dtype: object) -> object:
    return cast(cx, binary(cx.budget, "-", _field(cx, bits, packed, position), zero), dtype)


def _signed(cx: Context, bits: object, packed: object, position: object, dtype: object) -> object:
    """Stored with an offset: 0 denotes the least number."""
    least = 1 << (static_int(bits, "the bits of a packed number") - 1)
    return binary(cx.budget, "-", _unsigned(cx, bits, packed, position, dtype), least)


def _twos_complement(cx: Context, bits: object, packed: object, position: object, dtype: object) -> object:
    """The sign bit is copied upwards by a shift to the top of 32 bits and back."""
    unused = 32 - static_int(bits, "the bits of a packed number")
    field = cast(cx, _field(cx, bits, packed, position), "int32")
    extended = binary(cx.budget, ">>", binary(cx.budget, "<<", field, unused), unused)
    return cast(cx, extended, dtype)


def _fp4_to_f16(cx: Context, bits: object, packed: object, position: object, dtype: object) -> object:
    """A sign and three bits e for 2 ** (e - 7), where 0 is zero: float16 has the bias 15, so e + 8 is its exponent."""
    if static_int(bits, "the bits of a packed number") != 4 or as_dtype(dtype, "the type") != FLOAT16:
        raise Fault("T2C-F018", "this conversion is from 4 bits to float16")
    field = _field(cx, bits, packed, position)
    exponent, sign = binary(cx.budget, "&", field, 7), binary(cx.budget, ">>", field, 3)
    high = binary(cx.budget, "|", binary(cx.budget, "|", exponent, 8), binary(cx.budget, "<<", sign, 5))
    value = reinterpret(cx, cast(cx, binary(cx.budget, "<<", high, 10), UINT16), FLOAT16)
    return if_then_else(cx, binary(cx.budget, "==", exponent, 0), cast(cx, 0, FLOAT16), value)


def _factory(name: str, convert: Callable[..., object]) -> Builtin:
    def make(cx: Context, storage_type: object = "uint", storage_nbit: object = 8) -> object:
        storage = as_dtype(f"{storage_type}{storage_nbit}", f"the storage of {name}")

        def call(cx: Context, nbit: object, val: object, pos: object, *more: object, **named: object) -> object:
            if not isinstance(val, Expr) or val.dtype != storage:
                raise Fault("T2C-F018", f"{name} is for numbers packed in {storage}")
            return convert(cx, nbit, val, pos, *more, **named)

        return Builtin(name, call)

    return Builtin(name, make)


FUNCTIONS: Mapping[str, object] = MappingProxyType(
    {
        name: _factory(name, convert)
        for name, convert in (
            ("_tir_packed_to_unsigned_convert", _unsigned),
            ("_tir_packed_to_unsigned_convert_with_zeros", _with_zeros),
            ("_tir_packed_to_signed_convert", _signed),
            ("_tir_packed_int_to_int_convert", _twos_complement),
            ("_tir_packed_to_fp4_to_f16", _fp4_to_f16),
        )
    }
)
