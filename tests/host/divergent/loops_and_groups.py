"""Loops whose trip count depends on the thread, and groups of threads, with tiles that they share.

Each is the body of a kernel with X and Y of (4, 256) int32: LOOPS of 128 threads, GROUPS of 256.
"""

_S = """
S = T.alloc_shared((256,), "int32")
tx = T.get_thread_binding()
"""

LOOPS = {
    "own_elements": f"""
{_S}
S[tx] = X[0, tx]
for k in T.serial(tx % 4):
    S[tx] = S[tx] + X[k, tx]
Y[0, tx] = S[127 - tx]
""",
    "own_trip_counts_from_the_tensor": f"""
{_S}
S[tx] = X[0, tx]
for k in T.serial(T.max(X[0, tx], 0)):
    Y[k, tx] = S[(tx + k) % 128]
S[tx] = X[1, tx]
Y[0, tx + 128] = S[tx ^ 1]
""",
    "histogram_by_strided_threads": f"""
{_S}
S[tx] = 0
for at in T.serial(tx, 256, 128):
    if X[0, at] >= 0:
        T.atomic_add(S[X[0, at]], 1)
Y[0, tx] = S[tx]
""",
    "uniform_loop_in_a_divergent_branch": f"""
{_S}
S[tx] = X[0, tx]
if X[1, tx] > 0:
    for k in T.serial(3):
        S[tx] = S[tx] + S[tx ^ 1]
        Y[k, tx] = S[127 - tx]
""",
    "divergent_branch_in_a_nest": f"""
{_S}
S[tx] = X[0, tx]
for k in T.serial(2):
    for j in T.serial(2):
        if X[k, tx] > j:
            S[tx] = S[tx ^ 1] + j
            Y[k, tx] = S[127 - tx]
        else:
            Y[k + 2, tx] = S[tx ^ 3]
""",
    "while_of_own_length": f"""
{_S}
n = T.alloc_var("int32")
S[tx] = X[0, tx]
n = X[1, tx]
while n > 0:
    Y[n - 1, tx] = S[(tx + n) % 128]
    n = n - 1
S[tx] = n
Y[3, tx] = S[127 - tx]
""",
    "tree_sum": f"""
{_S}
S[tx] = X[0, tx]
for k in T.serial(7):
    if tx < (64 >> k):
        S[tx] = S[tx] + S[tx + (64 >> k)]
if tx == 0:
    Y[0, 0] = S[0]
""",
    "scan_in_place": f"""
{_S}
S[tx] = X[0, tx]
for k in T.serial(7):
    x = T.if_then_else(tx >= (1 << k), S[T.max(tx - (1 << k), 0)], 0)
    S[tx] = S[tx] + x
Y[0, tx] = S[tx]
""",
    "odd_even_sort": f"""
{_S}
S[tx] = X[0, tx]
for k in T.serial(4):
    if tx % 2 == k % 2 and tx < 127:
        low = T.min(S[tx], S[tx + 1])
        high = T.max(S[tx], S[tx + 1])
        S[tx] = low
        S[tx + 1] = high
Y[0, tx] = S[tx]
""",
    "one_thread_for_all": f"""
{_S}
for k in T.serial(2):
    S[tx] = X[k, tx]
    if tx == 5:
        for j in T.serial(1, 128):
            S[j] = S[j] + S[j - 1]
    Y[k, tx] = S[127 - tx]
""",
}

