"""Which statements must keep their order, and which schedules of a loop keep it."""

import pytest

from tests.conformance.test_reference import example
from tests.unit.analysis.test_effects import body
from tile2cu.analysis.dependence import (
    Dependence,
    Kind,
    broken_by,
    conflicts,
    dependences,
    depends,
    keeps,
    may_repeat,
    may_swap,
)
from tile2cu.analysis.effects import effects
from tile2cu.core.program import Copy, Declare, Gemm, Loop, Stmt
from tile2cu.core.schedule import Action, Step

TILES = """
S = T.alloc_shared((64, 64), "float32")
R = T.alloc_shared((64, 64), "float32")
L = T.alloc_fragment((64, 64), "float32")
V = T.view(L, (64, 4, 16))
v = T.alloc_var("int32", 0)
"""


def pair(first: str, second: str) -> tuple[Stmt, Stmt]:
    """Two statements, each of one or several lines."""
    *_, one, two = (stmt for stmt in body(f"{TILES}\n{first}\n{second}") if not isinstance(stmt, Declare))
    return one, two


def kinds(first: str, second: str) -> set[Kind]:
    found = pair(first, second)
    return {each.kind for each in dependences(found)}


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ("T.copy(X[0, 0], S)", "T.copy(S, L)", Kind.RAW),
        ("T.copy(S, L)", "T.clear(S)", Kind.WAR),
        ("T.clear(L)", "T.copy(S, L)", Kind.WAW),
        ("T.clear(L)", "for i, j, k in T.Parallel(64, 4, 16):\n    V[i, j, k] = V[i, j, k] + 1", Kind.RAW),
        ("T.copy(X[v, 0], S)", "v = v + 1", Kind.WAR),
        ("v = v + 1", "T.copy(X[v, 0], S)", Kind.RAW),
        ("if v > 2:\n    T.clear(S)", "v = 3", Kind.WAR),
        ("T.copy(S, X[0, 0])", "T.sync_threads()", Kind.ORDER),
        ("for k in T.serial(v):\n    T.clear(S)", "T.copy(S, L)", Kind.RAW),
    ],
)
def test_what_must_keep_its_order(first: str, second: str, kind: Kind) -> None:
    assert kind in kinds(first, second)
    assert depends(*pair(first, second)) and not may_swap(*pair(first, second))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("T.copy(X[0, 0], S)", "T.copy(X[0, 64], R)"),
        ("T.copy(X[0, 0], S[0:32, :])", "T.copy(X[0, 0], S[32:64, :])"),
        ("for i, j in T.Parallel(8, 64):\n    S[i, j] = 0", "for i, j in T.Parallel(8, 64):\n    S[8 + i, j] = 1"),
        ("T.atomic_add(A[0, 0], 1.0)", "T.atomic_add(A[0, 0], 2.0)"),
        ("T.clear(S)", "v = v + 1"),
    ],
)
def test_what_may_change_its_order(first: str, second: str) -> None:
    assert may_swap(*pair(first, second))


def test_updates_of_other_kinds_do_not_commute() -> None:
    assert depends(*pair("T.atomic_add(A[0, 0], 1.0)", "T.atomic_max(A[0, 0], 2.0)"))


def test_boxes_that_may_overlap_conflict() -> None:
    assert depends(*pair("T.copy(X[0, 0], S[0:33, :])", "T.copy(X[0, 0], S[32:64, :])"))
    assert depends(*pair("for i in T.Parallel(8):\n    S[v, i] = 0", "for i in T.Parallel(8):\n    S[8, i] = 1"))


@pytest.mark.parametrize(
    ("behind", "repeats"),
    [
        ("v = v + 1\nT.copy(L, X[0, 0])", True),
        ("T.clear(S)", False),  # what it read
        ("T.clear(L)", False),  # what it wrote
        ("for i, j, k in T.Parallel(64, 4, 16):\n    V[i, j, k] = 0", False),  # by another name
    ],
)
def test_a_copy_that_may_be_repeated(behind: str, repeats: bool) -> None:
    found = [stmt for stmt in body(f"{TILES}\nT.copy(S, L)\n{behind}") if not isinstance(stmt, Declare)]
    copy = next(stmt for stmt in found if isinstance(stmt, Copy))
    assert may_repeat(copy, found[found.index(copy) + 1 :]) == repeats


def test_a_statement_keeps_what_it_does_not_touch() -> None:
    copy, bump = pair("T.copy(X[v, 0], L)", "v = v + 1")
    assert not keeps((bump,), of=effects(copy))
    copy, clear = pair("T.copy(X[v, 0], L)", "T.clear(S)")
    assert keeps((clear,), of=effects(copy))


# ---- schedules -------------------------------------------------------------------------------------------------------

ATTENTION = """
Q_shared = T.alloc_shared((64, 64), "float16")
K_shared = T.alloc_shared((64, 64), "float16")
V_shared = T.alloc_shared((64, 64), "float16")
S = T.alloc_fragment((64, 64), "float32")
P = T.alloc_fragment((64, 64), "float16")
O = T.alloc_fragment((64, 64), "float32")
s = T.alloc_var("float32", 1.0)
for k in T.serial(4):
    T.gemm(Q_shared, K_shared, S, transpose_B=True, clear_accum=True)
    for i, j in T.Parallel(64, 64):
        O[i, j] = O[i, j] * s
    {more}
    T.copy(S, P)
    T.gemm(P, V_shared, O)
"""


def attention(more: str = "") -> tuple[Loop, list[Stmt]]:
    *_, loop = body(ATTENTION.format(more=more))
    assert isinstance(loop, Loop)
    return loop, list(loop.body)


