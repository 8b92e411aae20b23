"""Which operand of a GEMM on AMD's matrix cores is loaded to registers and never stored to the LDS."""

from __future__ import annotations

import pytest

from tests.unit.rules.kernels import resolved
from tile2cu.core.decisions import LAYOUT, WAVES_PER_SIMD
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.program import Copy, Gemm, Scope

BODY = """
Q_shared = T.alloc_shared(({rows}, 128), "float16")
K_shared = T.alloc_shared(({keys}, 128), "float16")
V_shared = T.alloc_shared(({keys}, 128), "float16")
S = T.alloc_fragment(({rows}, {keys}), "float32")
P = T.alloc_fragment(({rows}, {keys}), "float16")
O = T.alloc_fragment(({rows}, 128), "float32")
{above}
T.clear(O)
for k in T.Pipelined(4, num_stages=2):
    T.copy(Z[k * {keys}, 0], K_shared)
    T.copy(Z[k * {keys}, 128], V_shared)
    {inside}
    T.gemm(Q_shared, K_shared, S, transpose_B=True, clear_accum=True{policy})
    T.copy(S, P)
    T.gemm(P, V_shared, O, policy=T.GemmWarpPolicy.FullRow)
{below}
T.copy(O, X[bx * {rows}, 0])
"""
LOAD = "T.copy(Z[bx * {rows}, 0], Q_shared)"
ROWS = ", policy=T.GemmWarpPolicy.FullRow"


def operand(
    above: str = LOAD, inside: str = "", below: str = "", policy: str = ROWS, *, rows: int = 128, keys: int = 64,
    target: str = "hip:gfx942", threads: int = 256,
) -> str:  # fmt: skip
    """The first operand of the loop's first GEMM; where it is a fragment, it is loaded from the tensor."""
    parts = {"above": above.format(rows=rows), "inside": inside, "below": below, "policy": policy}
    context = resolved(BODY.format(rows=rows, keys=keys, **parts), threads=threads, target=target)
    tile = next(op for op in context.statements if isinstance(op, Gemm)).a.buffer
    if tile.scope is Scope.FRAGMENT:
        (load,) = [op for op in context.launch.body if isinstance(op, Copy) and op.dst.buffer is tile]
        assert load.src.buffer.scope is Scope.GLOBAL
        assert "Q_shared" not in [each.name for each in context.launch.tiles]
    return tile.name


@pytest.mark.parametrize("target", ["hip:gfx942", "hip:gfx90a", "hip:gfx950"])
def test_a_tile_that_no_iteration_changes_is_loaded_to_registers(target: str) -> None:
    assert operand(target=target) == "Q_local"
    assert operand(rows=64, target=target) == "Q_local"


REFUSED = {
    "changed in the loop": {"inside": "T.copy(Z[k * 128, 0], Q_shared)"},
    "written twice": {"above": LOAD + "\nT.clear(Q_shared)"},
    "read after the loop": {"below": "T.copy(Q_shared, Z[bx * 128, 256])"},
    "read by another operation in the loop": {"inside": "T.copy(Q_shared, Z[bx * 128, 256])"},
    "seen in another shape": {"above": LOAD + "\nF = T.reshape(Q_shared, (128 * 128,))\nF[0] = 0"},
    "loaded under a condition": {"above": "if bx % 2 == 0:\n    T.copy(Z[bx * 128, 0], Q_shared)"},
    "converted": {"above": "T.copy(X[bx * 128, 0], Q_shared)"},
    "rows that waves share": {"policy": ", policy=T.GemmWarpPolicy.FullCol"},
}


@pytest.mark.parametrize("change", REFUSED.values(), ids=REFUSED.keys())
def test_any_other_tile_stays_in_the_lds(change: dict[str, str]) -> None:
    assert operand(**change) == "Q_shared"


def test_two_waves_fit_on_a_simd_with_it() -> None:
    also_live = {
        "above": LOAD + '\nE = T.alloc_fragment((128, 64), "float32")\nT.clear(E)',
        "below": "T.copy(E, X[bx * 128, 0])",
    }
    assert operand(threads=256) == "Q_local"
    assert operand(**also_live, threads=256) == "Q_shared"  # 32 registers of E more


def test_a_lane_holds_as_many_elements_as_one_read_of_the_other_operand_gives() -> None:
    parts = {"above": LOAD.format(rows=128), "inside": "", "below": "", "policy": ROWS}
    context = resolved(BODY.format(rows=128, keys=64, **parts), threads=256, target="hip:gfx942")
    tile = next(op for op in context.statements if isinstance(op, Gemm)).a.buffer
    assert "interleave=2" in str(context.facts[tile, LAYOUT])
    assert context.facts[context.launch, WAVES_PER_SIMD] == 2


def test_a_tile_that_is_loaded_to_registers_needs_no_room_in_the_lds() -> None:
    assert operand(rows=256, threads=512) == "Q_local"  # 98,304 bytes with Q_shared, of 65,536
    with pytest.raises(Tile2CuError, match="the tiles need 73,728 bytes"):
        operand(keys=80)  # no second wave fits on a SIMD with it in registers
