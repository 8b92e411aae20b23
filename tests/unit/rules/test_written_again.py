"""Tensors that several statements, or iterations of one, write: what orders them, and what leaves by TMA."""

from textwrap import indent

import pytest

from tests.unit.rules.kernels import resolved
from tile2cu.core.decisions import BARRIER, CALL
from tile2cu.core.program import Copy, walk_stmts

KERNEL = """
A_shared = T.alloc_shared((64, 64), "float16")
C_local = T.alloc_fragment((64, 64), "float32")
T.clear(C_local)
for k in T.Pipelined(4, num_stages=2):
    T.copy(Y[k * 64, 0], A_shared)
    T.gemm(A_shared, A_shared, C_local)
{stores}
"""
STORE = "T.copy(C_local, Z[bx * 64, 0])"
OTHER = "T.copy(C_local, Z[bx * 64, 64])"
BESIDE = "for i in T.Parallel(64):\n    Z[bx * 64 + i, i] = 0.0"


def stored(*stores: str, target: str = "cuda:sm_90a") -> tuple[list[str], int]:
    """How the copies to a tensor are done, and how many statements have a barrier in front of them."""
    return stored_by(KERNEL.format(stores="\n".join(stores)), target=target)


def stored_by(text: str, *, target: str = "cuda:sm_90a") -> tuple[list[str], int]:
    context = resolved(text, target=target)
    statements = tuple(walk_stmts(context.launch.body))
    calls = [context.facts[op, CALL] for op in statements if isinstance(op, Copy) and op.dst.buffer.name == "Z"]
    return calls, sum(context.facts.get(op, BARRIER) is not None for op in statements)


def test_parts_of_a_tensor_leave_by_tma_side_by_side() -> None:
    """Each has a staging tile of its own, though it is one fragment's."""
    assert stored(STORE, OTHER) == (["tma_store", "tma_store"], 0)
    branch = f"if bx > 3:\n    {STORE}\nelse:\n    {STORE}"
    assert stored(branch) == (["tma_store", "tma_store"], 0)


@pytest.mark.parametrize("stores", [(STORE, STORE), (STORE, BESIDE), (BESIDE, STORE)], ids=str)
def test_what_is_written_again_waits_for_a_barrier(stores: tuple[str, ...]) -> None:
    """Barriers do not know when TMA has written."""
    calls, barriers = stored(*stores)
    assert "tma_store" not in calls and barriers == 1


def test_copies_side_by_side_need_no_barrier() -> None:
    assert stored(STORE, OTHER, target="cuda:sm_80")[1] == stored(STORE, target="cuda:sm_80")[1]
    moving = "for k in T.serial(4):\n    T.copy(C_local, Z[k * 64, 0])\n    T.copy(C_local, Z[k * 64 + 64, 0])"
    assert stored(moving, target="cuda:sm_80")[1] > stored(STORE, target="cuda:sm_80")[1]


GIVEN = 'T.cast(X[{at}, 0], "int32")'


@pytest.mark.parametrize(
    ("start", "stores"),
    [
        ("t // 2 * 64", (["tma_store"], 0)),
        ("t // 2 * 192", (["tma_store"], 0)),
        (f"{GIVEN.format(at='t')} * 192", (["tma_store", "copy"], 2)),  # the copy is for negative starts
        ("t // 2 * (m * 64)", (["tma_store"], 0)),
        ("bx * 8 + t // 2 * 64", (["tma_store"], 0)),
        (f"t * 64 + {GIVEN.format(at='bx')}", (["tma_store", "copy"], 2)),
        ("t * 8", (["copy"], 1)),
        ("t // 2 * 96", (["copy"], 1)),
        ("t // 2 * (m * 8)", (["copy"], 1)),
        (GIVEN.format(at="t"), (["copy"], 1)),
    ],
    ids=str,
)
def test_boxes_of_iterations_are_the_same_or_disjoint_where_tma_stores_them(
    start: str, stores: tuple[list[str], int]
) -> None:
    """Each warp awaits its own stores: of boxes that overlap in part, other warps have stored the same elements."""
    tile, *rest = KERNEL.format(stores=f"T.copy(C_local, Z[{start}, 0])").strip().splitlines()
    loop = f"{tile}\nfor t in T.serial(4):\n" + indent("\n".join(rest), "    ")
    assert stored_by(loop) == stores


@pytest.mark.parametrize(("start", "barriers"), [("t * 8", 1), ("t // 2 * 64", 0), ("t * 64", 0)])
@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
def test_loops_that_store_boxes_which_overlap_in_part_have_a_barrier(start: str, barriers: int, target: str) -> None:
    loop = f"for t in T.serial(4):\n    for i, j in T.Parallel(64, 64):\n        Z[{start} + i, j] = X[t, j]"
    assert stored_by(loop, target=target) == ([], barriers)


def test_arms_of_a_branch_may_store_the_same_elements_in_different_iterations() -> None:
    one, other = "T.copy(C_local, Z[t * 64, 0])", "T.copy(C_local, Z[t * 64 - 56, 0])"
    tile, *rest = KERNEL.format(stores=f"if t % 2 == 0:\n    {one}\nelse:\n    {other}").strip().splitlines()
    loop = f"{tile}\nfor t in T.serial(4):\n" + indent("\n".join(rest), "    ")
    assert stored_by(loop) == (["copy", "copy"], 2)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Z[row, 0]", "Z[row, 64]"),  # columns of no iteration meet
        ("Z[row * 2 + base, 0]", "Z[row * 2 + base + 64, 0]"),  # the base is the same in all
        ("Z[t * 64, 0]", "Z[row, 64]"),
        ("Z[row * 2, 0]", "Z[row * 2 + 64, 0]"),  # the row is as the variable is
    ],
)
def test_stores_of_different_iterations_leave_by_tma_where_names_show_that_they_are_apart(
    first: str, second: str
) -> None:
    stores = f"base = bx * 64\nrow = t * 64\nT.copy(C_local, {first})\nT.copy(C_local, {second})"
    tile, *rest = KERNEL.format(stores=stores).strip().splitlines()
    loop = f"{tile}\nfor t in T.serial(4):\n" + indent("\n".join(rest), "    ")
    assert stored_by(loop)[0] == ["tma_store", "tma_store"]


@pytest.mark.parametrize(("second", "by_tma"), [("Z[row, 64]", True), ("Z[row, 32]", False), ("Z[row + 64, 0]", False)])
def test_iterations_of_a_while_store_columns_of_their_own_by_tma(second: str, by_tma: bool) -> None:
    """Rows may be those of another iteration."""
    stores = f"row = t * 64\nT.copy(C_local, Z[row, 0])\nT.copy(C_local, {second})\nt = t + 1"
    tile, *rest = KERNEL.format(stores=stores).strip().splitlines()
    loop = f'{tile}\nt = T.alloc_var("int32", 0)\nwhile t < 4:\n' + indent("\n".join(rest), "    ")
    assert ("tma_store" in stored_by(loop)[0]) == by_tma
