"""The manifest says of extents what the runtime reads."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tile2cu import emit
from tile2cu_runtime.shape import parse_extent

KERNEL = """
import tilelang
import tilelang.language as T

M, N = T.dynamic("M, N")
groups = 4

@tilelang.jit
def small():
    @T.prim_func
    def body(
        A: T.Tensor((M, N), "float32"),
        B: T.Tensor((M, N // groups, T.ceildiv(N, 2 * groups) - (M - 1)), "float32"),
    ):
        with T.Kernel(M) as bx:
            for i in T.Parallel(64):
                B[bx, i, 0] = A[bx, i]
    return body
"""


def test_extents_are_expressions_that_the_runtime_evaluates(tmp_path: Path) -> None:
    (tmp_path / "small.py").write_text(KERNEL, encoding="utf-8")
    manifest = json.loads(emit(tmp_path / "small.py")["small"].files["small.json"])
    tensor = manifest["arguments"][1]
    extents = [parse_extent(extent, "B") for extent in tensor["shape"]]
    assert [extent.evaluate({"M": 3, "N": 42}) for extent in extents] == [3, 10, 4]


def test_what_is_added_to_is_read_and_written(tmp_path: Path) -> None:
    """The caller has to fill it: the text says in/out, the manifest readwrite."""
    (tmp_path / "small.py").write_text(
        KERNEL.replace("B[bx, i, 0] = A[bx, i]", "T.atomic_add(B[bx, i, 0], A[bx, i])"), encoding="utf-8"
    )
    files = emit(tmp_path / "small.py")["small"].files
    assert json.loads(files["small.json"])["arguments"][1]["access"] == "readwrite"
    assert "//   B  in/out  float32" in files["small.cu"]


def test_the_order_of_sums_is_said(tmp_path: Path) -> None:
    """Of each kind of sum that a kernel has; a maximum has no order to speak of."""
    attention = emit(Path(__file__).parents[3] / "examples" / "attention.py")["attention"].files["attention.json"]
    assert json.loads(attention)["numerics"]["order"] == [
        "MMAs: along k in ascending order, one mma.m16n8k16.f32.f16.f16.f32 after another, "
        "the hardware's order within each",
        "reductions: a thread's own elements in ascending order, then lanes pairwise",
    ]
    (tmp_path / "small.py").write_text(
        KERNEL.replace("B[bx, i, 0] = A[bx, i]", "T.atomic_add(B[bx, i, 0], A[bx, i])"), encoding="utf-8"
    )
    added = json.loads(emit(tmp_path / "small.py")["small"].files["small.json"])["numerics"]["order"]
    assert added == ["atomic additions: in any order, so the last bits may differ from run to run"]


def test_what_rounds_is_said_wherever_it_stands(tmp_path: Path) -> None:
    """Not copies alone: elements of loops, values with names, and arithmetic of 16 bits."""
    body = """for i in T.Parallel(64):
                    half = T.cast(A[bx, i], "float16")
                    B[i] = half * T.cast(3.0, "float16")
                    B[i] = T.exp2(A[bx, i])
                    B[i] = T.max(B[i], half)"""
    kernel = re.sub(r'"float32"\),\n +B: .*?\n    \)', '"float32"), B: T.Tensor((64,), "float16"))', KERNEL, flags=re.S)
    kernel = kernel.replace("for i in T.Parallel(64):\n                B[bx, i, 0] = A[bx, i]", body)
    (tmp_path / "small.py").write_text(kernel, encoding="utf-8")
    files = emit(tmp_path / "small.py")["small"].files
    numerics = json.loads(files["small.json"])["numerics"]
    first = next(number for number, line in enumerate(kernel.splitlines(), 1) if "half = " in line)
    assert numerics["rounded"] == [f"half to float16, line {first}", f"B to float16, line {first + 2}"]
    assert numerics["computed"] == [f"B in float16, line {first + 1}"]
    assert "tl::exp2 is ex2.approx.ftz.f32. tl::max of NaN" in files["small.cu"].replace("\n// ", " ")


def test_what_the_file_says_of_all_its_kernels_is_in_the_contract(tmp_path: Path) -> None:
    """Not its title, and no manual."""
    path = tmp_path / "small.py"
    path.write_text(
        f'"""Small kernels.\n\nA is what {"w " * 60}\nis passed.\n\nB too.\n"""\n{KERNEL}', encoding="utf-8"
    )
    paragraphs = [part.replace("\n// ", " ") for part in emit(path)["small"].files["small.h"].split("\n//\n")]
    assert paragraphs[1:3] == [f"// A is what {'w ' * 60}is passed.", "// B too."]
    path.write_text(f'"""Small kernels.\n\n{chr(10).join(["a manual"] * 13)}"""\n{KERNEL}', encoding="utf-8")
    assert "manual" not in emit(path)["small"].files["small.h"]


QUOTIENT = """
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[-1])
def small(M, N, K):
    heads = T.dynamic("heads")

    @T.prim_func
    def kernel(A: T.Tensor((heads // 16, M, K), "float16"), B: T.Tensor((K, N), "float16"),
               C: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(N, 128), T.ceildiv(M, 128), threads=256) as (bx, by):
            A_shared = T.alloc_shared((128, 64), "float16")
            B_shared = T.alloc_shared((64, 128), "float16")
            C_local = T.alloc_fragment((128, 128), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, 64), num_stages=3):
                T.copy(A[0, by * 128, ko * 64], A_shared)
                T.copy(B[ko * 64, bx * 128], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * 128, bx * 128])

    return kernel
"""


def test_a_tensor_without_elements_that_tma_would_load_is_refused(tmp_path: Path) -> None:
    """Two heads of 16 to a map leave none: a GPU calls a load without a map an illegal instruction."""
    path = tmp_path / "small.py"
    path.write_text(QUOTIENT, encoding="utf-8")
    text = emit(path, target="cuda:sm_90a")["small"].files["small.cu"]
    assert "if (heads > 0 && heads / 16 == 0) return TL_INVALID_SIZE;" in text
    assert text.count("TMA has no map of a tensor without elements") == 1


def test_a_size_whose_quotient_is_an_extent_has_no_remainder() -> None:
    """Query heads share a head of K: two of sixteen would have none, and twenty more than one."""
    example = Path(__file__).parents[3] / "examples" / "attention.py"
    text = emit(example, target="cuda:sm_90a", group=16)["attention"].files["attention.cu"]
    assert "if (heads % group != 0) return TL_NOT_SUPPORTED;" in text and "heads / group == 0" not in text
