"""The style ck, as text: what it names, what it does not support, what its launcher rejects."""

from __future__ import annotations

import functools
import json
import re
from itertools import product, takewhile
from pathlib import Path
from types import CodeType

import pytest

import tile2cu
from fetch_ck import PACKAGE, REVISION
from tile2cu.core.errors import Tile2CuError

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"

KERNEL = """
import tilelang
import tilelang.language as T


@tilelang.jit
def scaled(M, N, {constant}=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, {constant}), M, threads=64) as (bx, by):
            for i in T.Parallel({constant}):
                C[by, bx * {constant} + i] = A[by, bx * {constant} + i] * 2.0

    return main
"""


def test_targets_without_ck_tile() -> None:
    with pytest.raises(Tile2CuError, match="the style `ck` does not support cuda:sm_80") as raised:
        tile2cu.emit(EXAMPLES / "vector_add.py", style="ck", target="cuda:sm_80")
    assert raised.value.code == "T2C-E034" and "--style tl" in raised.value.render()


def gemm_of(dtype: str, target: str, **bindings: object) -> str:
    """The source of a GEMM of B (N, K), into float32."""
    types = {"out_dtype": "int32", "accum_dtype": "int32"} if dtype == "int8" else {"out_dtype": "float32"}
    all_of = types | {"dtype": dtype, "transpose_B": True} | bindings
    (found,) = tile2cu.emit(EXAMPLES / "gemm.py", kernel="gemm", style="ck", target=target, **all_of).values()
    return found.source


@pytest.mark.parametrize(
    ("target", "dtype", "bindings", "warp_gemm"),
    [
        ("gfx942", "float16", {}, "WarpGemmMfmaDispatcher<half_t, half_t, float, 16, 16, 16, /*TransposeC=*/true>"),
        ("gfx942", "float8_e4m3fnuz", {}, "<WarpGemmAttributeMfmaImpl_f32_16x16x32_f8_base<fp8_t, fp8_t>>"),
        ("gfx942", "float8_e5m2fnuz", {}, "<WarpGemmAttributeMfmaImpl_f32_16x16x32_f8_base<bf8_t, bf8_t>>"),
        ("gfx950", "float16", {}, "WarpGemmMfmaDispatcher<half_t, half_t, float, 16, 16, 32, /*TransposeC=*/true>"),
        ("gfx950", "int8", {}, "WarpGemmMfmaDispatcher<int8_t, int8_t, int, 16, 16, 32, /*TransposeC=*/true>"),
        ("gfx950", "float8_e4m3", {"block_K": 128}, "MfmaImpl_f32_16x16x128_f8_bf8_base<fp8_t, fp8_t>"),
        ("gfx950", "float8_e5m2", {}, "<WarpGemmAttributeMfmaImpl_f32_16x16x32_f8_base<bf8_t, bf8_t>>"),
    ],
)  # fmt: skip
def test_warp_gemms(target: str, dtype: str, bindings: dict[str, object], warp_gemm: str) -> None:
    assert warp_gemm in gemm_of(dtype, f"hip:{target}", **bindings)


@pytest.mark.parametrize(("target", "dtype"), [("gfx942", "float8_e4m3"), ("gfx950", "float8_e4m3fnuz")])
def test_formats_of_another_target_have_no_type(target: str, dtype: str) -> None:
    """fp8_t is the target's own format; the style tl converts others to halves."""
    with pytest.raises(Tile2CuError, match=f"{dtype}\\w* on {target}") as raised:
        gemm_of(dtype, f"hip:{target}")
    assert raised.value.code == "T2C-E034"


def test_on_gfx950_tiles_pass_through_registers() -> None:
    """ck_tile's kernels here have no loads from global memory to LDS, and no transposing reads."""
    (found,) = tile2cu.emit(EXAMPLES / "gemm_relu.py", style="ck", target="hip:gfx950").values()
    assert "auto A_shared_next = make_static_distributed_tensor<half_t>" in found.source
    assert "tl::LdsTransposed<block_K, block_N, " in found.source


def test_windows_move_in_every_iteration() -> None:
    """Of moves under the loads' condition clang adds up no addresses (docs/lab/amd.md)."""
    (found,) = tile2cu.emit(EXAMPLES / "gemm_relu.py", style="ck", target="hip:gfx942").values()
    load = found.source.split("const auto load_next = [&](bool another) {")[1].split("};\n")[0]
    conditional, always = load.split("      }\n")
    assert conditional.count("load_tile(") == 2 and "move_tile_window(" not in conditional
    assert always.count("move_tile_window(") == 2
    assert "load_next(ko + 2 < num_iterations);" in found.source


