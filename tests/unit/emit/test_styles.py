"""The styles that a kernel can be written in."""

import re
from pathlib import Path

import pytest

import tile2cu
from tile2cu.core.errors import Tile2CuError

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def test_a_style_that_is_none_is_named() -> None:
    with pytest.raises(Tile2CuError, match="there is no style `k&r`") as raised:
        tile2cu.emit(EXAMPLES / "vector_add.py", style="k&r")
    assert raised.value.code == "T2C-C012"


def test_what_a_style_does_not_support_is_a_diagnostic_that_names_the_one_that_does() -> None:
    with pytest.raises(Tile2CuError, match="the style `cute` does not support cuda:sm_100a") as raised:
        tile2cu.emit(EXAMPLES / "gemm_relu.py", style="cute", target="cuda:sm_100a", block_K=64, threads=256)
    assert raised.value.code == "T2C-E034" and "--style tl" in raised.value.render()


NAMED = """
import tilelang
import tilelang.language as T

@tilelang.jit
def named(M, N, K, group=32):
    @T.prim_func
    def main(size: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=128) as (bx, by):
            A_shared = T.alloc_shared((64, group), "float16")
            B_shared = T.alloc_shared((group, 64), "float16")
            get = T.alloc_fragment((64, 64), "float32")
            T.clear(get)
            for ko in T.Pipelined(T.ceildiv(K, group), num_stages=2):
                T.copy(size[by * 64 - SHIFT, ko * group], A_shared)
                T.copy(B[ko * group, bx * 64], B_shared)
                T.gemm(A_shared, B_shared, get)
            T.copy(get, C[by * 64, bx * 64])

    return main
"""


def test_names_that_cute_has_are_renamed(tmp_path: Path) -> None:
    (tmp_path / "named.py").write_text(NAMED.replace(" - SHIFT", ""), encoding="utf-8")
    text = tile2cu.emit(tmp_path / "named.py", style="cute")["named"].source
    assert "constexpr int group_size = 32;" in text and "clear(get_1);" in text and "Tensor size_1 =" in text


def test_constants_that_would_be_ambiguous_in_the_launcher_are_renamed(tmp_path: Path) -> None:
    """The launcher sees the kernel's namespace and cute's at once; `block` is a function of cute's."""
    (tmp_path / "named.py").write_text(NAMED.replace(" - SHIFT", "").replace("group", "block"), encoding="utf-8")
    text = tile2cu.emit(tmp_path / "named.py", style="cute")["named"].source
    assert "constexpr int block_size = 32;" in text and "ceildiv(K, block_size)" in text


def test_instructions_alternate_among_warps_that_no_power_of_two_is_apart(tmp_path: Path) -> None:
    """CuTe offsets swizzled tiles by powers of two only: 4 warps of 48 columns each take every fourth pair."""
    wide = NAMED.replace(" - SHIFT", "").replace("threads=128", "threads=256").replace("64), T", "192), T")
    for old, new in (("(group, 64)", "(group, 192)"), ("(64, group)", "(32, group)"), ("(64, 64)", "(32, 192)")):
        wide = wide.replace(old, new)
    (tmp_path / "named.py").write_text(wide, encoding="utf-8")
    text = tile2cu.emit(tmp_path / "named.py", style="cute")["named"].source
    assert "Tile<_32, _64, _16>" in text
    assert "16 rows from 16 (w / 4) and 8 columns from 8 (w % 4) of each 32" in " ".join(text.replace("//", "").split())


def test_an_operation_that_a_style_does_not_support_is_named_with_its_line(tmp_path: Path) -> None:
    source = NAMED.replace(" - SHIFT", "").replace("T.copy(get, C[", "T.print(get)  # [")
    (tmp_path / "named.py").write_text(source, encoding="utf-8")
    with pytest.raises(Tile2CuError, match="does not support the operation Print") as raised:
        tile2cu.emit(tmp_path / "named.py", style="cute")
    assert raised.value.code == "T2C-E034" and "--style tl" in raised.value.render()
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "T.print" in text)
    assert f"named.py:{line}:" in raised.value.render()


