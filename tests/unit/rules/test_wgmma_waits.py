"""Products that the user begins and waits for, what shows stores to them, and registers that groups hand over."""

import pytest

from tests.unit.rules.kernels import resolved, subject
from tile2cu.core.decisions import (
    AWAITED_AT,
    INSTRUCTION,
    NO_SETMAXNREG,
    NO_WGMMA,
    NOT_IN_FLIGHT,
    PROXY_FENCE,
    RETIRED,
    SETMAXNREG,
)
from tile2cu.core.program import Gemm, SetRegisters, WgmmaWait
from tile2cu.rules import Context

TILES = """
A_shared = T.alloc_shared((64, 128), "float16")
B_shared = T.alloc_shared((64, 64), "float16")
P_local = T.alloc_fragment((64, 64), "float16")
C_local = T.alloc_fragment((64, 64), "float32")
D_local = T.alloc_fragment((64, 64), "float32")
T.copy(Z[0, 0], A_shared)
T.copy(Z[0, 0], B_shared)
T.copy(B_shared, P_local)
T.clear(D_local)
"""
BEGIN = "T.wgmma_gemm(A_shared[:, 0:64], B_shared, C_local, clear_accum=True)\n"


def flights(statements: str) -> tuple[Context, list[str]]:
    """The facts, and for each product until when it is in flight or why it is not."""
    context = resolved(
        TILES + statements + "\nT.copy(C_local, X[0, 0])\nT.copy(D_local, X[0, 0])", target="cuda:sm_90a"
    )
    products = [op for op in context.statements if isinstance(op, Gemm)]
    facts = context.facts
    return context, [str(facts.get(op, AWAITED_AT) or facts.get(op, NOT_IN_FLIGHT)) for op in products]


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (BEGIN + "T.fill(D_local, 1)\nT.wait_wgmma(0)", "until T.wait_wgmma"),
        (BEGIN + "if bx > 3:\n    T.fill(D_local, 1)\nT.wait_wgmma(0)", "until T.wait_wgmma"),
        (BEGIN + "T.copy(D_local, C_local)\nT.wait_wgmma(0)", "uses its result `C_local`"),
        (BEGIN + "if bx > 3:\n    T.clear(C_local)\nT.wait_wgmma(0)", "uses its result `C_local`"),
        (BEGIN + "T.fill(B_shared, 1)\nT.wait_wgmma(0)", "writes its operand `B_shared`"),
        (BEGIN, "uses its result `C_local`"),
        (BEGIN + "if bx > 3:\n    T.wait_wgmma(0)", "uses its result `C_local`"),
        (BEGIN + "for k in T.serial(bx):\n    T.wait_wgmma(0)", "uses its result `C_local`"),
        (BEGIN + "for k in T.serial(2):\n    T.wait_wgmma(0)", "until T.wait_wgmma"),
        (BEGIN + "T.wait_wgmma(1)", "uses its result `C_local`"),
    ],
)
def test_what_may_stand_between_a_product_and_its_wait(statements: str, said: str) -> None:
    _, (found,) = flights(statements)
    assert said in found


def test_a_wait_leaves_the_last_products_in_flight() -> None:
    second = "T.wgmma_gemm(P_local, B_shared, D_local)\n"
    context, found = flights(BEGIN + second + "T.wait_wgmma(1)\nT.fill(A_shared, 1)\nT.wait_wgmma(0)")
    assert all(each.startswith("until") for each in found)
    landings = [str(context.facts[op, RETIRED]) for op in context.statements if isinstance(op, WgmmaWait)]
    assert landings == ["C_local", "D_local"]


def test_products_in_one_accumulator_follow_one_another() -> None:
    context, found = flights(BEGIN + "T.wgmma_gemm(P_local, B_shared, C_local)\nT.wait_wgmma(1)\nT.wait_wgmma(0)")
    assert all(each.startswith("until") for each in found)
    landings = [str(context.facts[op, RETIRED]) for op in context.statements if isinstance(op, WgmmaWait)]
    assert landings == ["", "C_local"], "the second product still writes it"


def test_a_loop_counts_each_of_its_products() -> None:
    turns = "for k in T.unroll(2):\n    T.wgmma_gemm(A_shared[:, k * 64 : k * 64 + 64], B_shared, D_local)\n"
    _, found = flights(BEGIN + turns + "T.wait_wgmma(2)\nT.fill(C_local, 0)\nT.wait_wgmma(0)")
    assert [each.startswith("until") for each in found] == [True, True]
    _, found = flights(BEGIN + turns + "T.wait_wgmma(3)\nT.fill(C_local, 0)\nT.wait_wgmma(0)")
    assert [each.startswith("until") for each in found] == [False, True]


def test_a_product_of_t_gemm_waits_for_all() -> None:
    context, found = flights(BEGIN + "T.gemm(P_local, B_shared, D_local)")
    assert found[0].startswith("until")
    product = next(op for op in context.statements if isinstance(op, Gemm) and not op.begun)
    assert str(context.facts[product, RETIRED]) == "C_local"