def test_waves_vote_on_a_rescale() -> None:
    (found,) = tile2cu.emit(EXAMPLES / "attention.py", style="ck", target="hip:gfx942", dim=128, threads=256).values()
    assert "tl::scale_rows_if(tl::any_changed(scores_max_prev, scores_max), acc_o, scores_scale);" in found.source


SCAN = """
import tilelang
import tilelang.language as T


@tilelang.jit
def scan(M, N=256):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(M, threads=128) as row:
            x = T.alloc_fragment((1, N), "float32")
            T.copy(A[row, 0], x)
            T.cumsum(x, x, dim=1)
            T.copy(x, C[row, 0])

    return main
"""


def test_an_operation_that_it_lacks_has_its_line(tmp_path: Path) -> None:
    (tmp_path / "scan.py").write_text(SCAN, encoding="utf-8")
    tile2cu.emit(tmp_path / "scan.py", target="hip:gfx942")
    with pytest.raises(Tile2CuError, match="the style `ck` does not support the operation Scan") as raised:
        tile2cu.emit(tmp_path / "scan.py", style="ck", target="hip:gfx942")
    text = raised.value.render()
    assert raised.value.code == "T2C-E034" and "scan.py:13" in text and "--style tl" in text


REDUCED = [
    ("gemv.py", "gemv", "tl::block_tile_reduce_dimension<2>(sums, products, ReduceOp::Add{});"),
    ("cross_entropy.py", "cross_entropy", "tl::block_tile_reduce_dimension<0>(parts_of_largest, x, tl::Maximum{});"),
    ("dequant.py", "dequant_gemv", "tl::block_tile_reduce_dimension<2>(partial, products, ReduceOp::Add{});"),
    (
        "w2a8.py",
        "w2a8_gemv",
        "partial(i_j) = tl::dot_of_quarters(packed(i_j), 1, &x[ko % shared_stages](4 * j), partial",
    ),
]


@pytest.mark.parametrize(("file", "name", "line"), REDUCED, ids=[each[1] for each in REDUCED])
def test_products_with_vectors(file: str, name: str, line: str) -> None:
    (found,) = tile2cu.emit(EXAMPLES / file, name, style="ck", target="hip:gfx942").values()
    assert line in " ".join(found.source.split()).replace("( ", "(")


def test_rows_that_the_launcher_checks_are_loaded_in_vectors() -> None:
    """K is a multiple of the group, and rows of X and W of 16 bytes; those of S and Z the launcher chooses by."""
    (found,) = tile2cu.emit(EXAMPLES / "dequant.py", kernel="dequant_gemv", style="ck", target="hip:gfx942").values()
    text = " ".join(found.source.replace("//", "").split())
    assert "issues 2 loads of 16 bytes to x_next, 4 loads of 16 bytes to packed_next, 1 load of 8 bytes" in text
    assert "rows are not multiples of 16 bytes, 8 of single elements to scales_next and zeros_next" in text
    assert "make_tuple(N, K / 2), make_tuple(K / 2, number<1>{}), number<16 / sizeof(uint8_t)>{}" in text


def test_parts_of_a_tile_are_operands() -> None:
    """A window begins where the part does; the format of gfx942 is FNUZ."""
    bindings = {"dtype": "float8_e4m3fnuz"}
    (found,) = tile2cu.emit(EXAMPLES / "gemm_fp8_scaled.py", style="ck", target="hip:gfx942", **bindings).values()
    assert "tl::operand_window(B_shared, B_shared_operand_layout{}, 0, 0);" in found.source
    assert "tl::operand_window(B_shared, B_shared_operand_layout{}, group, 0);" in found.source


def test_the_manifest_names_the_style_and_what_it_needs() -> None:
    (found,) = tile2cu.emit(EXAMPLES / "vector_add.py", style="ck", target="hip:gfx942").values()
    manifest = json.loads(found.manifest)
    assert manifest["look"]["style"] == "ck" and manifest["needs"] == ["composable_kernel"]


def test_the_manifest_states_that_lds_is_static() -> None:
    """A launch of the style tl asks for the bytes, one of ck for none."""
    for style, is_static in (("ck", True), ("tl", None)):
        (found,) = tile2cu.emit(EXAMPLES / "gemm_relu.py", style=style, target="hip:gfx942", threads=256).values()
        assert json.loads(found.manifest)["launch"].get("shared_static") is is_static


def test_what_a_loop_may_address_is_along_its_own_dimension(tmp_path: Path) -> None:
    """The loop's variable runs along the second dimension, whose end a tile of 64 may overhang by 63."""
    (tmp_path / "scaled.py").write_text(KERNEL.replace("{constant}", "block"), encoding="utf-8")
    (found,) = tile2cu.emit(tmp_path / "scaled.py", style="ck", target="hip:gfx942").values()
    assert "tl::fits_in_2gib<float>({{M}, {N, 64}})" in found.source and "A[M - 1, N + 62]" in found.source


