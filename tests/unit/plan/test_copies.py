"""How a plan copies: by cp.async, by TMA into a pipeline's stages or a tile's own ring, by threads."""

from tests.unit.plan.lowered import example, statements
from tile2cu.plan import claims, copy_ops
from tile2cu.plan.copy_ops import CopyMechanism
from tile2cu.plan.operands import TensorTile, Tile

GEMM = {"block_N": 256, "block_K": 64, "threads": 256}
HOPPER = {"dim": 128, "block_M": 128, "block_N": 128, "threads": 256, "is_causal": False}


def test_a_pipelined_gemm_on_sm_80_loads_by_cp_async_and_stores_by_threads() -> None:
    plan = example("gemm_relu.py", "cuda:sm_80")
    copies = plan.of(copy_ops.Copy)
    found = [(op.src.buffer.name, op.dst.buffer.name, op.mechanism) for op in copies]
    assert found == [
        ("A", "A_shared", CopyMechanism.CP_ASYNC),
        ("B", "B_shared", CopyMechanism.CP_ASYNC),
        ("C_local", "C", CopyMechanism.THREADS),
    ]
    assert [op.threads is None for op in copies] == [False, False, True]  # a fragment's layout distributes it


def test_a_gemm_on_sm_90a_loads_by_tma_into_stages_of_one_pipeline() -> None:
    plan = example("gemm_relu.py", "cuda:sm_90a", **GEMM)
    loads = plan.of(copy_ops.TmaLoad)
    assert [op.dst.name for op in loads] == ["A_shared", "B_shared"]
    assert not any(op.own_ring or op.publishes or op.multicast for op in loads)
    (store,) = plan.of(copy_ops.TmaStore)
    assert (store.src.name, store.dst.buffer.name) == ("C_local", "C")
    (claim,) = store.claims
    assert isinstance(claim, claims.StoredByTma) and claim.outstanding == store.outstanding


def test_tiles_of_overlapped_mmas_have_rings_of_their_own() -> None:
    plan = example("attention.py", "cuda:sm_90a", **HOPPER)
    own = {op.dst.name: op.own_ring for op in plan.of(copy_ops.TmaLoad)}
    assert own == {"Q_shared": False, "K_shared": True, "V_shared": True}


def test_a_box_of_a_tensor_runs_along_the_dimensions_of_its_tile() -> None:
    plan = statements(
        """
row = T.alloc_fragment((64,), "float32")
T.copy(X[bx * 64, 0:64], row)
T.copy(row, X[bx, 64:128])
"""
    )
    load, store = plan.of(copy_ops.Copy)
    assert isinstance(load.src, TensorTile) and load.src.along == (1,)
    assert isinstance(load.dst, Tile) and isinstance(store.dst, TensorTile) and store.dst.along == (1,)
