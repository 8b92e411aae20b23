"""Sizes that the user's file computes from others keep their names."""

from pathlib import Path

from tile2cu.api import emit_text
from tile2cu.targets import SM80, SM90A

KERNEL = """
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[-1])
def small(n, w, block=128):
    parts = T.ceildiv(n, block)
    places = (w - 1) // 2 + parts
    unused = n + w
    i = n * w

    @T.prim_func
    def body(X: T.Tensor((n,), "float32"), W: T.Tensor((w,), "float32"), Y: T.Tensor((n,), "float32")):
        with T.Kernel(parts, threads=128) as bx:
            for i in T.Parallel(block):
                Y[bx * block + i] = X[(i * places + bx) % n] * parts + W[n * w % w]
    return body
"""


def test_a_name_stands_for_what_the_kernel_computes_with(tmp_path: Path) -> None:
    """In the order of the file, and only where it is used; a name that something else has stands for that alone."""
    path = tmp_path / "small.py"
    path.write_text(KERNEL, encoding="utf-8")
    text = emit_text(path, kernel=None, target=SM80, bindings={})[0].files["small.cu"]
    assert "  const int parts = tl::ceildiv(n, block);\n  const int places = tl::floordiv(w - 1, 2) + parts;\n" in text
    assert "X(tl::floormod(i * places + bx, n)) * parts + W((n * w) % w)" in text
    assert "unused" not in text
    assert "const dim3 grid(tl::ceildiv(n, block));" in text


def test_a_name_that_texts_use_themselves_is_numbered(tmp_path: Path) -> None:
    """Pipelines count their iterations by that name."""
    path = tmp_path / "small.py"
    path.write_text(
        KERNEL.replace("parts", "num_iterations")
        .replace(
            "for i in T.Parallel(block):",
            "S = T.alloc_shared((64, 64), 'float16')\n"
            "            C = T.alloc_fragment((64, 64), 'float32')\n"
            "            for k in T.Pipelined(num_iterations, num_stages=2):\n"
            "                T.copy(H[k * 64, 0], S)\n"
            "                T.gemm(S, S, C)\n"
            "            for i in T.Parallel(block):",
        )
        .replace("def body(", "def body(H: T.Tensor((n, 64), 'float16'), "),
        encoding="utf-8",
    )
    text = emit_text(path, kernel=None, target=SM90A, bindings={})[0].files["small.cu"]
    assert "const int num_iterations_1 = tl::ceildiv(n, block);" in text
    assert "for (int k = 0; k < num_iterations_1; ++k) {" in text


NUMBERS = """
import tilelang
import tilelang.language as T

def odd(n):
    return n % 2

@tilelang.jit(out_idx=[-1])
def small(block=128, lanes=32, threads=64):
    rows = block // lanes
    third = lanes // 3
    hidden = block - 2 * rows
    block = hidden * 1
    both = T.ceildiv(block, rows) * 2
    picked = 4 if odd(lanes) else 8
    of_lanes = lanes // 2

    @T.prim_func
    def body(Y: T.Tensor((1024,), "int32")):
        with T.Kernel(1, threads=threads) as bx:
            for i in T.Parallel(64):
                Y[i] = i * rows * third + i // block + both * picked + of_lanes + lanes
    return body
"""


def test_a_number_that_is_computed_from_others_is_printed_as_computed(tmp_path: Path) -> None:
    """What is divided without a remainder is asserted; a number whose inputs have no names here stays a number."""
    path = tmp_path / "small.py"
    path.write_text(NUMBERS, encoding="utf-8")
    text = emit_text(path, kernel=None, target=SM80, bindings={})[0].files["small.cu"]
    for expected in (
        "constexpr int lanes = 32;\n",
        "// small.py:10  block // lanes\nconstexpr int rows = 4;\n",
        "// small.py:11\nconstexpr int third = lanes / 3;\n//",
        "// small.py:13  hidden * 1\nconstexpr int block = 120;\n",
        "// small.py:14\nconstexpr int both = tl::ceildiv(block, rows) * 2;\n",
        "// small.py:15  4 if odd(lanes) else 8\nconstexpr int picked = 8;\n",
        "// small.py:16\nconstexpr int of_lanes = lanes / 2;\nstatic_assert(lanes % 2 == 0);\n",
    ):
        assert expected in text
