"""Atomics, scans, threads, loops that end early, workspaces and the names that are only read."""

from collections.abc import Callable

import pytest

from tile2cu.analysis.uniformity import Uniformity
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.expr import Load, Role, static_value
from tile2cu.core.program import Copy, If, Let, Program, Scope, Store, walk_stmts
from tile2cu.frontend import programs

TILES = """
S = T.alloc_shared((block_M, 32), "float32")
F = T.alloc_fragment((block_M, 32), "float32")
row = T.alloc_shared((32,), "float32")
n = T.alloc_var("int32", 3)
"""

# statement, how it reads in the program, after `var n`
READ = {
    "T.atomic_add(B[bx * block_M, 0], F)": ["atomic_sum F -> B[(bx * block_M):+block_M, 0:+32]"],
    "T.atomic_max(B[0:64, 0:32], S, memory_order='relaxed')": ["atomic_max S -> B[0:+64, 0:+32]"],
    "T.atomic_add(row[0], A[bx, 0])": ["atomic_sum row[0], A[bx, 0]"],
    "T.atomic_min(B[bx, 1], 2.5)": ["atomic_min B[bx, 1], 2.5"],
    "T.atomic_addx2(B[bx, 4], S[0, 2])": [
        "unroll lane in 0:2:1",
        "  atomic_sum B[bx, (4 + lane)], S[0, (2 + lane)]",
    ],
    "T.cumsum(S, dim=1)": ["scan_sum S -> S, dim=1"],
    "T.cumsum(S, F, dim=0, reverse=True)": ["scan_sum S -> F, dim=0 reversed"],
    "T.cummax(src=S, dst=F, dim=-1)": ["scan_max S -> F, dim=1"],
    "T.sync_threads()": ["sync"],
    "tx = T.get_thread_binding()\nrow[tx] = 1.0": ["let tx: int32 = thread()", "row[tx] = 1.0"],
    "T.fill(row[3], 2.0)": ["fill row[3:+1] with 2.0"],
    "T.clear(n)": ["n = 0"],
    "T.print(S)\nT.device_assert(n > 3, 'too few')\nassert n < 9": [
        "print(S, '')",
        "assert (n > 3), 'too few'",
        "assert (n < 9), ''",
    ],
    "T.sync_threads(1, 128)": ["barrier_sync(1, 128)"],
    "T.annotate_layout({S: tilelang.layout.make_swizzled_layout(S)})": [],
    "T.annotate_layout({S: T.Layout(S.shape, lambda i, j: [j // 8, i, (j % 8) ^ (i & 7)])})": [],
    "T.annotate_layout({S: T.Layout(S.shape, lambda i, j: i * (32 + n) + j)})": [],
    "T.annotate_layout({F: T.Fragment(F.shape, forward_fn=lambda i, j: (i, j))})": [],
    "while n < bx:\n    n += 1\n    if n == 7:\n        break\n    if n == 5:\n        continue": [
        "while (n < bx)",
        "  n += 1",
        "  if (n == 7)",
        "    break",
        "  if (n == 5)",
        "    continue",
    ],
    "for i, j in T.grid(2, 3):\n    S[i, j] = 0.0": [
        "serial i in 0:2:1",
        "  serial j in 0:3:1",
        "    S[i, j] = 0.0",
    ],
    "for i in T.Parallel(64):\n    for j in T.parallel(32):\n        F[i, j] = 0.0": [
        "parallel i, j in 64, 32",
        "  F[i, j] = 0.0",
    ],
    "for i in T.Parallel(32):\n    row[i] = 0.0\n    for j in T.parallel(4):\n        row[i] += S[j, i]": [
        "parallel i in 32",
        "  row[i] = 0.0",
        "  serial j in 0:4:1",
        "    row[i] += S[j, i]",
    ],
    "for i, j in T.Persistent([4, 6], 8, bx):\n    S[i, j] = 0.0": [
        "serial wave in 0:ceildiv(24, 8):1",
        "  let tile: int32 = ((wave * 8) + bx)",
        "  if (tile < 24)",
        "    let i: int32 = (tile // 6)",
        "    let j: int32 = (tile % 6)",
        "    S[i, j] = 0.0",
    ],
    "s = T.PersistentTileScheduler(4, 6, 8)\ns.init(bx)\nwhile s.valid():\n    S[s.m_idx, s.n_idx] = 0.0\n"
    "    s.next_tile()": [
        "var sched_tile: int32 = bx",
        "var sched_iter: int32 = 0",
        "while (sched_tile < 24)",
        "  S[(sched_tile % 4), (sched_tile // 4)] = 0.0",
        "  sched_tile += 8",
        "  sched_iter += 1",
    ],
    "s = T.PersistentTileScheduler(7, 6, swizzle_size=2, column_major=False, cluster_size=2, name='p')\n"
    "if bx < 2:\n    s.init(bx)\nS[s.m_idx, s.n_idx] = 0.0": [
        "var p_tile: int32 = 0",
        "var p_iter: int32 = 0",
        "if (bx < 2)",
        "  p_tile = bx",
        "  p_iter = 0",
        "let p_panel: int32 = (p_tile // 12)",
        "let p_within: int32 = (p_tile % 12)",
        "let p_width: int32 = max(min(2, (4 - (p_panel * 2))), 1)",
        "S[((p_panel * 2) + (p_within % p_width)), (p_within // p_width)] = 0.0",
    ],
    "row[0], row[1] = T.PersistentTileScheduler(2, 3, stateful=False).coord(bx)": [
        "row[0] = (bx % 2)",
        "row[1] = (bx // 2)",
    ],
    "if T.any_of(B[bx, :]):\n    T.clear(S)": [
        "var any_of_B: bool = False",
        "serial i in 0:N:1",
        "  any_of_B = (any_of_B or bool(B[bx, i]))",
        "if any_of_B",
        "  clear S with 0",
    ],
    "row[0] = T.if_then_else(T.all_of(S[3, 0:8]), 1.0, 2.0)": [
        "var all_of_S: bool = True",
        "serial i in 0:8:1",
        "  all_of_S = (all_of_S and bool(S[3, i]))",
        "var all_of_S_of_block: bool = all_of_block(all_of_S)",
        "row[0] = if_then_else(all_of_S_of_block, 1.0, 2.0)",
    ],
    "T.annotate_safe_value({A: -1})\nT.copy(A[bx * block_M, 0], S)\nrow[0] = A[n - 1, 3]": [
        "parallel i, j in block_M, 32",
        "  S[i, j] = if_then_else(((((bx * block_M) + i) < M) and (j < N)), A[((bx * block_M) + i), j], float32(-1.0))",
        "row[0] = if_then_else((((n - 1) >= 0) and ((n - 1) < M)), A[(n - 1), 3], float32(-1.0))",
    ],
    "T.tvm_storage_sync('shared')\nT.tvm_storage_sync('warp')": ["sync", "sync_warp()"],
    "row[0] = T.fast_rcp(A[0, 0])": ["row[0] = (1.0 / A[0, 0])"],
    "T.func_attr({'x': 1})\nT.reads(A[0:4, 0:4])": [],
    "T.tma_store_arrive()\nT.tma_store_wait(0)": ["block_tma_store_commit()", "block_tma_store_wait_read<0>()"],
    "T.tma_store_wait(2, read=False)": ["block_tma_store_wait<2>()"],
    "T.async_copy(A[bx, 0], S)\nT.ptx_wait_group(0)": [
        "copy A[bx:+block_M, 0:+32] -> S",
        "cp_async_commit()",
        "cp_async_wait<0>()",
    ],
    "D = T.decl_buffer((4,), 'float32', scope='local')\nD[0] = 1.0": ["D[0] = 1.0"],
    "for i, j in T.Persistent([4, 20], 8, bx):\n    S[i, j] = 0.0": [
        "serial wave in 0:ceildiv(80, 8):1",
        "  let tile: int32 = ((wave * 8) + bx)",
        "  if (tile < 80)",
        "    let panel_start: int32 = ((tile // 32) * 8)",
        "    let panel_rows: int32 = min(8, (20 - panel_start))",
        "    let place_in_panel: int32 = (tile % 32)",
        "    let i: int32 = (place_in_panel // panel_rows)",
        "    let j: int32 = (panel_start + (place_in_panel % panel_rows))",
        "    S[i, j] = 0.0",
    ],
    "for i, j, k in T.Persistent([4, 3, 20], 8, bx, group_size=6):\n    S[i, k] = row[j]": [
        "serial wave in 0:ceildiv(240, 8):1",
        "  let tile: int32 = ((wave * 8) + bx)",
        "  if (tile < 240)",
        "    let panel_start: int32 = ((tile // 72) * 6)",
        "    let panel_rows: int32 = min(6, (20 - panel_start))",
        "    let place_in_panel: int32 = (tile % 72)",
        "    let i: int32 = ((place_in_panel // panel_rows) // 3)",
        "    let j: int32 = ((place_in_panel // panel_rows) % 3)",
        "    let k: int32 = (panel_start + (place_in_panel % panel_rows))",
        "    S[i, k] = row[j]",
    ],
    "for i, j in T.Persistent([4, 20], 8, bx, group_size=1):\n    S[i, j] = 0.0": [
        "serial wave in 0:ceildiv(80, 8):1",
        "  let tile: int32 = ((wave * 8) + bx)",
        "  if (tile < 80)",
        "    let i: int32 = (tile // 20)",
        "    let j: int32 = (tile % 20)",
        "    S[i, j] = 0.0",
    ],
    "for k in T.Pipelined(4, num_stages=2, order=[0, 1], stage=[0, 0], group=[[0], [1]]):\n    T.copy(A[k, 0], S)": [
        "pipelined k in 0:4:1, stages=2",
        "  copy A[k:+block_M, 0:+32] -> S",
    ],
    "row[0] = T.sin(A[0, 0]) + T.__exp(A[0, 2])": ["row[0] = (sin(A[0, 0]) + exp(A[0, 2]))"],
    "row[0] = T.pow(A[0, 0], 3) + T.fmod(A[0, 1], 2.0)": ["row[0] = ((A[0, 0] ** 3) + fmod(A[0, 1], 2.0))"],
    "row[0] = T.Select(T.isfinite(A[0, 0]), A[0, 0], 0.0)": ["row[0] = if_then_else(isfinite(A[0, 0]), A[0, 0], 0.0)"],
    "row[0] = T.ieee_add(A[0, 0], 2, 'ru')": ["row[0] = add_ru(A[0, 0], 2)"],
    "row[0] = T.ieee_fmaf(A[0, 0], A[0, 1], 1.0, rounding_mode='rz')": ["row[0] = fma_rz(A[0, 0], A[0, 1], 1.0)"],
    "row[0] = T.ieee_frsqrt(A[0, 0])": ["row[0] = rsqrt_rn(A[0, 0])"],
    "n = T.__ffs(n)": ["n = first_set(n)"],
    "row[0] = T.copysign(A[0, 0], -1.0) + T.atan2(A[0, 1], A[0, 2])": [
        "row[0] = (copysign(A[0, 0], -1.0) + atan2(A[0, 1], A[0, 2]))"
    ],
    "if n > 1:\n    if n > 2:\n        T.thread_return()\n    else:\n        T.thread_return()\nn = 4": [
        "if (n <= 1)",
        "  n = 4",
    ],
    "if n > 1:\n    pass\nelse:\n    n = 4": ["if (n <= 1)", "  n = 4"],
    "for i in T.serial(4):\n    row[i] = A[0, i]\n    A = 1 + i\n    row[i] += A": [
        "serial i in 0:4:1",
        "  row[i] = A[0, i]",
        "  let A_1: int32 = (1 + i)",
        "  row[i] += A_1",
    ],
    "n = T.popcount(n) + T.truncmod(-7, 4)": ["n = (popcount(n) + -3)"],
    "row[0] = T.log1p(T.max_value('float16'))": ["row[0] = log1p(65504.0)"],
    "row[0] = T.__ldg(A[0, 3])": ["row[0] = A[0, 3]"],
    "row[0] = A[0, 0].astype('float16')": ["row[0] = float16(A[0, 0])"],
    "row[0] = T.if_then_else(T.And(n < 3, T.Or(bx > 1, T.Not(n < 1))), 1.0, 2.0)": [
        "row[0] = if_then_else(((n < 3) and ((bx > 1) or (not (n < 1)))), 1.0, 2.0)"
    ],
    "if T.And(True, n < 3):\n    n = 1\nif T.Or(n < 3, True):\n    n = 2\nif T.Not(False):\n    n = 4": [
        "if (n < 3)",
        "  n = 1",
        "n = 2",
        "n = 4",
    ],
    "with T.If(n < 3):\n    with T.Then():\n        n = 1\n    with T.Else():\n        n = 2": [
        "if (n < 3)",
        "  n = 1",
        "else",
        "  n = 2",
    ],
    "with T.If(n < 3), T.Then():\n    n = 1\nwith T.If(n < 3), T.Else():\n    n = 2": [
        "if (n < 3)",
        "  n = 1",
        "if (n >= 3)",
        "  n = 2",
    ],
    "with T.If(block_M > 3):\n    with T.Then():\n        n = 1\n    with T.Else():\n        n = 2": ["n = 1"],
    "with T.While(n < bx):\n    n += 1": ["while (n < bx)", "  n += 1"],
    "n = 7 if block_M == 3 else n": [],
    "x = 1\ndel x\nx = n\nrow[x] = 0.0": ["let x: int32 = n", "row[x] = 0.0"],
    "T.copy(A[bx, 0:n], S[3, 0:n])": [
        "parallel i in 32",
        "  if (i < n)",
        "    S[3, i] = A[bx, i]",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("statement", "read"), READ.items(), ids=READ.keys())
def test_read(body: Callable[..., Program], listing: Callable[..., list[str]], statement: str, read: list[str]) -> None:
    assert listing(body(TILES + statement)) == ["var n: int32 = 3", *read]


@pytest.mark.parametrize(
    ("statement", "message"),
    {
        "for i in T.serial(4):\n    if n > 3:\n        T.thread_return()": "F011 T.thread_return is only supported "
        "where all that take a branch of the kernel leave there",
        "if n > 3:\n    if n > 4:\n        T.thread_return()\n    n = 2\nn = 3": "F011 T.thread_return is only "
        "supported where all that take a branch of the kernel leave there",
        "T.atomic_add(F, S)": "F023 T.atomic_add: the destination is `F`, a fragment buffer",
        "T.atomic_add(3, 1.0)": "F023 T.atomic_add takes an element and a number, or two tiles, not the number 3",
        "T.sync_threads(0, 128)": "F023 T.sync_threads of a part of the block takes the number of a barrier, 1 to 12, "
        "and a number of threads",
        "s = T.PersistentTileScheduler(2, 3, stateful=False)\ns.init(bx)": "F013 `init` of a scheduler that is made "
        "with stateful=False",
        "s = T.PersistentTileScheduler(2, 3)\ns.next()": "F013 a tile scheduler has no attribute `next`",
        "s = T.PersistentTileScheduler(2, 3)\nfor i in T.Parallel(4):\n    s.next_tile()": "F026 the iteration of a "
        "tile scheduler works on whole tiles; it cannot be inside T.Parallel",
        "row[0] = T.add2(A[0, 0], A[0, 1])": "F023 T.add2 takes vectors of two elements, not a value known only at run "
        "time",
        "row[T.Ramp(0, 1, 4)] = T.Broadcast(1.0, 2)": "F034 2 elements are stored to 4",
        "row[T.Ramp(30, 1, 4)] = 1.0": "F024 index 32 is outside of dimension 0 of `row` of 32 elements",
        "row[0] = T.Ramp(0, 1, 32)[1]": "F023 T.Ramp of 32 elements; a vector has at most 16",
        "x = T.Ramp(0, 1, 2) + T.Broadcast(1, 4)": "F034 vectors of 2 and 4 elements do not go together",
        "x = T.reinterpret(T.ldg64(A[0, 0]), T.float16x2)": "F023 T.reinterpret of 64 bits as `T.float16x2`: they "
        "differ in width",
        "T.stg64(A[0, 0], T.ldg32(B[0, 0]))": "F023 T.stg64 writes 64 bits, not 32",
        "x = T.extract_lane(T.float32x2(1, 2), 2)": "F024 T.extract_lane takes element 2 of 2",
        "T.any_of(F)": "F023 the argument of T.any_of is `F`, a fragment buffer, whose elements are in the registers "
        "of many threads",
        "T.tvm_storage_sync('global')": 'F023 T.tvm_storage_sync takes "shared" or "warp", not the string \'global\'',
        "T.async_copy(S, A[0, 0])": "F023 T.async_copy copies from a tensor to a shared tile, not from `S`, a shared "
        "buffer to `A`, a tensor in global memory",
        "T.annotate_safe_value({S: 1.0})": "F023 T.annotate_safe_value is about tensors as they are, not `S`, a shared "
        "buffer",
        "row[0] = T.ieee_add(A[0, 0], 1.0, 'xy')": "F023 `rounding_mode` of T.ieee_add is one of rn, rz, ru, rd, not "
        "the string 'xy'",
        "row[0] = T.ieee_mul(T.cast(n, 'float16'), T.cast(n, 'float16'), 'rz')": "F023 T.ieee_mul of float16 rounds to "
        "nearest only",
        "row[0] = T.ieee_frcp(n)": "F018 T.ieee_frcp takes floating-point numbers, not int32",
        "row[0] = T.ieee_frsqrt(T.cast(n, 'float64'))": "F018 T.ieee_frsqrt takes float32, not float64",
        "n = T.__ffs(A[0, 0])": "F018 T.__ffs takes integers, not float32",
        "row[0] = T.__ldg(S[0, 0])": "F023 T.__ldg reads tensors in global memory, not `S`, a shared buffer",
        "with T.If(n < 3):\n    n = 1": "F012 `with T.If(...):` contains `with T.Then():` and `with T.Else():`, once "
        "each, alone",
        "with T.Then():\n    n = 1": "F012 `with` of T.Then() is not supported here",
        "with T.ws(0), T.If(n < 3):\n    n = 1": "F012 `with T.If(...):` contains `with T.Then():` and "
        "`with T.Else():`, once each, alone",
        "with T.While(n < 3), T.ws(0):\n    pass": "F012 T.While with other items is not supported in a kernel",
        "with 3:\n    pass": "F012 `with` of the number 3 is not supported here",
        "del nothing": "F009 `nothing` is not bound here, so `del` has nothing to end",
        "del row[0]": "F012 `del row[0]` is not supported",
        "break": "F026 `break` is outside of any loop of the kernel",
        "T.get_thread_binding(3)": "F023 `dim` of T.get_thread_binding is 0, 1 or 2, not 3",
        "T.reinterpret(n, 'float16')": "F023 T.reinterpret of int32 as float16: they differ in width",
        "T.cumsum(S, row)": "F022 T.cumsum of `S` (64, 32) does not fit `row` (32,)",
        "T.annotate_layout({row: T.Layout(row.shape, lambda i: i // 2)})": "L016 the layout of `row` puts its elements "
        "(0,) and (1,) in one place, (0,)",
        "T.annotate_layout({S: T.Layout(S.shape, lambda i, j: i * 31 + j)})": "L016 the layout of `S` puts its "
        "elements (0, 31) and (1, 0) in one place, (31,)",
        "T.annotate_layout({A: tilelang.layout.make_swizzled_layout(A)})": "F011 `A` is a tensor in global memory; "
        "such a layout of it is not supported yet",
        "T.annotate_layout({A: T.Layout(A.shape, lambda i, j: (j, i * A[0, 0]))})": "F023 a layout gives integers, "
        "not a tuple",
        "T.annotate_layout({B: T.Layout(B.shape, lambda i, j: (i * j, j))})": "F011 a layout of a tensor in global "
        "memory with such a coordinate is not supported yet",
        "x = T.alloc_buffer((4,), 'int8', scope='local.tmem')": "F023 `scope` of T.alloc_buffer is one of global, "
        "shared, shared.dyn, local.fragment, local",
    }.items(),
)
def test_refused(refusal: Callable[..., str], statement: str, message: str) -> None:
    assert refusal(TILES + statement) == message


EAGER = """
import tilelang
import tilelang.language as T

@tilelang.jit
def kernel(A, threads=(32, 4)):
    N, = T.const("N,") if False else (T.const("N"),)
    A: T.Tensor((N,), "float32")
    with T.Kernel(N, threads=threads) as bx:
        {body}
"""


def test_threads_of_two_dimensions(trace: Callable[..., Program], listing: Callable[..., list[str]]) -> None:
    lines = "tx = T.get_thread_binding(0)\n        ty = T.get_thread_binding(1)\n        A[tx * 4 + ty] = 0.0"
    program = trace(EAGER.format(body=lines))
    assert program.launches[0].threads == 128
    assert listing(program) == [
        "let tx: int32 = (thread() % 32)",
        "let ty: int32 = (thread() // 32)",
        "A[((tx * 4) + ty)] = 0.0",
    ]


def test_old_spelling_of_threads(trace: Callable[..., Program], listing: Callable[..., list[str]]) -> None:
    lines = "for tx in T.thread_binding(0, 32, thread='threadIdx.x'):\n            A[tx] = 0.0"
    assert listing(trace(EAGER.format(body=lines))) == ["let tx: int32 = (thread() % 32)", "A[tx] = 0.0"]


def test_conditions_on_threads_are_known_to_diverge(trace: Callable[..., Program]) -> None:
    program = trace(EAGER.format(body="if T.get_thread_binding() < 3:\n            A[bx] = 0.0"))
    (branch,) = program.launches[0].body
    assert isinstance(branch, If) and not Uniformity(program.launches[0]).holds(branch.condition)


def test_what_threads_ask_of_one_another_is_asked_before_the_branch(trace: Callable[..., Program]) -> None:
    program = trace(EAGER.format(body="if T.shfl_sync(bx, 3) < 3 and bx > 0:\n            A[bx] = 0.0"))
    let, branch = program.launches[0].body
    assert isinstance(let, Let) and isinstance(branch, If)
    assert branch.condition == let.var and let.var.role is Role.THREAD


def test_block_binding(trace: Callable[..., Program], listing: Callable[..., list[str]]) -> None:
    assert listing(trace(EAGER.format(body="A[T.get_block_binding(0) + T.get_block_binding(1)] = 0.0"))) == [
        "A[bx] = 0.0"
    ]


def test_workspace_of_two_launches(trace: Callable[..., Program], listing: Callable[..., list[str]]) -> None:
    program = trace("""
    import tilelang.language as T

    @T.prim_func
    def kernel(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        W = T.alloc_global((64, 2), "float32")
        with T.Kernel(64) as bx:
            W[bx, 0] = A[bx]
        with T.Kernel(64) as bx:
            B[bx] = W[bx, 0]
    """)
    assert [(each.name, each.scope, each.static_shape) for each in program.workspaces] == [("W", Scope.GLOBAL, (64, 2))]
    assert [param.name for param in program.params] == ["A", "B"]
    assert len(program.launches) == 2
    assert listing(program) == ["W[bx, 0] = A[bx]", "B[bx] = W[bx, 0]"]


def test_old_spellings_of_allocations(body: Callable[..., Program]) -> None:
    program = body("""
    a = T.alloc_shared((4, 64), "float16", scope="shared", layout="swizzle_128b")
    b = T.alloc_buffer((4,), "float32", scope="local.fragment")
    c = T.alloc_buffer([8], "int32", scope="local")
    """)
    assert [(tile.name, tile.scope) for tile in program.launches[0].tiles] == [
        ("a", Scope.SHARED),
        ("b", Scope.FRAGMENT),
        ("c", Scope.LOCAL),
    ]


PLACED = """
import tilelang.language as T

@T.prim_func
def kernel(A: T.Tensor({shape}, "float32"), B: T.Tensor((4096,), "float32")):
    with T.Kernel(4) as bx:
        T.annotate_layout({{A: T.Layout(A.shape, {layout})}})
{body}
"""
LAYOUTS = {
    "lambda b, l, h, d: [b, l // 8, h, d // 8, (d % 2), 4 * (l % 8) + (d % 8) // 2]": lambda b, i, h, d: (
        b, (((i // 8 * 3 + h) * 2 + d // 8) * 2 + d % 2) * 32 + 4 * (i % 8) + (d % 8) // 2,
    ),
    "lambda b, l, h, d: [b, h, l, d]": lambda b, i, h, d: (b, (h * 16 + i) * 16 + d),
    "lambda b, l, h, d: (l, d ^ (l % 16), b, h)": lambda b, i, h, d: (0, ((i * 16 + (d ^ i)) * 2 + b) * 3 + h),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_elements_of_a_placed_tensor(trace: Callable[..., Program], layout: str) -> None:
    places = [(b, i, h, d) for b in range(2) for i in range(0, 16, 5) for h in range(3) for d in range(16)]
    body = "\n".join(f"        B[{at}] = A[{b}, {i}, {h}, {d}]" for at, (b, i, h, d) in enumerate(places))
    program = trace(PLACED.format(shape=(2, 16, 3, 16), layout=layout, body=body))
    assert len(program.launches[0].body) == len(places)
    for place, stmt in zip(places, program.launches[0].body, strict=True):
        assert isinstance(stmt, Store) and isinstance(stmt.value, Load)
        first, *rest = (int(static_value(index) or 0) for index in stmt.value.indices)
        batch, offset = LAYOUTS[layout](*place)
        assert ((first * 16 + rest[0]) * 3 + rest[1]) * 16 + rest[2] == batch * 768 + offset


def test_tiles_of_a_placed_tensor(trace: Callable[..., Program], listing: Callable[..., list[str]]) -> None:
    body = """
        tile = T.alloc_fragment((8, 16), "float16")
        T.copy(A[bx * 8, 0], tile)
        T.atomic_add(A[bx * 8 : bx * 8 + 8, :], tile)
        for i in T.Parallel(8):
            A[bx * 8 + i, 3] += 1.0
    """
    program = trace(PLACED.format(shape=(30, 16), layout="lambda i, j: [j, i]", body=body))
    lines = listing(program)
    assert lines[:2] == [
        "parallel i, j in 8, 16",
        "  tile[i, j] = float16(if_then_else((((bx * 8) + i) < 30), "
        "A[(((j * 30) + ((bx * 8) + i)) // 16), (((j * 30) + ((bx * 8) + i)) % 16)], 0))",
    ]
    assert lines[2:4] == ["parallel i, j in 8, 16", "  if (((bx * 8) + i) < 30)"]
    assert lines[4].startswith("    atomic_sum A[(((j * 30) + ((bx * 8) + i)) // 16), ")
    assert lines[5:7] == ["parallel i in 8", "  if (((bx * 8) + i) < 30)"]
    assert lines[7].endswith("+= 1.0")


def test_from_tensor_to_tensor(body: Callable[..., Program], listing: Callable[..., list[str]]) -> None:
    assert listing(body("T.copy(A[bx * 4 : bx * 4 + 4, 0:8], B[0, 0])")) == [
        "parallel i, j in 4, 8",
        "  B[i, j] = A[((bx * 4) + i), j]",
    ]


def test_extents_between_named_ends_are_numbers(body: Callable[..., Program]) -> None:
    program = body(
        "first = bx * 4\nlast = first + 4\nS = T.alloc_shared((4, 4), 'float32')\nT.copy(S, S[first:last, 0:4])"
    )
    (copy,) = (stmt for stmt in program.launches[0].body if isinstance(stmt, Copy))
    assert [static_value(part.extent) for part in copy.dst.ranges] == [4, 4]


MATCHED = """
import tilelang.language as T

@T.prim_func
def kernel(a: T.handle, n: T.int32, b: T.handle):
    B = T.match_buffer(b, (8, 16), T.float16, strides=(32, 1))
    {first}
    with T.Kernel(8) as bx:
        B[bx, 0] = n
"""


def test_handles_are_tensors(trace: Callable[..., Program]) -> None:
    program = trace(MATCHED.format(first='A = T.match_buffer(a, (4,), "int32")'))
    assert [param.name for param in program.params] == ["a", "n", "b"]
    assert program.params[2].dtype.name == "float16" and program.params[2].strides is not None


def test_a_handle_that_nothing_describes(trace: Callable[..., Program]) -> None:
    with pytest.raises(Tile2CuError, match="no T.match_buffer states what tensor `a` is"):
        trace(MATCHED.format(first="pass"))


STAGES = """
import tilelang.language as T

def stages(N, count=2):
    @T.macro
    def step(A: T.Tensor((N,), "float32"), distance, last):
        with T.Kernel(T.ceildiv(N, 64), threads=64) as bx:
            for i in T.Parallel(64):
                if last:
                    A[bx * 64 + i] = A[bx * 64 + i] * 2.0
                else:
                    A[bx * 64 + i] = A[bx * 64 + i] + distance

    @T.prim_func
    def main(A: T.Tensor((N,), "float32")):
        for stage in range(count):
            step(A, 2**stage, stage + 1 == count)

    return main
"""


def test_turns_of_a_loop_around_kernels_are_launches(trace: Callable[..., Program]) -> None:
    program = trace(STAGES, count=3)
    stored = [stmt.value for launch in program.launches for stmt in walk_stmts(launch.body) if isinstance(stmt, Store)]
    assert [(value.op, static_value(value.rhs)) for value in stored] == [("+", 1), ("+", 2), ("*", 2)]


def test_turns_that_only_a_run_tells() -> None:
    with pytest.raises(Tile2CuError) as caught:
        programs(None, STAGES.replace("range(count)", "range(N)"), bindings={})
    assert (caught.value.code, caught.value.message[:60]) == (
        "T2C-F006",
        "a bound of this range needs the value of `N`, which is left ",
    )