@pytest.mark.parametrize("constant", ["number", "pad", "Kargs", "half_t"])
def test_constants_have_no_names_of_ck_tile(tmp_path: Path, constant: str) -> None:
    (tmp_path / "scaled.py").write_text(KERNEL.replace("{constant}", constant), encoding="utf-8")
    (found,) = tile2cu.emit(tmp_path / "scaled.py", style="ck", target="hip:gfx942").values()
    assert f"constexpr int {constant}_size = 64;" in found.source


def test_the_revision_of_ck_tile_is_that_of_the_tests() -> None:
    (found,) = tile2cu.emit(EXAMPLES / "vector_add.py", style="ck", target="hip:gfx942").values()
    assert f"Composable Kernel {REVISION} (in {PACKAGE.replace('==', ' ')})\nusing namespace ck_tile;" in found.source


def test_tensors_and_the_tiles_that_overhang_them_are_within_2_gib() -> None:
    """Blocks are named, so that a larger tile is checked as well; a batch overhangs once. Windows of prefetched tiles
    move in every iteration: two tiles past the last one, or three where two are loaded before the loop.
    """
    (found,) = tile2cu.emit(EXAMPLES / "gemm_relu.py", style="ck", target="hip:gfx942", threads=256).values()
    assert "if (!tl::fits_in_2gib<half_t>({{M, block_M}, {K, 4 * block_K}})" in found.source
    assert "!tl::fits_in_2gib<half_t>({{K, 4 * block_K}, {N, block_N}})" in found.source
    assert "B[K + 126, N + 126]" in found.source and "offsets of elements 32" in found.source
    (found,) = tile2cu.emit(EXAMPLES / "attention.py", style="ck", target="hip:gfx942", threads=256, dim=128).values()
    assert "!tl::fits_in_2gib<half_t>({{batch}, {seq_len, block_M}, {heads}, {dim}})" in found.source
    assert "!tl::fits_in_2gib<half_t>({{batch}, {seq_len, 3 * block_N}, {heads / group}, {dim}})" in found.source


def test_a_tile_whose_places_exceed_a_row_is_checked_by_its_places() -> None:
    (found,) = tile2cu.emit(EXAMPLES / "row_softmax.py", style="ck", target="hip:gfx942", N=1000).values()
    assert "tl::fits_in_2gib<float>({{M, block_M}, {N, 1024}})" in found.source


def test_a_maximum_of_a_row_begins_with_the_neutral_element() -> None:
    """Of chains that begin with the old maximum clang makes every operand canonical (docs/lab/amd.md)."""
    (found,) = tile2cu.emit(EXAMPLES / "attention.py", style="ck", target="hip:gfx942", dim=128, threads=256).values()
    reduced = "block_tile_reduce(scores_max_part, acc_s, sequence<1>{}, tl::Maximum{});"
    before, after = found.source.split(reduced)
    assert before.rstrip().endswith("set_tile(scores_max_part, tl::ReduceMax::identity<float>());")
    assert "total = tl::Maximum{}(total, part);" in after
    before, after = found.source.split("block_tile_reduce(scores_sum, acc_s")
    assert before.rstrip().endswith("clear_tile(scores_sum);")


def formula(text: str, **names: int) -> int:
    """The value of a formula of a comment, in which `4 i` and `4 (i / 2)` are products."""
    return int(eval(in_python(text), {}, names))


@functools.cache
def in_python(text: str) -> CodeType:
    return compile(re.sub(r"(\d) ([a-z(])", r"\1 * \2", text.replace("/", "//")).strip(), text, "eval")


def test_an_operand_beside_registers_is_stored_in_their_order() -> None:
    """P of attention has 4 consecutive k per lane and MFMA: V is stored so that a lane reads those of two."""
    bindings = {"threads": 256, "dim": 128, "is_causal": False}
    (found,) = tile2cu.emit(EXAMPLES / "attention.py", style="ck", target="hip:gfx942", **bindings).values()
    assert "tl::LdsTransposed<block_N, dim, tl::Interleave<2>, tl::HeldK<4, 4>>> V_shared" in found.source
    text = " ".join(line.strip().removeprefix("// ") for line in found.source.splitlines())
    assert text.count("through VGPRs") == text.count("through VGPRs by ds_read_b128") == 2
    assert text.count("free of bank conflicts") == 2
    assert "2 slabs of 64 columns, 128-byte swizzle: 16-byte chunk c of row r is at c ^ r % 8; element (r, j)" in text
    assert "value 8 n + 4 t + r of acc_o is register r of MFMA t" in text, "Q_local has the layout, and is an operand"
    stated = "takes up to 64 for operands of a GEMM, 16 for a tile's transpose and 1 for a reduction's parts"
    assert f"besides these, one statement {stated}" in text


