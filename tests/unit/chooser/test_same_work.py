"""Settings whose programs differ in values alone, and those whose programs are others."""

import random

import pytest

from tests.unit.chooser.kernels import example, gemm, tunable_text
from tile2cu.chooser.same_work import same_work
from tile2cu.chooser.space import size_values
from tile2cu.chooser.work import counters_of
from tile2cu.choosing import Tunable
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import Var

SIZES = {"M": 300, "N": 2112, "K": 1000, "batch": 2, "heads": 4, "seq_len": 512}


def is_same(kernel: Tunable, **setting: int) -> bool:
    """Of a setting and the file's own."""
    values = kernel.space.values({**kernel.space.default, **setting}, {})
    return same_work(kernel.space.program, kernel.traced({**kernel.space.default, **setting}), values)


@pytest.mark.parametrize(
    "name", ["gemm_relu", "gemm_few_rows", "gemm_clusters", "gemm_hybrid", "attention", "gemv", "row_softmax"]
)
def test_programs_that_are_the_same_are_counted_alike(name: str) -> None:
    kernel, drawn, same = example(name), random.Random(name), 0
    sizes = {var.name: SIZES.get(var.name, 256) for var in kernel.program.sizes}
    sizes |= {var.name: 1 for var in kernel.program.params if isinstance(var, Var)}
    for _ in range(6):
        setting = {each.name: drawn.choice(each.values) for each in kernel.space.parameters}
        try:
            program = kernel.traced(setting)
        except Tile2CuError:
            continue
        if same_work(kernel.space.program, program, kernel.space.values(setting, {})):
            counted = [count(size_values(program, sizes)) for count in counters_of(program)]
            assert counted == [*kernel.space.works(setting, sizes)]
            same += 1
    assert same >= 2


def test_another_value_than_the_settings_is_another_program() -> None:
    kernel = example("gemm_relu")
    for name, value in kernel.space.default.items():
        program = kernel.traced({**kernel.space.default, name: 2 * value})
        assert same_work(
            kernel.space.program, program, kernel.space.values({**kernel.space.default, name: 2 * value}, {})
        )
        assert not same_work(kernel.space.program, program, kernel.space.values(kernel.space.default, {}))


def test_a_branch_of_the_file_is_another_program() -> None:
    kernel = tunable_text(gemm("block_M=128, block_N=128", "if block_N > 128:\n    T.clear(C_local)"))
    assert {each.name for each in kernel.space.parameters} >= {"block_M"}
    assert is_same(kernel, block_M=64)
    branching = tunable_text(gemm("block_M=128", "if block_M < 128:\n    T.clear(C_local)").replace("block_N", "128"))
    assert is_same(branching, block_M=256)
    assert not is_same(branching, block_M=64)