@pytest.mark.parametrize("style", ["tl", "cute"])
def test_a_comment_at_the_end_of_a_line_is_kept(style: str, tmp_path: Path) -> None:
    """Of the second statement of a paragraph: the first's stands in the paragraph's own comment."""
    source = NAMED.replace(" - SHIFT", "").replace("bx * 64], B_shared)", "bx * 64], B_shared)  # the weights")
    (tmp_path / "named.py").write_text(source, encoding="utf-8")
    assert tile2cu.emit(tmp_path / "named.py", style=style)["named"].source.count("// the weights") == 1


FILLED = """
import tilelang.language as T


@T.prim_func
def named(H: T.Tensor((64, 64), "float16"), Y: T.Tensor((64, 64), "float16")):
    low = -1000.0
    with T.Kernel(1, threads=128) as bx:
        F = T.alloc_fragment((64, 64), "float32")
        T.fill(F, low)
        T.copy(F, Y)
"""


def test_cute_fills_by_value(tmp_path: Path) -> None:
    """fill takes a reference, and a named constant has no address in device code."""
    (tmp_path / "named.py").write_text(FILLED, encoding="utf-8")
    (found,) = tile2cu.emit(tmp_path / "named.py", style="cute").values()
    text = found.source
    assert "fill(F, float(low));" in text


# ---- cute for sm_90a ------------------------------------------------------------------------------------------------

HOPPER = "cuda:sm_90a"


def cute_source(example: str, kernel: str | None = None, target: str = HOPPER, **bindings: object) -> str:
    (found,) = tile2cu.emit(EXAMPLES / example, kernel, target=target, style="cute", **bindings).values()
    return found.source


def test_a_kernel_without_tma_and_wgmma_is_the_one_for_sm_80() -> None:
    sources = [cute_source("rmsnorm.py", target=target, dim=4096) for target in (HOPPER, "cuda:sm_80")]
    kernels = [source[source.index("namespace rmsnorm_impl") : source.index("// ---- host")] for source in sources]
    limits = ("232448", "166912"), ("232,448", "166,912"), ("sm_90a", "sm_80")
    for new, old in limits:
        kernels[0] = kernels[0].replace(new, old)
    assert kernels[0] == kernels[1] and "#include <tl/cute.h>" in sources[0]


def test_warpgroups_alternate_in_both_styles() -> None:
    """Fragments are handed from one warpgroup to the other; CUTLASS numbers the named barriers behind its own."""
    (found,) = tile2cu.emit(EXAMPLES / "mla_decode.py", target=HOPPER, page_size=64).values()
    source = cute_source("mla_decode.py", page_size=64)
    assert "tl::named_barrier_sync<threads>(tl::fragment_stored, k);" in found.source
    assert "cutlass::arch::NamedBarrier::sync(threads, tl::event_barrier(tl::fragment_stored, k));" in source
    stated = [re.search(r"tl::mma_started (\d+) \(k\s+(?://\s+)?is even\)", text) for text in (found.source, source)]
    assert [each and int(each[1]) for each in stated] == [2, 10]


def test_iterations_that_a_producer_publishes_and_barriers_of_the_users_have_their_forms_in_cute() -> None:
    sizes = {"dim": 128, "block_M": 128, "block_N": 128, "threads": 256, "is_causal": True}
    source = cute_source("attention_block_sparse.py", **sizes)
    assert "K_shared_barriers.consumer_next(K_shared_stage, active_iterations, iteration)" in source
    assert source.count("K_shared_barriers.producer_end(K_shared_stage, active_iterations);") == 1
    source = cute_source("gemm_cluster.py")
    assert "tl::make_tma_map(SM90_TMA_LOAD_MULTICAST{}, tensor, take<0, 2>(Shared::A_shared_layout{}))" in source
    assert "tl::tma_copy_multicast<0b11>(A_map, full_1[stage]," in source
    assert "empty[stage].wait(phase ^ 1);" in source


def test_an_mma_of_weights_in_registers_reads_the_stage_before_theirs() -> None:
    source = cute_source("linear_int4_prefill.py")
    assert "tl::as_operand_A(W_local_in_flight), tl::stage_of(X_shared, released_stage.index())" in " ".join(
        source.split()
    )
    assert "tl::unpack_uint4<8, 4>(8, packed_elements, i, j / 2, stage.index())" in source


