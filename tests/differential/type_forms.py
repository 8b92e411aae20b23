"""Forms of random kernels: elements of all types, converted and computed with, whose values are at their types' ends.

Integers wrap, and floats are exact: sums and products are of few multiples of a quarter, and a conversion rounds once.
So results compare bit for bit.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.differential.writer import Writer

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float32", "float8_e4m3fn", "float8_e5m2")
_NEAR = (-5, -3, -2, -1, 0, 1, 2, 3, 7, 8, 15)
_SPECIAL = (
    np.nan,
    np.inf,
    -np.inf,
    0.5,
    -0.5,
    1.5,
    -2.5,
    126.75,
    -128.5,
    254.5,
    65504.0,
    -40000.0,
    2.0**31,
    -(2.0**31),
    3e9,
)


def integers(w: Writer, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Small ones, and those at the ends of the type."""
    info = np.iinfo(dtype)
    ends = [info.min, info.min + 1, info.max, info.max - 1, info.max // 2, 2**31 - 1, 2**32 - 1, -(2**31)]
    known = [value for value in (*_NEAR, *_NEAR, *ends) if info.min <= value <= info.max]
    return np.array(known, dtype)[w.rng.integers(0, len(known), shape)]


def floats(w: Writer, shape: tuple[int, ...], dtype: str, *, special: bool) -> np.ndarray:
    known = (np.arange(-8, 9) * 0.25).tolist() + [value for value in _SPECIAL if special]
    with np.errstate(over="ignore"):
        values = np.array(known, np.float32)[w.rng.integers(0, len(known), shape)]
        if dtype.startswith("float8"):
            values = np.nan_to_num(values, nan=0.0, posinf=8.0, neginf=-8.0).clip(-240, 240)
        return values.astype(getattr(ml_dtypes, dtype, dtype))


def _integer(w: Writer, leaves: list[str], depth: int) -> str:
    """An expression of integers; shifts and divisors are within their ranges."""
    if depth == 0 or w.often(0.15):
        return str(w.one(*leaves, *leaves, "i", "j", w.one(*_NEAR)))
    a, b = (_integer(w, leaves, depth - 1) for _ in range(2))
    kind, divisor = w.one(*INTEGERS), w.one(2, 3, 4, 7, 8, 16, -2, -3, -8)
    return str(w.one(
        f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} + {b})", f"({a} - {b})", f"({a} * {w.one(*_NEAR)})",
        f"({a} & {b})", f"({a} | {b})", f"({a} ^ {b})", f"(~({a}))",
        f"({a} // {divisor})", f"({a} % {divisor})", f"({a} // {abs(divisor)})", f"({a} % {abs(divisor)})",
        f"({a} // T.max({b} & 7, 1))", f"({a} % T.max({b} & 7, 1))",
        f"({a} >> {w.one(1, 2, 5)})", f"({a} << {w.one(1, 2, 4)})", f"({a} >> ({b} & 7))", f"({a} << ({b} & 7))",
        f"T.min({a}, {b})", f"T.max({a}, {b})", f"T.abs({a})",
        f'T.cast({a}, "{kind}")', f'T.cast({a}, "{kind}")', f'T.cast({a}, "{kind}")',
        f"T.if_then_else({_truth(w, leaves)}, {a}, {b})",
    ))  # fmt: skip


def _truth(w: Writer, leaves: list[str]) -> str:
    a, b = str(w.one(*leaves)), str(w.one(*leaves, "i", w.one(*_NEAR)))
    simple = f"{a} {w.one('<', '<=', '>', '>=', '==', '!=')} {b}"
    return str(w.one(simple, simple, f"({simple}) and i % 2 == 0", f"not ({simple})", f"({simple}) or j > 3"))


def _float(w: Writer, leaves: list[str], depth: int) -> str:
    """An expression of float32, of few bits."""
    if depth == 0 or w.often(0.2):
        return f'T.cast({w.one(*leaves)}, "float32")'
    a, b = (_float(w, leaves, depth - 1) for _ in range(2))
    return str(w.one(
        f"({a} + {b})", f"({a} - {b})", f"({a} * {w.one(0.5, 2.0, -1.0)})", f"T.max({a}, {b})", f"T.min({a}, {b})",
        f"T.abs({a})", f"(-({a}))", f"T.if_then_else({_truth(w, leaves)}, {a}, {b})", f"T.floor({a})", f"T.ceil({a})",
    ))  # fmt: skip


def _loaded(w: Writer, values: np.ndarray, kind: str, rows: int, cols: int) -> str:
    """An element at i and j: of a tensor, or of a tile that was loaded, of another type perhaps."""
    tensor = w.given(values, kind)
    if w.often():
        return f"{tensor}[bx * {rows} + i, j]"
    scope = w.one(w.shared, w.fragment)
    tile = scope(rows, cols, dtype=kind)
    w.add(f"T.copy({tensor}[bx * {rows}, 0], {tile})")
    return f"{tile}[i, j]"


