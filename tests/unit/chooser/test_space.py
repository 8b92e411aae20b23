"""Tile parameters are found by what they reach; what changes a result is none of them."""

import random

import pytest

from tests.unit.chooser.kernels import example, gemm, tunable_text
from tile2cu.chooser.numbers import Unknown
from tile2cu.chooser.space import Kind, size_values
from tile2cu.chooser.work import counters_of
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import Var

TILES = "block_M=64, block_N=64"


def kinds(text: str) -> dict[str, Kind]:
    return {each.name: each.kind for each in tunable_text(text).space.parameters}


def test_parameters_of_a_gemm() -> None:
    found = {each.name: each.kind for each in example("gemm_relu").space.parameters}
    assert found == {
        "block_M": Kind.M, "block_N": Kind.N, "block_K": Kind.K, "num_stages": Kind.STAGES, "threads": Kind.THREADS,
    }  # fmt: skip


def test_parts_of_a_loop_are_a_parameter_with_the_cluster_that_they_are() -> None:
    (splits,) = (each for each in example("gemm_few_rows").space.parameters if each.name == "splits")
    assert splits.kind is Kind.PARTS
    assert any(key.startswith("cluster") for key in splits.keys)


def test_names_do_not_matter() -> None:
    text = gemm(TILES).replace("block_M", "eggs").replace("block_N", "spam")
    assert kinds(text) == {"eggs": Kind.M, "spam": Kind.N}


@pytest.mark.parametrize(
    ("parameters", "epilogue", "shape"),
    [
        (f"{TILES}, scale=2", "for i, j in T.Parallel(block_M, block_N):\n    C_local[i, j] *= scale", None),
        (f"{TILES}, pad=2", "pass", "(M, N * pad)"),
        (f"{TILES}, times=2", "for t in T.serial(times):\n    T.clear(C_local)", None),
        (f"{TILES}, window=64", "for i, j in T.Parallel(block_M, block_N):\n"
         "    C_local[i, j] = T.if_then_else(i < j + window, C_local[i, j], 0)", None),
        (f"{TILES}, flag=1", "if flag == 1:\n    T.clear(C_local)", None),
    ],
)  # fmt: skip
def test_a_parameter_that_changes_the_result_stays(parameters: str, epilogue: str, shape: str | None) -> None:
    found = kinds(gemm(parameters, epilogue, shape or "(M, N)"))
    assert found == {"block_M": Kind.M, "block_N": Kind.N}


def test_a_tile_size_that_scales_values_stays() -> None:
    scaled = "for i, j in T.Parallel(block_M, block_N):\n    C_local[i, j] = C_local[i, j] / block_N"
    assert kinds(gemm(TILES, scaled)) == {"block_M": Kind.M}


def test_a_tile_size_that_is_a_tensors_extent_stays() -> None:
    assert kinds(gemm(TILES, shape="(T.ceildiv(M, block_M) * block_M, N)")) == {"block_N": Kind.N}


def test_blocks_of_a_persistent_grid_and_parts_that_add_to_memory_stay() -> None:
    assert "programs" not in {each.name for each in example("gemm_persistent").space.parameters}
    text = gemm(f"{TILES}, parts=2").replace(
        "T.ceildiv(M, block_M), threads=128) as (bx, by)",
        "T.ceildiv(M, block_M), parts, threads=128) as (bx, by, part)",
    )
    text = text.replace("T.Pipelined(T.ceildiv(K, 64)", "T.Pipelined(T.ceildiv(T.ceildiv(K, 64), parts)")
    stored = text.replace("k * 64", "(part * T.ceildiv(T.ceildiv(K, 64), parts) + k) * 64")
    added = stored.replace("T.copy(C_local, C[", "T.atomic_add(C[").replace(
        "bx * block_N])\n\n", "bx * block_N], C_local)\n\n"
    )
    assert kinds(stored)["parts"] is Kind.PARTS
    assert "atomic_add" in added
    assert "parts" not in kinds(added)


def test_values_that_are_given_stay() -> None:
    names = {each.name for each in example("gemm_relu", block_M=64, threads=128).space.parameters}
    assert names == {"block_N", "block_K", "num_stages"}


SIZES = {"M": 300, "N": 2112, "K": 1000, "batch": 2, "heads": 4, "seq_len": 512, "seq_q": 512, "seq_kv": 512}


@pytest.mark.parametrize(
    "name", ["gemm_relu", "gemm_few_rows", "gemm", "gemm_relu_eager", "linear", "linear_int4", "attention", "dequant"]
)
def test_counts_of_a_setting_are_those_of_the_program_traced_with_it(name: str) -> None:
    """What is counted without a trace is what a trace counts, for settings of several parameters at once."""
    kernel, drawn = example(name), random.Random(name)
    sizes = {var.name: SIZES.get(var.name, 256) for var in kernel.program.sizes}
    sizes |= {var.name: 1 for var in kernel.program.params if isinstance(var, Var)}
    compared = 0
    for _ in range(12):
        setting = {each.name: drawn.choice(each.values) for each in kernel.space.parameters}
        try:
            program = kernel.traced(setting)
        except Tile2CuError:
            continue
        expected = tuple(count(size_values(program, sizes)) for count in counters_of(program))
        try:
            assert kernel.space.works(setting, sizes) == expected
        except Unknown:
            pytest.fail(f"{setting} is not counted")
        compared += 1
    assert compared >= 3
