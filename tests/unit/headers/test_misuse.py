"""What does not fit together is a compile error that says so in a sentence."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tile2cu_runtime.compile import Build, host_flags, precompiled_headers
from tile2cu_runtime.compilers import find_gxx

PROLOGUE = """
#include <tl/tl.h>
#include <tl/sm90/wgmma_half.h>
using Small = tl::MmaAccumulator<64, 64, tl::Warps<4, 1>>;
using Wide = tl::MmaAccumulator<64, 128, tl::Warps<4, 1>>;
using Other = tl::Blocked<tl::Shape<64, 64>, tl::Shape<4, 32>, 2>;
struct Shared {
  tl::SharedTile<tl::half, 64, 64, tl::Swizzle128B> square;
  tl::SharedTile<tl::half, 32, 64, tl::Swizzle128B> flat;
  tl::SharedTile<float, 64, 64, tl::Swizzle128B> wide;
};
void kernel() {
  auto& s = tl::shared<Shared>();
  tl::Fragment<float, Small> x;
  tl::Fragment<float, Wide> y;
  tl::Fragment<float, Other> z;
  tl::Fragment<float, tl::Slice<1, Small>> row;
  tl::Fragment<float, tl::Slice<1, Other>> other_row;
  const auto X = tl::tensor<tl::Aligned<16>>(static_cast<const float*>(nullptr), 64, 64);
  tl::clear(x), tl::clear(y), tl::clear(z), tl::clear(row), tl::clear(other_row);
  (void)s, (void)X;
"""
WGMMA = (
    "tl::Fragment<float, tl::WgmmaAccumulator<64, 64, 1>> w; tl::clear(w);"
    "tl::SharedTile<tl::half, 64, 64, tl::NoSwizzle> plain;"
)
MISUSES = [
    ("tl::parallel(Wide{}, [&](auto i, auto j) { x(i, j) = 0; });", "the loop runs over another layout"),
    ("tl::parallel(Small{}, [&](auto i, auto j) { x(j, i) = 0; });", "the indices of a fragment are in the order"),
    ("tl::parallel(Small{}, [&](auto i, auto) { other_row(i) = 0; });", "does not hold one value per row"),
    ("tl::parallel(Small{}, [&](auto, auto j) { row(j) = 0; });", "does not hold one value per column"),
    ("x(0, 0) = 1;", "a number indexes only a tl::Replicated fragment"),
    ("tl::gemm(s.square, s.flat, x);", "A has as many columns as B has rows"),
    ("tl::gemm(s.flat, s.square, x);", "A has as many rows as C"),
    ("tl::gemm(s.square, s.square, y);", "B has as many columns as C"),
    (
        "tl::Fragment<tl::half, tl::MmaAccumulator<64, 64, tl::Warps<2, 2>>> a; tl::gemm(a, s.square, x);",
        "A in registers has the layout tl::MmaOperandA",
    ),
    (
        "tl::Fragment<tl::half, tl::MmaOperandB<64, 64, tl::Warps<2, 2>>> b; tl::gemm(s.square, b, x);",
        "B in registers has the layout tl::MmaOperandB",
    ),
    ("tl::rows<65>(s.square, 0);", "the part is within the tile"),
    ("tl::reduce_max<1>(x, other_row);", "the result holds one value per row"),
    ("tl::reduce_sum<0>(z, other_row);", "the result holds one value per row (dim 1) or column (dim 0)"),
    ("tl::Fragment<float, tl::Slice<0, Other>> c; tl::reduce_sum<0>(z, c);", "a tl::ReduceWorkspace is needed"),
    ("tl::copy_async<128>(X.tile(0, 0), s.square);", "an asynchronous copy does not convert"),
    ("tl::Fragment<float, tl::MmaAccumulator<72, 64, tl::Warps<4, 1>>> bad;", "M is a multiple of 16 * warps along M"),
    ("tl::SharedTile<tl::half, 8, 24, tl::Swizzle128B> bad; (void)bad;", "a row is a whole number of swizzle spans"),
    ("X(1);", "as many indices as the tensor has dimensions"),
    (f"{WGMMA} tl::gemm(plain, s.square, w);", "wgmma reads tiles with a swizzle"),
    (
        f"{WGMMA} tl::SharedTile<double, 64, 64, tl::Swizzle128B> wider; tl::gemm(wider, tl::transposed(wider), w);",
        "wgmma multiplies half, bfloat16, float8, int8, uint8, tfloat32 or float",
    ),
    (f"{WGMMA} tl::gemm(s.wide, s.wide, w);", "8-bit and 32-bit operands of wgmma must be K-major"),
    (
        f"{WGMMA} tl::SharedTile<tl::bfloat16, 64, 64, tl::Swizzle128B> brain; tl::gemm(brain, brain, w);",
        "wgmma of these types: include tl/sm90/wgmma_half.h, wgmma_half_accumulators.h",
    ),
    (
        "tl::Fragment<tl::bfloat16, tl::WgmmaAccumulator<64, 64>> h; tl::gemm(s.square, s.square, h);",
        "C is float, int32_t for integers, or half for halves",
    ),
    (f"{WGMMA} tl::gemm(s.flat, s.square, w);", "A has as many rows as C"),
    (f"{WGMMA} tl::gemm(s.square, s.flat, w);", "A has as many columns as B has rows"),
    (f"{WGMMA} tl::gemm(w, s.square, w);", "a register operand A is half or bfloat16"),
    (
        "tl::Fragment<float, tl::WgmmaAccumulator<128, 64, 2>> w;"
        "tl::Fragment<tl::half, tl::WgmmaAccumulator<128, 64, 1>> a; tl::gemm(a, s.square, w);",
        "a register operand A has the rows and warpgroups of C",
    ),
    (f"{WGMMA} tl::Fragment<tl::half, Small> a; tl::gemm(a, s.square, w);", "has the rows and warpgroups of C"),
    (
        "tl::StagingTile<tl::half, 64, 64, tl::Swizzle128B> staging; tl::TensorMap map;"
        "tl::tma_store(x, staging, map, tl::at(0, 0));",
        "a fragment that TMA stores has the layout of a WgmmaAccumulator",
    ),
    ("tl::Fragment<float, tl::WgmmaAccumulator<96, 64, 1>> bad;", "a warpgroup's rows are a multiple of 64"),
    ("(void)tl::tensor_map<decltype(s.square)>(nullptr, 64);", "a tensor map has two to five dimensions"),
    (
        "(void)tl::tensor_map<decltype(s.square), tl::Dims<0, 1>>(nullptr, 8, 64, 64);",
        "along the tensor's last dimension",
    ),
]


def compile_body(gxx: str, headers: Path, body: str) -> subprocess.CompletedProcess[str]:
    command = (gxx, "-x", "c++", *host_flags(check=True), "-I", str(headers))
    precompiled = precompiled_headers(Build(compile=command, link=(), identity=find_gxx().version))
    command = (*command, *precompiled, "-fsyntax-only", "-")
    return subprocess.run(command, input=PROLOGUE + body + "}\n", capture_output=True, text=True, timeout=60)


def test_the_prologue_alone_compiles(gxx: str, headers: Path) -> None:
    done = compile_body(gxx, headers, "")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("body", "sentence"), MISUSES, ids=[sentence for _, sentence in MISUSES])
def test_the_error_is_a_sentence(gxx: str, headers: Path, body: str, sentence: str) -> None:
    done = compile_body(gxx, headers, body)
    assert done.returncode != 0
    assert sentence in done.stderr, done.stderr[:2000]
