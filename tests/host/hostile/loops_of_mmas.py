"""Loops of MMAs whose statements depend on more than their tiles: what is cleared, staged, skipped, carried or shifted.

Each is a body with its parameters; `one` is 1, `far` is 2**31 - 64, and `below` is -8.
"""

_TILES = """
A = T.alloc_shared((64, 64), "float16")
B = T.alloc_shared((64, 64), "float16")
C = T.alloc_fragment((64, 64), "float32")
T.clear(C)
"""
_X = 'X: T.Tensor((64, 256), "float16")'
_W = 'W: T.Tensor((256, 64), "float16")'
_ROWS = 'X: T.Tensor((320, 64), "float16")'
_SQUARE = 'W: T.Tensor((64, 64), "float16")'
_Y = 'Y: T.Tensor((64, 64), "float32")'
_LOADS = """
    T.copy(X[0, ko * 64], A)
    T.copy(W[ko * 64, 0], B)
"""

CLEARED: dict[str, tuple[str, str]] = {
    "cleared_by_a_table": (
        f'{_X}, {_W}, {_Y}, F: T.Tensor((8,), "int32")',
        f"""{_TILES}
for ko in T.Pipelined(4, num_stages=3):{_LOADS}
    T.gemm(A, B, C, clear_accum=(F[ko] > 0))
T.copy(C, Y)
""",
    ),
    "cleared_by_a_variable_that_also_places_the_load": (
        f"{_X}, {_W}, {_Y}",
        f"""v = T.alloc_var("int32", init=0)
{_TILES}
for ko in T.Pipelined(4, num_stages=3):
    T.copy(X[0, v * 64], A)
    v = v + 1
    T.copy(W[ko * 64, 0], B)
    T.gemm(A, B, C, clear_accum=(v == 2))
T.copy(C, Y)
""",
    ),
    "again_in_a_branch": (
        f"{_X}, {_W}, {_Y}",
        f"""{_TILES}
for ko in T.Pipelined(4, num_stages=2):{_LOADS}
    T.gemm(A, B, C)
    if ko > one:
        T.gemm(A, B, C)
T.copy(C, Y)
""",
    ),
    "loop_left_behind_the_mma": (
        f'{_X}, {_W}, {_Y}, F: T.Tensor((8,), "int32")',
        f"""{_TILES}
for ko in T.Pipelined(4, num_stages=3):{_LOADS}
    T.gemm(A, B, C)
    if F[ko + 2] > 0:
        break
T.copy(C, Y)
""",
    ),
    "a_range_from_a_table": (
        f'{_X}, {_W}, {_Y}, F: T.Tensor((8,), "int32")',
        f"""{_TILES}
for ko in T.Pipelined(F[0] + one, F[1] + 3, num_stages=3):{_LOADS}
    T.gemm(A, B, C)
T.atomic_add(Y[0, 0], C)
""",
    ),
}

STAGED: dict[str, tuple[str, str]] = {
    "scaled_where_it_is_staged": (
        f"{_X}, {_W}, {_Y}",
        f"""{_TILES}
for ko in T.Pipelined(4, num_stages=3):{_LOADS}
    for p, q in T.Parallel(64, 64):
        A[p, q] = A[p, q] * 2.0
    T.gemm(A, B, C)
T.copy(C, Y)
""",
    ),
    "sum_carried_in_the_operand": (
        f"{_X}, {_W}, {_Y}",
        f"""{_TILES}
T.clear(A)
for ko in T.Pipelined(4, num_stages=3):
    T.copy(W[ko * 64, 0], B)
    for p, q in T.Parallel(64, 64):
        A[p, q] = A[p, q] + X[p, ko * 64 + q]
    T.gemm(A, B, C)
T.copy(C, Y)
""",
    ),
    "staged_tiles_read_after_the_loop": (
        f"{_X}, {_W}, {_Y}",
        f"""{_TILES}
for ko in T.Pipelined(4, num_stages=3):{_LOADS}
    T.gemm(A, B, C)
for p, q in T.Parallel(64, 64):
    C[p, q] = C[p, q] + B[p, q] * A[q, p]
T.copy(C, Y)
""",
    ),
    "loaded_from_two_places": (
        f"{_X}, {_W}, {_Y}",
        f"""{_TILES}
for ko in T.Pipelined(4, num_stages=3):
    if bx % 2 == ko % 2:
        T.copy(X[0, ko * 64], A)
    else:
        T.copy(X[0, 192 - ko * 64], A)
    T.copy(W[ko * 64, 0], B)
    T.gemm(A, B, C)
T.copy(C, Y)
""",
    ),
    "stage_that_takes_the_result_out": (
        f'{_ROWS}, {_SQUARE}, Y: T.Tensor((320, 64), "float16")',
        f"""{_TILES}
T.copy(W, B)
for ko in T.Pipelined(5, num_stages=2):
    T.copy(X[ko * 64, 0], A)
    T.gemm(A, B, C, clear_accum=True)
    T.copy(C, A)
    T.copy(A, Y[ko * 64, 0])
""",
    ),
}