def about(source: str, name: str) -> tuple[str, dict[str, str]]:
    """The comment above a distribution, and the formulas of its coordinates."""
    above = source[: source.index(f"using {name} =")].rstrip().splitlines()
    lines = list(takewhile(lambda line: line.startswith("// "), reversed(above)))
    formulas = re.findall(r"(?:^|, )(\w+) = (.+?)(?=, \w+ = |$)", "\n".join(line[3:] for line in lines), re.MULTILINE)
    return " ".join(line[3:] for line in reversed(lines)), dict(formulas)


def test_comments_of_operands_agree_with_those_of_registers_and_lds() -> None:
    """An MFMA's values of B have the k that its values of A have; K is read where it is, V by its place along k."""
    bindings = {"threads": 256, "dim": 128, "is_causal": False}
    (found,) = tile2cu.emit(EXAMPLES / "attention.py", style="ck", target="hip:gfx942", **bindings).values()
    text = re.sub(r"\n *// ", " ", found.source)
    slot = re.search(r"k_slot = (.*?) is its place", text)
    held = re.search(r"in MFMA step s, lanes 16 g to 16 g \+ 15 hold k = (.*?) to", text)
    assert slot is not None and held is not None
    for tile, of_a, steps, tiles in (("K_shared", "acc_o", 8, 4), ("V_shared", "acc_s", 4, 8)):
        words, of_b = about(found.source, f"{tile}_operand_layout")
        said = re.search(r"takes values (.*?), i < 4, of k = (.*? i) [nk]", words)
        assert said is not None and f"{tile} as operand B, SrcA of MFMA" in words
        _, of_lane = about(found.source, f"{of_a}_layout")
        for lane, t, s, i in product(range(64), range(tiles), range(steps), range(4)):
            k, value = formula(said[2], lane=lane, s=s, i=i), formula(said[1], t=t, s=s, i=i)
            assert formula(of_lane["j"], lane=lane, value=4 * s + i) == k, "A's registers, MFMA after MFMA"
            if tile == "K_shared":
                assert formula(of_b["k"], lane=lane, value=value) == k
            else:
                assert formula(of_b["k_slot"], lane=lane, value=value) == formula(slot[1], k=k)
                assert formula(held[1], s=s, g=lane // 16) + i == k


def test_a_vector_at_the_end_of_one_dimension_is_whole() -> None:
    """ck_tile asks whether a vector's first element is in bounds; the launcher selects single elements else."""
    (found,) = tile2cu.emit(EXAMPLES / "vector_add.py", style="ck", target="hip:gfx942").values()
    assert "N % 4 == 0 ? vector_add_kernel<tl::Aligned<16>> : vector_add_kernel<tl::AnyAlignment>" in found.source
    assert "number<tl::vector_length<Alignment, float>>{}" in found.source


VIEWS = """
import tilelang
import tilelang.language as T

@tilelang.jit
def halves(M, K, block=64):
    @T.prim_func
    def main(X: T.Tensor((M, K), "float16"), Y: T.Tensor((M, K), "float16"), Z: T.Tensor((M, block), "float16")):
        with T.Kernel(T.ceildiv(M, block), threads=256) as bx:
            x = T.alloc_shared((block, block), "float16")
            rows, parts = T.view(X, (M * 2, K // 2)), T.view(Y, (M, 2, K // 2))
            T.copy(rows[bx * block, 0], x)
            T.copy(x, parts[bx * block, 0, 0])
            T.copy(x, Y[bx * block, 0])
            T.copy(x, Z[bx * block, 0])

    return main
"""


def test_what_a_kernel_reaches_by_views_alone_is_within_2_gib(tmp_path: Path) -> None:
    """A view's tiles are along its own dimensions, which may be more than the tensor's."""
    (tmp_path / "halves.py").write_text(VIEWS, encoding="utf-8")
    (found,) = tile2cu.emit(tmp_path / "halves.py", style="ck", target="hip:gfx942").values()
    text = " ".join(found.source.split())
    assert "!tl::fits_in_2gib<half_t>({{M * 2, block}, {K / 2, block}})" in text
    assert "!tl::fits_in_2gib<half_t>({{M, block}, {K, block}})" in text
    assert "!tl::fits_in_2gib<half_t>({{M}, {2, block}, {K / 2, block}})" in text