def integer_types(w: Writer) -> None:
    """Sums, products, shifts, divisions and conversions of integers of mixed types."""
    w.threads, rows, cols = int(w.one(32, 64, 128)), int(w.one(4, 8, 16)), int(w.one(16, 32, 64))
    kinds = [str(w.one(*INTEGERS)) for _ in range(3)]
    leaves = [_loaded(w, integers(w, (2 * rows, cols), kind), kind, rows, cols) for kind in kinds]
    for _ in range(3):
        _stored(w, str(w.one(*INTEGERS, "float32", "bool")), _integer(w, leaves, int(w.one(1, 2, 3))), rows, cols)


def float_types(w: Writer) -> None:
    """Conversions between floats, and to and from integers, also of values that the other type does not have."""
    w.threads, rows, cols = int(w.one(32, 64, 128)), int(w.one(4, 8, 16)), int(w.one(16, 32, 64))
    kinds, special = [str(w.one(*FLOATS)) for _ in range(2)], w.often(0.4)
    leaves = [_loaded(w, floats(w, (2 * rows, cols), kind, special=special), kind, rows, cols) for kind in kinds]
    for _ in range(3):
        to = str(w.one(*INTEGERS[:6], *FLOATS, *FLOATS))
        value = str(w.one(*leaves)) if special or w.often(0.3) else _float(w, leaves, int(w.one(1, 2)))
        _stored(w, to, value, rows, cols)
    if w.often(0.4):
        small = _loaded(w, integers(w, (2 * rows, cols), "int8"), "int8", rows, cols)
        _stored(w, str(w.one(*FLOATS)), f"({small} {w.one('+', '*', '-')} {w.one(1, 2, small)})", rows, cols)


def _stored(w: Writer, to: str, value: str, rows: int, cols: int) -> None:
    """The values in a tile or a tensor of a type, which converts them, stated or not."""
    value = f"({value}) != 0" if to == "bool" else f'T.cast({value}, "{to}")' if w.often(0.7) else value
    if w.often(0.3):
        w.each(
            "i, j", (rows, cols), f"{w.tensor(2 * rows, cols, dtype=to, written=True)}[bx * {rows} + i, j] = {value}"
        )
        return
    tile = (w.shared if w.often(0.3) else w.fragment)(rows, cols, dtype=to)
    w.each("i, j", (rows, cols), f"{tile}[i, j] = {value}")
    if to != "bool" and w.often(0.3):  # changed in place, in its own type
        w.each("i, j", (rows, cols), f"{tile}[i, j] {w.one('+=', '*=', '-=')} {w.one(1, 2, f'{tile}[i, j]')}")
    w.show(tile, rows, cols, dtype=to)


def reduced_types(w: Writer) -> None:
    """Reductions, scans and sums of integers, which wrap, and of floats with infinities, NaN and sentinels."""
    w.threads, rows, cols = int(w.one(32, 64, 128)), int(w.one(8, 16, 32)), int(w.one(16, 32, 64))
    kind = str(w.one(*INTEGERS, "float32", "float32", "float16", "bfloat16"))
    if kind in INTEGERS:
        values = integers(w, (2 * rows, cols), kind)
    else:
        values = floats(w, (2 * rows, cols), kind, special=False)
        if w.often(0.4):
            values[w.rng.random(values.shape) < 0.05] = w.one(np.inf, -np.inf, np.nan)
    tensor = w.given(values, kind)
    tile = (w.shared if w.often(0.3) else w.fragment)(rows, cols, dtype=kind)
    w.add(f"T.copy({tensor}[bx * {rows}, 0], {tile})")
    for _ in range(2):
        dim, ops = int(w.one(0, 1)), ["sum", "sum", "max", "min", "absmax", "abssum"]
        if kind in INTEGERS:
            ops += ["bitand", "bitor", "bitxor"]
        if kind in ("float16", "bfloat16"):
            ops = ["max", "min", "absmax"]
        to = str(w.one(kind, kind, *(("int32", "int64") if kind in INTEGERS else ("float32",))))
        total, extent = w.fragment((rows, cols)[1 - dim], dtype=to), (rows, cols)[1 - dim]
        clear = w.often(0.7)
        if not clear:
            w.add(f"T.fill({total}, {w.one(0, 1, 5)})")
        w.add(f"T.reduce_{w.one(*ops)}({tile}, {total}, dim={dim}{'' if clear else ', clear=False'})")
        w.show(total, extent, dtype=to)
    if w.often():
        scanned = w.shared(rows, cols, dtype=kind)
        w.add(f"T.copy({tile}, {scanned})")
        scan = "cummax" if kind in ("float16", "bfloat16") or w.often(0.3) else "cumsum"
        w.add(f"T.{scan}({scanned}, dim={w.one(0, 1)}, reverse={w.one(False, True)})")
        w.show(scanned, rows, cols, dtype=kind)
    if kind in INTEGERS:
        w.allocations.append(f'v = T.alloc_var("{kind}", {w.one(0, 1, 100)})')
        with w.within(f"for k in T.serial({w.one(1, 4, 7)}):"):
            at = f"{tensor}[bx * {rows} + k, {w.one(0, 5)}]"
            w.add(f"v = v {w.one('+', '-', '*')} {w.one(at, f'({at} >> 1)', f'{at} * k')}")
        result = w.fragment(rows, dtype=kind)
        w.each("i", (rows,), f"{result}[i] = v + T.cast(i, '{kind}')")
        w.show(result, rows, dtype=kind)
