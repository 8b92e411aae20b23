"""Counts of a program: its MMAs are those that the program executes, its bytes those inside of the tensors."""

import pytest

from tests.unit.chooser.kernels import example
from tile2cu.analysis.work import mma_flops
from tile2cu.chooser.counts import Work
from tile2cu.chooser.space import size_values
from tile2cu.chooser.work import counters_of, tensor_bytes


def works(name: str, sizes: dict[str, int], **bindings: object) -> tuple[Work, ...]:
    program = example(name, **bindings).program
    return tuple(count(size_values(program, sizes)) for count in counters_of(program))


@pytest.mark.parametrize(("m", "n", "k"), [(128, 128, 64), (1, 4096, 4096), (300, 2112, 1000)])
@pytest.mark.parametrize("name", ["gemm_relu", "gemm", "gemm_few_rows"])
def test_mmas_are_those_of_the_program(name: str, m: int, n: int, k: int) -> None:
    sizes = {"M": m, "N": n, "K": k}
    (work,) = works(name, sizes)
    flops = sum(2 * m * n * k * times for (m, n, k), times in work.longest.mma.items())
    assert 0 < flops * work.blocks == mma_flops(example(name).program, sizes)


def test_bytes_of_boxes_that_leave_a_tensor() -> None:
    (work,) = works("gemm_relu", {"M": 1, "N": 128, "K": 32})
    counts = work.longest
    assert counts.iterations == 1
    assert counts.loaded == 1 * 32 * 2 + 32 * 128 * 2
    assert counts.filled == 127 * 32 * 2
    assert counts.stored == 1 * 128 * 2


def test_rows_that_are_short_and_rows_that_straddle_sectors() -> None:
    (aligned,) = works("gemm_relu", {"M": 128, "N": 256, "K": 64})
    (odd,) = works("gemm_relu", {"M": 128, "N": 264, "K": 72})
    assert aligned.longest.straddling == 0
    assert odd.longest.straddling == odd.longest.loaded
    assert aligned.longest.narrow == 2 * 128 * 32 * 2  # A's rows have 64 bytes


def test_shared_memory_is_that_of_the_stages_and_the_rest() -> None:
    (work,) = works("gemm_few_rows", {"M": 1, "N": 4096, "K": 4096})
    stage, parts = (16 * 128 + 128 * 64) * 2, (16 * 64 + 2 * 16 * 64) * 4
    assert work.shared_bytes == 4 * stage + parts
    assert work.cluster == 2


def test_a_persistent_block_does_the_work_of_its_tiles() -> None:
    multiply, _ = works("gemm_hybrid", {"M": 4096, "N": 4096, "K": 4096})
    assert multiply.blocks == 132
    assert multiply.longest.iterations == 4 * 64  # 512 tiles of 128 x 256: 3.9 for each block, the last one whole


def test_bytes_of_tensors() -> None:
    program = example("gemm_relu").program
    values = size_values(program, {"M": 10, "N": 20, "K": 30})
    assert tensor_bytes(program.launches[0], program)(values) == ((10 * 30 + 30 * 20) * 2, 10 * 20 * 2)