GROUPS = {
    "one_group_writes_and_both_read": f"""
{_S}
L = T.alloc_fragment((128,), "int32")
R = T.alloc_fragment((128,), "int32")
with T.ws(0):
    T.copy(X[0, 0:128], L)
    T.copy(L, S[0:128])
with T.ws(1):
    for i in T.Parallel(128):
        R[i] = S[127 - i]
    T.copy(R, Y[0, 0:128])
""",
    "halves_that_swap": f"""
{_S}
L = T.alloc_fragment((128,), "int32")
R = T.alloc_fragment((128,), "int32")
for k in T.serial(2):
    T.copy(X[k, :], S)
    with T.ws(0):
        for i in T.Parallel(128):
            L[i] = S[255 - i] + k
        T.copy(L, Y[k, 0:128])
    with T.ws(1):
        for i in T.Parallel(128):
            R[i] = S[127 - i] - k
        T.copy(R, S[128:256])
        for i in T.Parallel(128):
            R[i] = S[255 - i]
        T.copy(R, Y[k, 128:256])
""",
    "arms_of_halves_through_a_tile": f"""
{_S}
if tx < 128:
    for i in T.Parallel(128):
        S[i] = X[0, i]
else:
    for i in T.Parallel(128):
        Y[0, i] = S[127 - i]
""",
    "branch_of_threads_in_a_group": f"""
{_S}
T.copy(X[0, :], S)
with T.ws(0):
    if tx % 2 == 0:
        S[tx] = X[1, tx]
with T.ws(1):
    if tx % 2 == 1:
        Y[0, tx] = S[tx - 128]
""",
    "arms_in_a_group": f"""
{_S}
L = T.alloc_fragment((128,), "int32")
T.copy(X[0, :], S)
with T.ws(0):
    T.copy(X[1, 0:128], L)
    T.copy(L, S[0:128])
with T.ws(1):
    if X[2, tx] > 0:
        S[tx] = X[3, tx]
    else:
        Y[0, tx] = S[tx]
""",
    "atomics_of_both_groups": f"""
{_S}
S[tx] = 0
with T.ws(0):
    T.atomic_add(S[T.max(X[0, tx], 0)], 1)
with T.ws(1):
    T.atomic_add(S[T.max(X[0, tx], 0)], 2)
Y[0, tx] = S[tx]
""",
    "warpgroups_in_divergent_branches": f"""
{_S}
S[tx] = X[0, tx]
if tx < 128:
    if X[1, tx] > 0:
        S[tx] = S[tx + 128]
else:
    if X[1, tx] > 0:
        S[tx] = S[tx - 128]
Y[0, tx] = S[255 - tx]
""",
    "groups_in_a_loop_with_a_break": f"""
{_S}
S[tx] = X[0, tx]
for k in T.serial(4):
    if X[k, 0] > 1:
        break
    with T.ws(0):
        S[tx] = S[tx + 128] + k
    with T.ws(1):
        S[tx] = S[tx - 128] - k
Y[0, tx] = S[255 - tx]
""",
}

# By name: the diagnostic's code, and the statements of a kernel of 128 threads.
UNSUPPORTED = {
    "while_that_some_leave": (
        "T2C-P002",
        f"""
{_S}
n = T.alloc_var("int32")
n = 0
while n < 4:
    S[tx] = X[n, tx]
    if S[tx ^ 1] > 2:
        break
    n = n + 1
""",
    ),
    "while_of_own_length_that_exchanges": (
        "T2C-P002",
        f"""
{_S}
n = T.alloc_var("int32")
n = T.max(X[0, tx], 0)
while n > 0:
    S[tx] = n
    Y[0, tx] = S[tx ^ 1]
    n = n - 1
""",
    ),
    "exchange_in_a_loop_of_own_length": (
        "T2C-P002",
        f"""
{_S}
S[tx] = X[0, tx]
for k in T.serial(T.max(X[0, tx], 0)):
    S[tx] = S[tx ^ 1] + k
""",
    ),
    "tile_work_behind_a_continue": (
        "T2C-P004",
        f"""
{_S}
for k in T.serial(4):
    if X[k, tx] > 2:
        continue
    T.copy(X[k, :], S)
    Y[k, tx] = S[127 - tx]
""",
    ),
    "tile_work_of_those_that_stay": (
        "T2C-P004",
        f"""
{_S}
F = T.alloc_fragment((128,), "int32")
for k in T.Pipelined(4, num_stages=2):
    T.copy(X[k, :], S)
    for i in T.Parallel(128):
        F[i] = S[127 - i]
    T.copy(F, Y[k, 0:128])
    if X[k, tx] > 2:
        break
""",
    ),
    "arms_in_a_loop_of_own_length": (
        "T2C-P002",
        f"""
{_S}
S[tx] = X[0, tx]
for k in T.serial(X[1, tx] % 2):
    if tx % 2 == 0:
        S[tx] = k
    else:
        Y[0, tx] = S[tx - 1]
""",
    ),
}
