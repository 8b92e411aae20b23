"""Which shared tiles that only carry a tensor's tile, or registers', are left out."""

from pathlib import Path

import pytest

from tile2cu.api import emit_text
from tile2cu.targets import find

_KERNEL = """\
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def small(N):
    @T.prim_func
    def body(X: T.Tensor((64, N), "float16"), Y: T.Tensor((64, N), "float16")):
        with T.Kernel(16, threads=128) as bx:
            S = T.alloc_shared((4, N), "float16")
            x = T.alloc_fragment((4, N), "float32")
            most = T.alloc_fragment((4,), "float32")
{statements}
    return body
"""
_LOAD = ("T.copy(X[bx * 4, 0], S)", "T.copy(S, x)")
_ONCE = ("T.reduce_max(x, most, dim=1)",)
_TWICE = (*_ONCE, "for i, j in T.Parallel(4, N):", "    x[i, j] -= most[i]")
_STORE = ("T.copy(x, S)", "T.copy(S, Y[bx * 4, 0])")


@pytest.mark.parametrize(
    ("statements", "columns", "straight"),
    [
        ((*_LOAD, *_TWICE, *_STORE), 1024, 2),
        ((*_LOAD, *_TWICE, *_STORE), 4096, 1),  # 256 bytes a thread, read twice: loads would wait for registers
        ((*_LOAD, *_ONCE), 4096, 1),
        ((*_LOAD, "T.reduce_max(S, most, dim=1)"), 1024, 0),  # read again
        ((*_LOAD[:1], "T.copy(X[0, 0], x)", "T.copy(S, x)"), 1024, 0),  # something stands between
        ((*_LOAD, "T.copy(x, S)", "T.copy(S, X[bx * 4, 0])"), 1024, 2),  # in place: barriers know tensors, too
        (("for k in T.Pipelined(4, num_stages=2):", *(f"    {line}" for line in _LOAD)), 1024, 0),  # it runs ahead
    ],
)
def test_copies_through_shared_memory(statements: tuple[str, ...], columns: int, straight: int) -> None:
    text = _KERNEL.format(statements="\n".join(" " * 12 + line for line in statements))
    path, target = Path("small.py"), find("cuda:sm_90a")
    (emitted,) = emit_text(path, kernel=None, target=target, bindings={"N": columns}, text=text)
    assert emitted.files["small.cu"].count("[rewrite.copy.forwarded]") == straight
    assert ("struct Shared" in emitted.files["small.cu"]) == (straight != 2 and statements != (*_LOAD, *_ONCE))