CARRIED: dict[str, tuple[str, str]] = {
    "next_rows_written_by_a_reshape": (
        f'{_ROWS}, {_SQUARE}, Y: T.Tensor((320, 64), "float16")',
        f"""{_TILES}
flat = T.reshape(X, (5, 64, 64))
T.copy(W, B)
for ko in T.Pipelined(4, num_stages=3):
    T.copy(X[ko * 64, 0], A)
    T.gemm(A, B, C, clear_accum=True)
    for p, q in T.Parallel(64, 64):
        C[p, q] = T.min(T.max(C[p, q], -2.0), 2.0)
    for p, q in T.Parallel(64, 64):
        flat[ko + 1, p, q] = C[p, q]
T.copy(C, Y[0, 0])
""",
    ),
    "rows_summed_from_the_stage": (
        f"{_ROWS}, {_Y}",
        f"""{_TILES}
S = T.alloc_fragment((64,), "float32")
T.clear(S)
for ko in T.Pipelined(4, num_stages=3):
    T.copy(X[ko * 64, 0], A)
    for p in T.Parallel(64):
        S[p] += A[p, ko]
    T.gemm(A, A, C, transpose_B=True)
    for p, q in T.Parallel(64, 64):
        C[p, q] = C[p, q] - S[p]
T.copy(C, Y)
""",
    ),
    "scan_of_each_result": (
        f"{_ROWS}, {_SQUARE}, {_Y}",
        f"""{_TILES}
S = T.alloc_shared((64, 64), "float32")
D = T.alloc_fragment((64, 64), "float32")
T.clear(D)
T.copy(W, B)
for ko in T.Pipelined(4, num_stages=3):
    T.copy(X[ko * 64, 0], A)
    T.gemm(A, B, C, clear_accum=True)
    T.copy(C, S)
    T.cumsum(S, dim=1)
    for p, q in T.Parallel(64, 64):
        D[p, q] += S[p, q]
T.copy(D, Y)
""",
    ),
    "operand_in_registers_that_changes": (
        f"{_SQUARE}, {_ROWS}, {_Y}",
        f"""{_TILES}
H = T.alloc_fragment((64, 64), "float16")
T.copy(W, H)
for ko in T.Pipelined(4, num_stages=2):
    T.copy(X[ko * 64, 0], B)
    T.gemm(H, B, C)
    for p, q in T.Parallel(64, 64):
        H[p, q] = H[p, q] * -1.0
T.copy(C, Y)
""",
    ),
    "second_mma_feeds_the_first": (
        f"{_ROWS}, {_Y}",
        f"""{_TILES}
H = T.alloc_fragment((64, 64), "float16")
E = T.alloc_fragment((64, 64), "float32")
T.clear(E)
T.clear(H)
for ko in T.Pipelined(4, num_stages=2):
    T.copy(X[ko * 64, 0], A)
    T.gemm(H, A, C, clear_accum=True)
    for p, q in T.Parallel(64, 64):
        H[p, q] = T.min(T.max(C[p, q] + 1.0, -2.0), 2.0)
    T.gemm(H, A, E)
T.copy(E, Y)
""",
    ),
    "pipeline_in_each_iteration_of_another": (
        f"{_X}, {_W}, {_Y}",
        f"""{_TILES}
D = T.alloc_shared((64, 64), "float16")
for o in T.Pipelined(2, num_stages=2):
    T.copy(X[0, o * 64], D)
    for ko in T.Pipelined(3, num_stages=2):
        T.copy(X[0, ko * 64], A)
        T.copy(W[ko * 64, 0], B)
        T.gemm(A, B, C)
    for p, q in T.Parallel(64, 64):
        C[p, q] += D[p, q]
T.copy(C, Y)
""",
    ),
}

OUTSIDE: dict[str, tuple[str, str]] = {
    "planes_that_are_none": (
        f'X: T.Tensor((3, 64, 256), "float16"), {_W}, Y: T.Tensor((3, 64, 64), "float16")',
        f"""{_TILES}
for ko in T.Pipelined(4, num_stages=2):
    T.copy(X[one + ko % 3, 0, ko * 64], A)
    T.copy(W[ko * 64, 0], B)
    T.gemm(A, B, C)
T.copy(C, Y[bx + one, 0, 0])
T.copy(C, Y[bx + far, 0, 0])
""",
    ),
    "sums_that_begin_outside": (
        f'{_ROWS}, Y: T.Tensor((80, 64), "float32")',
        f"""{_TILES}
for ko in T.Pipelined(5, num_stages=2):
    T.copy(X[ko * 64, 0], A)
    T.gemm(A, A, C, transpose_B=True, clear_accum=True)
    T.atomic_add(Y[ko * 64 + below, 0], C)
""",
    ),
    "rows_gathered_from_anywhere": (
        f'{_ROWS}, {_SQUARE}, {_Y}, I: T.Tensor((128,), "int32")',
        f"""{_TILES}
for ko in T.Pipelined(2, num_stages=2):
    T.copy(W, B)
    for p, q in T.Parallel(64, 64):
        A[p, q] = X[I[ko * 64 + p] * far, q]
    T.gemm(A, B, C)
T.copy(C, Y)
""",
    ),
    "vectors_that_begin_outside": (
        f'{_X}, {_W}, {_Y}, V: T.Tensor((256,), "float32")',
        f"""{_TILES}
v = T.alloc_shared((64,), "float32")
D = T.alloc_fragment((64, 64), "float32")
T.clear(D)
for ko in T.Pipelined(4, num_stages=2):
    T.copy(X[0, ko * 64 + below], A)
    T.copy(W[ko * 64 - below, 0], B)
    T.copy(V[ko * 64 + below], v)
    T.gemm(A, B, C, clear_accum=True)
    for p, q in T.Parallel(64, 64):
        D[p, q] += C[p, q] * v[q]
T.copy(D, Y[below, 0])
""",
    ),
    "tables_that_place_loads": (
        f'{_ROWS}, {_SQUARE}, {_Y}, F: T.Tensor((8,), "int32")',
        f"""{_TILES}
v = T.alloc_var("int32", init=0)
T.copy(W, B)
for ko in T.Pipelined(6, num_stages=3):
    if F[v] >= 0:
        T.copy(X[F[v] * 64 + below, 0], A)
        T.gemm(A, B, C)
    v = v + one
T.copy(C, Y)
""",
    ),
}
