"""When a producer goes through the loops around its own, and what it computes there."""

import pytest

from tests.unit.rules.kernels import FIRST_LINE, resolved
from tile2cu.analysis.prelude import Walk, for_loads_alone, path_to, walk_to
from tile2cu.analysis.uses import statements
from tile2cu.core.decisions import CALL, PIPELINE, TMA_COLUMNS_IF, WARP_SPECIALISED
from tile2cu.core.program import Assign, Copy, Fill, Let, Loop, LoopKind, While, walk_stmts
from tile2cu.rules.schedule.pipeline import pipeline_of

KERNEL = """
A_shared = T.alloc_shared((64, 64), "float16")
B_shared = T.alloc_shared((64, 64), "float16")
C_local = T.alloc_fragment((64, 64), "float32")
tile = T.alloc_var("int32", init=bx)
while tile < {stop}:
    row = tile // 8
    where = {where}
    {first}
    T.clear(C_local)
    for k in T.Pipelined({turns}, num_stages=2):
        T.copy({tensor}[where, k * 64], A_shared)
        T.copy(Z[k * 64, 0], B_shared)
        T.gemm(A_shared, B_shared, C_local)
        {inside}
    T.copy(C_local, X[row * 64, 0])
    {last}
    tile += 16
"""
PLAIN = {"where": "row * 64", "stop": "64", "first": "", "turns": "4", "tensor": "Z", "inside": "", "last": ""}
REFUSED = {
    "tile": ({"first": "T.clear(A_shared)"}, "`A_shared` is used outside of its loop"),
    "tensor": ({"last": "T.copy(C_local, Z[0, 0])"}, "`Z` is written by the kernel"),
    # One thread reads X, for all of the block, to `k_stop`.
    "turns from what is written": ({"turns": "T.cast(X[0, 0], 'int32')"}, "`k_stop` is written by the kernel"),
    "break": ({"last": "if tile == 7:\n        break"}, "leaves an iteration of a loop"),
    "counted inside": ({"inside": "tile += 1"}, "`tile` selects loads, and changes"),
    "read from what is written": (
        {"where": "T.cast(X[row, 0], 'int32')"},
        "values that loads need, and reads memory that the kernel writes",
    ),
}


def refusal(**parts: str) -> str:
    context = resolved(KERNEL.format(**{**PLAIN, **parts}), target="cuda:sm_90a")
    return str(context.facts[context.launch, WARP_SPECIALISED].because)


def test_no_refusal() -> None:
    assert refusal() == ""


@pytest.mark.parametrize(("parts", "because"), REFUSED.values(), ids=REFUSED.keys())
def test_refusals(parts: dict[str, str], because: str) -> None:
    assert because in refusal(**parts)


def test_a_box_has_at_most_256_rows() -> None:
    """Heads list the values of tile parameters next to the file's: those of 512 rows did not compile."""
    kernel = """
A_shared = T.alloc_shared(({rows}, 64), "float16")
B_shared = T.alloc_shared((64, 64), "float16")
C_local = T.alloc_fragment(({rows}, 64), "float32")
T.clear(C_local)
for k in T.Pipelined(4, num_stages=2):
    T.copy(Z[0, k * 64], A_shared)
    T.copy(Z[k * 64, 0], B_shared)
    T.gemm(A_shared, B_shared, C_local)
T.copy(C_local, X[0, 0])
"""
    for rows, because in ((256, ""), (512, "moves 512 rows, and a box of TMA has at most 256")):
        context = resolved(kernel.format(rows=rows), target="cuda:sm_90a")
        assert str(context.facts[context.launch, WARP_SPECIALISED].because).endswith(because)


@pytest.mark.parametrize(
    ("rows", "columns", "because"),
    [
        (192, 192, ""),
        (
            192,
            208,
            "takes 130 registers per thread, and the threads of a block of 384 and a producer warpgroup start with 128",
        ),
        (128, 256, ""),
    ],
)
def test_results_of_one_instruction_fit_the_registers(rows: int, columns: int, because: str) -> None:
    """ptxas 13.0 takes 192 x 192 by three warpgroups, and gives error C7602 from 192 x 208 on."""
    body = KERNEL.format(**PLAIN).replace("A_shared = T.alloc_shared((64", f"A_shared = T.alloc_shared(({rows}")
    body = body.replace("B_shared = T.alloc_shared((64, 64)", f"B_shared = T.alloc_shared((64, {columns})")
    body = body.replace("C_local = T.alloc_fragment((64, 64)", f"C_local = T.alloc_fragment(({rows}, {columns})")
    context = resolved(body, threads=2 * rows, target="cuda:sm_90a")
    found = str(context.facts[context.launch, WARP_SPECIALISED].because)
    assert because in found if because else not found


