"""Planted faults: passes that reorder, drop, add or move operations which depend on one another are rejected."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from tests.conformance.kernels import small_program
from tile2cu.analysis.rewrites import Change, violations
from tile2cu.analysis.uses import without
from tile2cu.core.expr import negated
from tile2cu.core.program import CallStmt, Fill, If, Launch, Loop, Stmt
from tile2cu.core.rebuild import in_body
from tile2cu.passes import PREPARATION, Needs, Pass, RejectedPass
from tile2cu.targets import find

Body = tuple[Stmt, ...]

PARAMS = 'X: T.Tensor((256, 64), "float32"), Y: T.Tensor((256, 64), "float32"), n: T.int32'
KERNEL = """
    S = T.alloc_shared((64, 64), "float32")
    F = T.alloc_fragment((64, 64), "float32")
    G = T.alloc_fragment((64, 64), "float32")
    H = T.alloc_fragment((64, 64), "float32")
    flat = T.reshape(S, (4096,))
    v = T.alloc_var("int32", 0)
    T.clear(F)
    T.clear(G)
    T.fill(H, 1.0)
    for k in T.serial(n):
        T.copy(X[k * 64, 0], S)
        for i, j in T.Parallel(64, 64):
            F[i, j] = F[i, j] + S[i, j]
        for i in T.Parallel(4096):
            flat[i] = 0
        T.fill(G, 2.0)
        if v > 2:
            T.copy(G, Y[64, 0])
        v = v + 1
        T.sync_threads()
    T.copy(F, Y[0, 0])
"""


def launch() -> Launch:
    (found,) = small_program(KERNEL, PARAMS).launches
    return found


def loop(body: Body) -> int:
    return next(at for at, stmt in enumerate(body) if isinstance(stmt, Loop))


def in_loop(change: Callable[[list[Stmt]], object]) -> Callable[[Launch], Launch]:
    """A pass that changes the body of the loop."""

    def run(launch: Launch) -> Launch:
        at = loop(launch.body)
        stmts = list(launch.body[at].body)  # type: ignore[attr-defined]
        change(stmts)
        changed = replace(launch.body[at], body=tuple(stmts))  # type: ignore[call-arg]
        return replace(launch, body=(*launch.body[:at], changed, *launch.body[at + 1 :]))

    return run


def swap(stmts: list[Stmt], a: int, b: int) -> None:
    stmts[a], stmts[b] = stmts[b], stmts[a]


def hoisted(place: int, *, behind: bool = False) -> Callable[[Launch], Launch]:
    """A pass that moves a statement of the loop before it, or behind it."""

    def run(launch: Launch) -> Launch:
        at = loop(launch.body)
        stmts = list(launch.body[at].body)  # type: ignore[attr-defined]
        moved = stmts.pop(place)
        rest = replace(launch.body[at], body=tuple(stmts))  # type: ignore[call-arg]
        return replace(
            launch, body=(*launch.body[:at], *((rest, moved) if behind else (moved, rest)), *launch.body[at + 1 :])
        )

    return run


def without_branch(stmts: list[Stmt]) -> None:
    at = next(at for at, stmt in enumerate(stmts) if isinstance(stmt, If))
    stmts[at : at + 1] = stmts[at].then  # type: ignore[attr-defined]


FAULTS: dict[str, tuple[Change, Callable[[Launch], Launch]]] = {
    "a read moves before the write": (Change.ORDER, in_loop(lambda stmts: swap(stmts, 0, 1))),
    "a write by a view moves before the read": (Change.ORDER, in_loop(lambda stmts: swap(stmts, 1, 2))),
    "a scalar changes before the branch on it": (Change.ORDER, in_loop(lambda stmts: swap(stmts, 4, 5))),
    "a read moves behind the barrier": (Change.ORDER, in_loop(lambda stmts: swap(stmts, 1, 6))),
    "the result is written before the loop": (
        Change.ORDER,
        lambda launch: replace(launch, body=(*launch.body[: loop(launch.body)], launch.body[-1], launch.body[-2])),
    ),
    "an operation that counts is left out": (Change.LEFT_OUT, in_loop(lambda stmts: stmts.pop(1))),
    "an increment is left out": (Change.LEFT_OUT, in_loop(lambda stmts: stmts.pop(5))),
    "a result is left out": (Change.LEFT_OUT, lambda launch: replace(launch, body=launch.body[:-1])),
    "a barrier is left out": (Change.WAITS, in_loop(lambda stmts: stmts.pop(6))),
    "an update is there twice": (Change.ADDED, in_loop(lambda stmts: stmts.insert(1, stmts[1]))),
    "an increment is there twice": (Change.ADDED, in_loop(lambda stmts: stmts.append(stmts[5]))),
    "a load that varies is hoisted": (Change.LOOPS, hoisted(0)),
    "an update is hoisted": (Change.LOOPS, hoisted(1)),
    "an update sinks": (Change.LOOPS, hoisted(1, behind=True)),
    "an increment is hoisted": (Change.LOOPS, hoisted(5)),
    "a store runs without its condition": (Change.BRANCHES, in_loop(without_branch)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_pass_is_refused_by_its_name(name: str) -> None:
    change, run = FAULTS[name]
    before = launch()
    assert run(before) != before
    assert change in {each.change for each in violations(before, run(before))}
    faulty, needs = Pass(name="a-faulty-pass", run=run), Needs(find("cuda:sm_80"), own_barriers=False)
    with pytest.warns(RejectedPass, match="pass a-faulty-pass is rejected: line "):
        assert faulty.applied(before, needs) is None


def test_a_claim_is_of_one_change() -> None:
    _, run = FAULTS["a store runs without its condition"]
    needs = Needs(find("cuda:sm_80"), own_barriers=False)
    claimed = Pass(name="a-pass", run=run, claims=frozenset((Change.BRANCHES,)))
    assert claimed.applied(launch(), needs) == run(launch())


def dead(launch: Launch) -> list[Stmt]:
    return [stmt for stmt in launch.body if isinstance(stmt, Fill) and stmt.dst.buffer.name == "H"]


LEGAL: dict[str, Callable[[Launch], Launch]] = {
    "independent operations swap": in_loop(lambda stmts: swap(stmts, 2, 3)),
    "a constant is set before the loop that alone uses it": hoisted(3),
    "what nothing reads is left out": lambda launch: replace(launch, body=without(launch.body, dead(launch))),
}


@pytest.mark.parametrize("name", LEGAL)
def test_a_legal_change_is_accepted(name: str) -> None:
    assert list(violations(launch(), LEGAL[name](launch()))) == []


def test_a_constant_is_not_hoisted_over_what_reads_the_tile_before_it() -> None:
    before = in_loop(lambda stmts: stmts.insert(5, stmts.pop(3)))(launch())
    assert Change.LOOPS in {each.change for each in violations(before, hoisted(5)(before))}


IDLE = """
    S = T.alloc_shared((64, 64), "float32")
    bars = T.alloc_barrier([32, 128])
    tx = T.get_thread_binding()
    if tx >= 128:
        for k in T.serial(n):
            T.mbarrier_wait_parity(bars[1], k % 2)
            T.mbarrier_arrive(bars[0])
    else:
        for k in T.serial(n):
            T.copy(X[k * 64, 0], S)
            T.copy(S, Y[k * 64, 0])