@pytest.mark.parametrize(
    ("columns", "instruction"), [("0:64", "wgmma"), ("64:128", "wgmma"), ("32:96", "mma"), ("96:128", "wgmma")]
)
def test_parts_that_descriptors_reach(columns: str, instruction: str) -> None:
    start, stop = map(int, columns.split(":"))
    context, _ = flights(
        f"T.wgmma_gemm(A_shared[:, {columns}], B_shared[0:{stop - start}, :], C_local)\nT.wait_wgmma(0)"
    )
    product = next(op for op in context.statements if isinstance(op, Gemm))
    assert str(context.facts[product, INSTRUCTION]).startswith(f"{instruction}.")


def test_products_that_share_a_fragment_run_alike() -> None:
    """The second one reads an operand that does not start at a swizzle atom."""
    parts = "T.wgmma_gemm(A_shared[:, 32:96], B_shared, C_local)\nT.wait_wgmma(0)"
    context, _ = flights(BEGIN + parts)
    products = [op for op in context.statements if isinstance(op, Gemm)]
    assert all(str(context.facts[op, INSTRUCTION]).startswith("mma.") for op in products)
    assert "does not start at a swizzle atom" in str(context.facts[products[0], NO_WGMMA])


def test_one_fence_for_what_was_stored() -> None:
    context, _ = flights(BEGIN + "T.wgmma_gemm(P_local, B_shared, D_local)\nT.wait_wgmma(0)")
    fences = [str(context.facts[op, PROXY_FENCE]) for op in context.statements if context.facts.get(op, PROXY_FENCE)]
    assert fences == ["A_shared, B_shared"], "before the barrier that ends their stores"


REGISTERS = """
ready = T.alloc_barrier(128)
if T.get_thread_binding() < 128:
    {first}
    T.barrier_arrive(ready)
else:
    {second}
    T.barrier_wait(ready, 0)
"""


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ("T.dec_max_nreg(24)", "T.inc_max_nreg(256)", ""),
        ("T.set_max_nreg(24, 0)", "T.set_max_nreg(232, 0)", ""),
        ("T.dec_max_nreg(24)", "T.inc_max_nreg(250)", "not a multiple of 8 from 24 to 256"),
        ("T.dec_max_nreg(24)", "T.inc_max_nreg(232)", "asks for more, 232 registers, and a thread starts with 256"),
        ("if bx > 0:\n        T.dec_max_nreg(24)", "T.inc_max_nreg(256)", "is in a loop, in a branch"),
        ("T.dec_max_nreg(24)\n    T.dec_max_nreg(24)", "T.inc_max_nreg(256)", "a group sets its registers twice"),
    ],
)
def test_registers_that_groups_hand_over(first: str, second: str, reason: str) -> None:
    context = resolved(REGISTERS.format(first=first, second=second), threads=256, target="cuda:sm_90a")
    stmts = [op for op in context.statements if isinstance(op, SetRegisters)]
    if reason:
        assert all(reason in str(context.facts[op, NO_SETMAXNREG]) for op in stmts)
    else:
        assert [context.facts[op, SETMAXNREG] for op in stmts] == [256, 256]
        assert context.facts[subject(context, "launch"), SETMAXNREG] == 256


def test_four_groups_cannot_have_more_than_there_is() -> None:
    text = "ready = T.alloc_barrier(128)\nwith T.ws(0):\n    T.dec_max_nreg(40)\n"
    text += "".join(f"with T.ws({group}):\n    T.inc_max_nreg(160)\n" for group in (1, 2, 3))
    text += "with T.ws(0):\n    T.barrier_arrive(ready)"
    context = resolved(text, threads=512, target="cuda:sm_90a")
    stmt = next(op for op in context.statements if isinstance(op, SetRegisters))
    assert "ask for 66,560 registers, and the block starts with 65,536" in str(context.facts[stmt, NO_SETMAXNREG])


def test_chips_without_setmaxnreg_leave_it_out() -> None:
    context = resolved("T.set_max_nreg(24, 0)\nS = T.alloc_shared((64,), 'float32')\nT.clear(S)")
    assert not any(isinstance(op, SetRegisters) for op in context.statements)


@pytest.mark.parametrize(("pending", "turns"), [(1, "4"), (1, "bx"), (3, "bx"), (2, "40")])
def test_a_wait_in_a_loop_ends_what_earlier_turns_began(pending: int, turns: str) -> None:
    """Though it is one statement that begins them all: what the wait before it left behind is read no more."""
    loop = (
        f"for k in T.serial({turns}):\n    {BEGIN.replace('True', 'k == 0')}"
        f"    if k > {pending - 1}:\n        T.wait_wgmma({pending})\n    T.fill(D_local, 0)\nT.wait_wgmma(0)"
    )
    context, (found,) = flights(loop)
    assert found.startswith("until")
    landings = [context.facts.get(op, RETIRED) for op in context.statements if isinstance(op, WgmmaWait)]
    assert [str(each) for each in landings] == ["", "C_local"], "later turns' products still write it"
