"""A call of a running program: values of its names and its tensors' shapes replace what a file's own driver says."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tile2cu.core.dtype import FLOAT16
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.program import Buffer, Policy, Program
from tile2cu.frontend import is_eager, programs
from tile2cu.frontend.live import MISSING, Live, as_argument, as_static
from tile2cu.frontend.values import Namespace, Opaque

EAGER = """
import os
import tilelang
import tilelang.language as T

BLOCK = int(os.environ.get("UNKNOWN", "64"))

@tilelang.jit
def scale(A, factor=2):
    M, N = T.const("M, N")
    k = T.dynamic("k")
    A: T.Tensor[[M, N, k], T.float32]
    B = T.empty((M, N, k), T.float32)
    with T.Kernel(T.ceildiv(M, BLOCK), N, k, threads=BLOCK) as (bx, by, bz):
        for i in T.Parallel(BLOCK):
            B[bx * BLOCK + i, by, bz] = A[bx * BLOCK + i, by, bz] * factor
    return B

if __name__ == "__main__":
    scale(make(7, 7, 7))
"""
FACTORY = """
import tilelang
import tilelang.language as T

def make(M, threads):
    @T.prim_func
    def main(A: T.Tensor((M,), "float16"), B: T.Tensor((M,), "float16")):
        with T.Kernel(1, threads=threads) as bx:
            for i in T.Parallel(M):
                B[i] = A[i]
    return main

kernel = tilelang.compile(make(64, 32), out_idx=[0])
"""


def traced(text: str, kernel: str, live: Live, **bindings: object) -> Program:
    (found,) = programs(Path("kernel.py"), text, kernel=kernel, bindings=bindings, live=live)
    return found


def shapes(program: Program) -> list[list[object]]:
    tensors = [each for each in program.params if isinstance(each, Buffer)]
    return [[getattr(extent, "value", extent) for extent in each.shape] for each in tensors]


def test_sizes_from_const_are_those_of_the_call_s_tensors_and_dynamic_ones_stay_open() -> None:
    program = traced(EAGER, "scale", Live(shapes={"A": (128, 3, 5)}, names={"BLOCK": 64}))
    assert [str(size.name) for size in program.sizes] == ["k"]
    assert {(each.name, each.value) for each in program.constants} >= {("M", 128), ("N", 3), ("BLOCK", 64)}


def test_without_tensors_sizes_stay_open_and_given_ones_are_constants() -> None:
    program = traced(EAGER, "scale", Live(), M=256)
    assert [size.name for size in program.sizes] == ["N", "k"]


def test_a_global_name_has_the_program_s_value() -> None:
    program = traced(EAGER, "scale", Live(shapes={"A": (128, 3, 5)}, names={"BLOCK": 32}))
    assert ("BLOCK", 32) in {(each.name, each.value) for each in program.constants}


def test_without_a_running_program_the_file_alone_counts() -> None:
    (program,) = programs(Path("kernel.py"), EAGER, kernel="scale")
    assert ("BLOCK", 64) in {(each.name, each.value) for each in program.constants}
    assert [size.name for size in program.sizes] == ["M", "N", "k"]


def test_bindings_that_no_kernel_has_are_no_error() -> None:
    assert traced(EAGER, "scale", Live(), unused=3).name == "scale"
    with pytest.raises(Tile2CuError, match="F005"):
        programs(Path("kernel.py"), EAGER, kernel="scale", bindings={"unused": 3})


def test_out_idx_is_the_call_s_and_not_one_read_from_the_file() -> None:
    assert traced(FACTORY, "make", Live(out_idx=[-1]), M=64, threads=32).outputs == (1,)
    assert traced(FACTORY, "make", Live(), M=64, threads=32).outputs == ()


def test_own_barriers_come_from_the_call() -> None:
    assert traced(FACTORY, "make", Live(own_barriers=True), M=64, threads=32).own_barriers
    assert not traced(FACTORY, "make", Live(), M=64, threads=32).own_barriers


def test_names_of_other_cells_are_found_in_the_program() -> None:
    """A cell of a notebook has neither the imports nor the constants of the others."""
    cell = EAGER[EAGER.index("@tilelang.jit") : EAGER.index("if __name__")]
    import tile2cu.tilelang
    import tile2cu.tilelang.language

    names = {"tilelang": tile2cu.tilelang, "T": tile2cu.tilelang.language, "BLOCK": 32}
    assert is_eager(cell, "scale", live=Live(names=names))
    assert traced(cell, "scale", Live(shapes={"A": (64, 2, 2)}, names=names)).name == "scale"


def test_is_eager() -> None:
    assert is_eager(EAGER, "scale")
    assert not is_eager(FACTORY, "make")


@pytest.mark.parametrize("value", [1, 2.5, "text", None, [1, (2, "a")], {"a": 1}, True])
def test_plain_values_stand_for_themselves(value: object) -> None:
    assert as_static(value) == value
    assert as_argument("x", value) == value


def test_types_and_policies_are_those_of_the_language() -> None:
    from tile2cu.tilelang import language as T

    assert as_static(T.float16) is FLOAT16
    assert as_argument("x", T.float16) is FLOAT16
    assert as_argument("x", (T.float16, 3)) == (FLOAT16, 3)
    assert as_argument("x", T.GemmWarpPolicy.FullRow) is Policy.FULL_ROW


def test_modules_and_names_of_the_language() -> None:
    import math

    from tile2cu.tilelang import language as T

    found = as_static(T)
    assert isinstance(found, Namespace) and found.name == "tilelang.language"
    found = as_static(math)
    assert isinstance(found, Namespace) and found.name == "math"
    assert as_static(T.gemm) is not MISSING


def test_what_cannot_be_read_is_opaque() -> None:
    assert as_static(object()) is MISSING
    assert as_static([object()]) is MISSING
    assert isinstance(as_argument("x", object()), Opaque)


def test_texts_of_a_program_are_no_code_and_objects_of_its_classes_are() -> None:
    text = """
from dataclasses import dataclass
import tilelang
import tilelang.language as T

@dataclass(frozen=True)
class Config:
    block: int

@tilelang.jit
def fill(config, scope):
    @T.prim_func
    def main(A: T.Tensor((config.block,), "float32")):
        with T.Kernel(1, threads=32) as bx:
            tile = T.alloc_shared((config.block,), "float32", scope=scope)
            T.clear(tile)
            T.copy(tile, A)
    return main
"""

    @dataclass(frozen=True)
    class Config:
        block: int

    config = as_argument("config", Config(block=64))
    assert str(config) == f"{Config.__qualname__}(block=64)"
    given = type(config)("Config(block=64)")  # type: ignore[call-arg]
    assert shapes(traced(text, "fill", Live(), config=given, scope="shared.dyn")) == [[64]]
