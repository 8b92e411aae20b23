"""Launchers limit the indices that every block computes: no data, and nothing that a condition guards."""

import re
from pathlib import Path

import pytest

from tile2cu.api import emit_text
from tile2cu.core.errors import Tile2CuError
from tile2cu.targets import SM80

KERNEL = """
import tilelang
import tilelang.language as T

@tilelang.jit
def example(M, N, K):
    @T.prim_func
    def body(
        X: T.Tensor((4 * N,), "float32"), Y: T.Tensor((M, 128), "float32"), Z: T.Tensor((K,), "float32"),
        W: T.Tensor((4 * N,), "int32"),
    ):
        with T.Kernel({grid}, threads=128) as bx:
            for i in T.Parallel(128):
                {store}
    return body
"""
HASH = "(bx * 128 + i) * 1664525 + 1013904223"
INDEX = "double(M - 1) * N + 127"


def limits(folder: Path, store: str, grid: str = "M") -> list[str]:
    """What the launcher rejects of the indices, which it computes in double."""
    path = folder / "example.py"
    path.write_text(KERNEL.format(grid=grid, store=store.replace("\n", "\n" + " " * 16)), encoding="utf-8")
    (emitted,) = emit_text(path, kernel=None, target=SM80, bindings={})
    text = re.sub(r"\s+", " ", emitted.files["example.cu"])
    return re.findall(r"(?:if \(|\|\| )((?:(?!if \(|\|\|).)*?) > INT32_MAX", text)


UNLIMITED = {
    "hash": (f"Y[bx, i] = T.cast({HASH}, 'float32')", "M"),
    "hash that is compared": (f"Y[bx, i] = T.if_then_else((({HASH}) >> 16 & 1) == 1, X[i], 0.0)", "M"),
    "hash that guards": (f"if ({HASH}) % 3 == 1:\n    Y[bx, i] = 1.0", "M"),
    "static grid": ("if bx < 1000:\n    Y[bx, i] = T.cast(bx * 65536 + i, 'float32')", "70000"),
    "index of a static grid": ("if bx < 1000:\n    Y[bx, i] = X[bx * 65536 + i]", "70000"),
    "remainder": ("Y[bx, i] = X[bx % 40000 * 65536 + i]", "1000"),
    "branch": ("if bx < 4:\n    Y[bx, i] = X[bx * N + i]", "M"),
    "branch on a size": ("if M < 5:\n    Y[bx, i] = X[bx * N + i]", "M"),
    "other arm": ("if bx > 3:\n    Y[bx, i] = 0.0\nelse:\n    Y[bx, i] = X[bx * N + i]", "M"),
    "arm of a value": ("Y[bx, i] = T.if_then_else(bx < 4, X[bx * N + i], 1.0)", "M"),
    "behind `and`": ("if bx < 4 and X[bx * N + i] > 0.0:\n    Y[bx, i] = 1.0", "M"),
    "name that a branch uses": ("at = bx * N + i\nif bx < 4:\n    Y[bx, i] = X[at]", "M"),
    "loop with iterations in some blocks": (
        "for k in T.serial(T.max(4 - bx, 0)):\n    Y[bx, i] = X[bx * N + i]",
        "M",
    ),
}


@pytest.mark.parametrize("name", UNLIMITED)
def test_data_and_what_a_condition_guards_limit_no_size(name: str, tmp_path: Path) -> None:
    store, grid = UNLIMITED[name]
    assert limits(tmp_path, store, grid) == []


@pytest.mark.parametrize("index", ["bx * 65536 + i", "bx * 65536 // 65536", "(bx * 4 + i // 32) * 16384"])
def test_an_index_that_no_int_holds_in_any_call_is_an_error(index: str, tmp_path: Path) -> None:
    with pytest.raises(Tile2CuError, match="T2C-F024.* up to 4,58.* which int32 does not hold"):
        limits(tmp_path, f"Y[bx, i] = X[{index}]", "70000")
    index = index.replace("bx", "T.cast(bx, 'int64')", 1)
    assert limits(tmp_path, f"Y[bx, i] = X[{index}]", "70000") == []


@pytest.mark.parametrize(
    "store",
    [
        "Y[bx, i] = X[bx * N + i]",
        "at = bx * N + i\nY[bx, i] = X[at]",
        "at = bx * N + i\nW[at] = at",
        "Y[bx, i] = T.if_then_else(X[bx * N + i] > 0.0, 1.0, 0.0)",
        "if X[bx * N + i] > 0.0:\n    Y[bx, i] = 1.0",
        "if bx * N + i < 4 * N:\n    Y[bx, i] = X[bx * N + i]",
    ],
)
def test_an_index_of_every_block_is_limited(store: str, tmp_path: Path) -> None:
    assert limits(tmp_path, store) == [INDEX]


def test_an_index_of_a_loop_is_limited_where_the_loop_has_iterations(tmp_path: Path) -> None:
    store = "for k in T.serial(K):\n    for m in T.serial(M):\n        Y[bx, i] = X[bx * N + i] + Z[k]"
    assert limits(tmp_path, store) == [f"K > 0 && {INDEX}"]
    assert limits(tmp_path, f"Y[bx, i] = X[bx * N + i]\n{store}") == [INDEX]


IN_DOUBLE = {
    "sum": ("bx * (N + K) + i", "double(M - 1) * (double(N) + K) + 127", "double(N) + double(K)"),
    "sum in front": ("(N + K) * bx + i", "(double(N) + K) * (M - 1) + 127", "double(N) + double(K)"),
    "quotient": (
        "bx * ((N + K) // 3) + i",
        "double(M - 1) * std::floor((double(N) + K) / 3) + 127",
        "double(N) + double(K)",
    ),
    "tiles": (
        "bx * T.ceildiv(N * K, 48) + i",
        "double(M - 1) * std::ceil((double(N) * K) / 48) + 127",
        "double(N) * K",
    ),
}


@pytest.mark.parametrize("name", IN_DOUBLE)
def test_a_limit_is_computed_in_double(name: str, tmp_path: Path) -> None:
    index, *expected = IN_DOUBLE[name]
    assert sorted(limits(tmp_path, f"Y[bx, i] = X[{index}]")) == sorted(expected)