"""


@pytest.mark.parametrize(("threads", "kept"), [(128, []), (256, [Change.WAITS])])
def test_what_no_thread_of_the_block_runs_may_be_left_out(threads: int, kept: list[Change]) -> None:
    """A producer's arm in a block without a producer: its barriers order nothing."""
    (before,) = small_program(IDLE, PARAMS, threads=threads).launches
    at, branch = next((at, stmt) for at, stmt in enumerate(before.body) if isinstance(stmt, If))
    after = replace(before, body=(*before.body[:at], *branch.orelse, *before.body[at + 1 :]))
    assert [each.change for each in violations(before, after) if each.change is not Change.BRANCHES][:1] == kept


ARM_OF_A_WAIT = """
    S = T.alloc_shared((64, 64), "float32")
    for k in T.serial(n):
        T.copy(X[k * 64, 0], S)
        if k < n - 1:
            T.ptx_wait_group(1)
        else:
            T.ptx_wait_group(0)
            if n > 3:
                T.copy(S, Y[k * 64, 0])
"""


def test_a_branch_that_a_pass_leaves_with_its_second_arm_has_the_opposite_condition() -> None:
    """No cp.async is awaited: the first arm goes, and what is in branches of the second runs as before."""
    (before,) = small_program(ARM_OF_A_WAIT, PARAMS).launches
    needs = Needs(find("cuda:sm_80"), own_barriers=False)
    after = next(each for each in PREPARATION if each.name == "drop-idle-waits").applied(before, needs)
    assert after is not None and not any(isinstance(each, CallStmt) for each in after.statements)
    (branch,) = (
        each for each in after.statements if isinstance(each, If) and each.span.text.strip() == "if k < n - 1:"
    )
    swapped = replace(branch, condition=negated(branch.condition))
    wrong = replace(after, body=in_body(after.body, lambda body, at: (swapped,) if body[at] is branch else None))
    assert {each.change for each in violations(before, wrong)} >= {Change.BRANCHES}
