"""The table of effects: every kind of statement is in it, and nothing that a statement touches is left out."""

from collections.abc import Iterator
from textwrap import indent
from typing import get_args

import pytest

from tests.unit.rules.kernels import _HEAD, resolved
from tile2cu.analysis.effects import _ORDERS, OUTPUT, USER_STATE, Effects, Order, effects, effects_of
from tile2cu.core import program as core
from tile2cu.core.dtype import FLOAT32, INT32
from tile2cu.core.expr import Call, Role, Var, int_const
from tile2cu.core.program import AnyStmt, Assign, Buffer, CallStmt, Loop, LoopKind, Parallel, Scope, Stmt, Store
from tile2cu.core.span import Span
from tile2cu.frontend import programs
from tile2cu.styles.base.expressions import _OWN_TYPES

AT = Span("small.py", 1, 1, 1, 2)


def body(statements: str, target: str = "cuda:sm_80") -> tuple[Stmt, ...]:
    """Statements as the front end understands them, before any pass."""
    text = _HEAD.format(threads=128, cluster=1, grid="16") + indent(statements.strip("\n"), " " * 8) + "\n"
    (program,) = programs(None, text, kernel=None, bindings={})
    return program.launches[0].body


def only(statements: str, kind: type[Stmt]) -> Effects:
    (found,) = (stmt for stmt in body(statements) if isinstance(stmt, kind))
    return effects(found)


def roots(accesses: tuple[object, ...]) -> set[str]:
    return {access.root.name for access in accesses}  # type: ignore[attr-defined]


def concrete_kinds(kind: type = Stmt) -> Iterator[type]:
    for below in kind.__subclasses__():
        if below.__module__ == core.__name__:
            yield below
        yield from concrete_kinds(below)


def test_every_kind_of_statement_is_known() -> None:
    assert set(get_args(AnyStmt)) == set(concrete_kinds())


def test_views_are_the_storage_that_they_name() -> None:
    found = only(
        'L = T.alloc_fragment((64, 64), "float32")\nV = T.view(L, (4096,))\n'
        "for i in T.Parallel(4096):\n    V[i] = V[i] + 1",
        Parallel,
    )
    assert roots(found.reads) == roots(found.writes) == {"L"}


def test_indices_conditions_and_places_are_read() -> None:
    found = only(
        'S = T.alloc_shared((64,), "float32")\nv = T.alloc_var("int32", 0)\nfor i in T.Parallel(64):\n'
        "    if A[v, i] > 0:\n        S[T.cast(X[i, 0], 'int32')] = 1",
        Parallel,
    )
    assert roots(found.reads) == {"A", "X"} and roots(found.writes) == {"S"}
    assert {var.name for var in found.scalars_read} == {"v"}


def test_a_conditional_clear_reads_its_condition_and_the_accumulator() -> None:
    found = only(
        'S = T.alloc_shared((64, 64), "float16")\nC = T.alloc_fragment((64, 64), "float32")\n'
        'v = T.alloc_var("int32", 0)\nT.gemm(S, S, C, clear_accum=v == 3)',
        core.Gemm,
    )
    assert roots(found.reads) == {"S", "C"} and "v" in {var.name for var in found.scalars_read}


def test_a_gemm_that_clears_does_not_read_its_accumulator() -> None:
    found = only(
        'S = T.alloc_shared((64, 64), "float16")\nC = T.alloc_fragment((64, 64), "float32")\n'
        "T.gemm(S, S, C, clear_accum=True)",
        core.Gemm,
    )
    assert roots(found.reads) == {"S"} and roots(found.writes) == {"C"}


def test_boxes_widen_over_the_loops_around_them() -> None:
    found = only(
        'S = T.alloc_shared((64, 64), "float32")\nfor k in T.serial(4):\n    for i, j in T.Parallel(8, 64):\n'
        "        S[8 * k + i, j] = 1",
        Loop,
    )
    (access,) = found.writes
    assert access.box == ((int_const(0), int_const(32)), (int_const(0), int_const(64)))


