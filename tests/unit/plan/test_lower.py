"""What statements become, whatever the style: MMAs, reductions, barriers with their hazards."""

from tests.unit.plan.lowered import example, statements
from tile2cu.core.instruction import MmaUnit
from tile2cu.plan import claims, ops
from tile2cu.plan.exchanges import Reuse

HOPPER = {"dim": 128, "block_M": 128, "block_N": 128, "threads": 256, "is_causal": False}


def test_a_gemm_on_sm_80_accumulates_by_warps_and_needs_no_wait() -> None:
    plan = example("gemm_relu.py", "cuda:sm_80")
    cleared, *_, mma, _, _ = plan.ops  # then the ReLU, and the copy of the result
    assert isinstance(cleared, ops.Fill) and cleared.clears and cleared.tile.buffer.name == "C_local"
    assert isinstance(mma, ops.Mma) and mma.instruction.unit is MmaUnit.WARP
    assert [tile.buffer.name for tile in (mma.a, mma.b, mma.c)] == ["A_shared", "B_shared", "C_local"]
    assert not mma.overwrites and mma.overwrites_if is None and not mma.starts


def test_a_gemm_on_sm_90a_runs_on_warpgroups() -> None:
    plan = example("gemm_relu.py", "cuda:sm_90a", block_N=256, block_K=64, threads=256)
    (mma,) = plan.of(ops.Mma)
    assert mma.instruction.unit is MmaUnit.WARPGROUP
    assert (mma.instruction.m, mma.instruction.n, mma.instruction.k) == (64, 256, 16)
    assert not plan.of(ops.Barrier)  # the producer's pipeline orders its loads


def test_attention_on_sm_90a_overwrites_scores_and_defers_the_sum_over_lanes() -> None:
    plan = example("attention.py", "cuda:sm_90a", **HOPPER)
    order = [(type(op), op.c.buffer.name) for op in plan.of(ops.Mma)]
    assert order == [(ops.Mma, "acc_s"), (ops.Mma, "acc_o")]
    scores, output = plan.of(ops.Mma)
    assert scores.overwrites and scores.b.transposed
    assert not output.overwrites and not output.b.transposed
    largest, sums = plan.of(ops.Reduce)
    assert (largest.accumulates, largest.thread_local) == (True, False)
    assert (sums.accumulates, sums.thread_local) == (False, True)


def test_a_barrier_has_the_hazards_that_it_ends() -> None:
    plan = statements(
        """
P = T.alloc_fragment((128, 64), "float16")
P_shared = T.alloc_shared((128, 64), "float16")
V_shared = T.alloc_shared((64, 64), "float16")
O = T.alloc_fragment((128, 64), "float32")
T.clear(O)
T.clear(P)
T.copy(Z[bx * 64, 0], V_shared)
T.copy(P, P_shared)
T.gemm(P_shared, V_shared, O)
T.copy(O, X[bx * 128, 0])
"""
    )
    (barrier,) = plan.of(ops.Barrier)
    assert plan.ops.index(barrier) == plan.ops.index(*plan.of(ops.Mma)) - 1
    assert barrier.scope is ops.BarrierScope.PARTICIPANTS and not barrier.fenced
    (ends,) = barrier.claims
    assert isinstance(ends, claims.Ends) and ends.rule == "sync.shared.hazard"
    assert {(hazard.buffer, hazard.kind) for hazard in ends.hazards} == {
        ("P_shared", "written"),
        ("V_shared", "written"),
    }


def test_a_reduction_across_warps_states_how_many_parts_it_exchanges() -> None:
    plan = statements(
        """
tile = T.alloc_fragment((128, 32), "float32")
row = T.alloc_fragment((32,), "float32")
T.copy(X[bx * 128, 0], tile)
T.reduce_max(tile, row, dim=0)
T.copy(row, X[bx, 0:32])
"""
    )
    (reduction,) = plan.of(ops.Reduce)
    assert reduction.parts == 4
    exchanged = claims.Exchanged(rule="select.reduce.workspace", parts=4, lanes=None, waves=False, reuse=Reuse.ONCE)
    assert reduction.claims == (exchanged,)
