"""What is promised of where rows start: enough for 16-byte copies, and true of every row."""

from pathlib import Path

from tests.golden.source_text import Source
from tests.golden.test_claims import starts_of
from tile2cu.api import emit_text
from tile2cu.targets import find

_WEIGHTS_OF_4_BITS = """
import tilelang.language as T
M, N, K, group = 64, 256, 128, 64
@T.prim_func
def w4a16(
    A: T.Tensor((M, K), "float16"),
    Bq: T.Tensor((N, K // 2), "uint8"),
    scale: T.Tensor((N, K // group), "float16"),
    C: T.Tensor((M, N), "float16"),
):
    with T.Kernel(4, 1, threads=128) as (bx, by):
        A_shared = T.alloc_shared((64, 64), "float16")
        Bq_shared = T.alloc_shared((64, 32), "uint8")
        B_shared = T.alloc_shared((64, 64), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        T.clear(C_local)
        for ko in T.Pipelined(2, num_stages=2):
            T.copy(A[by * 64, ko * 64], A_shared)
            T.copy(Bq[bx * 64, ko * 64 // 2], Bq_shared)
            for i, j in T.Parallel(64, 64):
                nibble = (Bq_shared[i, j // 2] >> (4 * (j % 2))) & 15
                B_shared[i, j] = (T.cast(nibble, "float16") - 8) * scale[bx * 64 + i, (ko * 64 + j) // group]
            T.gemm(A_shared, B_shared, C_local, transpose_B=True)
        T.copy(C_local, C[by * 64, bx * 64])
"""


def emitted(text: str) -> str:
    (found,) = emit_text(Path("small.py"), kernel=None, target=find("cuda:sm_80"), bindings={}, text=text)
    return found.source


def test_two_weights_in_a_byte_are_copied_16_bytes_at_a_time() -> None:
    text = emitted(_WEIGHTS_OF_4_BITS)
    assert "tl::copy_async<threads>(Bq.tile(bx * 64, ko * 64 / 2), Bq_shared" in text
    (kernel,) = Source.of(text).kernels
    claimed = {view.name: view.alignment for view in kernel.views()}
    assert claimed == {"A": 16, "Bq": 16, "scale": 2, "C": 16}, "rows of scale have 4 bytes"


def test_an_offset_that_is_odd_is_not_copied_16_bytes_at_a_time() -> None:
    text = emitted(_WEIGHTS_OF_4_BITS.replace("ko * 64 // 2", "ko * 24 // 2"))
    source = Source.of(text)
    (kernel,) = source.kernels
    (view,) = (view for view in kernel.views() if view.name == "Bq")
    columns = list(kernel.tiles(view))
    starts = [start for values in source.executions(kernel, 20) for start in starts_of(view, columns, values)]
    assert view.alignment == 4 and all(start % 4 == 0 for start in starts) and any(start % 8 for start in starts)


_DIAGONALS = """
import tilelang.language as T
@T.prim_func
def diagonals(X: T.Tensor((64, 1024), "float16"), Y: T.Tensor((64, 64), "float16")):
    with T.Kernel(1, threads=128) as bx:
        for i, j in T.Parallel(64, 64):
            Y[i, j] = X[i, STEP * i + j] + 1.0
"""


def test_rows_of_a_loop_start_where_its_other_variables_say() -> None:
    """Not only the vectors' variable is in the index of a column."""
    claimed = {}
    for step in (0, 1, 4, 8, 12):
        (kernel,) = Source.of(emitted(_DIAGONALS.replace("STEP", str(step)))).kernels
        claimed[step] = {view.name: view.alignment for view in kernel.views()}
    assert {step: found["X"] for step, found in claimed.items()} == {0: 16, 1: 2, 4: 8, 8: 16, 12: 8}
    assert {found["Y"] for found in claimed.values()} == {16}