def overlapped(order: list[Stmt], first: Gemm, second: Gemm) -> list[Step]:
    """S of an iteration beside O of the one before, then the statements in an order: the last two wait for O."""
    *between, scale, copy = order
    return [
        Step(first, action=Action.START),
        Step(second, 1, Action.START),
        Step(first, action=Action.WAIT),
        *Step.each(*between),
        Step(second, 1, Action.WAIT),
        *Step.each(scale, copy),
    ]


def test_the_order_of_the_program_is_legal() -> None:
    loop, stmts = attention("s = s * 0.5")
    assert not broken_by(Step.each(*stmts), stmts, loop)


def test_two_mmas_overlap() -> None:
    loop, stmts = attention()
    first, scale, copy, second = stmts
    assert isinstance(first, Gemm) and isinstance(second, Gemm)
    assert not broken_by(overlapped([scale, copy], first, second), stmts, loop)


def test_a_scalar_does_not_change_before_what_reads_it() -> None:
    loop, stmts = attention("s = s * 0.5")
    first, scale, change, copy, second = stmts
    assert isinstance(first, Gemm) and isinstance(second, Gemm)
    broken = broken_by(overlapped([change, scale, copy], first, second), stmts, loop)
    assert any((each.first, each.second, each.kind) == (scale, change, Kind.WAR) for each in broken)
    assert "write after read of `s`" in str(broken[0])


def test_an_iteration_that_may_end_early_is_in_one_trip() -> None:
    loop, stmts = attention("if k > 2:\n        continue")
    first, scale, leave, copy, second = stmts
    assert isinstance(first, Gemm) and isinstance(second, Gemm)
    assert not broken_by(Step.each(*stmts), stmts, loop)
    broken = broken_by(overlapped([scale, leave, copy], first, second), stmts, loop)
    assert any((each.first, each.second, each.kind) == (leave, second, Kind.CONTROL) for each in broken)


def test_an_accumulator_is_not_touched_while_it_is_outstanding() -> None:
    loop, stmts = attention()
    first, scale, copy, second = stmts
    assert isinstance(first, Gemm) and isinstance(second, Gemm)
    steps = overlapped([scale, copy], first, second)
    early = [*steps[:3], steps[4], steps[3], steps[5]]
    assert [step.stmt for step in early][3] is scale
    assert broken_by(early, stmts, loop)


def test_a_statement_that_is_left_out_breaks_what_depends_on_it() -> None:
    loop, stmts = attention()
    assert broken_by(Step.each(*stmts[:-2], stmts[-1]), stmts, loop)


@pytest.mark.parametrize(("result", "operand", "broken"), [("C", "A_shared", False), ("P", "P", True)])
def test_mmas_of_one_accumulator_are_executed_in_order(result: str, operand: str, broken: bool) -> None:
    """The second may start while the first is in flight, but not where that computes its operand."""
    *_, loop = body(
        'A_shared = T.alloc_shared((64, 64), "float16")\nC = T.alloc_fragment((64, 64), "float32")\n'
        'P = T.alloc_fragment((64, 64), "float16")\n'
        f"for k in T.serial(4):\n    T.gemm(A_shared, A_shared, {result})\n    T.gemm({operand}, A_shared, C)"
    )
    assert isinstance(loop, Loop)
    steps = (*Step.each(*loop.body, action=Action.START), *Step.each(*loop.body, action=Action.WAIT))
    assert bool(broken_by(steps, loop.body, loop)) == broken


def test_copies_of_a_buffer_allow_the_next_iteration_to_write_it() -> None:
    *_, loop = body(
        'A_shared = T.alloc_shared((64, 64), "float16")\nC = T.alloc_fragment((64, 64), "float32")\n'
        "for k in T.serial(4):\n    T.copy(Z[k * 64, 0], A_shared)\n    T.gemm(A_shared, A_shared, C)"
    )
    assert isinstance(loop, Loop)
    copy, gemm = loop.body
    assert isinstance(gemm, Gemm)
    steps = (Step(copy), Step(gemm, 1, Action.WAIT), Step(gemm, action=Action.START))
    assert broken_by(steps, loop.body, loop)
    assert not broken_by(steps, loop.body, loop, {gemm.a.buffer: 2})


def test_rows_of_other_iterations_do_not_meet() -> None:
    def carried(index: str) -> bool:
        *_, loop = body(
            'S = T.alloc_shared((64, 64), "float32")\nfor k in T.serial(8):\n'
            f"    for i, j in T.Parallel(8, 64):\n        S[{index}, j] = k"
        )
        assert isinstance(loop, Loop)
        return any(each.distance == 1 for each in dependences(loop.body, loop))

    assert not carried("8 * k + i") and carried("4 * k + i") and carried("i")


@pytest.mark.parametrize("name", ["attention.py", "chunk_scan.py", "chunk_state.py", "gemm_relu.py"])
def test_dependences_are_those_of_all_pairs(name: str) -> None:
    """The index of what statements use leaves out only pairs that do not conflict."""
    loops = [
        loop for launch in example(name).launches for loop in launch.statements if isinstance(loop, Loop) and loop.body
    ]
    found = 0
    for loop in loops:
        body = loop.body
        within = [
            Dependence(first, second, kind, on)
            for position, second in enumerate(body)
            for first in body[:position]
            for kind, on in conflicts(effects(first), effects(second))
        ]
        carried = [
            Dependence(first, second, kind, on, 1)
            for first in body
            for second in body
            for kind, on in conflicts(effects(first), effects(second), loop)
        ]
        assert list(dependences(body, loop)) == within + carried
        found += len(within)
    assert found