def test_what_the_body_changes_makes_a_box_unknown() -> None:
    found = only(
        'S = T.alloc_shared((64,), "float32")\nv = T.alloc_var("int32", 0)\nfor k in T.serial(4):\n'
        "    S[v] = 1\n    v = v + k",
        Loop,
    )
    (access,) = found.writes
    assert access.box == (None,) and {var.name for var in found.scalars_written} == {"v"}


def test_names_of_a_body_are_not_known_outside() -> None:
    found = only(
        'S = T.alloc_shared((64,), "float32")\nfor k in T.serial(4):\n    start = k * 16\n'
        "    for i in T.Parallel(16):\n        S[start + i] = 1",
        Loop,
    )
    assert not found.scalars_written and {var.name for var in found.scalars_read} <= {"start"}
    (access,) = found.writes
    assert access.box == ((int_const(0), int_const(64)),)


def test_leaving_ends_at_the_loop_around_it() -> None:
    (loop,) = (
        stmt for stmt in body("for k in T.serial(4):\n    if A[k, 0] > 0:\n        break") if isinstance(stmt, Loop)
    )
    assert effects(loop.body[0]).may_leave and not effects(loop).may_leave


def test_statements_that_are_seen_outside_keep_their_order() -> None:
    found = only("T.print(A[0, 0])", core.Print)
    assert OUTPUT in found.scalars_read & found.scalars_written


def test_calls_that_the_table_does_not_know_touch_everything_of_the_user() -> None:
    found = effects(CallStmt(call=Call(INT32, "no_such_call", ()), span=AT))
    assert USER_STATE in found.scalars_written


@pytest.mark.parametrize("name", sorted(_ORDERS))
def test_calls_that_synchronise_order(name: str) -> None:
    assert effects(CallStmt(call=Call(INT32, name, ()), span=AT)).orders & set(Order)


VALUES = frozenset(("dp4a", "block_rank", "first_set", "nth_set", "popcount"))  # calls that only give one


def test_every_call_with_an_effect_that_is_printed_is_in_the_table() -> None:
    names = {name.partition("<")[0] for name in _OWN_TYPES} - VALUES
    assert {"mbarrier_arrive", "cp_async", "cp_async_commit", "fence_async_proxy", "block_tma_store_wait"} <= names
    for name in names:
        found = effects(CallStmt(call=Call(INT32, name, ()), span=AT))
        assert USER_STATE not in found.scalars_written, f"{name} is not in the table of effects"


def test_effects_are_kept_and_those_of_a_sequence_joined() -> None:
    var = Var(INT32, "n", Role.MUTABLE)
    one = Assign(var=var, value=int_const(1), span=AT)
    tile = Buffer(name="t", shape=(int_const(4),), dtype=FLOAT32, scope=Scope.SHARED, span=AT)
    two = Store(buffer=tile, indices=(var,), value=int_const(0), span=AT)
    assert effects(one) is effects(one)
    found = effects_of((one, two))
    assert found.scalars_written == {var} and found.writes[0].box == (None,), "the index changes in the sequence"


def test_loops_that_count_otherwise_are_not_widened_by_their_count() -> None:
    tile = Buffer(name="t", shape=(int_const(64),), dtype=FLOAT32, scope=Scope.SHARED, span=AT)
    var = Var(INT32, "k", Role.LOOP)
    store = Store(buffer=tile, indices=(var,), value=int_const(0), span=AT)
    parts = {"start": int_const(60), "stop": int_const(0), "step": int_const(-4)}
    loop = Loop(kind=LoopKind.SERIAL, var=var, body=(store,), span=AT, **parts)
    assert effects(loop).writes[0].box == (None,)


def test_passes_see_what_the_rules_settle() -> None:
    context = resolved('S = T.alloc_shared((64, 64), "float32")\nT.copy(X[0, 0], S)')
    assert roots(effects_of(context.launch.body).writes) == {"S"}