GEMM = """
A_shared = T.alloc_shared((64, 64), "{operand}")
C_local = T.alloc_fragment((64, 64), "{sums}")
T.clear(C_local)
for k in T.Pipelined(4, num_stages={stages}):
    {load}
    T.gemm(A_shared, A_shared, C_local)
{end}
"""
LOAD = "T.copy(Z[0, k * 64], A_shared)"
PLAIN_GEMM = {"operand": "float16", "sums": "float32", "stages": 2, "load": LOAD, "end": ""}
LOOP = f"for k in T.Pipelined(4, num_stages=2):\n    {LOAD}"
INNER = "D_shared = T.alloc_shared((64, 64), 'float16')\n    for q in T.Pipelined(2, num_stages=2):\n        "
INNER += "T.copy(Z[0, q * 64], D_shared)\n        T.gemm(D_shared, D_shared, C_local)"


@pytest.mark.parametrize(
    ("parts", "because"),
    [
        ({}, ""),
        ({"stages": 0}, ""),
        ({"end": LOOP}, "the pipelined loop has no GEMM"),
        ({"end": LOOP.replace("=2", "=3")}, "the pipelined loops of lines {4}, {7} load the same tile, `A_shared`, in"),
        (
            {"load": f"if k > bx:\n        {LOAD}"},
            "in line {4} loads in a branch (line {5}), so that it cannot be prefetched",
        ),
        ({"load": f"{LOAD}\n    if k > bx:\n        break"}, "line {7} leaves the loop"),
        ({"load": f"{LOAD}\n    {INNER}"}, "in line {7} is in another pipelined loop, whose loads come between"),
        ({"sums": "float16"}, ""),
        ({"operand": "float32"}, "has 32-bit operands: wgmma reads A as M x K and B as N x K, both from shared memory"),
        ({"operand": "bfloat16", "sums": "float16"}, "wgmma accumulates these operands in float32"),
    ],
    ids=["none", "no stages", "no GEMM", "two", "branch", "break", "nested", "sums in half", "floats", "sums"],
)
def test_reasons_name_what_to_change(parts: dict[str, str], because: str) -> None:
    context = resolved(GEMM.format(**{**PLAIN_GEMM, **parts}), target="cuda:sm_90a")
    found = str(context.facts[context.launch, WARP_SPECIALISED].because)
    lines = because.format(*range(FIRST_LINE - 1, FIRST_LINE + 9))
    assert lines in found if because else not found


def test_a_loop_without_stages_is_loaded_into_one() -> None:
    context = resolved(GEMM.format(**{**PLAIN_GEMM, "stages": 0}), target="cuda:sm_90a")
    (loop,) = statements(context.launch.body, Loop)
    assert context.facts[loop, PIPELINE].stages == 1
    older = resolved(GEMM.format(**{**PLAIN_GEMM, "stages": 0}), target="cuda:sm_80")
    assert older.facts.get(loop, PIPELINE) is None


COLUMNS = """
A_shared = T.alloc_shared((64, 64), "float16")
C_local = T.alloc_fragment((64, 64), "float32")
T.clear(C_local)
for k in T.Pipelined(4, num_stages=2):
    T.copy(Z[0, {column}], A_shared)
    T.gemm(A_shared, A_shared, C_local)
T.copy(C_local, Y[0, {stored}])
"""


@pytest.mark.parametrize(
    ("column", "conditions"),
    [
        ("k * 64", None),
        ("k * 64 + bx * 24", None),
        ("k * 64 + bx * m", "m % 8 == 0"),
        ("k * 64 + bx * (m // 4)", "m // 4 % 8 == 0"),
    ],
)
def test_boxes_start_at_multiples_of_16_bytes(column: str, conditions: str | None) -> None:
    """TMA reads wrong addresses from other columns: the launcher asks sizes that decide where a box starts."""
    context = resolved(COLUMNS.format(column=column, stored="0"), target="cuda:sm_90a")
    assert context.facts[context.launch, WARP_SPECIALISED].producer
    found = context.facts.get(context.launch, TMA_COLUMNS_IF)
    assert (None if found is None else ", ".join(map(str, found))) == conditions


@pytest.mark.parametrize("column", ["k * 64 + bx * 4", "k * 64 + T.cast(A[bx, 0], 'int32')", "k * 64 + 1"])
def test_boxes_from_other_columns_are_not_loaded_by_tma(column: str) -> None:
    context = resolved(COLUMNS.format(column=column, stored="0"), target="cuda:sm_90a")
    assert (
        "may start at a column that is no multiple of 16 bytes"
        in context.facts[context.launch, WARP_SPECIALISED].because
    )


@pytest.mark.parametrize(("stored", "by_tma"), [("bx * 64", True), ("bx * 4", False), ("bx * m", False)])
def test_results_are_stored_by_tma_from_multiples_of_16_bytes(stored: str, by_tma: bool) -> None:
    context = resolved(COLUMNS.format(column="k * 64", stored=stored).replace("Y[", "Z["), target="cuda:sm_90a")
    store = list(statements(context.launch.body, Copy))[-1]
    assert (context.facts.get(store, CALL) == "tma_store") == by_tma


