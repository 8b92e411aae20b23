"""A statement declares what it repeats, by the name that the user's helper has for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tile2cu

KERNEL = """
import tilelang
import tilelang.language as T

def helper(x, at):
{helper}

@tilelang.jit
def named(N=256, block=128):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
        with T.Kernel(N // block, threads=128) as bx:
            taken = T.alloc_fragment((block,), "float32")
            for i in T.Parallel(block):
                taken[i] = A[bx * block + i]
            for i in T.Parallel(block):
                {statement}
            T.copy(taken, C[bx * block])

    return main
"""
STATEMENT = "taken[i] = helper(B[bx * block + i] + taken[i], bx * block + i)"


def body(folder: Path, helper: str, statement: str = STATEMENT, style: str = "tl") -> str:
    return emitted(folder, KERNEL, helper, statement, style)


def emitted(folder: Path, kernel: str, helper: str, statement: str, style: str = "tl") -> str:
    """What the kernel does, without the line breaks of a page."""
    indented = "\n".join(f"    {line}" for line in helper.splitlines())
    (folder / "named.py").write_text(kernel.format(helper=indented, statement=statement), encoding="utf-8")
    target = "hip:gfx942" if style == "ck" else "cuda:sm_80"
    (found,) = tile2cu.emit(folder / "named.py", style=style, target=target).values()
    _, _, behind = found.source.partition("// named.py:")
    text, _, _ = behind.partition("// ---- host")
    return " ".join(text.split())


DECODE = """\
bits = (T.reinterpret(x, T.uint32) >> T.cast(at % 8 * 4, T.uint32)) & T.uint32(15)
sign = bits >> T.uint32(3)
return T.reinterpret((bits | sign << T.uint32(5)) << T.uint32(10) | (bits & T.uint32(1)) << T.uint32(9), T.float32)
"""


@pytest.mark.parametrize("style", ["tl", "cute", "ck"])
def test_a_name_of_a_helper_that_is_used_several_times(style: str, tmp_path: Path) -> None:
    """What it computes once, such as its `sign`, is where it is used."""
    text = body(tmp_path, DECODE, style=style)
    assert "const uint32_t bits = (tl::reinterpret<uint32_t>(" in text and text.count("reinterpret<uint32_t>") == 1
    assert "bits >> 3" in text and "sign" not in text


def test_the_parameter_of_a_helper(tmp_path: Path) -> None:
    """It names a value that the caller has not named."""
    text = body(tmp_path, "return x * T.sigmoid(x)", "taken[i] = helper(B[i] * taken[i] + 1.0 - taken[i], i)")
    assert "x = B(i) * taken(i) + 1.0f - taken(i); taken(i) = x * tl::sigmoid(x);" in text


def test_values_of_two_calls(tmp_path: Path) -> None:
    """The second has a number; the names of one loop are free in another."""
    statement = "taken[i] = helper(B[i], 0) + helper(taken[i], 0)"
    text = body(tmp_path, "u = (x + 1.0) * 3.0 - x\nreturn u * u", statement)
    assert "u = (B(i) + 1.0f) * 3.0f - B(i);" in text and "u_1 = (taken(i) + 1.0f) * 3.0f - taken(i);" in text
    assert "taken(i) = u * u + u_1 * u_1;" in text


@pytest.mark.parametrize(
    ("helper", "reason"),
    [
        ("y = x + 1.0\nreturn y * y * y", "one sum is trivial"),
        (
            "y = (x + 1.0) * 3.0 - x\nreturn T.if_then_else(at > 5, y * y, 0.0)",
            "it may not be evaluated, and reads memory",
        ),
        ("y = (x + 1.0) * 3.0 - x\nreturn T.if_then_else(T.And(at > 5, y * y > 1.0), 1.0, 0.0)", "nor behind `and`"),
        ("i = (x + 1.0) * 3.0 - x\nreturn i * i", "an index has its name"),
    ],
)
def test_values_that_stay_where_they_are(helper: str, reason: str, tmp_path: Path) -> None:
    assert not any(f"{name} = (" in body(tmp_path, helper) for name in ("y", "i", "i_1")), reason


def test_a_value_of_a_thread(tmp_path: Path) -> None:
    """One that threads exchange is not: each shuffle is an instruction of its own."""
    of_thread = "i = T.get_thread_binding()\n            if i < 100:\n                {s"
    kernel = KERNEL.replace("for i in T.Parallel(block):\n                {s", of_thread)
    statement = "C[bx * block + i] = helper(B[bx * block + i], i)"
    plain = emitted(tmp_path, kernel, "y = (x + 1.0) * 3.0 - x\nreturn y * y", statement)
    assert "const float y = (" in plain and "= y * y;" in plain
    assert "y = " not in emitted(tmp_path, kernel, "y = T.shfl_xor(x, 1) * 3.0 + x\nreturn y * y", statement)


def test_a_value_in_an_arm_and_elsewhere(tmp_path: Path) -> None:
    """It is evaluated in any case."""
    text = body(tmp_path, "y = (x + 1.0) * 3.0 - x\nreturn T.if_then_else(at > 5, y, 0.0) + y")
    assert "y = (" in text and ", y, 0.0f) + y" in text or "? y : 0.0f) + y" in text


def test_arithmetic_that_divides_only_by_what_is_divided_by_in_any_case(tmp_path: Path) -> None:
    """It needs no memory, and does not trap: it may be computed although its arm is not taken."""
    safe = "k = (at + 7) * at % 3 + 1\nreturn T.if_then_else(at > 5, T.cast(k * k, T.float32), 0.0)"
    assert "k = " in body(tmp_path, safe)
    traps = safe.replace("at % 3", "at % (at - 200)")
    assert "k = " not in body(tmp_path, traps)
    divided = traps.replace("return", "m = at % (at - 200)\nreturn T.cast(m, T.float32) +")
    assert "k = " in body(tmp_path, divided)


def test_names_that_cpp_has(tmp_path: Path) -> None:
    text = body(tmp_path, "double = (x + 1.0) * 3.0 - x\nreturn double * double")
    assert "double_1 * double_1" in text


CONVOLUTION = """
import tilelang
import tilelang.language as T

@tilelang.jit
def patches(H, W, C=24):
    @T.prim_func
    def main(A: T.Tensor((2, H, W, C), "float16"), B: T.Tensor((128, 9 * 24), "float16")):
        with T.Kernel(1, threads=128) as bx:
            tile = T.alloc_shared((64, 32), "float16")
            for k in T.serial(9):
                T.im2col(A, tile, bx, k, 3, STRIDE, 1, 1)
                T.copy(tile, B[bx * 64, k * 32])

    return main
"""


@pytest.mark.parametrize(("stride", "width"), [(1, "W"), (2, "output_width")], ids=["same size", "half of the size"])
def test_pixels_of_a_convolution(stride: int, width: str, tmp_path: Path) -> None:
    """The patches of T.im2col: which pixel a row is of, and which one an element is."""
    (tmp_path / "patches.py").write_text(CONVOLUTION.replace("STRIDE", str(stride)), encoding="utf-8")
    (found,) = tile2cu.emit(tmp_path / "patches.py", target="cuda:sm_80").values()
    text = " ".join(found.source.split())
    assert ("const int output_width = " in text) == (width == "output_width")
    assert f"const int input_x = pixel % {width}" in text or f"const int input_x = (pixel % {width}) * 2" in text
    assert "input_y >= 0 && input_y < H && input_x >= 0 && input_x < W" in text


@pytest.mark.parametrize(
    ("value", "is_declared"),
    [
        ("(u + u) * u", False),
        ("T.max((u + u) * u, u)", False),
        ("(u << u) | u", False),
        ("-(u & u) * u", False),
        ("(u >> T.uint8(4)) & T.uint8(15)", True),
        ("((u & T.uint8(7)) + T.uint8(1)) * T.uint8(4)", True),
    ],
)
def test_narrow_integers_that_int_alone_holds(value: str, is_declared: bool, tmp_path: Path) -> None:
    """C++ computes with narrow integers in int, as the interpreter does: a name of their own type would wrap."""
    parts = " + ".join(["T.cast(y, T.float32) * T.cast(at, T.float32)"] * 3)
    text = body(tmp_path, f"u = T.cast(x, T.uint8)\ny = {value}\nreturn {parts}")
    assert ("const uint8_t y = " in text) is is_declared


def test_floats_of_8_bits_are_computed_in_float(tmp_path: Path) -> None:
    helper = "u = T.cast(x, T.float8_e4m3fn)\ny = u * u + u\nreturn T.cast(y, T.float32) * T.cast(y, T.float32)"
    assert "y = " not in body(tmp_path, f"{helper} + T.cast(y, T.float32)")


@pytest.mark.parametrize("helper", ["k = (at * 3 + 7) % 256\n", ""])
def test_an_element_at_a_named_index_is_data(helper: str, tmp_path: Path) -> None:
    """Sums with it are printed as those at an index without a name: no access depends on them."""
    k = "k" if helper else "((at * 3 + 7) % 256)"
    a, b = f"T.cast(x[{k}], T.int32)", f"T.cast(x[{k} ^ 1], T.int32)"
    text = body(tmp_path, f"{helper}return T.cast({a} * 2 + {b} + {k}, T.float32)", "taken[i] = helper(B, i)")
    assert ("const int k = (i * 3 + 7) % 256;" in text) is bool(helper)
    assert "wrapping" not in text


def test_a_size_that_the_factory_names(tmp_path: Path) -> None:
    """It keeps that name: a helper's parameter would be a second one."""
    kernel = KERNEL.replace("N=256, block=128):", "N, block=128):\n    most = (N + 3) // 4 * 2 + 1")
    used = kernel.replace("taken[i] = A[", "taken[i] = A[most - most + ")
    helper = "k = (at * 3 + at) % 7\nreturn x * T.cast(at, T.float32) + T.cast(k, T.float32) * T.cast(k, T.float32)"
    text = emitted(tmp_path, used, helper, "taken[i] = helper(B[i], most)")
    assert "const int at = most" not in text and "= most" not in text
    assert "const int k = (most * 3 + most) % 7" in text


def test_declarations_are_in_the_order_of_use(tmp_path: Path) -> None:
    """Each behind what it needs."""
    text = body(
        tmp_path, "u = (x + 1.0) * 3.0 - x\nv = u * u - u\nreturn v * v", "taken[i] = helper(B[i], 0) - helper(A[i], 0)"
    )
    assert re.findall(r"const float (\w+) = ", text) == ["u", "v", "u_1", "v_1"]
    assert "v * v - v_1 * v_1" in text


WINDOW = """
import tilelang
import tilelang.language as T

def helper(x, at):
{helper}

@tilelang.jit
def named(M, N=64, block=64):
    @T.prim_func
    def main(X: T.Tensor((256, 256), "float16"), W: T.Tensor((64, N), "float16"), Y: T.Tensor((M, 64), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=256) as bx:
            x, w = T.alloc_shared((block, 64), "float16"), T.alloc_shared((64, N), "float16")
            c = T.alloc_fragment((block, N), "float32")
            T.clear(c)
            T.copy(W, w)
            {statement}
            for k in T.Pipelined(4, num_stages=2):
                T.copy(X[row * 64, k * 64], x)
                T.gemm(x, w, c)
            T.copy(c, Y[bx * block, 0])

    return main
"""


def test_what_starts_a_window_wraps_as_the_statement_does(tmp_path: Path) -> None:
    """A window's start has the value of `row` in its place, without the name that its statement has for a part."""
    helper = "p = (at * x + 3) * x\nreturn (p * p + p) % 4"
    text = emitted(tmp_path, WINDOW, helper, "row = helper(M, bx)", "ck")
    assert "row = tl::floormod(tl::wrapping_add(tl::wrapping_multiply(p, p), p), 4);" in text
    _, _, window = text.partition("auto x_source = ")
    start, _, _ = window.partition(";")
    assert "{tl::floormod(" in start and " % " not in start