def test_copies_to_other_blocks_and_dependent_launches_have_their_names_in_cute_and_cutlass() -> None:
    source = cute_source("gemm_clusters.py")
    assert source.count("  cluster_sync();") == 2
    assert "tl::copy_to_block(C_strips_copy{}, other, C_part, make_coord(other * strip, 0), C_strips," in source
    source = cute_source("gemm_hybrid.py")
    assert "cutlass::arch::launch_dependent_grids();" in source
    assert "cutlass::arch::wait_on_dependent_grids();" in source


def test_a_load_has_the_users_eviction_priority() -> None:
    source = cute_source("rmsnorm.py", dim=4096, read_twice=True)
    assert "tl::load_tile(x_evict_first{}" in source and "Copy_Atom<tl::LoadEvictFirst, half_t>" in source
    assert "// evict_first: nothing reads it again" in source


def test_elements_of_swizzled_tiles_are_accessed_through_their_layout() -> None:
    """A swizzle in the pointer hides from compilers that it is to shared memory."""
    source = cute_source("dequant.py", "dequant_gemm")
    assert "Tensor packed_elements = tl::by_layout(packed);" in source and "packed_elements, i, j / 2" in source


def test_numbers_of_4_bits_are_unpacked_and_computed_with_8_at_a_time() -> None:
    source = cute_source("dequant.py", "dequant_gemm")
    assert "const auto packed_numbers = tl::unpack_uint4<8>(0, packed_elements, i, j / 2, stage.index());" in source
    assert "tl::array_at<8>(W_shared_part, v) = (packed_numbers + -zero) * S_value;" in source
    assert "tl::unpack_uint4<8>(8, packed" in cute_source("linear_int4.py", target="cuda:sm_80")


def test_what_a_vectors_elements_share_is_computed_once() -> None:
    source = cute_source("dequant.py", "dequant_gemm", dtype="bfloat16")
    outside, inside = source.split("for (int e = 0; e < 8; ++e) {")
    assert "const bfloat16_t S_value = tl::value_at(S, n, g);" in outside and "tl::value_at" not in inside.split("}")[0]
    assert "const auto packed_bytes = tl::vector_at<4>(" in outside


def test_a_predicated_element_that_all_iterations_read_is_loaded_once() -> None:
    source = cute_source("gemm_fp8_scaled.py", target="cuda:sm_80", parts=1)
    assert "// mma.m16n8k16.f32.f16.f16.f32 x 128 per warp" in source  # what float8 is multiplied by
    before, loop = source.partition("      left_scale(e) = ")[::2]
    assert before.count("tl::value_at(scales_B(_, k), bx * parts)") == 1
    assert "scales_B_value;" in loop.splitlines()[0] and "tl::value_at(scales_A(_, k), " in loop.splitlines()[0]


def test_values_of_columns_are_loaded_before_the_loop_in_vectors() -> None:
    source = cute_source("layernorm.py", dim=1024)
    assert "tl::load_values<1, 8>(W, 0, x_at_rowcol, W_columns);" in source and "float(W_columns(c))" in source


def test_atomic_sums_of_neighbours_are_pairs() -> None:
    """Whether rows start at multiples of a pair is known for sm_90a, where TMA needs it, and asked for at run time."""
    assert "tl::add_tile<2>(" in cute_source("gemm_splitk.py", "gemm_splitk_atomic", block_N=256, block_K=64)
    assert "tl::add_tile_by_rows<2>(" in cute_source("gemm_splitk.py", "gemm_splitk_atomic", target="cuda:sm_80")


def test_an_element_is_not_asked_for_its_bounds_where_a_condition_states_them() -> None:
    source = cute_source("cross_entropy.py")
    assert "(float(Logits(row, column)) - largest(0))" in source and "tl::value_at(Logits(row, _), k *" in source