def test_way_has_what_decides_and_nothing_else() -> None:
    context = resolved(KERNEL.format(**PLAIN), target="cuda:sm_90a")
    body = context.launch.body
    loop = next(op for op in walk_stmts(body) if isinstance(op, Loop) and op.kind is LoopKind.PIPELINED)
    pipeline = pipeline_of(loop, context.launch, producer=True)
    assert pipeline is not None
    way = path_to([(loop, pipeline)], body)
    assert isinstance(way, While)
    assert [type(stmt) for stmt in way.body] == [Let, Let, Loop, Assign]  # row, where, the turns, the next tile
    assert way.body[2] is loop
    assert [let.var.name for let in for_loads_alone(loop, pipeline, body)] == ["where"]


def walked(kernel: str = KERNEL, **parts: str) -> Walk | None:
    context = resolved(kernel.format(**{**PLAIN, **parts}), target="cuda:sm_90a")
    body = context.launch.body
    loop = next(op for op in walk_stmts(body) if isinstance(op, Loop) and op.kind is LoopKind.PIPELINED)
    pipeline = pipeline_of(loop, context.launch, producer=True)
    assert pipeline is not None
    return walk_to(loop, pipeline, body)


def test_what_the_way_has_changed_before_may_be_read() -> None:
    """`tile` changes in a loop around the branch that leads to the turns: behind it nothing that is done moves."""
    nested = "while tile < {stop}:\n    tile += 1\n    if tile < 40:\n        row = tile // 8\n"
    nested += "        where = row * 64 + tile"
    body = KERNEL.replace("while tile < {stop}:\n    row = tile // 8\n    where = {where}", nested)
    head, _, rest = body.partition("    {first}\n")
    indented = "".join(f"    {line}\n" if line.strip() else "\n" for line in rest.splitlines())
    walk = walked(head + indented.replace("        tile += 16\n", ""))
    assert walk is not None and [var.name for var in walk.values] == ["row"]
    assert [type(stmt) for stmt in walk.loading] == [Let, Loop]  # where, which reads `tile`


def test_walk_is_apart_from_what_is_done_on_it() -> None:
    walk = walked()
    assert walk is not None and isinstance(walk.way, While)
    assert [type(stmt) for stmt in walk.way.body] == [Let, Loop, Assign]  # row, the turns, the next tile
    assert [var.name for var in walk.values] == ["row"]
    assert [type(stmt) for stmt in walk.loading] == [Let, Loop]  # where
    assert [type(stmt) for stmt in walk.computing] == [Fill, Loop, Copy]


@pytest.mark.parametrize(
    "parts",
    [{"last": "X[0, 0] = T.cast(tile, 'float16')"}, {"where": "row * 64 + tile"}],
    ids=["computing", "loading"],
)
def test_who_reads_what_the_way_changes_goes_alone(parts: dict[str, str]) -> None:
    """The way changes `tile` behind the turns, and one of the two reads it beside them."""
    assert walked(**parts) is None


def test_a_sum_that_must_be_a_multiple_is_shown_in_parentheses() -> None:
    context = resolved(COLUMNS.format(column="k * 64 + bx * (m + 8)", stored="0"), target="cuda:sm_90a")
    (found,) = context.facts[context.launch, TMA_COLUMNS_IF]
    assert str(found) == "(m + 8) % 8 == 0"


SEVERAL = """
A_shared = T.alloc_shared((64, 64), "float16")
B_shared = T.alloc_shared((64, 64), "float16")
C_local = T.alloc_fragment((64, 64), "float32")
T.clear(C_local)
for k in T.Pipelined(4, num_stages=2):
    T.copy(Z[k * 64, 0], A_shared)
    T.gemm(A_shared, A_shared, C_local)
{between}
for k in T.Pipelined(4, num_stages={stages}):
    T.copy({tensor}[0, k * 64], {tile})
    T.gemm({tile}, {tile}, C_local)
T.copy(C_local, Y[0, 0])
"""


@pytest.mark.parametrize(
    ("parts", "because"),
    [
        ({}, ""),
        ({"stages": 3}, ""),
        ({"tile": "A_shared"}, ""),
        ({"tile": "A_shared", "stages": 3}, "load the same tile, `A_shared`, in different pipelines"),
        ({"tile": "A_shared", "between": "T.clear(A_shared)"}, "`A_shared`, which the loop prefetches, is used before"),
        ({"between": "T.copy(C_local, Z[0, 0])"}, "`Z` is written in line"),
        ({"between": "T.clear(B_shared)"}, "`B_shared`, which the loop prefetches, is used before it"),
    ],
    ids=str,
)
def test_a_producer_loads_for_several_loops(parts: dict[str, object], because: str) -> None:
    """Where nothing before a loop writes what it loads; loops of the same tiles are of one pipeline."""
    text = SEVERAL.format(**{"stages": 2, "tensor": "Z", "tile": "B_shared", "between": "", **parts})
    context = resolved(text, target="cuda:sm_90a")
    found = str(context.facts[context.launch, WARP_SPECIALISED].because)
    assert (because in found) if because else not found
    loops = [op for op in context.statements if isinstance(op, Loop)]
    assert all((context.facts[op, PIPELINE].producer) is not bool(because) for op in loops)