def test_stores_under_the_bound_of_their_tensor_are_stores_of_a_tile() -> None:
    """`if s < seq_len` is what each store of a tile asks, too; another condition is not."""
    source = cute_source("rope.py", dim=128)
    assert source.count("tl::store_vector<") == 5 and "Q(bz, s, by, j" not in source


def test_vectors_of_the_next_iteration_are_loaded_during_an_iterations_mmas() -> None:
    (_, backward) = tile2cu.emit(
        EXAMPLES / "attention_backward.py", target=HOPPER, style="cute", dim=64, is_causal=True
    ).values()
    assert "load_vectors(tl::min(k_iter + 1, num_iterations - 1));" in backward.source


def test_copies_without_mmas_have_no_test_of_who_takes_part() -> None:
    alone = cute_source("dequant.py", "dequant_gemv")
    assert "#include <tl/cute_copies.h>" in alone and "tl::copy_tile<threads>(x_copy{}" in alone
    assert "evict_first in L2 by cp.async of 16 bytes, of W and S, where no other block reads them" in alone
    assert "64 per tile, where all rows start at multiples of 16 bytes" in alone
    words = cute_source("dequant.py", "dequant_gemv", K=4096 + 128)  # rows of S at multiples of 4 bytes
    assert "copy_tile_once<threads>(packed_copy" in words and "copy_tile_once<threads>(scales_copy" not in words
    with_mmas = cute_source("gemm_relu.py", target="cuda:sm_80")
    assert "#include <tl/cute.h>" in with_mmas and "tl::copy_tile(A_shared_copy{}" in with_mmas


@pytest.mark.parametrize("style", ["tl", "cute"])
def test_registers_in_the_order_of_unpacking_are_named(style: str) -> None:
    """What a 32-bit word gives: numbers i and i + 4 of each eight, as headers/tl/common/nibbles.h puts them."""
    path = EXAMPLES / "dequant.py"
    (gemv,) = tile2cu.emit(path, "dequant_gemv", target=HOPPER, style=style).values()
    assert gemv.source.count("in products each 8 neighbours are in the order 0, 4, 1, 5, 2, 6, 3, 7, in which") == 1
    (gemm,) = tile2cu.emit(path, "dequant_gemm", target=HOPPER, style=style).values()
    assert "in the order 0, 4" not in gemm.source


def test_the_launcher_chooses_between_rows_of_16_bytes_of_4_and_others() -> None:
    """Rows that no cp.async loads are not asked for words: those of C."""
    bindings = {"dtype": "int8", "out_dtype": "int32", "accum_dtype": "int32", "transpose_B": True}
    source = cute_source("gemm.py", target="cuda:sm_80", **bindings)
    chosen = re.search(r"const auto chosen =(.*?);", source, re.DOTALL)
    vectors, words, elements = (f"gemm_kernel<tl::{it}>" for it in ("Aligned<16>", "Aligned<4>", "AnyAlignment"))
    stated = f"K % 16 == 0 && N % 4 == 0 ? {vectors} : K % 4 == 0 ? {words} : {elements}"
    assert chosen and " ".join(chosen[1].split()) == stated
    copies = dict(re.findall(r"struct Copies(\S*) \{(.*?)\n\};", source, re.DOTALL))
    accesses = {key: set(re.findall(r"A_shared_copy = .*?<(\w+)>", text)) for key, text in copies.items()}
    assert accesses == {"": {"int8_t"}, "<tl::Aligned<4>>": {"uint32_t"}, "<tl::Aligned<16>>": {"uint128_t"}}


@pytest.mark.parametrize(("style", "stages"), [("tl", 0), ("cute", 1)])
def test_what_wraps_and_what_a_stage_is_are_explained_once(style: str, stages: int) -> None:
    """Where it is printed first: Offsets is not validated, and a stage is a tile's first descriptors and a distance."""
    path = Path(__file__).resolve().parents[3] / "examples/gemm_batched.py"
    (found,) = tile2cu.emit(path, kernel="gemm_grouped", style=style, target="cuda:sm_90a").values()
    _, first = found.source.split("// wrapping: ")
    assert "tl::wrapping_subtract(Offsets(g + 1), Offsets(g))" in first.split(";")[0]
    assert found.source.count("// tl::stage_of: ") == stages
